package model

import "time"

// Kind says what a directive does. An unknown kind is stored by a host, not
// obeyed, and reported as unsupported.
type Kind string

// The closed set of kinds of version 1.
const (
	Shed   Kind = "shed"
	Off    Kind = "off"
	Bypass Kind = "bypass"
	Freeze Kind = "freeze"
	Dimmer Kind = "dimmer"
	Ping   Kind = "ping"
	End    Kind = "end"
)

// Direction is the asymmetry behind every rule: shedding is easy, recovering
// is slow, opening is hard. It is computed from the policy, never stated.
type Direction string

// The three directions, from the easiest to the hardest, and Neutral for what
// changes nothing on a host (ping, freeze).
const (
	Tighten Direction = "tighten"
	Recover Direction = "recover"
	Loosen  Direction = "loosen"
)

// AnyScope is the scope that covers every service of the fleet.
const AnyScope = "*"

// MaxReason is the longest reason in bytes.
const MaxReason = 200

// Caps bound a bypass. Under is exclusive: an item of exactly Under is refused.
// HostCount and HostTotal are what one host may let through in one UTC day;
// Total is what the whole fleet may let through.
type Caps struct {
	Under     Money `json:"under"`
	HostCount int64 `json:"host_count"`
	HostTotal Money `json:"host_total"`
	Total     Money `json:"total"`
}

// PolicyRef names the manifest a directive was judged by.
type PolicyRef struct {
	Version int64  `json:"version"`
	Digest  string `json:"digest"`
}

// LogHead is the head of one audit log: its origin, the number of entries and
// the RFC 6962 root over them, in hex.
type LogHead struct {
	Origin string `json:"origin"`
	Size   int64  `json:"size"`
	Root   string `json:"root"`
}

// Directive is the one statement that changes a fleet. The zero value of a
// field that does not belong to the kind is absent on the wire; package
// directive owns the encoding and its canonical form.
type Directive struct {
	ID       string `json:"id"`
	Fleet    string `json:"fleet"`
	Incident string `json:"incident,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Scope    string `json:"scope"` // one service, or AnyScope
	Kind     Kind   `json:"kind"`

	Tier    int    `json:"tier,omitempty"`    // shed: 1..6
	Feature string `json:"feature,omitempty"` // off
	Control string `json:"control,omitempty"` // bypass
	Caps    Caps   `json:"caps,omitzero"`     // bypass

	TargetMS int `json:"target_ms,omitempty"` // dimmer: latency target in ms
	Floor    int `json:"floor,omitempty"`     // dimmer: lowest share of requests with optional work, percent
	Ceiling  int `json:"ceiling,omitempty"`   // dimmer: highest share, percent

	Ends    Kind     `json:"ends,omitempty"`    // end: the kind of what it ends; a recovery ends sheds
	IDs     []string `json:"ids,omitempty"`     // end: exactly what it ends
	From    int      `json:"from,omitempty"`    // recovery: the tier being left
	To      int      `json:"to,omitempty"`      // recovery: From-1
	Ramp    string   `json:"ramp,omitempty"`    // recovery: the same id through the steps of one tier
	Percent int      `json:"percent,omitempty"` // recovery: share of hosts already at To

	IssuedAt  time.Time `json:"issued_at,omitzero"` // absolute UTC, whole seconds
	NotBefore time.Time `json:"not_before,omitzero"`
	NotAfter  time.Time `json:"not_after,omitzero"` // zero: none; mandatory for bypass, freeze and ping

	Right  string    `json:"right,omitempty"` // the matrix row used
	Policy PolicyRef `json:"policy,omitzero"`
	Log    LogHead   `json:"log,omitzero"`

	// Raw is the body of a kind that this version does not know; nil otherwise.
	Raw []byte `json:"raw,omitempty"`
}

// IsRecovery reports whether d is a step of a recovery: an end of sheds.
func (d *Directive) IsRecovery() bool { return d.Kind == End && d.Ends == Shed }

// EndedAs is the kind under which an ending has to name d: a live recovery
// counts as a shed until it is ended itself.
func (d *Directive) EndedAs() Kind {
	if d.IsRecovery() {
		return Shed
	}
	return d.Kind
}

// Covers reports whether d speaks about service.
func (d *Directive) Covers(service string) bool {
	return d.Scope == AnyScope || d.Scope == service
}
