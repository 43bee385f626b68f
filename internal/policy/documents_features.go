package policy

import (
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// Class of a feature.
type Class string

// The three classes: what is shed last, what gets simpler, what goes first.
const (
	Critical   Class = "critical"
	Degradable Class = "degradable"
	Sheddable  Class = "sheddable"
)

// FeaturesDoc classifies features and says what each does at each tier.
type FeaturesDoc struct {
	Header    `yaml:",inline"`
	Features  map[string]Feature `yaml:"features"`            // by name
	Programme *Programme         `yaml:"programme,omitempty"` // what being able to degrade costs and saves, for ic policy plan
}

// NoChange is the explicit word for "this tier does not touch the feature".
const NoChange = "no change"

// OffBehaviour is the word for "this tier switches the feature off".
const OffBehaviour = "off"

// Feature is one thing a user sees.
type Feature struct {
	Class     Class               `yaml:"class"`     // critical (shed last), degradable (gets simpler) or sheddable (goes first)
	Owner     string              `yaml:"owner"`     // a person or group of the root
	Service   string              `yaml:"service"`   // a service of the ladder
	Reviewed  time.Time           `yaml:"reviewed"`  // UTC; the class is reviewed every 366 days
	Calls     int                 `yaml:"calls"`     // backend calls that one page or request spends on it, 0 to 10,000
	Endpoints map[string]Endpoint `yaml:"endpoints"` // by name: the ways in, each with its own view of what it depends on
	Tiers     map[int]string      `yaml:"tiers"`     // behaviour by tier, 1 to the last: "off", "no change", or words for the simpler form
	Why       string              `yaml:"why"`       // why this class
}

// Endpoint is one way into a feature. A dependency may be optional on one and
// required on another.
type Endpoint struct {
	Path         string                `yaml:"path"`         // the route, such as "GET /p/{id}"
	Criticality  int                   `yaml:"criticality"`  // given at the edge: 0 (rejected last) to 3 (rejected first); only ever lowered on the way
	Dependencies map[string]Dependency `yaml:"dependencies"` // by name of a service, or of something outside the fleet
	Invariants   map[string]Invariant  `yaml:"invariants"`   // by field of the answer: what has to be true of it also while degraded
}

// Need says what happens to an endpoint when one of its dependencies is gone.
type Need string

// The three needs.
const (
	Required  Need = "required"  // fail fast
	Enhancing Need = "enhancing" // a documented fallback, and the answer says so
	Optional  Need = "optional"  // left out, and counted
)

// Dependency is what an endpoint calls, and with which limits.
type Dependency struct {
	Need      Need      `yaml:"need"`               // required (fail fast), enhancing (fall back, and say so) or optional (leave out, and count)
	QPS       float64   `yaml:"qps"`                // calls per second to it in the busiest hour, 0 to 10,000,000
	TimeoutMS int       `yaml:"timeout_ms"`         // of one call in milliseconds, 1 to 60,000
	Attempts  int       `yaml:"attempts"`           // calls at most for one request, the first included: 1 to 10
	Resources []string  `yaml:"resources"`          // everything the call needs that can fail: pool, region, store, configuration
	Fallback  *Fallback `yaml:"fallback,omitempty"` // enhancing: what is served instead
}

// Source of what a fallback serves.
type Source string

// Where a fallback gets its answer.
const (
	Snapshot Source = "snapshot" // made ahead of time and kept where the primary is not
	Cache    Source = "cache"    // the last good answers, with their age
	LiveCall Source = "live"     // a simpler answer, computed now
	Static   Source = "static"   // a constant
)

// Fallback is what is served instead of a dependency's answer. It differs from
// the primary in every resource that can fail, or it is none.
type Fallback struct {
	Text      string         `yaml:"text"`      // what the user gets
	Source    Source         `yaml:"source"`    // snapshot, cache, live or static
	Resources []string       `yaml:"resources"` // everything it needs that can fail; none of the primary's
	Differs   string         `yaml:"differs"`   // the named difference from the primary
	Refresh   model.Duration `yaml:"refresh"`   // snapshot: time between two runs; 0s for other sources
	Job       model.Duration `yaml:"job"`       // snapshot: how long a run takes; 0s for other sources
	MaxAge    model.Duration `yaml:"max_age"`   // snapshot, cache: oldest answer that product accepts; 0s for other sources
	Traffic   float64        `yaml:"traffic"`   // percent of requests that it serves on a normal day, 0 to 100; at least 1
	Marked    bool           `yaml:"marked"`    // the answer says that it is degraded
}

// Invariant is what has to hold of one field of an answer, degraded or not.
type Invariant struct {
	Source        string         `yaml:"source"`        // the source of truth
	MaxAge        model.Duration `yaml:"max_age"`       // tolerated age; 0s: only the current value
	Authorization string         `yaml:"authorization"` // who may see it, also from a cache
	Degraded      string         `yaml:"degraded"`      // the degraded state that is allowed, such as "a range"; "none" for none
	Disclosure    string         `yaml:"disclosure"`    // what the user is told
	Owner         string         `yaml:"owner"`         // who recovers it: a person or group of the root
}

// Programme holds the assumptions behind what being able to degrade costs and
// saves in a year.
type Programme struct {
	Engineers     float64     `yaml:"engineers"`      // people who work on it all year, 0 to 10,000
	EngineerMonth model.Money `yaml:"engineer_month"` // cost of one of them in a month
	Storage       model.Money `yaml:"storage"`        // snapshots and their delivery, a month
	Hourly        model.Money `yaml:"hourly"`         // revenue in an hour
	Outages       int         `yaml:"outages"`        // full outages a year that become degraded hours, 0 to 1,000
	Lasts         int         `yaml:"lasts"`          // minutes of each, 0 to 10,000
	Retained      float64     `yaml:"retained"`       // percent of revenue that a degraded hour keeps, 0 to 100
}
