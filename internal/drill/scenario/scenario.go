package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/drill/score"
)

// Extension ends the name of a scenario's file.
const Extension = ".scenario"

// Limits of a scenario file.
const (
	MaxBytes  = 2<<20 - 1       // 2 MiB and more is no text that anybody has read
	MaxLine   = 64 << 10        // bytes; a recorded series is the longest line there is
	MaxLines  = 20_000          // a hundred times the longest that ships
	MaxLasts  = 24 * time.Hour  // a night; the world keeps that much in memory
	MaxHosts  = 10_000          // the largest fleet that is measured
	MaxPoints = 24 * 60 * 60    // samples of one series: one a second for a day
	MaxSteps  = 1_000           // of one section
	MaxErrors = 20              // that are reported at once
	MaxAmount = 100_000_000_000 // of a bound, in its smallest unit
	MaxLoad   = 100 * million   // ppm of the design load: more than anybody's Black Friday
	MaxWithin = million         // ppm: a figure that may differ by more than itself is none
)

// Scenario is one drill as its file says it.
type Scenario struct {
	Name     string
	Title    string
	Source   string
	Why      []string
	Hosts    int
	Lasts    time.Duration
	People   []Person
	Shop     []Setting
	Expires  time.Duration // of the policy; 0: long after the end
	Series   []Series
	World    []Happening
	AbortIf  []Bound
	Baseline []Step
	IC       []Step // with ic; what is done beside the runbook, if there is one
	Ladder   bool   // with ic, the policy's own controller runs
	Runbook  string // is followed by the person of the act Follow
	Expect   []Expectation
	Fitted   []Fitted

	named ErrorAt // where its name stands
}

// Follow is the act that takes the runbook; nil: the scenario follows none.
func (s *Scenario) Follow() *Step {
	for i := range s.IC {
		if s.IC[i].Verb == verbFollow {
			return &s.IC[i]
		}
	}
	return nil
}

// Seat finds who of the scenario is meant by a role or a name, among those who are
// there; "" is the first.
func (s *Scenario) Seat(as string) (Person, error) {
	var there []string
	for _, p := range s.People {
		if p.Absent {
			continue
		}
		if as == "" || p.Name == as || p.Role == as {
			return p, nil
		}
		there = append(there, p.Name+" ("+p.Role+")")
	}
	return Person{}, fmt.Errorf("nobody in the scenario is %q; there are %s", as, strings.Join(there, ", "))
}

// Person is somebody of the drill. Reacts is the time from what can be seen to
// what is done; Acts is the time from one step of the same matter to the next.
type Person struct {
	Name, Role   string
	Reacts, Acts time.Duration
	Absent       bool // is never there
}

// Setting is a figure of the shop that differs from shop.Default.
type Setting struct {
	Line  int
	Name  string
	Of    string // a service, or ""
	Value int64  // in the setting's smallest unit; 1 is on
}

// Happening is something that the world does at a moment.
type Happening struct {
	Line  int
	At    time.Duration
	Verb  string // inject, clear, load
	Fault string
	Load  int64 // ppm of the design load
}

// Series is a recorded signal that is played in, in promtool's notation.
type Series struct {
	Line   int
	Every  time.Duration
	Text   string // as written
	Name   string
	Labels []string // pairs
	Points []Point
}

// Point is one sample; Gap is a scrape that brought nothing.
type Point struct {
	Value float64
	Gap   bool
}

// Cue is what a step waits for.
type Cue struct {
	Kind   CueKind
	At     time.Duration // at, time
	Signal string        // abnormal, normal
}

// CueKind names a cue.
type CueKind string

// The cues.
const (
	CueAt       CueKind = "at"       // the source says that it happened then; baseline only
	CueTime     CueKind = "time"     // from this moment it can be known
	CueAbnormal CueKind = "abnormal" // a signal of the policy turns abnormal
	CueNormal   CueKind = "normal"   // it is a known number and normal again
	CueSkew     CueKind = "skew"     // hosts differ from what was issued, over the share that alarms
	CueThen     CueKind = "then"     // the step before is done
)

// Step is one act of a person, or a machine's if Who is ladder.
type Step struct {
	Line int
	Cue  Cue
	Who  string
	Verb string
	Args []string
}

// Bound is a figure and what it is compared with.
type Bound struct {
	Line   int
	Figure Figure
	Op     string // < <= = >= > within
	Value  int64  // in the figure's smallest unit
	Within int64  // ppm
}

// Expectation is a bound on one mode of the run.
type Expectation struct {
	Bound
	Mode score.Mode
}

// Figure is a number of a record.
type Figure struct {
	Name string
	Of   string        // a service, an outcome, a code
	When string        // "", at, until
	Time time.Duration // with When
}

// Fitted is a parameter that the source does not give.
type Fitted struct {
	Line             int
	Name, Value, Why string
}
