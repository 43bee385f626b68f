package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// Severity of a finding. An error is something that would not work or not be
// safe, or a departure from a MUST of the standard; a warning is something that
// a person should have decided knowingly, or a departure from a SHOULD.
type Severity string

// The severities. LintExcepted is a departure from the standard to which an
// exception in force agrees: it is still said.
const (
	LintError    Severity = "error"
	LintWarning  Severity = "warning"
	LintExcepted Severity = "excepted"
)

// Finding is one thing that lint has to say. Codes are stable words.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Path     string   `json:"path"` // such as rights.shed.tiers
	Line     int      `json:"line"` // from 1; 0 when the place is not known
	Col      int      `json:"col"`
	Sentence string   `json:"sentence"`
	Page     string   `json:"page"` // the page that explains the code
}

// pageOf is where the documentation of this software explains a code.
func pageOf(code string) string { return "docs/lint/" + code + ".md" }

func (f Finding) String() string {
	where := f.File
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Col)
	}
	if f.Path != "" {
		where += ": " + f.Path
	}
	return fmt.Sprintf("%s: %s (%s, %s)", where, f.Sentence, f.Severity, f.Code)
}

// Names are what a policy may refer to and does not define itself. A nil list
// means that the caller does not know, and nothing is checked against it.
type Names struct {
	Runbooks []string
	Bundled  []string  // backends that live in ic
	Now      time.Time // zero: nothing is checked for its age
	// Query says what is wrong with the query of a signal, "" for nothing: that
	// it can yield more than one series, say. PromQL is not read in this room;
	// nil: nobody knows.
	Query func(query string) (problem string)
}

// rule is one thing that lint knows. A new rule is a new row of its table.
type rule struct {
	code     string
	severity Severity
	check    func(l *lint, say say)
}

// say reports one finding at a path of a file.
type say func(file, path, format string, args ...any)

// lint is what rules look at. Documents that are missing are nil, and a rule
// about them stays silent.
type lint struct {
	Documents
	root   *Root
	names  Names
	alive  map[string]bool // people and machines with a key that is not revoked
	people []string        // people among them, sorted
}

// Lint applies every rule to documents that need not be signed. root may be nil
// when it could not be read; rules about people are then silent.
func Lint(docs Documents, root *Root, known Names) []Finding {
	l := &lint{Documents: docs, root: root, names: known, alive: make(map[string]bool)}
	if root != nil {
		// A root with a bad key is reported where it is read.
		keys, _ := root.index()
		for _, owner := range keys {
			if !owner.Revoked {
				l.alive[owner.Name] = true
			}
		}
		for _, name := range sortedKeys(root.People) {
			if l.alive[name] {
				l.people = append(l.people, name)
			}
		}
	}
	var out []Finding
	for _, r := range lintRules() {
		r.check(l, func(file, path, format string, args ...any) {
			out = append(out, l.finding(r.code, r.severity, file, path, format, args...))
		})
	}
	out = l.except(out)
	sortFindings(out)
	return out
}

func (l *lint) finding(code string, severity Severity, file, path, format string, args ...any) Finding {
	at := l.find(file, path)
	return Finding{Code: code, Severity: severity, File: file, Path: path, Line: at.Line, Col: at.Col, Sentence: fmt.Sprintf(format, args...), Page: pageOf(code)}
}

// LintFolder reads the drafts of a policy folder and applies every rule to what
// could be read. Findings come sorted by file and line.
func LintFolder(fsys fs.FS, known Names) ([]Finding, error) {
	docs, root, found, err := ReadDrafts(fsys)
	if err != nil {
		return nil, err
	}
	found = append(found, Lint(docs, root, known)...)
	sortFindings(found)
	return found, nil
}

func lintRules() []rule {
	return slices.Concat(headerRules(), rootRules(), featureRules(), dependencyRules(), standardRules(), ladderRules(), automaticRules(), exceptionRules(), rightRules(),
		controlRules(), backendRules(), journeyRules(), rangeRules())
}

// LintCodes lists the code of every rule, sorted, for documentation.
func LintCodes() []string {
	codes := map[string]bool{codeSyntax: true, codeNotCanonical: true, codeRoot: true, codeExceptionIdle: true}
	for _, r := range lintRules() {
		codes[r.code] = true
	}
	return slices.Sorted(maps.Keys(codes))
}

// NearestLintCode is the code that was probably meant by a word.
func NearestLintCode(word string) string {
	return slices.MinFunc(LintCodes(), func(a, b string) int { return cmp.Compare(Distance(word, a), Distance(word, b)) })
}

func sortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Code, b.Code))
	})
}

// find is the place of a path, or of the nearest thing around it that has one.
func (docs *Documents) find(file, path string) Pos {
	for {
		if at, ok := docs.where[file][path]; ok || path == "" {
			return at
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

// Codes of what is found while reading.
const (
	codeSyntax       = "syntax"
	codeNotCanonical = "not-canonical"
	codeRoot         = "root"
)

// ReadDrafts reads a policy folder for Lint: the newest root and every domain
// document, whether signed or not, canonical or not. What cannot be read is
// left out and reported.
func ReadDrafts(fsys fs.FS) (Documents, *Root, []Finding, error) {
	docs := Documents{Controls: make(map[Domain]*ControlsDoc), where: make(map[string]map[string]Pos)}
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return docs, nil, nil, fmt.Errorf("list the policy folder: %w", err)
	}
	root, found := docs.readDraftRoot(fsys)
	for _, entry := range entries {
		domain, ok := domainOf(entry.Name())
		if !ok || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		doc := newDocument(entry.Name())
		more, whole := docs.readDraft(fsys, entry.Name(), doc)
		found = append(found, more...)
		if whole {
			docs.put(domain, doc)
		}
	}
	sortFindings(found)
	return docs, root, found, nil
}

func (docs *Documents) readDraftRoot(fsys fs.FS) (*Root, []Finding) {
	last := newestRootFile(fsys)
	docs.rootFile = last
	root := new(Root)
	found, whole := docs.readDraft(fsys, last, root)
	if !whole {
		return nil, found
	}
	if err := root.Validate(); err != nil {
		found = append(found, Finding{Code: codeRoot, Severity: LintError, File: last, Line: 1, Col: 1, Sentence: err.Error(), Page: pageOf(codeRoot)})
	}
	return root, found
}

func (docs *Documents) readDraft(fsys fs.FS, file string, doc any) (found []Finding, whole bool) {
	raw, err := readFile(fsys, file, MaxDocument)
	if err != nil {
		return []Finding{{Code: codeSyntax, Severity: LintError, File: file, Sentence: fmt.Sprintf("it cannot be read: %v", err), Page: pageOf(codeSyntax)}}, false
	}
	docs.where[file] = make(map[string]Pos)
	err = parse(file, raw, doc, docs.where[file])
	code := codeSyntax
	if err == nil && !bytes.Equal(raw, Canonical(doc)) {
		err, code = sameBytes(file, raw, Canonical(doc)), codeNotCanonical
	}
	var all SyntaxErrors
	errors.As(err, &all)
	for _, e := range all {
		found = append(found, Finding{Code: code, Severity: LintError, File: file, Path: e.Path, Line: e.Line, Col: e.Col, Sentence: e.Sentence, Page: pageOf(code)})
	}
	return found, code == codeNotCanonical || err == nil
}
