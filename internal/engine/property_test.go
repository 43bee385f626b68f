package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
	"pgregory.net/rapid"
)

var services = []string{"checkout", "catalog", "payment-risk"}

// naive is section 3 of the design, written down as directly as it can be: what
// a host with some set of valid statements does at one moment.
type naive struct {
	host string
	set  []model.Directive
	now  time.Time
}

func (n naive) ended(d model.Directive) bool {
	for _, e := range n.set {
		kind := d.Kind
		if d.Kind == model.End && d.Ends == model.Shed {
			kind = model.Shed
		}
		if e.Kind == model.End && e.Ends == kind && e.Scope == d.Scope && slices.Contains(e.IDs, d.ID) && !n.now.Before(e.NotBefore) {
			return true
		}
	}
	return false
}

func (n naive) live() (out []model.Directive) {
	for _, d := range n.set {
		plainEnding := d.Kind == model.End && d.Ends != model.Shed
		over := !d.NotAfter.IsZero() && !n.now.Before(d.NotAfter)
		if !plainEnding && !n.ended(d) && !n.now.Before(d.NotBefore) && !over {
			out = append(out, d)
		}
	}
	return out
}

func (n naive) tier(service string, last int) int {
	tier := 0
	for _, d := range n.live() {
		if d.Scope != "*" && d.Scope != service {
			continue
		}
		switch {
		case d.Kind == model.Shed:
			tier = max(tier, d.Tier)
		case d.Kind == model.End && directive.Bucket(n.host, d.Ramp) < d.Percent:
			tier = max(tier, d.To)
		case d.Kind == model.End:
			tier = max(tier, d.From)
		}
	}
	return min(tier, last)
}

func (n naive) off(feature, service string) bool {
	return slices.ContainsFunc(n.live(), func(d model.Directive) bool {
		return d.Kind == model.Off && d.Feature == feature && (d.Scope == "*" || d.Scope == service)
	})
}

func (n naive) open(service string, amount model.Money) bool {
	return slices.ContainsFunc(n.live(), func(d model.Directive) bool {
		return d.Kind == model.Bypass && !n.crowded(d) && (d.Scope == "*" || d.Scope == service) && amount.Minor < d.Caps.Under.Minor
	})
}

// crowded reports whether as many earlier bypasses of the same right are live as
// the policy of the tests allows.
func (n naive) crowded(d model.Directive) bool {
	earlier := 0
	for _, o := range n.live() {
		if o.Kind == model.Bypass && o.Right == d.Right && (o.NotBefore.Before(d.NotBefore) || o.NotBefore.Equal(d.NotBefore) && o.ID < d.ID) {
			earlier++
		}
	}
	return earlier >= liveGrants
}

// statements draws a set of valid directives, some of which end others, some of
// which begin or end later.
func statements(rt *rapid.T) []model.Directive {
	gen := &ids{}
	var out []model.Directive
	scope := rapid.SampledFrom([]string{"*", "*", "checkout", "catalog"})
	minute := rapid.IntRange(-5, 10)
	for range rapid.IntRange(1, 18).Draw(rt, "statements") {
		from := start.Add(time.Duration(minute.Draw(rt, "from")) * time.Minute)
		d := model.Directive{Scope: scope.Draw(rt, "scope"), NotBefore: from}
		kind := rapid.SampledFrom([]model.Kind{
			model.Shed, model.Shed, model.Off, model.Bypass, model.Bypass, model.Bypass, model.Freeze, model.Ping, model.End, model.End, model.End,
		}).Draw(rt, "kind")
		if kind == model.End && len(out) == 0 {
			kind = model.Shed
		}
		fill(rt, &d, kind, out)
		if !d.NotAfter.IsZero() {
			d.NotAfter = from.Add(time.Duration(rapid.IntRange(1, 15).Draw(rt, "window")) * time.Minute)
		}
		out = append(out, draft(gen.next(), d, start.Add(-5*time.Minute)))
	}
	return out
}

func fill(rt *rapid.T, d *model.Directive, kind model.Kind, earlier []model.Directive) {
	d.Kind = kind
	switch kind {
	case model.Shed:
		d.Tier, d.Right = rapid.IntRange(1, 4).Draw(rt, "tier"), "shed"
	case model.Off:
		d.Feature, d.Right = rapid.SampledFrom([]string{"reviews", "search"}).Draw(rt, "feature"), "off"
	case model.Bypass:
		d.Scope = rapid.SampledFrom([]string{"checkout", "payment-risk", "*"}).Draw(rt, "bypassed")
		d.Control, d.Right, d.NotAfter = "risk", "open", start
		d.Caps = open(0, start).Caps
		d.Caps.Under = usd(int64(rapid.IntRange(1, 50).Draw(rt, "under")) * 100)
	case model.Freeze:
		d.Right, d.NotAfter = "freeze", start
	case model.Ping:
		d.Right, d.NotAfter = "ping", start
	case model.End:
		listed := rapid.SliceOfNDistinct(rapid.SampledFrom(earlier), 1, 6, func(d model.Directive) string { return d.ID }).Draw(rt, "listed")
		d.Ends = listed[0].EndedAs()
		if listed[0].Kind == model.End && !listed[0].IsRecovery() {
			d.Ends = model.Off
		}
		for _, l := range listed {
			d.IDs = append(d.IDs, l.ID)
		}
		slices.Sort(d.IDs)
		d.Right = map[model.Kind]string{
			model.Shed: "recover", model.Off: "on", model.Bypass: "close", model.Freeze: "thaw", model.Ping: "close",
		}[d.Ends]
		if d.Ends == model.Ping {
			d.Ends = model.Bypass
		}
		if d.Ends == model.Shed {
			d.From = rapid.IntRange(1, 4).Draw(rt, "from tier")
			d.To, d.Percent = d.From-1, rapid.IntRange(1, 100).Draw(rt, "percent")
			d.Ramp = fmt.Sprintf("01JDZ8K3V5Q2M7N9P5%08d", rapid.IntRange(0, 2).Draw(rt, "ramp"))
		}
	}
}

// TestHostsAgreeWithTheDesignWhateverTheDelivery gives the same statements to
// three hosts, in orders of their own, doubled, with gaps and losses of power,
// and compares each at every step with the naive model of what it has seen.
func TestHostsAgreeWithTheDesignWhateverTheDelivery(t *testing.T) {
	signed := map[string]string{} // a payload is signed once in all runs
	rapid.Check(t, func(rt *rapid.T) {
		all := statements(rt)
		tokens := make([]string, len(all))
		for i, d := range all {
			payload, err := directive.Encode(d)
			if err != nil {
				rt.Fatal(err)
			}
			if signed[string(payload)] == "" {
				signed[string(payload)] = signPayload(t, payload, fleet, []string{"ada", "bea"}[i%2])
			}
			tokens[i] = signed[string(payload)]
		}
		end := start.Add(time.Duration(rapid.IntRange(1, 10).Draw(rt, "minutes")) * time.Minute)
		var hosts []*host
		for n := range 3 {
			h := newHost(t)
			h.name = fmt.Sprintf("checkout-%02d", n)
			h.folder = engine.NewMemory()
			h.start()
			hosts = append(hosts, h)
			deliver(rt, h, all, tokens)
			h.clock.pass(end.Sub(h.clock.Now().Wall))
			for _, token := range tokens { // what was lost comes late
				h.offer(token)
			}
			compare(rt, h, all)
		}
		for _, h := range hosts[1:] {
			if !slices.Equal(h.live(), hosts[0].live()) {
				rt.Fatalf("%s holds %v, %s holds %v", h.name, h.live(), hosts[0].name, hosts[0].live())
			}
		}
	})
}

// deliver offers some of the statements in some order, some of them twice.
func deliver(rt *rapid.T, h *host, all []model.Directive, tokens []string) {
	seen := map[int]bool{}
	for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 0, 2*len(all)).Draw(rt, "delivery") {
		r := h.offer(tokens[i])
		if r.Code != "" && r.Code != model.CodeExpired && r.Code != model.CodeEnded {
			rt.Fatalf("%s %s is refused: %s", all[i].Kind, all[i].ID, r.Code)
		}
		seen[i] = true
		if rapid.IntRange(0, 9).Draw(rt, "power") == 0 {
			h.crash()
		}
		if rapid.IntRange(0, 5).Draw(rt, "tick") == 0 {
			h.clock.pass(7 * time.Second)
			h.Advance(h.clock.Now())
		}
		var set []model.Directive
		for j := range all {
			if seen[j] {
				set = append(set, all[j])
			}
		}
		compare(rt, h, set)
	}
}

func compare(rt *rapid.T, h *host, set []model.Directive) {
	now := h.clock.Now()
	n := naive{host: h.name, set: set, now: now.Wall}
	last := map[string]int{"checkout": 4, "catalog": 2, "payment-risk": 4}
	for _, service := range services {
		if got, want := h.Tier(service, now), n.tier(service, last[service]); got != want {
			rt.Fatalf("%s at %s: tier of %s is %d, want %d", h.name, now.Wall, service, got, want)
		}
		for _, feature := range []string{"reviews", "search"} {
			if got, want := h.Off(feature, service, now), n.off(feature, service); got != want {
				rt.Fatalf("%s at %s: %s off for %s is %v, want %v", h.name, now.Wall, feature, service, got, want)
			}
		}
		for _, minor := range []int64{99, 2500} {
			got, code := h.Allow("risk", service, usd(minor), now)
			if want := n.open(service, usd(minor)); got != want && code != engine.CodeSpent {
				rt.Fatalf("%s at %s: %d for %s is %v %s, want %v", h.name, now.Wall, minor, service, got, code, want)
			}
		}
	}
	var ids []string
	for _, d := range n.live() {
		ids = append(ids, d.ID)
	}
	slices.Sort(ids)
	live := h.live()
	if !slices.Equal(live, append([]string{}, ids...)) {
		rt.Fatalf("%s at %s: live are %v, want %v", h.name, now.Wall, live, ids)
	}
	for _, d := range set {
		listed := slices.ContainsFunc(set, func(e model.Directive) bool { return slices.Contains(e.IDs, d.ID) })
		if d.Kind == model.Shed && !listed && !now.Wall.Before(d.NotBefore) && !slices.Contains(live, d.ID) {
			rt.Fatalf("%s at %s: shed %s was never ended and is not live", h.name, now.Wall, d.ID)
		}
	}
}
