package runbooks

import (
	"bytes"
	"strings"

	"github.com/degradedmode/ic/internal/untrusted"
)

// OriginsFile is the file beside the runbooks that lists what an HTTP check may
// ask. It is signed like a runbook.
const OriginsFile = "origins.txt"

// maxOrigins bounds the list: more than this is no list of health pages.
const maxOrigins = 100

// ParseOrigins reads an origins file: one origin a line, such as
// https://shop.example or http://10.0.0.7:8080; empty lines and lines that start
// with # are left out. The error is an Errors.
func ParseOrigins(name string, raw []byte) ([]string, error) {
	p := &problems{file: untrusted.Text(name, maxText)}
	if len(raw) > MaxFile {
		p.at(Pos{1, 1}, "", CodeTooLarge, "the file has %d bytes, at most %d", len(raw), MaxFile)
		return nil, p.err()
	}
	checkBytes(p, raw)
	out := []string{}
	for i, line := range bytes.Split(raw, []byte("\n")) {
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		switch origin := Origin(text); {
		case origin == "":
			p.at(Pos{i + 1, 1}, "", CodeSyntax, "%s is no origin; write scheme and host, such as https://shop.example", quote(text))
		case origin != text:
			p.at(Pos{i + 1, 1}, "", CodeSyntax, "%s: write it as %s", quote(text), origin)
		case len(out) == maxOrigins:
			p.at(Pos{i + 1, 1}, "", CodeTooLarge, "more than %d origins", maxOrigins)
		default:
			out = append(out, origin)
		}
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return out, nil
}
