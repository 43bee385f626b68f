package runbooks

// keyRule is one key of a mapping of the format.
type keyRule struct {
	name     string
	required bool
}

// shape is a mapping of the format: its keys, in the order of the specification.
type shape []keyRule

func need(names ...string) shape {
	out := make(shape, len(names))
	for i, name := range names {
		out[i] = keyRule{name, true}
	}
	return out
}

func (s shape) may(names ...string) shape {
	for _, name := range names {
		s = append(s, keyRule{name, false})
	}
	return s
}

func (s shape) names() []string {
	out := make([]string, len(s))
	for i, k := range s {
		out[i] = k.name
	}
	return out
}

// shapes are all mappings of the format, by the name that the specification gives
// them.
func shapes() map[string]shape {
	step := need("id").may(kindKeys()...).may("role", "timeout", "on_timeout", "probe", "undo", "irreversible", "then")
	return map[string]shape{
		"front matter": need("v", "id", "owner", "use_when").may("signals").then("valid_until", "max_duration"),
		"step":         step,
		"check":        shape{}.may(checkKeys()...).may("is", "for", "no_data"),
		"http":         need("url", "status"),
		"tier":         need("scope", "is"),
		"skew":         need("at_least"),
		"bypass":       need("control", "is"),
		"reach":        need("at_least"),
		"decide":       need("ask", "options"),
		"option":       need("choose", "means", "goto"),
		"do":           need("right").may("scope", "tier", "feature", "control", "for", "caps", "target_ms", "floor", "ceiling").then("reason"),
		"caps":         need("under"),
		"recover":      need("scope", "to", "percent"),
		"push":         shape{}.may("backend", "undo"),
		"wait":         shape{}.may("until", "at_most", "for"),
		"note":         need("ask"),
		"undo":         shape{}.may("do", "recover", "push"),
	}
}

func (s shape) then(names ...string) shape { return append(s, need(names...)...) }

// kindKeys are the keys of a step of which exactly one stands in it.
func kindKeys() []string {
	return []string{string(KindCheck), string(KindDecide), string(KindDo), string(KindRecover), string(KindPush), string(KindWait), string(KindNote)}
}

// checkKeys are the keys of a check of which exactly one stands in it.
func checkKeys() []string {
	return []string{"promql", "signal", "http", "tier", "skew", "bypass", "reach"}
}

// Limits of the format.
const (
	MaxFile     = 256 << 10 // bytes: two hundred steps with a page of prose each
	MaxSteps    = 200       // a run of more is no runbook but a program
	maxDepth    = 8         // nesting of YAML values; the deepest step uses 5
	maxText     = 300       // bytes of a sentence: four lines of a terminal
	maxQuery    = 2000      // bytes of PromQL
	maxURL      = 500       // bytes
	minOptions  = 2         // one answer is no decision
	maxOptions  = 9         // one key each
	maxSignals  = 16        // named in front matter
	maxStatus   = 599
	minStatus   = 100
	lastTier    = 6      // the highest tier that a policy may have
	maxLatency  = 60_000 // milliseconds, as in a policy
	percentMax  = 100
	formatV     = 1
	dateForm    = "2006-01-02"
	markdownExt = ".md"
)
