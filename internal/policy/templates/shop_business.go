package templates

import (
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

func (p *ShopParams) features() *policy.FeaturesDoc {
	f := p.frame()
	feature := func(class policy.Class, service string, calls int, why string, tiers ...string) policy.Feature {
		return f.feature(class, Priya, service, calls, why, tiers...)
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
	return &policy.FeaturesDoc{
		Header:    f.header(policy.Features, "What the shop shows, what may get simpler and what goes first."),
		Features:  withEndpoints(features, p.endpoints()),
		Programme: programme(),
	}
}

// The service level of checkout: p99 within 400 ms. The ladder enters at twice
// that and leaves well below it.
func (p *ShopParams) ladder() *policy.LadderDoc {
	f, pace := p.frame(), &p.Pace
	tier := func(n int, name, text string, auto bool, enter, leave []policy.Condition) policy.Tier {
		return f.tier(n, name, text, Ines, auto, enter, leave)
	}
	calm := func(p99 float64) []policy.Condition {
		return []policy.Condition{below(CheckoutP99, p99, pace.Leave), below(CPU, 60, pace.Leave), below(CheckoutErrors, 0.5, pace.Leave)}
	}
	return &policy.LadderDoc{
		Header: f.header(policy.Ladder, "When the shop gets simpler, by numbers that reliability chose in daylight."),
		Signals: map[string]policy.Signal{
			CheckoutP99:    f.signal(p.Queries[CheckoutP99], "seconds", over(0.8), "shed", "Twice the service level of 400 ms."),
			CheckoutErrors: f.signal(p.Queries[CheckoutErrors], "percent", over(1), "shed", "One order in a hundred fails."),
			CPU:            f.signal(p.Queries[CPU], "percent", over(80), "shed", "No room for a failed zone."),
			PaymentRiskUp:  f.signal(p.Queries[PaymentRiskUp], "ratio", under(0.5), "risk-bypass-small-orders", "Orders fail closed while nothing scores them."),
		},
		Services: map[string]policy.Service{
			Edge:        f.service(4, policy.Assigns, 1200, 900, Catalog, Checkout),
			Catalog:     f.service(4, policy.Passes, 6000, 4200),
			Checkout:    f.service(4, policy.Passes, 160, 110, Catalog, PaymentRisk),
			PaymentRisk: f.service(1, policy.Passes, 160, 110),
		},
		Automatic:  f.automatic(),
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
	f := p.frame()
	return &policy.RightsDoc{
		Header: f.header(policy.Rights, "Who may do what at night without asking."),
		Rights: f.matrix("the shop", "turn the shop into static pages", "It stops all orders: one person of the business signs too.", 2, 4),
	}
}

// The bypasses of the risk check: two for a usual night, one for a night on which
// nobody of finance came, and one that is left when all of this has run out.
func (p *ShopParams) payments() *policy.ControlsDoc {
	hosts, nobody := p.hostsOf(Checkout), policy.Cosign{Count: 0, Of: "finance"}
	onOrders := func(under, total, count int64, lasts model.Duration, perDay int) *policy.Bypass {
		return bypass(PaymentRisk, hosts, under, total, count, lasts, perDay)
	}
	const byHand = "Set the check to let orders under the amount through on every host of checkout, note the time, and set it back at the end of the window."
	return &policy.ControlsDoc{
		Header: p.frame().header(PaymentsDomain, "What finance accepts to lose while risk scoring is down, so that small orders go through."),
		Controls: map[string]policy.Control{
			PaymentRisk: {Protects: policy.ProtectsMoney, Fails: policy.FailsClosed, Services: []string{Checkout}, Owner: Fiona,
				Text: "every order is scored for fraud before it is paid"},
		},
		Rights: map[string]policy.Right{
			"risk-bypass-small-orders": {Text: "let small orders through without a risk score", Kind: model.Bypass, Who: Commander,
				Cosign: nobody, Scope: []string{Checkout}, Bypass: onOrders(50_00, 30_000_00, 100, p.Pace.SmallOrders, 4), Advice: byHand,
				Why: "Orders under 50 dollars are nine in ten and lose little."},
			"risk-bypass-medium-orders": {Text: "let medium orders through without a risk score", Kind: model.Bypass, Who: Commander,
				Cosign: policy.Cosign{Count: 1, Of: "finance"}, Scope: []string{Checkout}, Bypass: onOrders(200_00, 20_000_00, 20, p.Pace.MedOrders, 2), Lead: p.Pace.Lead, Advice: byHand,
				Why: "More money at stake: one person of finance signs the very order."},
			"risk-bypass-medium-alone": {Text: "let medium orders through without a risk score when nobody of finance came", Kind: model.Bypass, Who: Commander,
				Cosign: nobody, Scope: []string{Checkout}, Bypass: onOrders(100_00, 5_000_00, 10, p.Pace.MedOrders, 1), Advice: byHand, Review: "finance",
				NoSecond: &policy.NoSecond{Of: "risk-bypass-medium-orders", After: 4 * p.Pace.Lead},
				Why:      "A quarter of the money, once a day, and finance looks at every order afterwards."},
			"risk-bypass-expired-policy": {Text: "let the smallest orders through without a risk score, also when the rest of the policy has expired", Kind: model.Bypass, Who: Commander,
				Cosign: nobody, Scope: []string{Checkout}, Bypass: onOrders(20_00, 2_000_00, 10, p.Pace.MedOrders, 1), Advice: byHand, Review: "finance", Expires: p.outlives(),
				Why: "A policy that nobody has renewed must not turn a failing scorer into a closed shop."},
		},
	}
}
