package policy

import (
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// Domain names a document of the bundle by its file name without ".yaml".
type Domain string

// The fixed domains. Every protected control has a domain of its own, of
// DocumentControls, named freely (payments, inventory, …).
const (
	Features Domain = "features"
	Ladder   Domain = "ladder"
	Rights   Domain = "rights"
	Backends Domain = "backends"
	Journeys Domain = "journeys"
)

// fixed reports whether d is one of the fixed domains; every other one is a
// document of controls.
func (d Domain) fixed() bool {
	switch d {
	case Features, Ladder, Rights, Backends, Journeys:
		return true
	}
	return false
}

// Header is what every domain document starts with. Fleet is the audience: a
// document of another fleet is refused whatever its signatures.
type Header struct {
	V       int       `yaml:"v"`
	Fleet   string    `yaml:"fleet"`
	Domain  Domain    `yaml:"domain"`
	Version int64     `yaml:"version"`
	Expires time.Time `yaml:"expires"`
	Why     string    `yaml:"why"`
}

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
	Header   `yaml:",inline"`
	Features map[string]Feature `yaml:"features"`
}

// NoChange is the explicit word for "this tier does not touch the feature".
const NoChange = "no change"

// Feature is one thing a user sees. Tiers maps a tier number to the behaviour
// there: "off", NoChange, or words that describe the degraded form.
type Feature struct {
	Class    Class          `yaml:"class"`
	Owner    string         `yaml:"owner"`
	Service  string         `yaml:"service"`
	Reviewed time.Time      `yaml:"reviewed"`
	Tiers    map[int]string `yaml:"tiers"`
	Why      string         `yaml:"why"`
}

// LadderDoc holds the signals and the tiers with their numbers.
type LadderDoc struct {
	Header   `yaml:",inline"`
	Signals  map[string]Signal  `yaml:"signals"`
	Services map[string]Service `yaml:"services"`
	Tiers    []Tier             `yaml:"tiers"`
}

// Service is one service of the fleet and how many tiers it knows: beyond its
// ladder a service stays at its last tier.
type Service struct {
	Tiers        int      `yaml:"tiers"`
	Dependencies []string `yaml:"dependencies"`
}

// Signal is one PromQL query that yields one number.
type Signal struct {
	Query    string         `yaml:"query"`
	Unit     string         `yaml:"unit"`
	MaxAge   model.Duration `yaml:"max_age"`
	Step     model.Duration `yaml:"step"`
	Abnormal *Threshold     `yaml:"abnormal,omitempty"`
	Right    string         `yaml:"right"`   // the right that fits when abnormal; "" none
	Runbook  string         `yaml:"runbook"` // the runbook that fits; "" none
	Why      string         `yaml:"why"`
}

// Threshold is one comparison with a signal; exactly one of Above and Below is
// set.
type Threshold struct {
	Above *float64 `yaml:"above,omitempty"`
	Below *float64 `yaml:"below,omitempty"`
}

// Condition is a threshold held for a time. On the way out every reading of the
// window must satisfy it; anything but a value does not.
type Condition struct {
	Signal    string `yaml:"signal"`
	Threshold `yaml:",inline"`
	For       model.Duration `yaml:"for"`
}

// Tier is one rung. Tier 0 is normal and is not listed.
type Tier struct {
	Tier     int            `yaml:"tier"`
	Name     string         `yaml:"name"`
	Text     string         `yaml:"text"` // what the user sees
	Owner    string         `yaml:"owner"`
	Auto     bool           `yaml:"auto"`
	Enter    []Condition    `yaml:"enter"`     // any one of them is reason enough
	Leave    []Condition    `yaml:"leave"`     // all of them, over their whole windows
	Dwell    model.Duration `yaml:"dwell"`     // least time in the tier before leaving it
	Ramp     []int          `yaml:"ramp"`      // percents of hosts, ascending, last is 100
	RampStep model.Duration `yaml:"ramp_step"` // least time between two steps
}

// RightsDoc is the decision-rights matrix.
type RightsDoc struct {
	Header `yaml:",inline"`
	Rights map[string]Right `yaml:"rights"`
}

// ControlsDoc is the document of one protected control's owners: the control and
// the only rights that may weaken it.
type ControlsDoc struct {
	Header   `yaml:",inline"`
	Controls map[string]Control `yaml:"controls"`
	Rights   map[string]Right   `yaml:"rights"`
}

// Fails is what a control does when its dependency is gone.
type Fails string

// Fail modes. FailsClosed blocks, FailsOpen lets through.
const (
	FailsClosed Fails = "closed"
	FailsOpen   Fails = "open"
)

// Protects says what a control guards; authorization never opens.
type Protects string

// What controls guard.
const (
	ProtectsMoney         Protects = "money"
	ProtectsAuthorization Protects = "authorization"
	ProtectsInventory     Protects = "inventory"
	ProtectsCapacity      Protects = "capacity"
)

// Control is a check that a bypass may weaken, within a right of the same file.
type Control struct {
	Protects Protects `yaml:"protects"`
	Fails    Fails    `yaml:"fails"`
	Services []string `yaml:"services"`
	Owner    string   `yaml:"owner"`
	Text     string   `yaml:"text"`
}

// Cosign wants Count distinct people of group Of besides the requester. Count 0
// means that one signature is enough.
type Cosign struct {
	Count int    `yaml:"count" json:"count"`
	Of    string `yaml:"of" json:"of"`
}

// Right is one row of the matrix. Which fields a kind needs is a lint rule; an
// absent bound never means "unbounded".
type Right struct {
	Text    string         `yaml:"text"`
	Kind    model.Kind     `yaml:"kind"`
	Ends    model.Kind     `yaml:"ends,omitempty"` // of kind end
	Who     string         `yaml:"who"`            // role whose signature is always required
	Cosign  Cosign         `yaml:"cosign"`
	Scope   []string       `yaml:"scope"` // services, or "*" for any
	Tiers   *Range         `yaml:"tiers,omitempty"`
	Feature string         `yaml:"feature,omitempty"` // off: one feature, or "*"
	Bypass  *Bypass        `yaml:"bypass,omitempty"`
	Lasts   model.Duration `yaml:"lasts,omitempty"` // freeze, ping: longest window
	Blind   bool           `yaml:"blind,omitempty"` // a recovery without known-good signals
	Lead    model.Duration `yaml:"lead,omitempty"`  // quorum: from proposal to not_before; default DefaultLead
	Runbook string         `yaml:"runbook,omitempty"`
	Why     string         `yaml:"why"`
}

// DefaultLead is the time between a proposal and its start when a quorum is
// wanted and the right names no other.
const DefaultLead = model.Duration(3 * time.Minute)

// Range is a closed interval.
type Range struct {
	From int `yaml:"from"`
	To   int `yaml:"to"`
}

// Bypass bounds a loosening. Every field is required.
type Bypass struct {
	Control         string         `yaml:"control"`
	Under           model.Money    `yaml:"under"` // exclusive
	HostCount       int64          `yaml:"host_count"`
	HostTotal       model.Money    `yaml:"host_total"`
	Total           model.Money    `yaml:"total"`
	Lasts           model.Duration `yaml:"lasts"`            // longest window
	PerDay          int            `yaml:"per_day"`          // activations per UTC day
	MaxReplacements int64          `yaml:"max_replacements"` // hosts that may join in one day
	VolatileHosts   bool           `yaml:"volatile_hosts"`   // hosts without a state folder may open
}

// BackendsDoc lists the deploy pipelines that break glass, and the inventory.
type BackendsDoc struct {
	Header      `yaml:",inline"`
	Backends    map[string]Backend `yaml:"backends"`
	FlagService FlagService        `yaml:"flag_service"`
	Inventory   Inventory          `yaml:"inventory"`
}

// FlagService is what backends have to survive: the everyday carrier and what it
// depends on itself.
type FlagService struct {
	Dependencies []string `yaml:"dependencies"`
	Why          string   `yaml:"why"`
}

// Backend is one deploy pipeline. A bundled one lives in ic; a foreign one is
// named by an absolute path and one SHA-256 per OS and architecture.
type Backend struct {
	Bundled      string            `yaml:"bundled,omitempty"`
	Path         string            `yaml:"path,omitempty"`
	SHA256       map[string]string `yaml:"sha256,omitempty" keys:"any"` // "linux/amd64": hex
	Config       map[string]string `yaml:"config"`
	Targets      []string          `yaml:"targets"` // services, or "*"
	Dependencies []string          `yaml:"dependencies"`
	Secrets      []string          `yaml:"secrets"` // names in the token store
	Why          string            `yaml:"why"`
}

// Inventory is the denominator of every "n of m hosts".
type Inventory struct {
	MaxAge model.Duration  `yaml:"max_age"`
	Hosts  []InventoryHost `yaml:"hosts,omitempty"`
	Query  string          `yaml:"query,omitempty"`
}

// InventoryHost is one host and where it serves its report.
type InventoryHost struct {
	Host      string   `yaml:"host"`
	Services  []string `yaml:"services"`
	ReportURL string   `yaml:"report_url"`
}

// JourneysDoc names what a user does across services.
type JourneysDoc struct {
	Header   `yaml:",inline"`
	Journeys map[string]Journey `yaml:"journeys"`
}

// Journey is broken when every feature of one of its BrokenBy sets is off.
type Journey struct {
	Text     string     `yaml:"text"`
	BrokenBy [][]string `yaml:"broken_by"`
}

// Manifest binds versions of all files to one version of the whole, so that no
// mix of old and new files can be offered.
type Manifest struct {
	V       int                     `yaml:"v"`
	Fleet   string                  `yaml:"fleet"`
	Version int64                   `yaml:"version"`
	Files   map[string]ManifestFile `yaml:"files" keys:"any"`
}

// ManifestFile pins one file.
type ManifestFile struct {
	Version int64  `yaml:"version"`
	SHA256  string `yaml:"sha256"`
}
