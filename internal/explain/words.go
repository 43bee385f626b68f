package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

func say(code, format string, args ...any) Sentence {
	return Sentence{Code: code, Text: fmt.Sprintf(format, args...)}
}

// sayConsole is for what no host checks.
func sayConsole(code, format string, args ...any) Sentence {
	s := say(code, format, args...)
	s.ConsoleOnly = true
	return s
}

func compare[T cmp.Ordered](a, b T) int { return cmp.Compare(a, b) }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// list is "a", "a and b", "a, b and c"; "nobody" when it is empty.
func list(names []string) string {
	switch len(names) {
	case 0:
		return "nobody"
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// either is "a", "a or b", "a, b or c": any one of them, not all together.
func either(names []string) string {
	if len(names) < 2 {
		return list(names)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// things is list for what is not people.
func things(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return list(names)
}

// sentence ends a text of the policy with a full stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

func trimStop(text string) string { return strings.TrimRight(strings.TrimSpace(text), ".") }

// quote marks where a text of the policy begins and ends.
func quote(text string) string { return `"` + text + `"` }

// when is a time as a person reads it.
func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}

// scopeWords is where a right holds.
func scopeWords(scope []string) string {
	switch {
	case len(scope) == 0:
		return "in no service"
	case slices.Contains(scope, model.AnyScope):
		return "in every service"
	default:
		return "in " + list(scope)
	}
}

// wants spells out a group: "2 of fiona, ravi", nested groups in brackets.
func (p *page) wants(group string) string { return wants(p.Root, group, maxGroupDepth) }

// maxGroupDepth bounds the spelling of a draft whose groups hold one another.
const maxGroupDepth = 4

func wants(root *policy.Root, group string, depth int) string {
	g, ok := root.Groups[group]
	if !ok {
		return "there is no such group"
	}
	names := make([]string, len(g.Of))
	for i, member := range g.Of {
		names[i] = member
		if _, nested := root.Groups[member]; nested && depth > 0 {
			names[i] += " (" + wants(root, member, depth-1) + ")"
		}
	}
	return fmt.Sprintf("%d of %s", g.Any, strings.Join(names, ", "))
}

// isSomebody reports whether a name is a group or a person.
func (p *page) isSomebody(name string) bool {
	_, group := p.Root.Groups[name]
	_, person := p.Root.People[name]
	return group || person
}

// signs reports whether a document of this group belongs on the page: always
// when nobody in particular reads it.
func (p *page) signs(group string) bool {
	return p.as == "" || p.as == group || within(p.Root, group, p.as, maxGroupDepth)
}

// within reports whether a person or a group is anywhere in a group.
func within(root *policy.Root, group, member string, depth int) bool {
	return depth >= 0 && slices.ContainsFunc(root.Groups[group].Of, func(m string) bool {
		return m == member || within(root, m, member, depth-1)
	})
}

// holders lists the people and machines of a role.
func holders(root *policy.Root, role string) []string {
	var out []string
	for _, name := range sortedKeys(root.People) {
		if root.HasRole(role, policy.Signer{Name: name}) {
			out = append(out, name)
		}
	}
	for _, name := range sortedKeys(root.Machines) {
		if root.HasRole(role, policy.Signer{Name: name, Machine: true}) {
			out = append(out, name+" (a machine)")
		}
	}
	return out
}

// members lists the people anywhere in a group.
func members(root *policy.Root, group string) []string {
	var out []string
	for _, name := range sortedKeys(root.People) {
		if root.InGroup(group, name) {
			out = append(out, name)
		}
	}
	return out
}
