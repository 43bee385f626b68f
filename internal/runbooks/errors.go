package runbooks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Codes of what Parse refuses. They are lint codes too.
const (
	CodeSyntax    = "runbook-syntax"     // not as the format has to be
	CodeTwice     = "runbook-step-twice" // an id that another step has already
	CodeHidden    = "runbook-hidden"     // what a person does not see: controls, bidi, a step inside something else
	CodeTooLarge  = "runbook-too-large"  // over a limit of the format
	CodeNotPlain  = "runbook-yaml-trap"  // YAML that means more, or something else, than it shows
	CodeUnknown   = "runbook-unknown-key"
	CodeMissing   = "runbook-missing-key"
	CodeDuplicate = "runbook-key-twice"
)

// maxErrors is how many errors are told of one file: a person mends a screenful
// at a time.
const maxErrors = 20

// ErrorAt is one thing in a file that is not as it has to be.
type ErrorAt struct {
	File     string
	Line     int // from 1
	Column   int // from 1, in characters
	Path     string
	Code     string
	Sentence string
}

func (e *ErrorAt) Error() string {
	where := fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	if e.Path != "" {
		where += ": " + e.Path
	}
	return where + ": " + e.Sentence
}

// Errors are the errors of one file in the order of its lines.
type Errors []*ErrorAt

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// problems collects errors of one file.
type problems struct {
	file string
	errs Errors
}

func (p *problems) at(pos Pos, path, code, format string, args ...any) {
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, &ErrorAt{File: p.file, Line: pos.Line, Column: pos.Column, Path: path, Code: code, Sentence: fmt.Sprintf(format, args...)})
	}
}

// err is what was collected, sorted; nil when there is nothing.
func (p *problems) err() error {
	if len(p.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(p.errs, func(a, b *ErrorAt) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return p.errs
}
