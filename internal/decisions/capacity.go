package decisions

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// The arithmetic of a plan is done in fractions: 0.1 is a tenth here, nothing is
// rounded before the last line, and no number can turn over or be no number.

// ServiceCapacity is what one service serves at each tier and which tier a load
// needs.
type ServiceCapacity struct {
	Service  string         `json:"service"`
	Measured bool           `json:"measured"`           // both capacity and peak are above 0
	Capacity json.Number    `json:"capacity,omitempty"` // requests per second with everything on
	Load     json.Number    `json:"load,omitempty"`     // peak x factor
	Calls    int64          `json:"calls"`              // backend calls of all its features
	Tiers    []TierCapacity `json:"tiers"`              // from 0, which is normal
	Required int            `json:"required"`           // lowest tier that serves the load; -1: none does, or it is not measured
}

// TierCapacity is one tier of one service.
type TierCapacity struct {
	Tier   int         `json:"tier"`
	Off    []string    `json:"off"`              // features that the tier switches off, sorted
	Freed  int64       `json:"freed"`            // their calls
	Serves json.Number `json:"serves,omitempty"` // capacity x (1 + freed / calls), rounded down to hundredths
}

// NoTier is the tier that a load needs when none suffices.
const NoTier = -1

// CapacityOf computes, service by service, freed(tier) = calls of the features
// that are off at the tier / calls of all features, and the lowest tier at which
// capacity x (1 + freed) >= peak x factor. A feature that only gets simpler frees
// nothing. A service stays at its own last tier beyond it.
func CapacityOf(features *policy.FeaturesDoc, ladder *policy.LadderDoc, factor *big.Rat) []ServiceCapacity {
	out := []ServiceCapacity{}
	if ladder == nil {
		return out
	}
	for _, name := range sorted(ladder.Services) {
		service := ladder.Services[name]
		s := ServiceCapacity{Service: name, Tiers: []TierCapacity{}, Required: NoTier}
		own := featuresOf(features, name)
		for _, f := range own {
			s.Calls = sum(s.Calls, int64(f.Calls))
		}
		capacity, known := exact(service.Capacity)
		peak, used := exact(service.Peak)
		s.Measured = known && used && capacity.Sign() > 0 && peak.Sign() > 0
		load := new(big.Rat)
		if s.Measured {
			load.Mul(peak, factor)
			s.Capacity, s.Load = decimal(capacity), decimal(load)
		}
		for tier := range lastTier(ladder) + 1 {
			t := atTier(own, tier, service.Tiers)
			if s.Measured {
				serves := new(big.Rat).Mul(capacity, onePlus(t.Freed, s.Calls))
				t.Serves = decimal(serves)
				if s.Required == NoTier && serves.Cmp(load) >= 0 {
					s.Required = tier
				}
			}
			s.Tiers = append(s.Tiers, t)
		}
		out = append(out, s)
	}
	return out
}

func featuresOf(doc *policy.FeaturesDoc, service string) map[string]policy.Feature {
	out := make(map[string]policy.Feature)
	if doc == nil {
		return out
	}
	for name, f := range doc.Features {
		if f.Service == service {
			out[name] = f
		}
	}
	return out
}

func lastTier(ladder *policy.LadderDoc) int {
	last := 0
	for i := range ladder.Tiers {
		last = max(last, min(ladder.Tiers[i].Tier, maxTier))
	}
	return last
}

// maxTier bounds the rows of a draft whose tiers lint would refuse.
const maxTier = 6

func atTier(features map[string]policy.Feature, tier, knows int) TierCapacity {
	t := TierCapacity{Tier: tier, Off: []string{}}
	for _, name := range sorted(features) {
		f := features[name]
		if f.Tiers[min(tier, max(knows, 0))] == policy.OffBehaviour {
			t.Off = append(t.Off, name)
			t.Freed = sum(t.Freed, int64(f.Calls))
		}
	}
	return t
}

// onePlus is 1 + part / whole; 1 where there is no whole.
func onePlus(part, whole int64) *big.Rat {
	one := big.NewRat(1, 1)
	if whole <= 0 {
		return one
	}
	return one.Add(one, big.NewRat(part, whole))
}

// exact is a number of the policy as the decimal that was written, not as the
// nearest binary fraction. What is negative or no number is none.
func exact(f float64) (*big.Rat, bool) {
	if f < 0 {
		return nil, false
	}
	return new(big.Rat).SetString(strconv.FormatFloat(f, 'f', -1, 64))
}

// decimal rounds down to hundredths and drops zeros behind the point.
func decimal(r *big.Rat) json.Number {
	hundredths := floor(new(big.Rat).Mul(r, big.NewRat(100, 1)))
	text := new(big.Rat).SetFrac(hundredths, big.NewInt(100)).FloatString(2)
	return json.Number(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}

// floor and ceiling are for what is not negative.
func floor(r *big.Rat) *big.Int { return new(big.Int).Quo(r.Num(), r.Denom()) }

func ceiling(r *big.Rat) *big.Int {
	whole, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole
}

// capped stays at the largest number instead of turning over.
func capped(n *big.Int) int64 {
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return n.Int64()
}

func sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// RightExposure is the worst case of one right of kind bypass, from what hosts
// enforce alone: every scope that the right covers at once, with the largest
// caps it allows. ok is false when the right is no bypass that is in force.
func RightExposure(b *policy.Bundle, hosts []model.HostView, name string) (e Exposure, ok bool) {
	right, _, ok := b.Right(name)
	if !ok || right.Bypass == nil {
		return Exposure{}, false
	}
	rule := right.Bypass
	d := model.Directive{
		Kind: model.Bypass, Right: name, Control: rule.Control, Scope: model.AnyScope,
		Caps: model.Caps{Under: rule.Under, HostCount: rule.HostCount, HostTotal: rule.HostTotal, Total: rule.Total},
	}
	// A right over several services may be granted for each of them, and a host
	// keeps one budget for all: the hosts of every scope are counted once.
	w := model.World{}
	for _, host := range hosts {
		reached := slices.ContainsFunc(host.Services, func(s string) bool {
			return slices.Contains(b.Controls[rule.Control].Services, s) && (slices.Contains(right.Scope, s) || slices.Contains(right.Scope, model.AnyScope))
		})
		if reached {
			w.Hosts = append(w.Hosts, host)
		}
	}
	e = WorstCase(b, &w, &d)
	e.Lasts = rule.Lasts.Std()
	return e, true
}
