package promrules

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/untrusted"
	prom "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// Bounds and defaults of drafted signals.
const (
	maxJoined   = 300                              // bytes of the sentence about the other parts of an alert
	defaultStep = model.Duration(30 * time.Second) // when the group names no interval: what most servers evaluate at
	maxStep     = model.Duration(24 * time.Hour)   // a number that is older than a day steers nothing
	maxParts    = 16                               // numbers of one alert: nobody weighs more against each other
	MaxSignals  = 2_000                            // signals of one import: the policy's file holds no more of them
	agePerStep  = 4                                // max_age in steps: three missing samples are borne
)

// Draft is what an import makes of rule files.
type Draft struct {
	Signals   map[string]policy.Signal `json:"-"`               // by name
	Alerts    []Alert                  `json:"alerts"`          // in the order of the files
	Recording int                      `json:"recording_rules"` // rules that make numbers; they become no signals
	Skipped   []Problem                `json:"skipped"`         // documents of another kind
	Bad       []Problem                `json:"bad"`             // rules and files that could not be read
	Untold    int                      `json:"untold"`          // further ones, beyond the first 50
}

// Alert is what became of one alerting rule.
type Alert struct {
	Place
	Group   string    `json:"group"`
	Alert   string    `json:"alert"`
	Joined  string    `json:"joined"` // how the alert joins its signals; "" for one
	Signals []Drafted `json:"signals"`
}

// Drafted is one signal of an alert.
type Drafted struct {
	Name      string     `json:"name"`
	Query     string     `json:"query"`
	Above     *float64   `json:"above,omitempty"`
	Below     *float64   `json:"below,omitempty"`
	Unit      string     `json:"unit"`
	Decisions []Decision `json:"decisions"`
}

// Import drafts a signal for every number that the alerting rules of files look
// at. A rule that cannot be read or would make no valid signal is left out whole
// and reported in Bad.
func Import(sources []Source) *Draft {
	r := new(reader)
	for _, s := range sources {
		r.read(s)
	}
	d := &Draft{Signals: make(map[string]policy.Signal), Alerts: []Alert{}}
	recorded := make(map[string]parser.Expr)
	for _, rule := range r.rules {
		if rule.record != "" {
			d.Recording++
			if _, twice := recorded[rule.record]; !twice {
				recorded[rule.record] = rule.expr
			}
		}
	}
	i := importer{draft: d, recorded: recorded, names: names{make(map[string]bool), make(map[string]int)}, asked: make(map[string]string)}
	for _, rule := range r.rules {
		if rule.alert == "" {
			continue
		}
		if err := i.alert(rule); err != nil {
			r.failAt(rule.at, fmt.Sprintf("alert %s: %v", untrusted.Text(rule.alert, maxName), err))
		}
	}
	d.Skipped, d.Bad, d.Untold = append([]Problem{}, r.other...), append([]Problem{}, r.bad...), r.untold
	return d
}

// importer is one import under way.
type importer struct {
	draft    *Draft
	recorded map[string]parser.Expr
	names    names
	asked    map[string]string // the first signal by its query
}

// alert drafts the signals of one alerting rule: all of them or, with an error,
// none.
func (i *importer) alert(r rule) error {
	if err := numeric(r.expr); err != nil {
		return err
	}
	parts, how := split(r.expr)
	switch {
	case len(parts) > maxParts:
		return fmt.Errorf("it looks at %d numbers, at most %d are imported; make it several alerts", len(parts), maxParts)
	case len(i.draft.Signals)+len(parts) > MaxSignals:
		return fmt.Errorf("more than %d signals; import fewer files at a time", MaxSignals)
	}
	sketches := make([]*sketch, len(parts))
	for n, p := range parts {
		sketches[n] = sketchOf(p)
		sketches[n].recordings(i.recorded)
		if err := valid(sketches[n].query.String()); err != nil {
			return err
		}
	}
	out := Alert{Place: r.at, Group: untrusted.Text(r.group, maxName), Alert: untrusted.Text(r.alert, maxName)}
	names := make([]string, len(parts))
	for n, p := range parts {
		names[n] = i.names.take(r.alert, p.window)
	}
	if how.op != "" {
		out.Joined = untrusted.Text(how.text(names), maxJoined)
	}
	for n, s := range sketches {
		if out.Joined != "" {
			s.decide(codeJoined, "the alert fires on %s; a tier can ask for any or all of them", out.Joined)
		}
		query := s.query.String()
		if first, ok := i.asked[query]; ok {
			s.decide(codeSame, "the same query as %s: keep one, and use both thresholds in tiers", first)
		} else {
			i.asked[query] = names[n]
		}
		signal := s.signal(r, query)
		i.draft.Signals[names[n]] = signal
		drafted := Drafted{Name: names[n], Query: query, Unit: signal.Unit, Decisions: s.decisions}
		if signal.Abnormal != nil {
			drafted.Above, drafted.Below = signal.Abnormal.Above, signal.Abnormal.Below
		}
		out.Signals = append(out.Signals, drafted)
	}
	i.draft.Alerts = append(i.draft.Alerts, out)
	return nil
}

// valid reports whether a policy takes a query as it is printed.
func valid(query string) error {
	switch {
	case len(query) > policy.MaxText:
		return fmt.Errorf("its query has %d bytes, a signal's at most %d; make the number with a recording rule and import an alert on that", len(query), policy.MaxText)
	case untrusted.Text(query, len(query)) != query:
		return errors.New("its query holds characters that do not print; use other label values")
	}
	return OneSeries(query)
}

// text is the joint in words, with the names of the signals.
func (j *joint) text(names []string) string {
	if j.op == "" {
		return names[j.leaf]
	}
	return side(j.left, j.op, names) + " " + j.op + " " + side(j.right, j.op, names)
}

func side(j *joint, op string, names []string) string {
	if j.op == "" || j.op == op {
		return j.text(names)
	}
	return "(" + j.text(names) + ")"
}

// signal completes a sketch with what the rule says about time and about people.
func (s *sketch) signal(r rule, query string) policy.Signal {
	step := defaultStep
	if interval, err := prom.ParseDuration(r.interval); err == nil && interval > 0 {
		step = min(model.Duration(max(time.Duration(interval).Truncate(time.Second), time.Second)), maxStep)
		s.decide(codeAge, "step %s is the group's interval, max_age %d of them", step, agePerStep)
	} else {
		s.decide(codeAge, "step %s and max_age %s are defaults: the group has no interval", step, agePerStep*step)
	}
	switch held, err := prom.ParseDuration(r.held); {
	case err != nil || held == 0:
		s.decide(codeHeld, "the alert fires at once: a tier waits for at least two steps")
	default:
		s.decide(codeHeld, "the alert waits %s: for how long does a tier?", held)
	}
	if r.keep != "" {
		s.decide(codeHeld, "it keeps firing for %s: the way out of a tier is at least 3 times as long as the way in", untrusted.Text(r.keep, maxName))
	}
	if r.runbook == "" {
		s.decide(codeFits, "which right and which runbook fit?")
	} else {
		s.decide(codeFits, "which right and which runbook fit (the alert's: %s)?", untrusted.Text(r.runbook, maxURL))
	}
	return policy.Signal{Query: query, Unit: s.unit, MaxAge: agePerStep * step, Step: step, Abnormal: s.abnormal, Why: s.why(r)}
}

// why says where the number comes from and what is left to decide. When not every
// sentence fits, the codes of the others stand there.
func (s *sketch) why(r rule) string {
	head := "From the Prometheus alert " + untrusted.Text(r.alert, maxName)
	if r.group != "" {
		head += " of the group " + untrusted.Text(r.group, maxName)
	}
	if r.severity != "" {
		head += ", severity " + untrusted.Text(r.severity, maxName)
	}
	head += ". " + policy.DecideMark + " "
	rest := make([]string, len(s.decisions))
	for n, d := range s.decisions {
		rest[n] = d.Code
	}
	var said []string
	for n, d := range s.decisions {
		left := ""
		if n+1 < len(rest) {
			left = "; and " + strings.Join(rest[n+1:], ", ")
		}
		if len(head)+len(strings.Join(append(said, d.Sentence), "; "))+len(left) > policy.MaxText {
			return head + strings.Join(append(said, "and "+strings.Join(rest[n:], ", ")), "; ")
		}
		said = append(said, d.Sentence)
	}
	return head + strings.Join(said, "; ")
}

// Fragment prints the signals as they stand in a ladder.yaml.
func (d *Draft) Fragment() []byte {
	return policy.Canonical(&struct {
		Signals map[string]policy.Signal `yaml:"signals"`
	}{d.Signals})
}

// Into adds the signals to a ladder. It refuses to touch a signal that is there
// already, and then adds none.
func (d *Draft) Into(ladder *policy.LadderDoc) error {
	var there []string
	for _, a := range d.Alerts {
		for _, s := range a.Signals {
			if _, ok := ladder.Signals[s.Name]; ok {
				there = append(there, s.Name)
			}
		}
	}
	if len(there) > 0 {
		return fmt.Errorf("the ladder has signals of these names already: %s", untrusted.Text(strings.Join(there, ", "), maxDetail))
	}
	if ladder.Signals == nil {
		ladder.Signals = make(map[string]policy.Signal)
	}
	for name, s := range d.Signals {
		ladder.Signals[name] = s
	}
	return nil
}
