package tui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/untrusted"
)

// bookText is a runbook laid out for a width. It is kept: a long text is not
// wrapped again with every key.
type bookText struct {
	digest string
	width  int
	lines  []line

	scroll      scroll
	total, room int // as last drawn
}

// maxLine is how much of one line of a file is shown, in bytes.
const maxLine = 4096

// layOut fills the text for a runbook and a width, unless it is there already.
func (t *bookText) layOut(rb *runbooks.Runbook, width int) {
	if t.digest == rb.Digest && t.width == width {
		return
	}
	t.digest, t.width = rb.Digest, width
	t.lines = proseLines(rb.Intro, width)
	for i := range rb.Steps {
		t.lines = append(append(t.lines, nil), stepText(rb, i, width)...)
	}
	if rb.Outro != "" {
		t.lines = append(append(t.lines, nil), proseLines(rb.Outro, width)...)
	}
}

// stepText is a step as it is read: its heading, what it does, its prose.
func stepText(rb *runbooks.Runbook, i, width int) []line {
	s := &rb.Steps[i]
	lines := []line{rule(fmt.Sprintf("%s (%s, %s)", numbered(i+1, orDefault(s.Title, s.ID)), s.ID, s.Kind), width)}
	lines = append(lines, facts(saysFacts(s), width)...)
	if prose := proseLines(s.Prose, width); len(prose) > 0 {
		lines = append(append(lines, nil), prose...)
	}
	return lines
}

// numbered is a heading with its number, which many headings begin with themselves.
func numbered(n int, title string) string {
	if title != "" && title[0] >= '0' && title[0] <= '9' {
		return title
	}
	return fmt.Sprintf("%d. %s", n, title)
}

// saysFacts are what a step does, its act first.
func saysFacts(s *runbooks.Step) []fact {
	var list []fact
	for i, text := range s.Says() {
		f := fact{"", text, normal}
		if i == 0 {
			f = fact{"does", text, strong}
		}
		list = append(list, f)
	}
	return list
}

// proseLines are text of a file: the lines of a paragraph are joined and wrapped
// between words, what stands in a fence is broken only where the window ends.
// Nothing of it is obeyed.
func proseLines(text string, width int) []line {
	if text == "" {
		return nil
	}
	var lines []line
	fence, paragraph := "", ""
	flush := func() {
		if paragraph == "" {
			return
		}
		for _, part := range wrap(paragraph, width-margin) {
			lines = append(lines, line{{spaces(margin), normal}, {part, normal}})
		}
		paragraph = ""
	}
	for _, raw := range strings.Split(text, "\n") {
		clean := untrusted.Text(strings.ReplaceAll(raw, "\t", "    "), maxLine)
		marker := fenceOf(clean)
		if fence != "" || marker != "" || clean == "" || beginsAnew(clean) {
			flush()
		}
		switch {
		case fence != "" || marker != "":
			if fence == "" {
				fence = marker
			} else if strings.HasPrefix(marker, fence) {
				fence = ""
			}
			for _, part := range strings.Split(ansi.Hardwrap(clean, max(width-margin-2, 1), true), "\n") {
				lines = append(lines, line{{spaces(margin) + "│ ", faint}, {part, normal}})
			}
		case clean == "":
			lines = append(lines, nil)
		case paragraph != "":
			paragraph += " " + strings.TrimLeft(unmarked(clean), " ")
		default:
			paragraph = unmarked(clean)
			if strings.HasPrefix(clean, "#") {
				flush() // a heading is one line
			}
		}
	}
	flush()
	return lines
}

// unmarked is a line without the marks of bold text, which a terminal shows as they
// are.
func unmarked(s string) string { return strings.ReplaceAll(s, "**", "") }

// beginsAnew reports whether a line of Markdown does not go on with the paragraph
// before it: a heading, an item of a list, a quotation, a row of a table, code.
func beginsAnew(s string) bool {
	text := strings.TrimLeft(s, " ")
	if len(s)-len(text) >= 4 {
		return true
	}
	for _, mark := range []string{"#", ">", "|", "- ", "* ", "+ "} {
		if strings.HasPrefix(text, mark) {
			return true
		}
	}
	rest := strings.TrimLeft(text, "0123456789")
	return rest != text && (strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, ") "))
}

// fenceOf is the marker that opens or closes a fence; "" for another line.
func fenceOf(s string) string {
	s = strings.TrimLeft(s, " ")
	for _, c := range []string{"`", "~"} {
		if n := len(s) - len(strings.TrimLeft(s, c)); n >= 3 {
			return s[:n]
		}
	}
	return ""
}

// drawBook is the text of the runbook that was opened.
func (v *runbookView) drawBook(sc *scene) page {
	b := v.book(v.opened)
	if b == nil {
		return still(sentence(abnormal, "it no longer lies on the shelf: esc goes back", v.width))
	}
	if b.Runbook == nil {
		return still(append([]line{rule(b.ID, v.width)}, sentence(critical, b.Error, v.width)...))
	}
	top := []line{rule(b.Runbook.Title, v.width)}
	if v.refused != "" {
		top = append(top, sentence(abnormal, v.refused, v.width)...)
	}
	v.text.layOut(b.Runbook, v.width)
	lines := append(append(facts(v.bookHead(sc, b), v.width), nil), v.text.lines...)
	v.text.total, v.text.room = len(lines), max(v.height-len(top)-1, 1)
	v.text.scroll.top = min(v.text.scroll.top, max(len(lines)-v.text.room, 0))
	p := append(top, window(lines, v.text.scroll.top, v.text.room)...)
	foot := v.entry(b)
	if rest := len(lines) - v.text.scroll.top - v.text.room; rest > 0 {
		foot = fmt.Sprintf("%s below: down. %s", count(rest, "line"), foot)
	}
	for len(p) < v.height-1 {
		p = append(p, nil)
	}
	return still(append(p, line{{spaces(margin), faint}, {foot, faint}}))
}

// entry says what enter does here.
func (v *runbookView) entry(b *Book) string {
	switch {
	case v.follow != nil && v.follow.Runbook == b.ID && !v.follow.Finished:
		return "enter: to the run that you follow"
	case len(v.going(b.ID)) > 0:
		return "enter: take up the run that goes on"
	default:
		return "enter: start a run"
	}
}

// bookHead is what to know before the text.
func (v *runbookView) bookHead(sc *scene, b *Book) []fact {
	rb := b.Runbook
	var list []fact
	if rb.Manual {
		list = append(list, fact{"what", "plain Markdown: a check list of " + count(len(rb.Steps), "step") + ", nothing in it is run", normal})
	} else {
		list = append(list, fact{"use when", rb.UseWhen, normal},
			fact{"owner", fmt.Sprintf("%s; valid until %s, takes at most %s", rb.Owner, rb.ValidUntil.UTC().Format("2006-01-02"), rb.MaxDuration), normal})
	}
	list = append(list, signedFacts(sc, b)...)
	list = append(list, fact{"rehearsed", sc.rehearsed(sc.snap.World.Rehearsals["runbook/"+b.ID]), normal})
	return append(list, fact{"sha256", fmt.Sprintf("%.16s", rb.Digest), faint})
}
