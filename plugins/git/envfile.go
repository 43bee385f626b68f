package git

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/degradedmode/ic/plugins/sdk"
)

var prefix = []byte(sdk.Name + "=")

// otherForms finds the name where it is not written as we write it: indented,
// exported, with blanks around the sign.
var otherForms = regexp.MustCompile(`(?m)^[ \t]*(?:export[ \t]+)?` + sdk.Name + `[ \t]*=`)

// entry is our line of an environment file.
type entry struct {
	found      bool
	value      string
	start, end int // of the line without its ending
}

// find looks for our line. It fails when the name stands there in a way that
// cannot be edited without guessing.
func find(text []byte) (entry, error) {
	var out entry
	for start := 0; start < len(text); {
		line := text[start:]
		next := len(text)
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line, next = line[:i], start+i+1
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if bytes.HasPrefix(line, prefix) {
			if out.found {
				return out, fmt.Errorf("%s stands there more than once", sdk.Name)
			}
			out = entry{found: true, value: string(line[len(prefix):]), start: start, end: start + len(line)}
		} else if otherForms.Match(line) {
			return out, fmt.Errorf("%s stands there in another form than %s=value", sdk.Name, sdk.Name)
		}
		start = next
	}
	return out, nil
}

// set writes value into our line, or appends the line.
func set(text []byte, at entry, value string) []byte {
	line := append(bytes.Clone(prefix), value...)
	if at.found {
		return splice(text, at.start, at.end, line)
	}
	out := bytes.Clone(text)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	return append(append(out, line...), '\n')
}

// unset takes our line away, with its ending.
func unset(text []byte, at entry) []byte {
	end := at.end
	if bytes.HasPrefix(text[end:], []byte("\r")) {
		end++
	}
	if bytes.HasPrefix(text[end:], []byte("\n")) {
		end++
	}
	return splice(text, at.start, end, nil)
}

func splice(text []byte, from, to int, middle []byte) []byte {
	out := append(bytes.Clone(text[:from]), middle...)
	return append(out, text[to:]...)
}
