package explain

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Reach says whether a change lets anybody do more than before. It is told from
// the field, never from a text.
type Reach string

// The three answers. Neither is also the answer where nobody can tell from the
// numbers, as for a new query.
const (
	Wider    Reach = "wider"
	Narrower Reach = "narrower"
	Neither  Reach = "neither"
)

// Difference is what changes from one policy to another.
type Difference struct {
	V            int        `json:"v"`
	Files        []FileDiff `json:"files"`        // the most dangerous first; empty when nothing changes
	Consequences []Change   `json:"consequences"` // what follows in money, also in documents that stay as they are
}

// FileDiff is what changes in one document, and who has to sign it.
type FileDiff struct {
	File    string   `json:"file"`
	Signers string   `json:"signers,omitempty"` // the group and its threshold; "" without a trust root
	Changes []Change `json:"changes"`           // the most dangerous first
}

// How a value changes.
const (
	changed   = "changed"
	added     = "added"
	removed   = "removed"
	reordered = "reordered"
)

// Change is one changed value.
type Change struct {
	Path  string `json:"path"` // as lint prints it, such as rights.shed.tiers.to
	How   string `json:"how"`  // changed, added, removed or reordered
	Old   string `json:"old,omitempty"`
	New   string `json:"new,omitempty"`
	Reach Reach  `json:"reach"`
	Text  string `json:"text"`

	danger int
}

// Diff says what changes from one policy to another, in sentences. No change is
// silent: two documents that are printed differently differ here. What a document
// says about money is computed for both and compared. Sources need no root; then
// nobody is named who signs.
func Diff(before, after Source) Difference {
	d := Difference{V: 1, Files: []FileDiff{}, Consequences: []Change{}}
	if before.Root != nil || after.Root != nil {
		d.add(diffRoot(before.Root, after.Root))
	}
	old, new := documentsOf(&before.Docs), documentsOf(&after.Docs)
	all := make(map[policy.Domain]bool)
	for domain := range old {
		all[domain] = true
	}
	for domain := range new {
		all[domain] = true
	}
	for _, domain := range sortedKeys(all) {
		w := &walk{before: before, after: after, rules: rulesOf(domain), domain: domain}
		w.document(string(domain)+".yaml", old[domain], new[domain])
		d.add(FileDiff{File: string(domain) + ".yaml", Signers: signersOf(after.Root, domain), Changes: w.out})
	}
	slices.SortStableFunc(d.Files, func(a, b FileDiff) int { return order(a.Changes[0], b.Changes[0]) })
	d.Consequences = append(d.Consequences, moneyChanges(before, after)...)
	return d
}

// Empty reports whether nothing changes.
func (d *Difference) Empty() bool { return len(d.Files) == 0 && len(d.Consequences) == 0 }

func (d *Difference) add(f FileDiff) {
	if len(f.Changes) == 0 {
		return
	}
	slices.SortStableFunc(f.Changes, func(a, b Change) int { return cmp.Or(order(a, b), cmp.Compare(a.Path, b.Path)) })
	d.Files = append(d.Files, f)
}

// order puts what widens first, and of that what is about money and people.
func order(a, b Change) int {
	rank := map[Reach]int{Wider: 0, Neither: 1, Narrower: 2}
	return cmp.Or(cmp.Compare(rank[a.Reach], rank[b.Reach]), cmp.Compare(a.danger, b.danger))
}

func signersOf(root *policy.Root, domain policy.Domain) string {
	if root == nil {
		return ""
	}
	rule, owned := root.Domains[domain]
	if !owned {
		return "nobody: the trust root names no group for it"
	}
	return rule.Group + ": " + spelled(root, rule.Group)
}

// spelled is a group with its threshold, its nested groups only in a root that is
// valid: in others they may hold themselves.
func spelled(root *policy.Root, group string) string {
	if root.Validate() != nil {
		return wants(root, group, 0)
	}
	return wants(root, group, maxGroupDepth)
}

func diffRoot(before, after *policy.Root) FileDiff {
	var old, new any
	file, signers := "", []string{}
	for _, r := range []*policy.Root{before, after} {
		if r == nil {
			continue
		}
		file = fmt.Sprintf("%s/%d.yaml", policy.RootsFolder, r.Version)
		words := fmt.Sprintf("%s of version %d: %s", r.Root, r.Version, spelled(r, r.Root))
		if !slices.Contains(signers, words) {
			signers = append(signers, words)
		}
	}
	if before != nil {
		old = before
	}
	if after != nil {
		new = after
	}
	w := &walk{rules: rootRules()}
	w.document(file, old, new)
	return FileDiff{File: file, Signers: strings.Join(signers, "; and "), Changes: w.out}
}

// moneyChanges compares the worst case of every bypass that is on both sides.
func moneyChanges(before, after Source) []Change {
	old, new := worstOf(before), worstOf(after)
	var out []Change
	for _, name := range sortedKeys(new) {
		was, there := old[name]
		is := new[name]
		if !there || was == is {
			continue
		}
		c := Change{Path: "rights." + name, How: changed, Old: was.WorstCase.String(), New: is.WorstCase.String()}
		verb := "rises"
		switch {
		case was.WorstCase.Currency != is.WorstCase.Currency:
			c.Reach, verb = Wider, "changes"
		case is.WorstCase.Minor > was.WorstCase.Minor:
			c.Reach = Wider
		case is.WorstCase.Minor < was.WorstCase.Minor:
			c.Reach, verb = Narrower, "falls"
		default:
			continue // only its terms have changed, and each of them is a change of its own
		}
		c.Text = fmt.Sprintf("%s: the worst case in one UTC day %s from %s to %s", name, verb, was.WorstCase, is.WorstCase)
		out = append(out, c)
	}
	slices.SortStableFunc(out, order)
	return out
}

func worstOf(src Source) map[string]Worst {
	out := make(map[string]Worst)
	p, err := newPage(src, "")
	if err != nil {
		return out // nobody can say what such documents cost; lint says what is wrong
	}
	for _, name := range p.b.RightNames() {
		if w := p.worst(name); w != nil && w.Hosts > 0 {
			out[name] = *w
		}
	}
	return out
}

// walk compares two documents of one type.
type walk struct {
	before, after Source // for saying what a whole right means; zero for a root
	domain        policy.Domain
	rules         map[string]rule
	out           []Change
}

// at is a place in both documents: its path, its path with * for every name, and
// the names on the way.
type at struct {
	path, pattern string
	names         []string
	member        bool // one value of the list that stands here
}

func (a at) field(key string) at {
	return at{path: join(a.path, key), pattern: join(a.pattern, key), names: a.names}
}

func (a at) entry(key, name string) at {
	return at{path: join(a.path, key), pattern: join(a.pattern, "*"), names: append(slices.Clone(a.names), name)}
}

func (a at) item(i int, name string) at {
	return at{path: fmt.Sprintf("%s[%d]", a.path, i), pattern: a.pattern + "[]", names: append(slices.Clone(a.names), name)}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// document compares two documents, one of which may be missing. One that is new
// is said entry by entry.
func (w *walk) document(file string, old, new any) {
	switch {
	case old != nil && new != nil:
		w.value(reflect.ValueOf(old).Elem(), reflect.ValueOf(new).Elem(), at{}, false)
		return
	case new != nil:
		empty := reflect.New(reflect.TypeOf(new).Elem()).Elem()
		w.value(empty, reflect.ValueOf(new).Elem(), at{}, false)
		w.out = slices.DeleteFunc(w.out, func(c Change) bool { return c.How != added })
		w.out = append(w.out, Change{How: added, New: compact(reflect.ValueOf(new).Elem()), Reach: Neither, Text: file + " is new"})
	case old != nil:
		empty := reflect.New(reflect.TypeOf(old).Elem()).Elem()
		w.value(reflect.ValueOf(old).Elem(), empty, at{}, false)
		w.out = slices.DeleteFunc(w.out, func(c Change) bool { return c.How != removed })
		w.out = append(w.out, Change{How: removed, Old: compact(reflect.ValueOf(old).Elem()), Reach: Neither, Text: file + " is gone: nothing of it is in force any more"})
	}
}

// value compares two values of one type. optional is a field that may be absent.
func (w *walk) value(a, b reflect.Value, here at, optional bool) {
	switch {
	case a.Kind() == reflect.Pointer:
		w.pointer(a, b, here)
	case policy.Scalar(a.Type()):
		w.leaf(a, b, here, optional)
	case a.Kind() == reflect.Struct:
		for _, f := range policy.FieldsOf(a.Type()) {
			w.value(a.FieldByIndex(f.Index), b.FieldByIndex(f.Index), here.field(f.Key), f.Optional)
		}
	case a.Kind() == reflect.Map:
		w.entries(a, b, here)
	case a.Kind() == reflect.Slice:
		w.items(a, b, here)
	}
}

func (w *walk) pointer(a, b reflect.Value, here at) {
	switch {
	case a.IsNil() && b.IsNil():
	case a.IsNil():
		w.report(here, added, a, b.Elem())
	case b.IsNil():
		w.report(here, removed, a.Elem(), b)
	default:
		w.value(a.Elem(), b.Elem(), here, false)
	}
}

func (w *walk) leaf(a, b reflect.Value, here at, optional bool) {
	if word(a) == word(b) {
		return
	}
	switch {
	case optional && a.IsZero():
		w.report(here, added, a, b)
	case optional && b.IsZero():
		w.report(here, removed, a, b)
	default:
		w.report(here, changed, a, b)
	}
}

func (w *walk) entries(a, b reflect.Value, here at) {
	for _, key := range unionOfKeys(a, b) {
		name := word(key)
		next := here.entry(name, name)
		old, new := a.MapIndex(key), b.MapIndex(key)
		switch {
		case !old.IsValid():
			w.report(next, added, reflect.Value{}, new)
		case !new.IsValid():
			w.report(next, removed, old, reflect.Value{})
		default:
			w.value(old, new, next, false)
		}
	}
}

// items compares two lists: of single values as collections, of numbers as one
// value, of groups of fields by what identifies them.
func (w *walk) items(a, b reflect.Value, here at) {
	switch element := a.Type().Elem(); {
	case element.Kind() == reflect.Int:
		if compact(a) != compact(b) {
			w.report(here, changed, a, b)
		}
	case element.Kind() == reflect.Struct && !policy.Scalar(element):
		w.structs(a, b, here)
	default:
		w.collection(a, b, here)
	}
}

func (w *walk) collection(a, b reflect.Value, here at) {
	one := here
	one.member = true
	left, found := make(map[string]int), false
	for i := range a.Len() {
		left[compact(a.Index(i))]++
	}
	for i := range b.Len() {
		if word := compact(b.Index(i)); left[word] > 0 {
			left[word]--
		} else {
			found = true
			w.report(one, added, reflect.Value{}, b.Index(i))
		}
	}
	for i := range a.Len() {
		if word := compact(a.Index(i)); left[word] > 0 {
			left[word]--
			found = true
			w.report(one, removed, a.Index(i), reflect.Value{})
		}
	}
	if !found && compact(a) != compact(b) {
		w.report(here, reordered, a, b)
	}
}

// structs pairs the groups of fields of two lists by what identifies them, so
// that one that was put in between does not make all the rest differ; by position
// where that is not unique.
func (w *walk) structs(a, b reflect.Value, here at) {
	old, ok1 := identities(a)
	new, ok2 := identities(b)
	if !ok1 || !ok2 {
		old, new = positions(a), positions(b)
	}
	var kept []string
	for i, id := range new {
		next := here.item(i, id)
		if from := slices.Index(old, id); from >= 0 {
			kept = append(kept, id)
			w.value(a.Index(from), b.Index(i), next, false)
		} else {
			w.report(next, added, reflect.Value{}, b.Index(i))
		}
	}
	var stayed []string
	for i, id := range old {
		if slices.Contains(new, id) {
			stayed = append(stayed, id)
		} else {
			w.report(here.item(i, id), removed, a.Index(i), reflect.Value{})
		}
	}
	if !slices.Equal(kept, stayed) {
		w.report(here, reordered, a, b)
	}
}

func positions(list reflect.Value) []string {
	out := make([]string, list.Len())
	for i := range out {
		out[i] = fmt.Sprintf("number %d", i+1)
	}
	return out
}

// identities names the items of a list; ok is false when two have one name.
func identities(list reflect.Value) (out []string, ok bool) {
	for i := range list.Len() {
		var id string
		switch item := list.Index(i).Interface().(type) {
		case policy.Tier:
			id = fmt.Sprintf("tier %d", item.Tier)
		case policy.Condition:
			id = item.Signal
		case policy.InventoryHost:
			id = item.Host
		default:
			return nil, false
		}
		if slices.Contains(out, id) {
			return nil, false
		}
		out = append(out, id)
	}
	return out, true
}

// report writes one change down. An invalid value is one that is not there.
func (w *walk) report(here at, how string, a, b reflect.Value) {
	c := Change{Path: here.path, How: how, Reach: Neither, danger: dangerOfUnknown}
	if a.IsValid() && !(a.Kind() == reflect.Pointer && a.IsNil()) && how != added {
		c.Old = compact(a)
	}
	if b.IsValid() && !(b.Kind() == reflect.Pointer && b.IsNil()) && how != removed {
		c.New = compact(b)
	}
	r, known := w.rules[here.pattern]
	if !known {
		r = plain(strings.ReplaceAll(lastKey(here.pattern), "_", " "))
	}
	sign := 0
	if how == changed {
		sign = signOf(a, b)
	}
	c.Reach, c.danger = r.reach(how, sign), r.danger
	c.Text = w.words(here, &r, &c, a, b, sign)
	w.out = append(w.out, c)
}

func lastKey(pattern string) string {
	pattern = strings.TrimSuffix(strings.TrimSuffix(pattern, "[]"), ".*")
	return pattern[strings.LastIndex(pattern, ".")+1:]
}

// signOf orders two values: 1 when b is more, -1 when it is less, 0 when nobody
// can say.
func signOf(a, b reflect.Value) int {
	if m, ok := a.Interface().(model.Money); ok {
		n, _ := b.Interface().(model.Money)
		if m.Currency != n.Currency {
			return 0
		}
		return cmp.Compare(n.Minor, m.Minor)
	}
	switch a.Kind() {
	case reflect.Int, reflect.Int64:
		return cmp.Compare(b.Int(), a.Int())
	case reflect.Float64:
		return cmp.Compare(b.Float(), a.Float())
	case reflect.Bool:
		return map[bool]int{true: 1, false: -1}[b.Bool()]
	case reflect.Slice: // of numbers: the steps of a ramp
		return cmp.Compare(b.Len(), a.Len())
	}
	if t, ok := timeOf(a); ok {
		u, _ := timeOf(b)
		return u.Compare(t)
	}
	return 0
}
