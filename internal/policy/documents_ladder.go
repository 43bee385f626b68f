package policy

import (
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// LadderDoc holds the signals and the tiers with their numbers.
type LadderDoc struct {
	Header     `yaml:",inline"`
	Signals    map[string]Signal    `yaml:"signals"`    // by name
	Services   map[string]Service   `yaml:"services"`   // by name: every service of the fleet
	Tiers      []Tier               `yaml:"tiers"`      // 2 to 6, ascending from 1; tier 0 is normal and not listed
	Automatic  Automatic            `yaml:"automatic"`  // limits of moves that no person makes
	Schedule   map[string]Event     `yaml:"schedule"`   // by name: busy times that are known ahead
	Exceptions map[string]Exception `yaml:"exceptions"` // by name: departures from the standard that reliability has agreed to
}

// Carries says what a service does with the criticality of a request.
type Carries string

// What a service may do with a criticality.
const (
	Assigns Carries = "assigns" // the edge: gives it by route
	Passes  Carries = "passes"  // hands it on, or lowers it
	Ignores Carries = "ignores" // neither: a departure from the standard
)

// Service is one service of the fleet.
type Service struct {
	Tiers        int       `yaml:"tiers"`              // how many tiers it knows, 1 to the last; beyond them it stays at its last
	Dependencies []string  `yaml:"dependencies"`       // services that it calls, and what it needs besides
	LocalState   bool      `yaml:"local_state"`        // it reads its tier from memory and keeps the last known good on disk; no request waits for a control plane
	Criticality  Carries   `yaml:"criticality"`        // assigns (at the edge), passes (or lowers) or ignores
	Capacity     float64   `yaml:"capacity"`           // requests per second that it serves with everything on, 0 to 100,000,000; 0: not measured
	Peak         float64   `yaml:"peak"`               // requests per second in the busiest hour, 0 to 100,000,000; 0: not measured
	GameDay      time.Time `yaml:"game_day,omitempty"` // UTC: the last one it took part in, absent for never; the standard asks for one a quarter
}

// Signal is one PromQL query that yields one number.
type Signal struct {
	Query    string         `yaml:"query"`              // PromQL that yields at most one series
	Unit     string         `yaml:"unit"`               // of the number: seconds, percent, ratio, requests per second
	MaxAge   model.Duration `yaml:"max_age"`            // oldest sample that still counts as a value; at least step
	Step     model.Duration `yaml:"step"`               // between two samples, above 0
	Abnormal *Threshold     `yaml:"abnormal,omitempty"` // beyond it the console speaks of the signal
	Right    string         `yaml:"right"`              // the right that fits when it is abnormal; "" for none
	Runbook  string         `yaml:"runbook"`            // the runbook that fits; "" for none
	Why      string         `yaml:"why"`                // where the number comes from
}

// Threshold is one comparison with a signal; exactly one of Above and Below is
// set.
type Threshold struct {
	Above *float64 `yaml:"above,omitempty"` // the reading is over it, in the signal's unit; -1,000,000,000,000 to 1,000,000,000,000
	Below *float64 `yaml:"below,omitempty"` // the reading is under it, in the signal's unit; -1,000,000,000,000 to 1,000,000,000,000
}

// Condition is a threshold held for a time. On the way out every reading of the
// window must satisfy it; anything but a value does not.
type Condition struct {
	Signal    string `yaml:"signal"` // a signal of this document
	Threshold `yaml:",inline"`
	For       model.Duration `yaml:"for"` // how long it holds without a break; at least two steps of the signal
}

// Tier is one rung. Tier 0 is normal and is not listed.
type Tier struct {
	Tier       int            `yaml:"tier"`        // 1 to 6, without a gap
	Name       string         `yaml:"name"`        // one word for it
	Text       string         `yaml:"text"`        // what the user sees
	Owner      string         `yaml:"owner"`       // a person or group of the root
	Auto       bool           `yaml:"auto"`        // the controller may enter and leave it; false: people only
	Enter      []Condition    `yaml:"enter"`       // reasons to enter
	EnterNeeds int            `yaml:"enter_needs"` // how many of them have to hold: 1 for any, up to all
	Leave      []Condition    `yaml:"leave"`       // all of them, over their whole windows: at least 3 times as long as on the way in, strictly inside its threshold
	Dwell      model.Duration `yaml:"dwell"`       // least time in the tier before it is left, above 0
	Ramp       []int          `yaml:"ramp"`        // percent of hosts in each step out of it, ascending, the last is 100
	RampStep   model.Duration `yaml:"ramp_step"`   // least time between two steps, above 0
}

// Automatic limits moves that no person makes. It never binds a person.
type Automatic struct {
	Every      model.Duration `yaml:"every"`        // least time between two automatic moves, above 0
	ShedAtOnce bool           `yaml:"shed_at_once"` // an automatic shed need not wait for it
	Flaps      int            `yaml:"flaps"`        // more moves than this within flap_window latch the ladder and page, 1 to 100
	FlapWindow model.Duration `yaml:"flap_window"`  // above 0
	Blind      int            `yaml:"blind"`        // highest tier that missing signals alone may enter, 0 or 1
	Stuck      model.Duration `yaml:"stuck"`        // a tier held longer than this raises an alarm, above 0
	Budget     model.Duration `yaml:"budget"`       // time at tier 2 and above in a month before it raises an alarm; 0s: none is set
}

// Event is a busy time that is known ahead: a tier is entered before it, and
// while it runs left by people only.
type Event struct {
	Tier  int            `yaml:"tier"`  // the tier to stand at, 1 to the last
	Scope []string       `yaml:"scope"` // services, or "*" for any
	From  time.Time      `yaml:"from"`  // UTC: entered at
	Until time.Time      `yaml:"until"` // UTC, after from: over at; nothing is left by itself then
	Soak  model.Duration `yaml:"soak"`  // while it runs: how long the conditions for leaving hold before a person may leave; at least 10m
	Why   string         `yaml:"why"`   // the event, and the load that is expected
}

// Exception is a departure from one rule of the standard, boxed in time.
type Exception struct {
	Code  string    `yaml:"code"`  // of the lint rule it departs from
	Path  string    `yaml:"path"`  // where: the file and the path that lint prints, such as "features.yaml features.search"
	Owner string    `yaml:"owner"` // who mends it: a person or group of the root
	Since time.Time `yaml:"since"` // UTC: agreed on
	Until time.Time `yaml:"until"` // UTC: over on, at most two quarters (184 days) later
	Why   string    `yaml:"why"`   // why not yet
}
