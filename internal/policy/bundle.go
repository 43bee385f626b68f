package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// DomainState says whether a domain is in force and why not.
type DomainState struct {
	Domain  Domain    `json:"domain"`
	Version int64     `json:"version"`
	Expires time.Time `json:"expires,omitzero"`
	Active  bool      `json:"active"`
	Why     string    `json:"why,omitempty"` // one sentence when not active
	Signers []string  `json:"signers"`       // people whose signatures are valid
	Group   string    `json:"group"`         // who has to sign
}

// Bundle is a verified policy: only what the right people signed is in it. It is
// immutable and safe for concurrent use.
type Bundle struct {
	Root    *Root
	Ref     model.PolicyRef // version and digest of the manifest
	Domains map[Domain]DomainState

	Features    map[string]Feature
	Signals     map[string]Signal
	Services    map[string]Service
	Tiers       []Tier // ascending
	Automatic   Automatic
	Schedule    map[string]Event
	Controls    map[string]Control
	Backends    map[string]Backend
	FlagService FlagService
	Inventory   Inventory
	Journeys    map[string]Journey

	rights map[string]row
	byKind map[model.Kind][]string // names of rights, sorted
	keys   map[string]Signer
}

// row is a right with the domain that grants it.
type row struct {
	right  Right
	domain Domain
}

// Documents are the parsed domain documents whose signatures were sufficient.
type Documents struct {
	Features *FeaturesDoc
	Ladder   *LadderDoc
	Rights   *RightsDoc
	Controls map[Domain]*ControlsDoc
	Backends *BackendsDoc
	Journeys *JourneysDoc

	where    map[string]map[string]Pos // by file and path; filled by ReadDrafts
	rootFile string                    // the newest root; filled by ReadDrafts
}

// NewBundle joins a root with active documents. It does not verify signatures:
// Load does. A right named by two domains is refused.
func NewBundle(root *Root, ref model.PolicyRef, states map[Domain]DomainState, docs Documents) (*Bundle, error) {
	keys, err := root.index()
	if err != nil {
		return nil, err
	}
	b := &Bundle{
		Root: root, Ref: ref, Domains: states, keys: keys,
		Features: map[string]Feature{}, Signals: map[string]Signal{}, Services: map[string]Service{}, Schedule: map[string]Event{},
		Controls: map[string]Control{}, Backends: map[string]Backend{}, Journeys: map[string]Journey{},
		rights: map[string]row{},
	}
	if docs.Features != nil {
		b.Features = docs.Features.Features
	}
	if docs.Ladder != nil {
		b.Signals, b.Services, b.Tiers = docs.Ladder.Signals, docs.Ladder.Services, docs.Ladder.Tiers
		b.Automatic, b.Schedule = docs.Ladder.Automatic, docs.Ladder.Schedule
	}
	if docs.Backends != nil {
		b.Backends, b.FlagService, b.Inventory = docs.Backends.Backends, docs.Backends.FlagService, docs.Backends.Inventory
	}
	if docs.Journeys != nil {
		b.Journeys = docs.Journeys.Journeys
	}
	if docs.Rights != nil {
		if err := b.addRights(Rights, docs.Rights.Rights); err != nil {
			return nil, err
		}
	}
	for _, domain := range sortedKeys(docs.Controls) {
		for name, control := range docs.Controls[domain].Controls {
			if _, taken := b.Controls[name]; taken {
				return nil, fmt.Errorf("control %s is defined by two documents", name)
			}
			b.Controls[name] = control
		}
		if err := b.addRights(domain, docs.Controls[domain].Rights); err != nil {
			return nil, err
		}
	}
	b.byKind = make(map[model.Kind][]string)
	for _, name := range b.RightNames() {
		kind := b.rights[name].right.Kind
		b.byKind[kind] = append(b.byKind[kind], name)
	}
	return b, nil
}

func (b *Bundle) addRights(domain Domain, rights map[string]Right) error {
	for name, right := range rights {
		if other, taken := b.rights[name]; taken {
			return fmt.Errorf("right %s is granted by %s and by %s", name, other.domain, domain)
		}
		b.rights[name] = row{right: right, domain: domain}
	}
	return nil
}

// Right is one active row of the matrix and the domain that grants it.
func (b *Bundle) Right(name string) (Right, Domain, bool) {
	r, ok := b.rights[name]
	return r.right, r.domain, ok
}

// RightNames lists the active rows, sorted.
func (b *Bundle) RightNames() []string { return sortedKeys(b.rights) }

// RightsOf lists the active rows of one kind, sorted. It is shared: nobody may
// change it.
func (b *Bundle) RightsOf(kind model.Kind) []string { return b.byKind[kind] }

// SignerOf is the owner of a key.
func (b *Bundle) SignerOf(fingerprint string) (Signer, bool) {
	s, ok := b.keys[fingerprint]
	return s, ok
}

// FingerprintsOf lists the keys of a person or machine that are not revoked.
func (b *Bundle) FingerprintsOf(name string) []string {
	var out []string
	for fp, s := range b.keys {
		if s.Name == name && !s.Revoked {
			out = append(out, fp)
		}
	}
	slices.Sort(out)
	return out
}

// TierOf is the description of a tier; ok is false for 0 and beyond the ladder.
func (b *Bundle) TierOf(n int) (Tier, bool) {
	for _, t := range b.Tiers {
		if t.Tier == n {
			return t, true
		}
	}
	return Tier{}, false
}

// LastTier is the highest tier that a service knows; services the ladder does
// not name know all of them.
func (b *Bundle) LastTier(service string) int {
	top := 0
	for _, t := range b.Tiers {
		top = max(top, t.Tier)
	}
	if s, ok := b.Services[service]; ok && s.Tiers < top {
		return s.Tiers
	}
	return top
}

// Expires is the earliest expiry of the root and the active domains.
func (b *Bundle) Expires() time.Time {
	at := b.Root.Expires
	for _, d := range b.Domains {
		if d.Active && d.Expires.Before(at) {
			at = d.Expires
		}
	}
	return at
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
