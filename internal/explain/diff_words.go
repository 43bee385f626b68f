package explain

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/degradedmode/ic/internal/policy"
)

// words is the sentence for one change, without a full stop.
func (w *walk) words(here at, r *rule, c *Change, a, b reflect.Value, sign int) string {
	subject := strings.Join(here.names, ", ")
	entry := strings.HasSuffix(here.pattern, "*") || strings.HasSuffix(here.pattern, "[]")
	if entry && c.How != changed {
		return w.entryWords(here, r, c, b)
	}
	if special := specialWords(here, c, a, b); special != "" {
		return prefixed(subject, special)
	}
	noun := r.noun
	if entry { // of a map of single values: the last name is what it is called
		subject = strings.Join(here.names[:len(here.names)-1], ", ")
		noun += " " + here.names[len(here.names)-1]
	}
	if r.on != "" { // a truth value that is absent is false
		return prefixed(subject, map[bool]string{true: r.on, false: r.off}[sign > 0 || c.How == added])
	}
	switch c.How {
	case added:
		if here.member {
			return prefixed(subject, fmt.Sprintf("%s: %s is added", noun, c.New))
		}
		return prefixed(subject, fmt.Sprintf("%s is new: %s", noun, c.New))
	case removed:
		if here.member {
			return prefixed(subject, fmt.Sprintf("%s: %s is removed", noun, c.Old))
		}
		return prefixed(subject, fmt.Sprintf("%s is gone; it was %s", noun, c.Old))
	case reordered:
		return prefixed(subject, fmt.Sprintf("%s: the same in another order", noun))
	}
	return prefixed(subject, noun+" "+changeVerb(a, sign)+" from "+spoken(a)+" to "+spoken(b))
}

func prefixed(subject, text string) string {
	if subject == "" {
		return text
	}
	return subject + ": " + text
}

func spoken(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return quote(v.String())
	}
	return compact(v)
}

func changeVerb(v reflect.Value, sign int) string {
	if _, isTime := timeOf(v); isTime {
		return "moves"
	}
	switch {
	case v.Kind() == reflect.Slice:
		return "changes"
	case sign > 0:
		return "rises"
	case sign < 0:
		return "falls"
	default:
		return "changes"
	}
}

// entryWords is for a whole thing that has come or gone.
func (w *walk) entryWords(here at, r *rule, c *Change, b reflect.Value) string {
	last := len(here.names) - 1
	subject, name := strings.Join(here.names[:last], ", "), here.names[last]
	if c.How == removed {
		return prefixed(subject, fmt.Sprintf("%s %s is gone; it was %s", r.noun, name, c.Old))
	}
	if right, ok := b.Interface().(policy.Right); ok && w.after.Root != nil {
		if meaning := w.meaning(name, right); meaning != "" {
			return fmt.Sprintf("%s %s is new. %s", r.noun, name, meaning)
		}
	}
	return prefixed(subject, fmt.Sprintf("%s %s is new: %s", r.noun, name, c.New))
}

// meaning is a new right as explain says it; "" when nobody can say.
func (w *walk) meaning(name string, right policy.Right) string {
	p, err := newPage(w.after, "")
	if err != nil {
		return ""
	}
	var out []string
	for _, part := range p.rightParts(w.domain, map[string]policy.Right{name: right}) {
		for _, s := range part.Sentences {
			out = append(out, s.Text)
		}
	}
	return trimStop(strings.Join(out, " "))
}

// specialWords are for changes that a number alone would not say.
func specialWords(here at, c *Change, a, b reflect.Value) string {
	if c.How != changed {
		return ""
	}
	switch here.pattern {
	case "rights.*.cosign.count":
		switch was, is := a.Int(), b.Int(); {
		case was == 1 && is == 0:
			return "a second signature is no longer wanted"
		case was == 0 && is == 1:
			return "a second signature is wanted now"
		case is == 0:
			return fmt.Sprintf("nobody signs besides any more; %d people had to", was)
		}
	case "features.*.class":
		return fmt.Sprintf("its class changes from %s to %s: it %s now", a, b, classVerb(policy.Class(b.String())))
	case "controls.*.fails":
		if b.String() == string(policy.FailsOpen) {
			return "it fails open now: when what it asks is gone, everything is let through"
		}
		return "it fails closed now: when what it asks is gone, it refuses"
	}
	return ""
}

func classVerb(c policy.Class) string {
	switch c {
	case policy.Critical:
		return "is shed last"
	case policy.Degradable:
		return "gets simpler"
	default:
		return "goes first"
	}
}

// Text writes a difference as plain text.
func (d *Difference) Text(w io.Writer) {
	if d.Empty() {
		fmt.Fprintln(w, "nothing changes")
		return
	}
	for _, f := range d.Files {
		fmt.Fprintf(w, "%s\n", clean(f.File))
		if f.Signers != "" {
			fmt.Fprintln(w, wrap("to be signed by "+f.Signers, "  ", "  "))
		}
		for _, c := range f.Changes {
			writeChange(w, c)
		}
		fmt.Fprintln(w)
	}
	if len(d.Consequences) > 0 {
		fmt.Fprintln(w, "What follows in money")
		for _, c := range d.Consequences {
			writeChange(w, c)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, d.summary())
}

// reachColumn is as wide as the longest word for a reach and two spaces.
const reachColumn = 10

func writeChange(w io.Writer, c Change) {
	label := ""
	if c.Reach != Neither {
		label = string(c.Reach)
	}
	fmt.Fprintln(w, wrap(c.Text, fmt.Sprintf("  %-*s", reachColumn, label), strings.Repeat(" ", reachColumn+2)))
}

func (d *Difference) summary() string {
	n := make(map[Reach]int)
	for _, f := range d.Files {
		for _, c := range f.Changes {
			n[c.Reach]++
		}
	}
	return fmt.Sprintf("%d wider, %d narrower, %d neither", n[Wider], n[Narrower], n[Neither])
}
