package runbooks

import (
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// Runbook is one file as it was read. It is never changed afterwards.
type Runbook struct {
	File        string         `json:"file"`     // its name, for messages
	ID          string         `json:"id"`       // the file's name without ".md"; of plain Markdown too
	Title       string         `json:"title"`    // the first heading of the first level
	Owner       string         `json:"owner"`    // a person or group of the trust root
	UseWhen     string         `json:"use_when"` // one sentence: when to take this one
	Signals     []string       `json:"signals,omitempty"`
	ValidUntil  time.Time      `json:"valid_until,omitzero"` // midnight UTC: from then on it is no longer valid; zero for plain Markdown
	MaxDuration model.Duration `json:"max_duration"`         // longest time from start to end, waits and timeouts included
	Intro       string         `json:"intro,omitempty"`      // what stands before the first step, as written
	Steps       []Step         `json:"steps"`
	Outro       string         `json:"outro,omitempty"` // what stands after the last step, under a heading of its own
	Manual      bool           `json:"manual"`          // plain Markdown: a check list of manual steps
	Digest      string         `json:"digest"`          // hex SHA-256 of Source
	Source      []byte         `json:"-"`               // the exact bytes

	where    map[string]Pos // places of values by path, such as steps[2].do.right
	fences   []Fence        // all that are shown, in order
	sections []section      // headings of a strict runbook that lead to no step
	escaped  []Pos          // plain Markdown: lines with characters that are shown as escapes
}

// Pos is a place in the file: line and column, both from 1, the column in
// characters.
type Pos struct{ Line, Column int }

// Kind says what a step does. The set is closed.
type Kind string

// The kinds of step. Manual is what a heading of plain Markdown becomes.
const (
	KindCheck   Kind = "check"
	KindDecide  Kind = "decide"
	KindDo      Kind = "do"
	KindRecover Kind = "recover"
	KindPush    Kind = "push"
	KindWait    Kind = "wait"
	KindNote    Kind = "note"
	KindManual  Kind = "manual"
)

// HasEffect reports whether steps of this kind change something outside.
func (k Kind) HasEffect() bool { return k == KindDo || k == KindRecover || k == KindPush }

// Step is one step. Exactly one of the bodies is set, the one that Kind names;
// a manual step has none.
type Step struct {
	ID     string `json:"id"`
	Title  string `json:"title"`           // the heading above it
	Prose  string `json:"prose,omitempty"` // text around it as written, fences included; never obeyed
	Line   int    `json:"line"`            // of its fence, or of its heading
	Column int    `json:"column"`
	Kind   Kind   `json:"kind"`

	Check   *Check   `json:"check,omitempty"`
	Decide  *Decide  `json:"decide,omitempty"`
	Do      *Do      `json:"do,omitempty"`
	Recover *Recover `json:"recover,omitempty"`
	Push    *Push    `json:"push,omitempty"`
	Wait    *Wait    `json:"wait,omitempty"`
	Note    *Note    `json:"note,omitempty"`

	Role         string         `json:"role,omitempty"`       // who takes the step: a role of the trust root; "" for whoever runs the runbook
	Timeout      model.Duration `json:"timeout,omitempty"`    // 0: none. A check, and a probe, is read again until it holds or the timeout is over
	OnTimeout    string         `json:"on_timeout,omitempty"` // OnStop, OnAsk, OnContinue, the id of a later step, or "" without timeout
	Probe        *Check         `json:"probe,omitempty"`      // how an effect is proved
	Undo         *Undo          `json:"undo,omitempty"`
	Irreversible string         `json:"irreversible,omitempty"` // why there is no undo
	Then         string         `json:"then,omitempty"`         // the id of a later step, ToEnd, or "" for the next one

	Fences []Fence `json:"fences,omitempty"` // fences of Prose that are no steps: shown, never executed
}

// What may stand in on_timeout besides the id of a later step.
const (
	OnStop     = "stop"     // the run stops here and a person decides
	OnAsk      = "ask"      // the person is asked: wait again, go on or stop
	OnContinue = "continue" // on with the next step
)

// ToEnd is the word for "the run is over" where the id of a step may stand.
const ToEnd = "end"

// Fence is a fenced block of the prose. Nothing ever executes it.
type Fence struct {
	Info string `json:"info"` // what stands behind the opening fence, such as "sh"
	Text string `json:"text"`
	Line int    `json:"line"` // of the opening fence
}

// Check is one question to reality. Exactly one of the pointers is set; Reach is
// for probes only.
type Check struct {
	PromQL *PromQL   `json:"promql,omitempty"`
	Signal *SignalIs `json:"signal,omitempty"`
	HTTP   *HTTP     `json:"http,omitempty"`
	Tier   *TierIs   `json:"tier,omitempty"`
	Skew   *Skew     `json:"skew,omitempty"`
	Bypass *BypassIs `json:"bypass,omitempty"`
	Reach  *Reach    `json:"reach,omitempty"`
	NoData string    `json:"no_data,omitempty"` // NoDataStop or NoDataAsk: what follows when there is no answer
}

// What may stand in no_data. A missing answer is never taken for yes.
const (
	NoDataStop = "stop"
	NoDataAsk  = "ask"
)

// PromQL holds when the one series of Query has compared as Is says for as long
// as For without a break.
type PromQL struct {
	Query string         `json:"query,omitempty"`
	Is    Comparison     `json:"is,omitempty"`
	For   model.Duration `json:"for,omitempty"` // 0: now
}

// SignalIs asks for a signal of the policy.
type SignalIs struct {
	Name string `json:"name"`
	Is   string `json:"is"` // SignalNormal or SignalAbnormal
}

// States of a signal, by the abnormal threshold that the policy gives it.
const (
	SignalNormal   = "normal"
	SignalAbnormal = "abnormal"
)

// HTTP holds when a GET of URL is answered with Status. Redirects are an answer,
// they are not followed.
type HTTP struct {
	URL    string `json:"url"`
	Status int    `json:"status"`
}

// TierIs holds when the tier in force for Scope is Is.
type TierIs struct {
	Scope string `json:"scope"`
	Is    int    `json:"is"`
}

// Skew holds when at least AtLeast percent of the hosts have the posture that was
// issued.
type Skew struct {
	AtLeast int `json:"at_least"`
}

// BypassIs asks whether a control is weakened anywhere.
type BypassIs struct {
	Control string `json:"control"`
	Is      string `json:"is"` // BypassOpen or BypassClosed
}

// States of a control.
const (
	BypassOpen   = "open"
	BypassClosed = "closed"
)

// Reach holds when at least AtLeast percent of the hosts that it concerns report
// the directive of this very step.
type Reach struct {
	AtLeast int `json:"at_least"`
}

// Decide asks a person; each answer leads somewhere.
type Decide struct {
	Ask     string   `json:"ask,omitempty"`
	Options []Option `json:"options,omitempty"`
}

// Option is one answer.
type Option struct {
	Choose string `json:"choose"` // one word
	Means  string `json:"means"`
	Goto   string `json:"goto"` // the id of a later step, or ToEnd
}

// Do uses a right. What is left out is what the right says.
type Do struct {
	Right    string         `json:"right,omitempty"`
	Scope    string         `json:"scope,omitempty"`
	Tier     int            `json:"tier,omitempty"` // shed; 0: the next one
	Feature  string         `json:"feature,omitempty"`
	Control  string         `json:"control,omitempty"`   // bypass: for the reader; it has to be the right's
	For      model.Duration `json:"for,omitempty"`       // bypass, freeze, ping; 0: as long as the right allows
	Under    model.Money    `json:"under,omitzero"`      // bypass: caps.under; zero: the right's own
	TargetMS int            `json:"target_ms,omitempty"` // dimmer
	Floor    int            `json:"floor,omitempty"`
	Ceiling  int            `json:"ceiling,omitempty"`
	Reason   string         `json:"reason,omitempty"`
}

// Recover takes one step of a recovery: from the tier above To.
type Recover struct {
	Scope   string `json:"scope"`
	To      int    `json:"to"`
	Percent int    `json:"percent"` // of hosts, a step of the tier's ramp
}

// Push sends what is in force through a break-glass backend, or takes back what
// this run pushed there. Exactly one is set.
type Push struct {
	Backend string `json:"backend,omitempty"`
	Undo    string `json:"undo,omitempty"`
}

// Wait waits for a check, at most AtMost, or for a time.
type Wait struct {
	Until  *Check         `json:"until,omitempty"`
	AtMost model.Duration `json:"at_most,omitempty"`
	For    model.Duration `json:"for,omitempty"`
}

// Note asks a person what was seen.
type Note struct {
	Ask string `json:"ask"`
}

// Undo takes a step's effect back. Exactly one is set.
type Undo struct {
	Do      *Do      `json:"do,omitempty"`
	Recover *Recover `json:"recover,omitempty"`
	Push    *Push    `json:"push,omitempty"`
}

// Comparison is the right side of `is: '< 0.5'`.
type Comparison struct {
	Op    string  `json:"op"` // one of < <= > >= == !=
	Value float64 `json:"value"`
}

// Holds reports whether v compares so. Nothing holds of a NaN.
func (c Comparison) Holds(v float64) bool {
	if v != v || c.Value != c.Value {
		return false
	}
	switch c.Op {
	case "<":
		return v < c.Value
	case "<=":
		return v <= c.Value
	case ">":
		return v > c.Value
	case ">=":
		return v >= c.Value
	case "==":
		return v == c.Value
	case "!=":
		return v != c.Value
	}
	return false
}

// possible reports whether a number from low to high can compare so.
func (c Comparison) possible(low, high float64) bool {
	switch c.Op {
	case "<":
		return low < c.Value
	case "<=":
		return low <= c.Value
	case ">":
		return high > c.Value
	case ">=":
		return high >= c.Value
	case "==":
		return low <= c.Value && c.Value <= high
	default:
		return low != high || low != c.Value
	}
}

// Step finds a step by its id; nil if there is none.
func (rb *Runbook) Step(id string) *Step {
	for i := range rb.Steps {
		if rb.Steps[i].ID == id {
			return &rb.Steps[i]
		}
	}
	return nil
}

// section is a heading under which no step stands.
type section struct {
	title string
	at    Pos
}

// Expired reports whether the runbook is no longer valid at now. A check list has
// no such day.
func (rb *Runbook) Expired(now time.Time) bool {
	return !rb.ValidUntil.IsZero() && !now.Before(rb.ValidUntil)
}
