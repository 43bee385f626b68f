package runbooks

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Finding is one thing that lint has to say, of the same shape as one about a
// policy. Its Path begins with the id of the step.
type Finding = policy.Finding

// Severities. An error keeps a runbook from being run; an info is said so that
// nobody is surprised.
const (
	LintError   = policy.LintError
	LintWarning = policy.LintWarning
	LintInfo    = policy.Severity("info")
)

// Codes of what lint finds in a runbook that Parse takes.
const (
	CodeNoTimeout    = "runbook-no-timeout"
	CodeNoOnTimeout  = "runbook-no-on-timeout"
	CodeNoProbe      = "runbook-no-probe"
	CodeNoUndo       = "runbook-no-undo"
	CodeUnknownStep  = "runbook-unknown-step"
	CodeCycle        = "runbook-cycle"
	CodeUnreachable  = "runbook-unreachable"
	CodeUnknownName  = "runbook-unknown-name"
	CodeWrongRole    = "runbook-wrong-role"
	CodeOutsideRight = "runbook-outside-right"
	CodeNeverAnswers = "runbook-never-answers"
	CodeOrigin       = "runbook-origin"
	CodeTooLong      = "runbook-too-long"
	CodeExpired      = "runbook-expired"
	CodeExpiresSoon  = "runbook-expires-soon"
	CodeNoEffect     = "runbook-no-effect"
	CodeRecoverOrder = "runbook-recover-order"
	CodeLead         = "runbook-lead"
	CodeUndoOther    = "runbook-undo-other"
	CodeSection      = "runbook-section"
	CodeShownOnly    = "runbook-shown-only"
	CodePlain        = "runbook-plain"
)

// SeverityOf is the severity of every code.
func SeverityOf() map[string]policy.Severity {
	out := make(map[string]policy.Severity)
	for _, code := range []string{
		CodeSyntax, CodeTwice, CodeHidden, CodeTooLarge, CodeNotPlain, CodeUnknown, CodeMissing, CodeDuplicate,
		CodeNoTimeout, CodeNoOnTimeout, CodeNoProbe, CodeNoUndo, CodeUnknownStep, CodeCycle, CodeUnreachable, CodeUnknownName, CodeWrongRole,
		CodeOutsideRight, CodeNeverAnswers, CodeOrigin, CodeTooLong, CodeExpired, CodeNoEffect, CodeRecoverOrder, CodeLead, CodeUndoOther,
	} {
		out[code] = LintError
	}
	out[CodeExpiresSoon], out[CodeSection] = LintWarning, LintWarning
	out[CodeShownOnly], out[CodePlain] = LintInfo, LintInfo
	return out
}

// expiresSoon is how long before its last day a runbook is spoken of: a month to
// read it again and sign it.
const expiresSoon = 30 * 24 * time.Hour

// Known is what a runbook may refer to and does not define itself. A nil map or
// list means that the caller does not know, and nothing is checked against it.
type Known struct {
	Now      time.Time // zero: nothing is checked for its age
	Owners   []string  // people and groups of the trust root
	Rights   map[string]policy.Right
	Roles    map[string]policy.Role
	Signals  map[string]policy.Signal
	Services map[string]policy.Service
	Tiers    []policy.Tier
	Features map[string]policy.Feature
	Controls map[string]policy.Control
	Backends map[string]policy.Backend
	Origins  []string // that an HTTP check may ask, as Origin prints them
	// Query says what is wrong with a query, "" for nothing. PromQL is not read in
	// this room; nil: nobody knows.
	Query func(query string) (problem string)
	// Bounds is between which numbers every value of a query lies; nil: nobody knows.
	Bounds func(query string) (low, high float64)
}

// KnownOf is what a policy defines. Now, Origins, Query and Bounds are the caller's.
func KnownOf(b *policy.Bundle) Known {
	k := Known{
		Rights: make(map[string]policy.Right), Roles: b.Root.Roles, Signals: b.Signals, Services: b.Services, Tiers: b.Tiers,
		Features: b.Features, Controls: b.Controls, Backends: b.Backends, Owners: []string{},
	}
	for _, name := range b.RightNames() {
		k.Rights[name], _, _ = b.Right(name)
	}
	for name := range b.Root.People {
		k.Owners = append(k.Owners, name)
	}
	for name := range b.Root.Groups {
		k.Owners = append(k.Owners, name)
	}
	return k
}

// lint is one pass over one runbook.
type lint struct {
	rb    *Runbook
	known Known
	found []Finding
}

// Lint says what is wrong with a runbook that Parse has taken. Findings come in
// the order of the file's lines.
func Lint(rb *Runbook, known Known) []Finding {
	l := &lint{rb: rb, known: known}
	l.shown()
	if rb.Manual {
		steps := "manual steps"
		if len(rb.Steps) == 1 {
			steps = "manual step"
		}
		l.add(CodePlain, Pos{1, 1}, "", "plain Markdown: it opens as a check list of %d %s, and nothing in it is run", len(rb.Steps), steps)
		for _, at := range rb.escaped {
			l.add(CodeHidden, at, "", "the line holds characters that nobody sees; they are shown as escapes")
		}
		return l.sorted()
	}
	l.front()
	for i := range rb.Steps {
		l.effect(i)
		l.names(i)
		l.questions(i)
		l.act(i)
	}
	l.flow()
	l.recoveries()
	return l.sorted()
}

// LintSource is Lint for bytes: what Parse refuses is a finding too.
func LintSource(name string, raw []byte, known Known) []Finding {
	rb, err := Parse(name, raw)
	if err == nil {
		return Lint(rb, known)
	}
	var all Errors
	errors.As(err, &all)
	var out []Finding
	for _, e := range all {
		out = append(out, Finding{Code: e.Code, Severity: LintError, File: e.File, Path: e.Path, Line: e.Line, Col: e.Column, Sentence: e.Sentence, Page: pageOf(e.Code)})
	}
	return out
}

// HasError reports whether a finding keeps a runbook from being run.
func HasError(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == LintError })
}

func pageOf(code string) string { return "docs/lint/runbook/" + code + ".md" }

func (l *lint) sorted() []Finding {
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Code, b.Code))
	})
	return l.found
}

func (l *lint) add(code string, at Pos, path, format string, args ...any) {
	severity := SeverityOf()[code]
	if code == CodeHidden && l.rb.Manual { // in what is only read it is no danger, but worth knowing
		severity = LintWarning
	}
	l.found = append(l.found, Finding{Code: code, Severity: severity, File: l.rb.File, Path: path, Line: at.Line, Col: at.Column, Sentence: fmt.Sprintf(format, args...), Page: pageOf(code)})
}

// say reports one finding at a value of a step, or at the nearest thing around it.
func (l *lint) say(code string, step int, path, format string, args ...any) {
	s := &l.rb.Steps[step]
	at, shown := Pos{s.Line, max(s.Column, 1)}, join(s.ID, path)
	for path != "" {
		if place, ok := l.rb.where[stepPath(step, path)]; ok {
			at = place
			break
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	l.add(code, at, shown, format, args...)
}

// shown says which fences look as if somebody expected them to run.
func (l *lint) shown() {
	for _, f := range l.rb.fences {
		word, _, _ := strings.Cut(f.Info, " ")
		switch strings.ToLower(word) {
		case "sh", "bash", "shell", "console", "zsh", "shell-session", "sql", "promql", "python":
			l.add(CodeShownOnly, Pos{f.Line, 1}, "", "a fence of %s is shown and never executed", quote(word))
		}
	}
}

// front checks what stands above.
func (l *lint) front() {
	at := func(path string) Pos {
		if place, ok := l.rb.where[path]; ok {
			return place
		}
		return Pos{1, 1}
	}
	now, until := l.known.Now, l.rb.ValidUntil
	switch {
	case now.IsZero():
	case l.rb.Expired(now):
		l.add(CodeExpired, at("valid_until"), "valid_until", "the runbook is valid until %s, and that day has come; read it again, and sign it with a later day", until.Format(dateForm))
	case until.Sub(now) < expiresSoon:
		l.add(CodeExpiresSoon, at("valid_until"), "valid_until", "the runbook is valid until %s: %d days are left to read it again", until.Format(dateForm), int(until.Sub(now)/(24*time.Hour)))
	}
	if l.known.Owners != nil && !slices.Contains(l.known.Owners, l.rb.Owner) {
		l.add(CodeUnknownName, at("owner"), "owner", "the trust root has neither a person nor a group %s%s", quote(l.rb.Owner), nearest(l.rb.Owner, l.known.Owners))
	}
	for i, name := range l.rb.Signals {
		if _, ok := l.known.Signals[name]; !ok && l.known.Signals != nil {
			path := fmt.Sprintf("signals[%d]", i)
			l.add(CodeUnknownName, at(path), path, "the ladder has no signal %s%s", quote(name), nearest(name, keysOf(l.known.Signals)))
		}
	}
	for _, s := range l.rb.sections {
		l.add(CodeSection, s.at, "", "no step stands under %s, so it is shown with the next one; if somebody has to do something here, make it a note", quote(s.title))
	}
}

// effect wants of every effect how long it may take, what follows, how it is
// proved and how it is taken back.
func (l *lint) effect(i int) {
	s := &l.rb.Steps[i]
	if s.Kind == KindWait && s.Wait != nil && s.Wait.Until != nil && s.OnTimeout == "" {
		l.say(CodeNoOnTimeout, i, "wait", "a wait until something needs on_timeout: what follows when at_most is over")
	}
	if !s.Kind.HasEffect() {
		return
	}
	kind := string(s.Kind)
	if s.Timeout == 0 {
		l.say(CodeNoTimeout, i, kind, "a step with an effect needs timeout: how long until it has to be proved")
	}
	if s.OnTimeout == "" {
		l.say(CodeNoOnTimeout, i, kind, "a step with an effect needs on_timeout: %s, %s, %s, or the id of a later step", OnStop, OnAsk, OnContinue)
	}
	if s.Probe == nil {
		l.say(CodeNoProbe, i, kind, "a step with an effect needs probe: the check that proves it, such as {reach: {at_least: 95}}")
	}
	if s.Undo == nil && s.Irreversible == "" {
		l.say(CodeNoUndo, i, kind, "a step with an effect needs undo, or irreversible: why there is none")
	}
	l.proves(i)
	l.undoes(i)
}

func keysOf[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// lastTier is the highest tier that a scope knows; known is false without a
// ladder.
func (k *Known) lastTier(scope string) (last int, known bool) {
	if k.Tiers == nil {
		return 0, false
	}
	for _, t := range k.Tiers {
		last = max(last, t.Tier)
	}
	if s, ok := k.Services[scope]; ok && scope != model.AnyScope {
		last = min(last, s.Tiers)
	}
	return last, true
}

// Codes lists all codes, sorted.
func Codes() []string { return keysOf(SeverityOf()) }

// NearestCode is the code that was probably meant by a word.
func NearestCode(word string) string {
	return slices.MinFunc(Codes(), func(a, b string) int { return cmp.Compare(policy.Distance(word, a), policy.Distance(word, b)) })
}

// CheckID says what is wrong with a word as the id of a runbook.
func CheckID(id string) error {
	if !directive.Name(id) {
		return fmt.Errorf("%s is no name for a runbook: lower-case letters, digits, - . _, starting with a letter or digit, at most %d bytes", quote(id), directive.MaxName)
	}
	return nil
}
