package templates

import (
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// The services of a payments company.
const (
	payGateway  = "gateway"
	payCore     = "payments"
	payLedger   = "ledger"
	payRisk     = "risk"
	payReports  = "reporting"
	fraudCheck  = "fraud-check"
	accessCheck = "account-access"
)

// payments moves other people's money: the ledger is never degraded, whoever may
// see an account is never decided by a fallback, and the last tier only reads.
func payments(f *frame) *documents {
	return &documents{
		root: f.starterRoot(
			map[policy.Domain]policy.DomainRule{
				"access": {Group: risk, Grants: []model.Kind{}},
				"fraud":  {Group: finance, Grants: []model.Kind{model.Bypass}, Under: amount(100_00), Total: amount(25_000_00), Lasts: seconds(1800)},
			}, 4),
		features: f.payFeatures(), ladder: f.payLadder(), backends: f.exampleBackends(payGateway, payCore, payLedger, payRisk, payReports),
		rights: &policy.RightsDoc{
			Header: f.header(policy.Rights, "Who may do what at night without asking."),
			Rights: f.matrix("the service", "go read-only: no money moves", "Merchants cannot be paid: one person of the business signs too.", 2, 4),
		},
		controls: map[policy.Domain]*policy.ControlsDoc{"access": f.payAccess(), "fraud": f.payFraud()},
		journeys: &policy.JourneysDoc{
			Header: f.header(policy.Journeys, "What merchants and their customers come to do."),
			Journeys: map[string]policy.Journey{
				"pay":       {Text: "pay a merchant", BrokenBy: [][]string{{"take-payment"}}},
				"look":      {Text: "see what has been paid", BrokenBy: [][]string{{"balances"}, {"payment-history", "statements"}}},
				"get-money": {Text: "have money sent to a bank", BrokenBy: [][]string{{"payouts"}}},
			},
		},
	}
}

func (f *frame) payFeatures() *policy.FeaturesDoc {
	const critical, degradable, sheddable = policy.Critical, policy.Degradable, policy.Sheddable
	features := map[string]policy.Feature{
		"take-payment": f.feature(critical, product, payCore, 5, "It is the business.",
			same, same, "cards only, no wallets and no instalments", off),
		"ledger-posting": f.feature(critical, finance, payLedger, 2, "Every movement is booked before it is confirmed, at every tier.",
			same, same, same, same),
		"balances": f.feature(critical, product, payLedger, 1, "A balance is current or it is not shown.",
			same, same, same, same),
		"refunds": f.feature(degradable, product, payCore, 4, "A refund may take a day, it must not be lost.",
			same, "accepted, and booked within the hour", "accepted, and booked when it is over", off),
		"payouts": f.feature(degradable, finance, payCore, 3, "Banks take them twice a day anyway.",
			same, "the next batch instead of at once", "the next batch instead of at once", off),
		"payment-history": f.feature(degradable, product, payReports, 4, "Yesterday's list answers most questions.",
			same, "up to 25 min old", "up to 25 min old", "up to 25 min old"),
		"webhooks": f.feature(degradable, product, payGateway, 2, "Merchants can ask instead.",
			same, "sent with a delay of up to 10 min", "sent with a delay of up to 10 min", "kept, and sent when it is over"),
		"statements": f.feature(sheddable, finance, payReports, 15, "Made at night, read by day.",
			off, off, off, off),
		"insights": f.feature(sheddable, product, payReports, 25, "Charts cost half of the replica's reads.",
			off, off, off, off),
	}
	history := policy.Invariant{Source: "replica", MaxAge: seconds(1500), Authorization: "the merchant's own account", Degraded: "a list that lacks the newest payments", Disclosure: "the page says until when it is complete", Owner: product}
	endpoints := map[string]map[string]policy.Endpoint{
		"take-payment": {"charge": {
			Path: "POST /v1/charges", Criticality: 0,
			Dependencies: map[string]policy.Dependency{
				payLedger:      call(policy.Required, 220, 400, 1, "ledger-primary", "region-a"),
				payRisk:        call(policy.Required, 220, 600, 1, "risk-pool", "region-a"),
				"card-network": call(policy.Required, 220, 4000, 1, "card-network", "egress"),
			},
			Invariants: none(),
		}},
		"balances": {"balance": {
			Path: "GET /v1/balance", Criticality: 1,
			Dependencies: map[string]policy.Dependency{"ledger-primary": call(policy.Required, 120, 300, 2, "ledger-primary", "region-a")},
			Invariants: map[string]policy.Invariant{"amount": {Source: "ledger-primary", MaxAge: 0, Authorization: "the merchant's own account", Degraded: "none",
				Disclosure: "an error that says when to come back", Owner: finance}},
		}},
		"payment-history": {"list": {
			Path: "GET /v1/payments", Criticality: 2,
			Dependencies: map[string]policy.Dependency{
				"replica": enhanced(160, 500, 1, snapshot("the list of the last snapshot", "files in another region, read without the replica", 1, "object-storage", "region-b"), "replica", "replica-pool", "region-a"),
			},
			Invariants: map[string]policy.Invariant{"payments": history},
		}},
		"payouts": {"payout": {
			Path: "POST /v1/payouts", Criticality: 1,
			Dependencies: map[string]policy.Dependency{payLedger: call(policy.Required, 10, 800, 1, "ledger-primary", "region-a")},
			Invariants:   none(),
		}},
		"insights": {"charts": {
			Path: "GET /v1/insights", Criticality: 3,
			Dependencies: map[string]policy.Dependency{"replica": call(policy.Optional, 40, 2000, 1, "replica", "replica-pool", "region-a")},
			Invariants:   none(),
		}},
	}
	return &policy.FeaturesDoc{
		Header:   f.header(policy.Features, "What moves money, what may be late and what goes first."),
		Features: withEndpoints(features, endpoints),
		Programme: &policy.Programme{
			Engineers: 3, EngineerMonth: usd(26_000_00), Storage: usd(800_00), Hourly: usd(180_000_00), Outages: 2, Lasts: 50, Retained: 75,
		},
	}
}

func (f *frame) payLadder() *policy.LadderDoc {
	const p99, errors, queue, riskUp = "charge-p99", "charge-errors", "ledger-wait", "risk-up"
	pace := &f.pace
	calm := func(latency float64) []policy.Condition {
		return []policy.Condition{below(p99, latency, pace.Leave), below(errors, 0.3, pace.Leave), below(queue, 1, pace.Leave)}
	}
	return &policy.LadderDoc{
		Header: f.header(policy.Ladder, "When less is offered, by numbers that reliability and finance chose in daylight."),
		Signals: map[string]policy.Signal{
			p99: f.signal(`histogram_quantile(0.99, sum by (le) (rate(charge_duration_seconds_bucket[1m])))`, "seconds", over(1.5), "shed", "Card terminals give up after a few seconds."),
			errors: f.signal(`100 * sum(rate(charges_total{outcome="error"}[1m])) / sum(rate(charges_total[1m]))`, "percent", over(1), "shed",
				"Declines of a bank are no errors."),
			queue:  f.signal(`max(ledger_oldest_unposted_seconds)`, "seconds", over(5), "shed", "A movement waits to be booked."),
			riskUp: f.signal(`avg(up{job="risk"})`, "ratio", under(0.5), "fraud-bypass-small", "Payments fail closed while nothing scores them."),
		},
		Services: map[string]policy.Service{
			payGateway: f.service(4, policy.Assigns, 1400, 700, payCore, payReports),
			payCore:    f.service(4, policy.Passes, 400, 240, payLedger, payRisk),
			payLedger:  f.service(1, policy.Passes, 900, 380),
			payRisk:    f.service(1, policy.Passes, 400, 240),
			payReports: f.service(4, policy.Passes, 500, 200),
		},
		Automatic: f.automatic(), Schedule: map[string]policy.Event{}, Exceptions: map[string]policy.Exception{},
		Tiers: []policy.Tier{
			f.tier(1, "lean", "Charts and statements pause.", reliability, true,
				[]policy.Condition{above(p99, 1.5, pace.Enter), above(errors, 1, pace.EnterErrors), above(queue, 5, pace.Enter)}, calm(1)),
			f.tier(2, "deferred", "Refunds and payouts take longer.", reliability, true,
				[]policy.Condition{above(p99, 2.5, pace.Enter), above(errors, 3, pace.EnterErrors), above(queue, 15, pace.Enter)}, calm(1.2)),
			f.tier(3, "cards-only", "Cards work; everything else waits.", reliability, false,
				[]policy.Condition{above(p99, 4, pace.Enter), above(errors, 10, pace.EnterErrors)}, calm(1.2)),
			f.tier(4, "read-only", "No new payments are taken; balances and lists can be read.", reliability, false,
				[]policy.Condition{above(queue, 60, pace.EnterErrors), above(errors, 40, pace.EnterErrors)}, calm(1.2)),
		},
	}
}

// Whoever may see an account is asked for every time. No right weakens it, and
// the root lets nobody grant one.
func (f *frame) payAccess() *policy.ControlsDoc {
	return &policy.ControlsDoc{
		Header: f.header("access", "Who may see whose money; it never opens."),
		Controls: map[string]policy.Control{
			accessCheck: {Protects: policy.ProtectsAuthorization, Fails: policy.FailsClosed, Services: []string{payGateway, payCore, payLedger, payReports}, Owner: risk,
				Text: "nobody sees or moves the money of an account that is not his"},
		},
		Rights: map[string]policy.Right{},
	}
}

func (f *frame) payFraud() *policy.ControlsDoc {
	const byHand = "Set the fraud check of the payments service to let charges under the amount through, note the time, and set it back at the end of the window."
	charges := func(under, total, count int64, lasts model.Duration, perDay int) *policy.Bypass {
		return bypass(fraudCheck, exampleHosts, under, total, count, lasts, perDay)
	}
	nobody := policy.Cosign{Count: 0, Of: finance}
	return &policy.ControlsDoc{
		Header: f.header("fraud", "What finance accepts to lose while charges cannot be scored."),
		Controls: map[string]policy.Control{
			fraudCheck: {Protects: policy.ProtectsMoney, Fails: policy.FailsClosed, Services: []string{payCore}, Owner: finance,
				Text: "every charge is scored for fraud before it is sent to the network"},
		},
		Rights: map[string]policy.Right{
			"fraud-bypass-small": {Text: "let small charges through without a score", Kind: model.Bypass, Who: Commander, Cosign: nobody,
				Scope: []string{payCore}, Bypass: charges(25_00, 12_000_00, 60, seconds(900), 3), Advice: byHand,
				Why: "Seven charges in ten are under 25 dollars, and a thief tests with one dollar anyway."},
			"fraud-bypass-medium": {Text: "let charges under 100 dollars through without a score", Kind: model.Bypass, Who: Commander, Cosign: policy.Cosign{Count: 1, Of: finance},
				Scope: []string{payCore}, Bypass: charges(100_00, 20_000_00, 30, seconds(600), 2), Lead: f.pace.Lead, Advice: byHand,
				Why: "More money at stake: one person of finance signs the very order."},
			"fraud-bypass-alone": {Text: "let charges under 50 dollars through without a score when nobody of finance came", Kind: model.Bypass, Who: Commander, Cosign: nobody,
				Scope: []string{payCore}, Bypass: charges(50_00, 4_000_00, 15, seconds(600), 1), Advice: byHand, Review: finance,
				NoSecond: &policy.NoSecond{Of: "fraud-bypass-medium", After: 4 * f.pace.Lead},
				Why:      "A fifth of the money, once a day, and finance looks at every charge afterwards."},
		},
	}
}
