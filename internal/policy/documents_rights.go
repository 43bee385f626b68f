package policy

import (
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// RightsDoc is the decision-rights matrix.
type RightsDoc struct {
	Header `yaml:",inline"`
	Rights map[string]Right `yaml:"rights"` // by name
}

// ControlsDoc is the document of one protected control's owners: the control and
// the only rights that may weaken it.
type ControlsDoc struct {
	Header   `yaml:",inline"`
	Controls map[string]Control `yaml:"controls"` // by name
	Rights   map[string]Right   `yaml:"rights"`   // by name: the only ones that may weaken them
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
	Protects Protects `yaml:"protects"` // money, authorization (never opens), inventory or capacity
	Fails    Fails    `yaml:"fails"`    // when what it asks is gone: closed (refuses) or open (lets through; capacity only)
	Services []string `yaml:"services"` // the services that hold it
	Owner    string   `yaml:"owner"`    // a person or group of the root
	Text     string   `yaml:"text"`     // what it makes sure of
}

// Cosign wants Count distinct people of group Of besides the requester. Count 0
// means that one signature is enough.
type Cosign struct {
	Count int    `yaml:"count" json:"count"` // people besides the one who asks, 0 or more
	Of    string `yaml:"of" json:"of"`       // a group of the root
}

// Right is one row of the matrix. Which fields a kind needs is a lint rule; an
// absent bound never means "unbounded".
type Right struct {
	Text            string         `yaml:"text"`                       // what it lets a person do, to follow "may"
	Kind            model.Kind     `yaml:"kind"`                       // shed, off, bypass, freeze, dimmer, ping or end
	Ends            model.Kind     `yaml:"ends,omitempty"`             // end: the kind it ends; shed for a recovery
	Who             string         `yaml:"who"`                        // the role whose signature is always required
	Cosign          Cosign         `yaml:"cosign"`                     // who signs besides
	Scope           []string       `yaml:"scope"`                      // services, or "*" for any
	Tiers           *Range         `yaml:"tiers,omitempty"`            // shed: tiers to enter; recovery: tiers to leave
	Feature         string         `yaml:"feature,omitempty"`          // off: one feature, or "*" for any
	Bypass          *Bypass        `yaml:"bypass,omitempty"`           // bypass: every cap
	Dimmer          *Dimmer        `yaml:"dimmer,omitempty"`           // dimmer: its bounds
	Lasts           model.Duration `yaml:"lasts,omitempty"`            // freeze, ping: longest window
	Blind           bool           `yaml:"blind,omitempty"`            // recovery: without known-good signals, on typed evidence
	Lead            model.Duration `yaml:"lead,omitempty"`             // cosign above 0: from the proposal to its start; 3m when absent
	RehearsedWithin model.Duration `yaml:"rehearsed_within,omitempty"` // bypass, recovery: a live rehearsal or use is at most this old; the console enforces it
	NoSecond        *NoSecond      `yaml:"no_second,omitempty"`        // bypass: only after nobody came to sign another right
	Review          string         `yaml:"review,omitempty"`           // each use owes a review by this group of the root afterwards
	Expires         time.Time      `yaml:"expires,omitempty"`          // bypass: UTC; outlives its document until then, with caps below those of every other bypass of the control
	Advice          string         `yaml:"advice,omitempty"`           // what a person does by hand where no host verifies directives
	Runbook         string         `yaml:"runbook,omitempty"`          // the runbook that fits
	Why             string         `yaml:"why"`                        // why the business accepts it
}

// DefaultLead is the time between a proposal and its start when a quorum is
// wanted and the right names no other.
const DefaultLead = model.Duration(3 * time.Minute)

// LeadTime is the time from a proposal to its start; zero when nobody signs
// besides the requester.
func (r *Right) LeadTime() model.Duration {
	switch {
	case r.Cosign.Count <= 0:
		return 0
	case r.Lead > 0:
		return r.Lead
	default:
		return DefaultLead
	}
}

// Range is a closed interval.
type Range struct {
	From int `yaml:"from"` // the lowest, included; tiers count from 1
	To   int `yaml:"to"`   // the highest, included; tiers end at 6
}

// NoSecond makes a right the one for "nobody came": it may be used when a
// proposal of another right has waited in vain.
type NoSecond struct {
	Of    string         `yaml:"of"`    // the right that wanted more people; its caps are higher
	After model.Duration `yaml:"after"` // how long its proposal has waited, above 0
}

// Bypass bounds a loosening. Every field is required.
type Bypass struct {
	Control         string         `yaml:"control"`          // a control of the same document
	Under           model.Money    `yaml:"under"`            // every item is worth less than this; above zero
	HostCount       int64          `yaml:"host_count"`       // items on one host in one UTC day, 1 or more
	HostTotal       model.Money    `yaml:"host_total"`       // worth of them, above zero
	Total           model.Money    `yaml:"total"`            // worth on all hosts in one UTC day, above zero
	Lasts           model.Duration `yaml:"lasts"`            // longest window of one grant, above 0
	PerDay          int            `yaml:"per_day"`          // grants in one UTC day, 1 or more; the console enforces it
	Live            int            `yaml:"live"`             // grants in force at the same time, 1 or more; the earliest count
	MaxReplacements int64          `yaml:"max_replacements"` // hosts that may join in one day, 0 or more; part of the worst case
	VolatileHosts   bool           `yaml:"volatile_hosts"`   // hosts without a state folder may open; the worst case is an estimate then
}

// Dimmer bounds a dimmer: hosts spend optional work on a share of requests, so
// that their latency stays at a target.
type Dimmer struct {
	TargetMS Range `yaml:"target_ms"` // latency in milliseconds, 1 to 60,000
	Floor    int   `yaml:"floor"`     // lowest share in percent, 1 to 100: keeps the fallback's opposite warm
	Ceiling  int   `yaml:"ceiling"`   // highest share in percent, floor to 100
}
