// Package runbook holds the pages that explain what ic runbook lint says, one for
// each code, so that they can be read where there is no network.
//
// May import: the standard library. Must never decide anything: the rules are in
// internal/runbooks, and a test there holds rules and pages together.
package runbook

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed *.md
var pages embed.FS

const (
	suffix = ".md"
	index  = "README" + suffix // of the folder, no page of a code
)

// Page is the page of a code, in Markdown; ok is false when there is none.
func Page(code string) (text string, ok bool) {
	raw, err := pages.ReadFile(code + suffix)
	return string(raw), err == nil && code+suffix != index
}

// Index is the page that lists all codes.
func Index() string {
	raw, _ := pages.ReadFile(index) // embedded by the line above
	return string(raw)
}

// Codes lists the codes that have a page, sorted.
func Codes() []string {
	names, _ := fs.Glob(pages, "*"+suffix) // the pattern is a good one
	codes := make([]string, 0, len(names))
	for _, name := range names {
		if name != index {
			codes = append(codes, strings.TrimSuffix(name, suffix))
		}
	}
	return codes
}
