package explain

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/degradedmode/ic/internal/untrusted"
)

// Columns is how wide text is set: it is read on paper and in a mail too.
const Columns = 92

// maxSentence bounds one sentence in bytes: three texts of a policy and room.
const maxSentence = 8 << 10

// consoleMark follows every sentence that no host enforces.
const consoleMark = " [console only]"

// Text writes a report as plain text.
func (r *Report) Text(w io.Writer) {
	head := "The policy of " + r.Fleet
	if r.As != "" {
		head += ", as far as " + r.As + " signs it"
	}
	fmt.Fprintln(w, clean(head))
	if !r.Signed {
		fmt.Fprintln(w, "Not everything on this page is signed and in force; each document says so.")
	}
	fmt.Fprintln(w, wrap("What is marked"+consoleMark+" binds whoever uses the console; hosts do not check it.", "", ""))
	writeSections(w, r.Sections)
}

func writeSections(w io.Writer, sections []Section) {
	for i := range sections {
		s := &sections[i]
		fmt.Fprintf(w, "\n%s\n%s\n", clean(s.Title), strings.Repeat("-", min(utf8.RuneCountInString(clean(s.Title)), Columns)))
		for _, part := range s.Parts {
			writePart(w, part)
		}
	}
}

func writePart(w io.Writer, part Part) {
	fmt.Fprintln(w)
	if part.Name != "" {
		fmt.Fprintln(w, "  "+clean(part.Name))
	}
	for _, s := range part.Sentences {
		text := s.Text
		if s.ConsoleOnly {
			text += consoleMark
		}
		fmt.Fprintln(w, wrap(text, "  - ", "    "))
	}
}

// clean is what a terminal may be given: drafts are read before anybody has
// checked that they are printable.
func clean(s string) string { return untrusted.Text(s, maxSentence) }

// wrap breaks a text between words.
func wrap(text, first, rest string) string {
	var out strings.Builder
	line, indent := first, first
	for _, word := range strings.Fields(clean(text)) {
		switch {
		case line == indent:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= Columns:
			line += " " + word
		default:
			out.WriteString(line + "\n")
			line, indent = rest+word, rest
		}
	}
	return out.String() + line
}
