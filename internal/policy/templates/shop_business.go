package templates

import (
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// off and same are the two behaviours with a fixed word.
const (
	off  = policy.OffBehaviour
	same = policy.NoChange
)

func (p *ShopParams) features() *policy.FeaturesDoc {
	feature := func(class policy.Class, service string, calls int, why string, tiers ...string) policy.Feature {
		f := policy.Feature{Class: class, Owner: Priya, Service: service, Reviewed: p.Reviewed, Calls: calls, Endpoints: map[string]policy.Endpoint{}, Tiers: map[int]string{}, Why: why}
		for i, behaviour := range tiers {
			f.Tiers[i+1] = behaviour
		}
		return f
	}
	const critical, degradable, sheddable = policy.Critical, policy.Degradable, policy.Sheddable
	features := map[string]policy.Feature{
		"sign-in": feature(critical, Edge, 2, "Without it nobody has a basket.",
			same, same, same, "kept sessions only, no new ones"),
		"browse-catalog": feature(critical, Catalog, 8, "The reason to come.",
			same, same, "pages up to 30 min old", "static pages of the last snapshot"),
		"place-order": feature(critical, Checkout, 6, "It pays for everything else.",
			same, same, "one-page order form, card only", off),
		"product-images": feature(degradable, Catalog, 6, "A page without images still sells.",
			same, "small images from the edge", "small images from the edge", "small images of the last snapshot"),
		"stock-counts": feature(degradable, Catalog, 4, "A number may be old, an order is checked anyway.",
			same, "in stock or not, up to 10 min old", "in stock or not, up to 30 min old", off),
		"delivery-dates": feature(degradable, Checkout, 2, "A range is honest, a wrong day is not.",
			same, "a range of days per region", "a range of days per region", off),
		"personal-prices": feature(degradable, Catalog, 3, "The list price is always right.",
			same, "list prices, the discount is given at the till", "list prices, the discount is given at the till", "list prices"),
		"search-suggest": feature(sheddable, Edge, 2, "Search works without it.",
			off, off, off, off),
		"recommendations": feature(sheddable, Catalog, 15, "Costs 30 % of catalog's calls.",
			off, off, off, off),
		"reviews": feature(sheddable, Catalog, 6, "Costs 12 % of catalog's calls.",
			"the newest three, up to a day old", off, off, off),
		"recently-viewed": feature(sheddable, Edge, 2, "Nice to have.",
			off, off, off, off),
	}
	for name, endpoints := range p.endpoints() {
		f := features[name]
		f.Endpoints = endpoints
		features[name] = f
	}
	return &policy.FeaturesDoc{
		Header:    p.header(policy.Features, "What the shop shows, what may get simpler and what goes first."),
		Features:  features,
		Programme: programme(),
	}
}

func above(signal string, limit float64, held model.Duration) policy.Condition {
	return policy.Condition{Signal: signal, Threshold: policy.Threshold{Above: &limit}, For: held}
}

func below(signal string, limit float64, held model.Duration) policy.Condition {
	return policy.Condition{Signal: signal, Threshold: policy.Threshold{Below: &limit}, For: held}
}

// The service level of checkout: p99 within 400 ms. The ladder enters at twice
// that and leaves well below it.
func (p *ShopParams) ladder() *policy.LadderDoc {
	pace := &p.Pace
	signal := func(name, unit string, abnormal policy.Threshold, right, why string) policy.Signal {
		return policy.Signal{Query: p.Queries[name], Unit: unit, MaxAge: pace.MaxAge, Step: pace.Step, Abnormal: &abnormal, Right: right, Why: why}
	}
	limit := func(f float64) *float64 { return &f }
	tier := func(n int, name, text string, auto bool, enter, leave []policy.Condition) policy.Tier {
		return policy.Tier{Tier: n, Name: name, Text: text, Owner: Ines, Auto: auto, Enter: enter, EnterNeeds: 1, Leave: leave,
			Dwell: pace.Dwell, Ramp: []int{10, 50, 100}, RampStep: pace.RampStep}
	}
	calm := func(p99 float64) []policy.Condition {
		return []policy.Condition{below(CheckoutP99, p99, pace.Leave), below(CPU, 60, pace.Leave), below(CheckoutErrors, 0.5, pace.Leave)}
	}
	return &policy.LadderDoc{
		Header: p.header(policy.Ladder, "When the shop gets simpler, by numbers that reliability chose in daylight."),
		Signals: map[string]policy.Signal{
			CheckoutP99:    signal(CheckoutP99, "seconds", policy.Threshold{Above: limit(0.8)}, "shed", "Twice the service level of 400 ms."),
			CheckoutErrors: signal(CheckoutErrors, "percent", policy.Threshold{Above: limit(1)}, "shed", "One order in a hundred fails."),
			CPU:            signal(CPU, "percent", policy.Threshold{Above: limit(80)}, "shed", "No room for a failed zone."),
			PaymentRiskUp:  signal(PaymentRiskUp, "ratio", policy.Threshold{Below: limit(0.5)}, "risk-bypass-small-orders", "Orders fail closed while nothing scores them."),
		},
		Services: map[string]policy.Service{
			Edge:        {Tiers: 4, Dependencies: []string{Catalog, Checkout}, LocalState: true, Criticality: policy.Assigns, Capacity: 1200, Peak: 900, GameDay: p.Reviewed},
			Catalog:     {Tiers: 4, Dependencies: []string{}, LocalState: true, Criticality: policy.Passes, Capacity: 6000, Peak: 4200, GameDay: p.Reviewed},
			Checkout:    {Tiers: 4, Dependencies: []string{Catalog, PaymentRisk}, LocalState: true, Criticality: policy.Passes, Capacity: 160, Peak: 110, GameDay: p.Reviewed},
			PaymentRisk: {Tiers: 1, Dependencies: []string{}, LocalState: true, Criticality: policy.Passes, Capacity: 160, Peak: 110, GameDay: p.Reviewed},
		},
		Automatic:  p.automatic(),
		Schedule:   map[string]policy.Event{},
		Exceptions: map[string]policy.Exception{},
		Tiers: []policy.Tier{
			tier(1, "lean", "Recommendations and suggestions are hidden.", true,
				[]policy.Condition{above(CheckoutP99, 0.8, pace.Enter), above(CPU, 80, pace.Enter), above(CheckoutErrors, 1, pace.EnterErrors)}, calm(0.5)),
			tier(2, "fallbacks", "Some numbers on the page may be a few minutes old.", true,
				[]policy.Condition{above(CheckoutP99, 1.2, pace.Enter), above(CPU, 90, pace.Enter), above(CheckoutErrors, 2, pace.EnterErrors)}, calm(0.6)),
			tier(3, "essentials", "You can buy; everything else waits.", false,
				[]policy.Condition{above(CheckoutP99, 2, pace.Enter), above(CheckoutErrors, 5, pace.EnterErrors)}, calm(0.8)),
			tier(4, "static", "The shop is open for looking; orders start again soon.", false,
				[]policy.Condition{above(CheckoutErrors, 25, pace.EnterErrors)}, calm(0.8)),
		},
	}
}

func (p *ShopParams) rights() *policy.RightsDoc {
	const commander = "incident-commander"
	alone := policy.Cosign{Count: 0, Of: "business"}
	anywhere := []string{model.AnyScope}
	tiers := func(from, to int) *policy.Range { return &policy.Range{From: from, To: to} }
	return &policy.RightsDoc{
		Header: p.header(policy.Rights, "Who may do what at night without asking."),
		Rights: map[string]policy.Right{
			"shed": {Text: "simplify the shop to tier 1, 2 or 3", Kind: model.Shed, Who: commander, Cosign: alone, Scope: anywhere, Tiers: tiers(1, 3),
				Why: "Nobody waits for a signature to shed."},
			"shed-4": {Text: "turn the shop into static pages", Kind: model.Shed, Who: commander, Cosign: policy.Cosign{Count: 1, Of: "business"}, Scope: anywhere, Tiers: tiers(4, 4), Lead: p.Pace.Lead,
				Why: "It stops all orders: one person of the business signs too."},
			"auto-shed": {Text: "simplify the shop to tier 1 or 2 by the ladder", Kind: model.Shed, Who: LadderController, Cosign: alone, Scope: anywhere, Tiers: tiers(1, 2),
				Why: "Tiers that hide only what product called sheddable or degradable."},
			"recover": {Text: "leave a tier, one step at a time", Kind: model.End, Ends: model.Shed, Who: commander, Cosign: alone, Scope: anywhere, Tiers: tiers(1, 4),
				Why: "With signals known to be good and after the dwell."},
			"auto-recover": {Text: "leave tier 1 or 2 by the ladder", Kind: model.End, Ends: model.Shed, Who: LadderController, Cosign: alone, Scope: anywhere, Tiers: tiers(1, 2),
				Why: "What the ladder entered it may leave."},
			"recover-blind": {Text: "leave a tier without good signals, with typed evidence", Kind: model.End, Ends: model.Shed, Who: commander,
				Cosign: policy.Cosign{Count: 1, Of: "reliability"}, Scope: anywhere, Tiers: tiers(1, 4), Blind: true, Lead: p.Pace.Lead,
				Why: "Two people look when the dashboards cannot."},
			"feature-off": {Text: "switch one feature off", Kind: model.Off, Who: commander, Cosign: alone, Scope: anywhere, Feature: "*",
				Why: "The smallest way to shed."},
			"feature-on": {Text: "switch a feature on again", Kind: model.End, Ends: model.Off, Who: commander, Cosign: alone, Scope: anywhere,
				Why: "Ends what feature-off began."},
			"end-bypass": {Text: "end a bypass before its time", Kind: model.End, Ends: model.Bypass, Who: commander, Cosign: alone, Scope: anywhere,
				Why: "Closing is always allowed."},
			"freeze": {Text: "hold everything where it is", Kind: model.Freeze, Who: commander, Cosign: alone, Scope: anywhere, Lasts: p.Pace.Freeze,
				Why: "Stops automatic moves, recoveries and bypasses; people may still shed."},
			"unfreeze": {Text: "end a freeze", Kind: model.End, Ends: model.Freeze, Who: commander, Cosign: alone, Scope: anywhere,
				Why: "Ends what freeze began."},
			"ping": {Text: "rehearse: reach every host and change nothing", Kind: model.Ping, Who: commander, Cosign: alone, Scope: anywhere, Lasts: p.Pace.Ping,
				Why: "A carrier that is never used is not there at night."},
		},
	}
}

// The two bypasses of the risk check. maxReplacements hosts may join in a day;
// the budget of a host is the total shared among all that can ever spend it, so
// that the worst case is the total.
func (p *ShopParams) payments() *policy.ControlsDoc {
	const maxReplacements = 4
	usd := func(minor int64) model.Money { return model.Money{Minor: minor, Currency: "USD"} }
	bypass := func(under, total, count int64, lasts model.Duration, perDay int) *policy.Bypass {
		share := total / (p.hostsOf(Checkout) + maxReplacements)
		return &policy.Bypass{
			Control: PaymentRisk, Under: usd(under), HostCount: count, HostTotal: usd(share - share%100), Total: usd(total),
			Lasts: lasts, PerDay: perDay, Live: 1, MaxReplacements: maxReplacements, VolatileHosts: false,
		}
	}
	return &policy.ControlsDoc{
		Header: p.header(PaymentsDomain, "What finance accepts to lose while risk scoring is down, so that small orders go through."),
		Controls: map[string]policy.Control{
			PaymentRisk: {Protects: policy.ProtectsMoney, Fails: policy.FailsClosed, Services: []string{Checkout}, Owner: Fiona,
				Text: "every order is scored for fraud before it is paid"},
		},
		Rights: map[string]policy.Right{
			"risk-bypass-small-orders": {Text: "let small orders through without a risk score", Kind: model.Bypass, Who: "incident-commander",
				Cosign: policy.Cosign{Count: 0, Of: "finance"}, Scope: []string{Checkout}, Bypass: bypass(50_00, 30_000_00, 100, p.Pace.SmallOrders, 4),
				Why: "Orders under 50 dollars are nine in ten and lose little."},
			"risk-bypass-medium-orders": {Text: "let medium orders through without a risk score", Kind: model.Bypass, Who: "incident-commander",
				Cosign: policy.Cosign{Count: 1, Of: "finance"}, Scope: []string{Checkout}, Bypass: bypass(200_00, 20_000_00, 20, p.Pace.MedOrders, 2), Lead: p.Pace.Lead,
				Why: "More money at stake: one person of finance signs the very order."},
		},
	}
}
