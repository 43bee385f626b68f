package decisions

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"pgregory.net/rapid"
)

func one() *big.Rat { return big.NewRat(1, 1) }

func minutes(n int) model.Duration { return model.Duration(time.Duration(n) * time.Minute) }

// page is a service whose page makes 20 calls, 10 of them for what tier 1 hides.
func page(capacity, peak float64) (*policy.FeaturesDoc, *policy.LadderDoc) {
	features := &policy.FeaturesDoc{Features: map[string]policy.Feature{
		"main":    {Service: "shop", Calls: 10, Tiers: map[int]string{1: policy.NoChange, 2: "smaller"}},
		"extras":  {Service: "shop", Calls: 10, Tiers: map[int]string{1: policy.OffBehaviour, 2: policy.OffBehaviour}},
		"foreign": {Service: "other", Calls: 500, Tiers: map[int]string{1: policy.OffBehaviour, 2: policy.OffBehaviour}},
	}}
	ladder := &policy.LadderDoc{
		Services: map[string]policy.Service{"shop": {Tiers: 2, Capacity: capacity, Peak: peak}},
		Tiers:    []policy.Tier{{Tier: 1}, {Tier: 2}},
	}
	return features, ladder
}

func TestHalfOfTheFanOutShedFreesHalf(t *testing.T) {
	features, ladder := page(1000, 1500)
	got := CapacityOf(features, ladder, one())
	if len(got) != 1 || len(got[0].Tiers) != 3 {
		t.Fatalf("services and tiers: %+v", got)
	}
	s := got[0]
	if s.Calls != 20 || s.Tiers[1].Freed != 10 || s.Tiers[1].Serves != "1500" || s.Tiers[0].Serves != "1000" {
		t.Errorf("freed %d of %d, serves %s at tier 0 and %s at tier 1", s.Tiers[1].Freed, s.Calls, s.Tiers[0].Serves, s.Tiers[1].Serves)
	}
	if !slices.Equal(s.Tiers[1].Off, []string{"extras"}) {
		t.Errorf("off: %v", s.Tiers[1].Off)
	}
}

func TestTheRequiredTierIsTheLowestThatServesTheLoad(t *testing.T) {
	for _, c := range []struct {
		what           string
		capacity, peak float64
		factor         *big.Rat
		want           int
		measured       bool
	}{
		{"room enough", 1000, 900, one(), 0, true},
		{"exactly enough", 1000, 1000, one(), 0, true},
		{"a hair too much", 1000, 1000.01, one(), 1, true},
		{"exactly what half frees", 1000, 1500, one(), 1, true},
		{"beyond what any tier frees", 1000, 1500.01, one(), NoTier, true},
		{"twice the peak", 1000, 750, big.NewRat(2, 1), 1, true},
		{"a factor that no binary fraction holds", 1000, 10000, big.NewRat(1, 10), 0, true},
		{"capacity not measured", 0, 900, one(), NoTier, false},
		{"peak not measured", 1000, 0, one(), NoTier, false},
		{"no number", math.NaN(), 900, one(), NoTier, false},
		{"endless", math.Inf(1), 900, one(), NoTier, false},
		{"below zero", -5, 900, one(), NoTier, false},
	} {
		features, ladder := page(c.capacity, c.peak)
		got := CapacityOf(features, ladder, c.factor)[0]
		if got.Required != c.want || got.Measured != c.measured {
			t.Errorf("%s: tier %d, measured %v; want %d, %v", c.what, got.Required, got.Measured, c.want, c.measured)
		}
	}
}

func TestAServiceStaysAtItsLastTier(t *testing.T) {
	features, ladder := page(1000, 900)
	ladder.Services["shop"] = policy.Service{Tiers: 1, Capacity: 1000, Peak: 900}
	main := features.Features["main"]
	main.Tiers = map[int]string{1: policy.NoChange, 2: policy.OffBehaviour}
	features.Features["main"] = main
	if got := CapacityOf(features, ladder, one())[0].Tiers[2]; got.Freed != 10 {
		t.Errorf("tier 2 of a service that knows one tier frees %d calls, want those of tier 1", got.Freed)
	}
}

func TestTheOldestSnapshotIsRefreshAndJobAndOneMissedRun(t *testing.T) {
	doc := func(f policy.Fallback) *policy.FeaturesDoc {
		return &policy.FeaturesDoc{Features: map[string]policy.Feature{"stock": {Endpoints: map[string]policy.Endpoint{
			"page": {Dependencies: map[string]policy.Dependency{"stock-service": {Need: policy.Enhancing, Fallback: &f}}},
		}}}}
	}
	got := StalenessOf(doc(policy.Fallback{Source: policy.Snapshot, Refresh: minutes(10), Job: minutes(5), MaxAge: minutes(25)}))
	if len(got) != 1 || got[0].Oldest != minutes(25) || !got[0].Holds {
		t.Fatalf("10 min refresh with a 5 min job: %+v", got)
	}
	if got := StalenessOf(doc(policy.Fallback{Source: policy.Snapshot, Refresh: minutes(10), Job: minutes(5), MaxAge: minutes(24)})); got[0].Holds {
		t.Error("25 min is not within 24")
	}
	if got := StalenessOf(doc(policy.Fallback{Source: policy.Snapshot, Refresh: math.MaxInt64, Job: 1, MaxAge: minutes(24)})); got[0].Oldest != math.MaxInt64 || got[0].Holds {
		t.Errorf("an endless refresh is %v old", got[0].Oldest)
	}
	if got := StalenessOf(doc(policy.Fallback{Source: policy.Static})); len(got) != 0 {
		t.Errorf("a constant has no age: %+v", got)
	}
}

func TestABulkheadHoldsOneAndAHalfTimesTheCallsInFlight(t *testing.T) {
	endpoint := func(qps float64, timeout int) policy.Endpoint {
		return policy.Endpoint{Dependencies: map[string]policy.Dependency{"db": {QPS: qps, TimeoutMS: timeout}}}
	}
	doc := &policy.FeaturesDoc{Features: map[string]policy.Feature{
		"a": {Service: "one", Endpoints: map[string]policy.Endpoint{"get": endpoint(100, 300)}},
		"b": {Service: "two", Endpoints: map[string]policy.Endpoint{"get": endpoint(0.1, 1000), "put": endpoint(0.2, 1000)}},
		"c": {Service: "three", Endpoints: map[string]policy.Endpoint{"get": endpoint(math.NaN(), 1000)}},
		"d": {Service: "four", Endpoints: map[string]policy.Endpoint{"get": endpoint(1e300, 60000)}},
	}}
	got := make(map[string]Bulkhead)
	for _, b := range BulkheadsOf(doc) {
		got[b.Service] = b
	}
	if got["one"].Slots != 45 {
		t.Errorf("100 a second for 0.3 s hold %d slots, want 45", got["one"].Slots)
	}
	// (0.1 + 0.2) x 1.5 is 0.45, and two endpoints share one pool.
	if got["two"].Slots != 1 || len(got["two"].Terms) != 2 || got["two"].Terms[0].QPS != "0.1" {
		t.Errorf("two endpoints: %+v", got["two"])
	}
	if _, there := got["three"]; there {
		t.Error("no number has a pool")
	}
	if got["four"].Slots != math.MaxInt64 {
		t.Errorf("a number too large to say is %d", got["four"].Slots)
	}
}

// layers is a chain of services that each call the next one, three times at most.
func layers(attempts int, names ...string) *policy.FeaturesDoc {
	doc := &policy.FeaturesDoc{Features: map[string]policy.Feature{}}
	for i := range len(names) - 1 {
		doc.Features["f-"+names[i]] = policy.Feature{Service: names[i], Endpoints: map[string]policy.Endpoint{
			"get": {Dependencies: map[string]policy.Dependency{names[i+1]: {Attempts: attempts}}},
		}}
	}
	return doc
}

func amplificationOf(doc *policy.FeaturesDoc, feature string) Amplification {
	for _, a := range AmplificationOf(doc) {
		if a.Feature == feature {
			return a
		}
	}
	return Amplification{}
}

func TestThreeAttemptsOverFourLayersAreEightyOneCalls(t *testing.T) {
	got := amplificationOf(layers(3, "edge", "a", "b", "c", "db"), "f-edge")
	if got.Calls != 81 || len(got.Chain) != 4 || got.Circle != nil || got.Chain[3] != (Hop{"db", 3}) {
		t.Errorf("got %+v", got)
	}
	if once := amplificationOf(layers(1, "edge", "a", "b", "c", "db"), "f-edge"); once.Calls != 1 || len(once.Chain) != 4 {
		t.Errorf("without retries: %+v", once)
	}
}

func TestTheWorstOfSeveralWaysCounts(t *testing.T) {
	doc := layers(2, "edge", "a", "db")
	edge := doc.Features["f-edge"]
	edge.Endpoints["get"].Dependencies["cache"] = policy.Dependency{Attempts: 5}
	if got := amplificationOf(doc, "f-edge"); got.Calls != 5 || got.Chain[0].To != "cache" {
		t.Errorf("5 attempts at once are worse than 2 x 2: %+v", got)
	}
	edge.Endpoints["get"].Dependencies["cache"] = policy.Dependency{Attempts: 4}
	if got := amplificationOf(doc, "f-edge"); got.Calls != 4 || len(got.Chain) != 2 {
		t.Errorf("of equals the longer chain is shown: %+v", got)
	}
}

func TestServicesThatCallEachOtherInACircleHaveNoBound(t *testing.T) {
	doc := layers(2, "edge", "a", "b", "a")
	delete(doc.Features, "f-a")
	doc.Features["f-a"] = policy.Feature{Service: "a", Endpoints: map[string]policy.Endpoint{
		"get": {Dependencies: map[string]policy.Dependency{"b": {Attempts: 2}, "z": {Attempts: 9}}},
	}}
	for _, feature := range []string{"f-edge", "f-a", "f-b"} {
		if got := amplificationOf(doc, feature); len(got.Circle) != 3 || got.Circle[0] != got.Circle[2] {
			t.Errorf("%s: %+v", feature, got)
		}
	}
}

func TestAmplificationStopsAtTheLargestNumber(t *testing.T) {
	names := []string{"s0"}
	for i := range 40 {
		names = append(names, string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	if got := amplificationOf(layers(10, names...), "f-s0"); got.Calls != math.MaxInt64 {
		t.Errorf("10^40 is %d", got.Calls)
	}
}

func TestRecoveryIsDwellAndRampTierByTier(t *testing.T) {
	tier := func(n int) policy.Tier {
		return policy.Tier{Tier: n, Dwell: minutes(10), Ramp: []int{10, 50, 100}, RampStep: minutes(2)}
	}
	got := RecoveryOf(&policy.LadderDoc{Tiers: []policy.Tier{tier(1), tier(2), {Tier: 3, Dwell: minutes(1), RampStep: minutes(4)}}})
	if len(got) != 3 || got[0].Takes != minutes(16) || got[1].ToNormal != minutes(32) || got[2].Takes != minutes(5) || got[2].ToNormal != minutes(37) {
		t.Errorf("got %+v", got)
	}
}

func programmeOf(hourly int64) policy.Programme {
	return policy.Programme{Engineers: 2, EngineerMonth: usd(25_000_00), Storage: usd(500_00), Hourly: usd(hourly), Outages: 2, Lasts: 60, Retained: 80}
}

func TestTwoOutagesOfAnHourThatKeepEightyPercentAreWorth912000(t *testing.T) {
	p := programmeOf(570_000_00)
	got := CostOf(&p, nil, day0)
	if got.Keeps != usd(912_000_00) || got.Engineers != usd(600_000_00) || got.Storage != usd(6_000_00) || got.Total != usd(606_000_00) || got.Net != usd(306_000_00) {
		t.Errorf("got %+v", got)
	}
	p.Hourly = usd(1)
	if got := CostOf(&p, nil, day0); got.Keeps != usd(1) || got.Net.Minor != 1-606_000_00 {
		t.Errorf("1.6 cents are rounded down to 1: keeps %s, net %s", got.Keeps, got.Net)
	}
	for _, other := range []*string{&p.Storage.Currency, &p.EngineerMonth.Currency, &p.Hourly.Currency} {
		*other = "EUR"
		if got := CostOf(&p, nil, day0); got.OneCurrency || !got.Net.IsZero() || !got.Total.IsZero() {
			t.Errorf("two currencies were added: %+v", got)
		}
		*other = "USD"
	}
}

func TestACostThatCannotBeSaidIsNotAssumed(t *testing.T) {
	for what, bend := range map[string]func(*policy.Programme){
		"no number":          func(p *policy.Programme) { p.Engineers = math.NaN() },
		"endless":            func(p *policy.Programme) { p.Retained = math.Inf(1) },
		"not endless people": func(p *policy.Programme) { p.Engineers = -0.5 },
		"below zero":         func(p *policy.Programme) { p.Lasts = -1 },
		"outages below it":   func(p *policy.Programme) { p.Outages = -1 },
		"an amount below it": func(p *policy.Programme) { p.Hourly.Minor = -1 },
		"another":            func(p *policy.Programme) { p.Storage.Minor = -1 },
		"and another":        func(p *policy.Programme) { p.EngineerMonth.Minor = -1 },
	} {
		p := programmeOf(570_000_00)
		bend(&p)
		if got := CostOf(&p, nil, day0); got.Assumed || !got.Net.IsZero() {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if got := CostOf(nil, nil, day0); got.Assumed {
		t.Error("without a programme nothing is assumed")
	}
	huge := programmeOf(math.MaxInt64)
	huge.Outages, huge.EngineerMonth.Minor = 1000, math.MaxInt64
	if got := CostOf(&huge, nil, day0); got.Keeps.Minor != math.MaxInt64 || got.Total.Minor != math.MaxInt64 || !got.Saturated {
		t.Errorf("too large to say: %+v", got)
	}
	for what, bend := range map[string]func(*policy.Programme){
		"what it keeps": func(p *policy.Programme) { p.Hourly.Minor, p.Outages = math.MaxInt64, 1000 },
		"what it costs": func(p *policy.Programme) { p.EngineerMonth.Minor = math.MaxInt64 },
	} {
		p := programmeOf(570_000_00)
		bend(&p)
		if got := CostOf(&p, nil, day0); !got.Saturated {
			t.Errorf("%s is too large to say: %+v", what, got)
		}
	}
	// Nothing is a number.
	free := policy.Programme{EngineerMonth: usd(0), Storage: usd(0), Hourly: usd(0)}
	if got := CostOf(&free, nil, day0); !got.Assumed || got.Saturated || !got.OneCurrency {
		t.Errorf("all of it costs nothing: %+v", got)
	}
}

func TestTheWorseOfTwoWaysDown(t *testing.T) {
	way := func(calls int64, layers int) *worst { return &worst{calls: calls, chain: make([]Hop, layers)} }
	circle := &worst{calls: 1, circle: []string{"a", "b", "a"}}
	for _, c := range []struct {
		a, b  *worst
		worse bool
	}{
		{way(4, 1), way(3, 5), true}, {way(3, 5), way(4, 1), false},
		{way(4, 2), way(4, 1), true}, {way(4, 1), way(4, 2), false}, {way(4, 2), way(4, 2), false},
		{circle, way(math.MaxInt64, 9), true}, {way(math.MaxInt64, 9), circle, false}, {circle, circle, false},
	} {
		if c.a.than(c.b) != c.worse {
			t.Errorf("%+v is worse than %+v: it does not say %v", c.a, c.b, c.worse)
		}
	}
	for _, c := range [][3]int64{{2, math.MaxInt64 / 2, math.MaxInt64 - 1}, {2, math.MaxInt64/2 + 1, math.MaxInt64}, {0, 5, 0}, {1, 1, 1}} {
		if got := product(c[0], c[1]); got != c[2] {
			t.Errorf("%d x %d = %d", c[0], c[1], got)
		}
	}
	for _, whole := range []int64{0, -1} {
		if onePlus(1, whole).Cmp(onePlus(0, 1)) != 0 {
			t.Errorf("a part of %d", whole)
		}
	}
}

func TestAGameDayCountsForAQuarter(t *testing.T) {
	ladder := &policy.LadderDoc{Services: map[string]policy.Service{
		"fresh": {GameDay: day0.AddDate(0, 0, -92)}, "old": {GameDay: day0.AddDate(0, 0, -93)}, "never": {}, "planned": {GameDay: day0.AddDate(0, 0, 1)},
	}}
	got := CostOf(nil, ladder, day0)
	if !slices.Equal(got.Practised, []string{"fresh"}) || !slices.Equal(got.Unpractised, []string{"never", "old", "planned"}) {
		t.Errorf("practised %v, not %v", got.Practised, got.Unpractised)
	}
}

// Whatever a draft says, a plan is finite, ordered and printable.
func TestAPlanIsTotal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1e8), rapid.Just(math.NaN()), rapid.Just(math.Inf(-1)))
		features, ladder := page(number.Draw(rt, "capacity"), number.Draw(rt, "peak"))
		main := features.Features["main"]
		main.Calls = rapid.Int().Draw(rt, "calls")
		main.Endpoints = map[string]policy.Endpoint{"get": {Dependencies: map[string]policy.Dependency{
			"shop": {QPS: number.Draw(rt, "qps"), TimeoutMS: rapid.Int().Draw(rt, "timeout"), Attempts: rapid.Int().Draw(rt, "attempts")},
		}}}
		features.Features["main"] = main
		ladder.Tiers[1].Dwell, ladder.Tiers[1].RampStep = model.Duration(rapid.Int64().Draw(rt, "dwell")), model.Duration(rapid.Int64().Draw(rt, "step"))
		services := CapacityOf(features, ladder, big.NewRat(3, 2))
		p := policy.Programme{Engineers: number.Draw(rt, "engineers"), EngineerMonth: usd(rapid.Int64().Draw(rt, "month")), Storage: usd(0), Hourly: usd(0)}
		all, err := json.Marshal([]any{services, StalenessOf(features), BulkheadsOf(features), AmplificationOf(features), RecoveryOf(ladder), CostOf(&p, ladder, day0)})
		if err != nil {
			rt.Fatalf("%v: %s", err, all)
		}
		for _, s := range services {
			for i := range s.Tiers {
				if s.Tiers[i].Freed < 0 || s.Tiers[i].Freed > s.Calls {
					rt.Fatalf("tier %d frees %d of %d", i, s.Tiers[i].Freed, s.Calls)
				}
			}
		}
		for _, r := range RecoveryOf(ladder) {
			if r.Takes < 0 || r.ToNormal < r.Takes {
				rt.Fatalf("recovery: %+v", r)
			}
		}
	})
}

// What explain says is what a confirmation says: the same arithmetic over the
// widest use of the right.
func TestTheExposureOfARightIsTheWorstCaseOfItsWidestUse(t *testing.T) {
	b := shop(t, 0)
	hosts := []model.HostView{{Host: "c1", Services: []string{"checkout"}}, {Host: "c2", Services: []string{"checkout", "edge"}}, {Host: "e1", Services: []string{"edge"}}}
	got, ok := RightExposure(b, hosts, "risk-bypass-small-orders")
	if !ok || got.Hosts != 2 || got.Replacements != 2 || got.PerHost != usd(200000) || got.WorstCase != usd(800000) || got.Lasts != 15*time.Minute {
		t.Errorf("got %+v", got)
	}
	right, _, _ := b.Right("risk-bypass-small-orders")
	d := model.Directive{Kind: model.Bypass, Right: "risk-bypass-small-orders", Control: "payment-risk", Scope: "checkout",
		Caps: model.Caps{Under: right.Bypass.Under, HostCount: right.Bypass.HostCount, HostTotal: right.Bypass.HostTotal, Total: right.Bypass.Total}}
	if same := WorstCase(b, &model.World{Hosts: hosts}, &d); same.WorstCase != got.WorstCase || same.Hosts != got.Hosts {
		t.Errorf("WorstCase says %+v", same)
	}
	// A control stands before other services too, and the right is not about them.
	narrow := changed(t, func(p *parts) {
		c := p.docs.Controls["payments"].Controls["payment-risk"]
		c.Services = append(slices.Clone(c.Services), "edge")
		p.docs.Controls["payments"].Controls["payment-risk"] = c
	})
	if got, ok := RightExposure(narrow, hosts, "risk-bypass-small-orders"); !ok || got.Hosts != 2 {
		t.Errorf("of another service: %+v", got)
	}
	if _, ok := RightExposure(b, hosts, "shed"); ok {
		t.Error("a shed costs no money")
	}
	if _, ok := RightExposure(b, hosts, "nothing"); ok {
		t.Error("a right that is not there costs nothing")
	}
}
