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
// safe; a warning is something that a person should have decided knowingly.
type Severity string

// The two severities.
const (
	LintError   Severity = "error"
	LintWarning Severity = "warning"
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
}

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
	Now      time.Time // zero: reviews are not checked for age
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
			at := l.find(file, path)
			out = append(out, Finding{Code: r.code, Severity: r.severity, File: file, Path: path, Line: at.Line, Col: at.Col, Sentence: fmt.Sprintf(format, args...)})
		})
	}
	sortFindings(out)
	return out
}

func lintRules() []rule {
	return slices.Concat(headerRules(), featureRules(), ladderRules(), rightRules(), controlRules(), backendRules(), journeyRules())
}

// LintCodes lists the code of every rule, sorted, for documentation.
func LintCodes() []string {
	codes := map[string]bool{codeSyntax: true, codeNotCanonical: true, codeRoot: true}
	for _, r := range lintRules() {
		codes[r.code] = true
	}
	return slices.Sorted(maps.Keys(codes))
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
	root := new(Root)
	found, whole := docs.readDraft(fsys, last, root)
	if !whole {
		return nil, found
	}
	if err := root.Validate(); err != nil {
		found = append(found, Finding{Code: codeRoot, Severity: LintError, File: last, Line: 1, Col: 1, Sentence: err.Error()})
	}
	return root, found
}

func (docs *Documents) readDraft(fsys fs.FS, file string, doc any) (found []Finding, whole bool) {
	raw, err := readFile(fsys, file, MaxDocument)
	if err != nil {
		return []Finding{{Code: codeSyntax, Severity: LintError, File: file, Sentence: fmt.Sprintf("it cannot be read: %v", err)}}, false
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
		found = append(found, Finding{Code: code, Severity: LintError, File: file, Path: e.Path, Line: e.Line, Col: e.Col, Sentence: e.Sentence})
	}
	return found, code == codeNotCanonical || err == nil
}

// each calls fn for every document that is there.
func (l *lint) each(fn func(file string, head Header)) {
	head := func(file Domain, doc any, there bool) {
		if there {
			fn(fileOf(file), headerOf(doc))
		}
	}
	head(Features, l.Features, l.Features != nil)
	head(Ladder, l.Ladder, l.Ladder != nil)
	head(Rights, l.Rights, l.Rights != nil)
	head(Backends, l.Backends, l.Backends != nil)
	head(Journeys, l.Journeys, l.Journeys != nil)
	for _, domain := range sortedKeys(l.Controls) {
		head(domain, l.Controls[domain], true)
	}
}

// eachRight calls fn for every right of every document.
func (l *lint) eachRight(fn func(file, path string, r *Right)) {
	walk := func(domain Domain, rights map[string]Right) {
		for _, name := range sortedKeys(rights) {
			r := rights[name]
			fn(fileOf(domain), "rights."+name, &r)
		}
	}
	if l.Rights != nil {
		walk(Rights, l.Rights.Rights)
	}
	for _, domain := range sortedKeys(l.Controls) {
		walk(domain, l.Controls[domain].Rights)
	}
}

func (l *lint) right(name string) bool {
	found := false
	l.eachRight(func(_, path string, _ *Right) { found = found || path == "rights."+name })
	return found
}

// control names the document that defines a control; "" if none does.
func (l *lint) control(name string) Domain {
	for _, domain := range sortedKeys(l.Controls) {
		if _, ok := l.Controls[domain].Controls[name]; ok {
			return domain
		}
	}
	return ""
}

// holders lists who may use a right, up to the tier given: people, and machines
// marked so.
func (l *lint) holders(r *Right, tier int) []Signer {
	if l.root == nil || l.root.Roles[r.Who].MaxTier < tier {
		return nil
	}
	var out []Signer
	for _, name := range l.people {
		if s := (Signer{Name: name}); l.root.HasRole(r.Who, s) {
			out = append(out, s)
		}
	}
	for _, name := range sortedKeys(l.root.Machines) {
		if s := (Signer{Name: name, Machine: true}); l.alive[name] && l.root.HasRole(r.Who, s) {
			out = append(out, s)
		}
	}
	return out
}

// owner reports whether a name is somebody of the root: a person or a group.
func (l *lint) owner(name string) bool {
	if l.root == nil {
		return true
	}
	_, person := l.root.People[name]
	_, group := l.root.Groups[name]
	return person || group
}

// service reports whether the ladder names a service, or cannot say.
func (l *lint) service(name string) bool {
	if l.Ladder == nil {
		return true
	}
	_, ok := l.Ladder.Services[name]
	return ok
}
