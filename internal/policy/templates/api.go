package templates

import (
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// The services of an API platform.
const (
	apiGateway = "gateway"
	apiCore    = "api"
	apiWorker  = "worker"
	apiDBProxy = "db-proxy"
)

// api is a platform that others build on: calls, webhooks and jobs. Its ladder
// has three tiers; nothing stops all calls.
func api(f *frame) *documents {
	return &documents{
		root: f.starterRoot(
			map[policy.Domain]policy.DomainRule{
				"capacity": {Group: reliability, Grants: []model.Kind{}},
				"billing":  {Group: finance, Grants: []model.Kind{model.Bypass}, Under: amount(10_00), Total: amount(10_000_00), Lasts: seconds(3600)},
			}, 3),
		features: f.apiFeatures(), ladder: f.apiLadder(), backends: f.exampleBackends(apiGateway, apiCore, apiWorker, apiDBProxy),
		rights: &policy.RightsDoc{
			Header: f.header(policy.Rights, "Who may do what at night without asking."),
			Rights: f.matrix("the platform", "answer essential calls only", "Customers' own products stop working: one person of the business signs too.", 2, 3),
		},
		controls: map[policy.Domain]*policy.ControlsDoc{"capacity": f.apiCapacity(), "billing": f.apiBilling()},
		journeys: &policy.JourneysDoc{
			Header: f.header(policy.Journeys, "What a customer's program comes to do."),
			Journeys: map[string]policy.Journey{
				"read-data":  {Text: "read what is stored", BrokenBy: [][]string{{"read-calls"}}},
				"write-data": {Text: "store something and find it again", BrokenBy: [][]string{{"write-calls"}, {"read-calls"}}},
				"react":      {Text: "learn that something has changed", BrokenBy: [][]string{{"webhooks", "change-feed"}}},
			},
		},
	}
}

func (f *frame) apiFeatures() *policy.FeaturesDoc {
	const critical, degradable, sheddable = policy.Critical, policy.Degradable, policy.Sheddable
	features := map[string]policy.Feature{
		"read-calls": f.feature(critical, product, apiCore, 2, "Customers' products are made of it.",
			same, "answers up to 1 min old where the caller allows it", "answers up to 25 min old where the caller allows it"),
		"write-calls": f.feature(critical, product, apiCore, 3, "A write that was confirmed is never lost.",
			same, same, "single writes only; batches are asked to come back"),
		"search": f.feature(degradable, product, apiCore, 4, "An old index still finds most things.",
			same, "the index of the last snapshot", off),
		"webhooks": f.feature(degradable, product, apiWorker, 2, "Late is better than never, and order is kept.",
			same, "sent with a delay of up to 10 min", "kept, and sent when it is over"),
		"change-feed": f.feature(degradable, product, apiCore, 2, "Long polls hold connections.",
			same, "asked for once a minute at most", "asked for once a minute at most"),
		"batch-jobs": f.feature(sheddable, product, apiWorker, 12, "Jobs have no reader who waits.",
			"started at a tenth of the usual rate", off, off),
		"exports": f.feature(sheddable, product, apiWorker, 20, "Costs a third of the database's reads.",
			off, off, off),
		"usage-dashboard": f.feature(sheddable, product, apiGateway, 6, "Numbers of yesterday do for a night.",
			off, off, off),
	}
	read := policy.Invariant{Source: apiDBProxy, MaxAge: seconds(1500), Authorization: "the key of the calling project", Degraded: "an older version of the object", Disclosure: "the header Age and a field stale", Owner: product}
	found := policy.Invariant{Source: "search-index", MaxAge: seconds(1500), Authorization: "the key of the calling project", Degraded: "results of the last snapshot", Disclosure: "a field as_of", Owner: product}
	endpoints := map[string]map[string]policy.Endpoint{
		"read-calls": {"get": {
			Path: "GET /v1/objects/{id}", Criticality: 1,
			Dependencies: map[string]policy.Dependency{
				apiDBProxy: enhanced(3200, 150, 2, cached("the object as it was read last", "memory of the host itself, without the proxy and its pool", seconds(1500), 3, "host-memory"), "db-pool", "region-a"),
			},
			Invariants: map[string]policy.Invariant{"object": read},
		}},
		"write-calls": {"put": {
			Path: "PUT /v1/objects/{id}", Criticality: 0,
			Dependencies: map[string]policy.Dependency{
				apiDBProxy:    call(policy.Required, 800, 300, 1, "db-pool", "region-a"),
				"quota-store": call(policy.Required, 800, 50, 2, "quota-store", "region-a"),
			},
			Invariants: none(),
		}},
		"search": {"search": {
			Path: "GET /v1/search", Criticality: 2,
			Dependencies: map[string]policy.Dependency{
				"search-index": enhanced(400, 400, 1, snapshot("results of the last snapshot", "files in another region, read without the index cluster", 1, "object-storage", "region-b"), "search-cluster", "region-a"),
			},
			Invariants: map[string]policy.Invariant{"results": found},
		}},
		"webhooks": {"deliver": {
			Path: "queue webhooks", Criticality: 2,
			Dependencies: map[string]policy.Dependency{apiDBProxy: call(policy.Required, 150, 300, 2, "db-pool", "region-a")},
			Invariants:   none(),
		}},
		"exports": {"export": {
			Path: "POST /v1/exports", Criticality: 3,
			Dependencies: map[string]policy.Dependency{apiDBProxy: call(policy.Required, 40, 2000, 1, "db-pool", "region-a")},
			Invariants:   none(),
		}},
	}
	return &policy.FeaturesDoc{
		Header:   f.header(policy.Features, "What the platform does for its customers, what may be late and what goes first."),
		Features: withEndpoints(features, endpoints),
		Programme: &policy.Programme{
			Engineers: 1, EngineerMonth: usd(22_000_00), Storage: usd(300_00), Hourly: usd(40_000_00), Outages: 3, Lasts: 45, Retained: 85,
		},
	}
}

func (f *frame) apiLadder() *policy.LadderDoc {
	const p99, errors, pool = "api-p99", "api-errors", "db-connections"
	pace := &f.pace
	calm := func(latency float64) []policy.Condition {
		return []policy.Condition{below(p99, latency, pace.Leave), below(errors, 0.3, pace.Leave), below(pool, 60, pace.Leave)}
	}
	return &policy.LadderDoc{
		Header: f.header(policy.Ladder, "When the platform does less, by numbers that reliability chose in daylight."),
		Signals: map[string]policy.Signal{
			p99: f.signal(`histogram_quantile(0.99, sum by (le) (rate(http_server_request_duration_seconds_bucket{service="api"}[1m])))`, "seconds", over(0.5), "shed", "Twice the service level of 250 ms."),
			errors: f.signal(`100 * sum(rate(http_server_requests_total{service="api",code=~"5.."}[1m])) / sum(rate(http_server_requests_total{service="api"}[1m]))`, "percent", over(1), "shed",
				"The service level of a month is gone in three hours at this rate."),
			pool: f.signal(`100 * sum(db_proxy_connections_in_use) / sum(db_proxy_connections_max)`, "percent", over(80), "shed", "A full pool turns slow into down."),
		},
		Services: map[string]policy.Service{
			apiGateway: f.service(3, policy.Assigns, 9000, 5200, apiCore),
			apiCore:    f.service(3, policy.Passes, 6000, 4400, apiDBProxy),
			apiWorker:  f.service(3, policy.Passes, 800, 350, apiDBProxy),
			apiDBProxy: f.service(1, policy.Passes, 7000, 4800),
		},
		Automatic: f.automatic(), Schedule: map[string]policy.Event{}, Exceptions: map[string]policy.Exception{},
		Tiers: []policy.Tier{
			f.tier(1, "lean", "Exports and dashboards pause; jobs start late.", reliability, true,
				[]policy.Condition{above(p99, 0.5, pace.Enter), above(errors, 1, pace.EnterErrors), above(pool, 80, pace.Enter)}, calm(0.35)),
			f.tier(2, "stale", "Answers may be a minute old, webhooks are late.", reliability, true,
				[]policy.Condition{above(p99, 0.8, pace.Enter), above(errors, 3, pace.EnterErrors), above(pool, 90, pace.Enter)}, calm(0.4)),
			f.tier(3, "essential", "Single reads and writes work; everything else comes back later.", reliability, false,
				[]policy.Condition{above(p99, 1.5, pace.Enter), above(errors, 10, pace.EnterErrors)}, calm(0.4)),
		},
	}
}

// The rate limit fails open: without its store a customer gets more than he paid
// for, and capacity is watched by the ladder.
func (f *frame) apiCapacity() *policy.ControlsDoc {
	return &policy.ControlsDoc{
		Header: f.header("capacity", "What keeps one customer from taking the platform from all others."),
		Controls: map[string]policy.Control{
			"rate-limit": {Protects: policy.ProtectsCapacity, Fails: policy.FailsOpen, Services: []string{apiGateway}, Owner: reliability,
				Text: "no project calls more often than its plan says"},
		},
		Rights: map[string]policy.Right{},
	}
}

func (f *frame) apiBilling() *policy.ControlsDoc {
	const byHand = "Set the quota check of the api service to let calls under the amount through, note the time, and set it back at the end of the window."
	quota := func(under, total, count int64, lasts model.Duration, perDay int) *policy.Bypass {
		return bypass("quota-check", exampleHosts, under, total, count, lasts, perDay)
	}
	return &policy.ControlsDoc{
		Header: f.header("billing", "What finance accepts to give away while quotas cannot be checked."),
		Controls: map[string]policy.Control{
			"quota-check": {Protects: policy.ProtectsMoney, Fails: policy.FailsClosed, Services: []string{apiCore}, Owner: finance,
				Text: "a call that costs money is made on a paid quota"},
		},
		Rights: map[string]policy.Right{
			"quota-bypass-small": {Text: "let cheap calls through without a quota", Kind: model.Bypass, Who: Commander, Cosign: policy.Cosign{Count: 0, Of: finance},
				Scope: []string{apiCore}, Bypass: quota(50, 2_000_00, 5000, seconds(1800), 4), Advice: byHand,
				Why: "A call costs a few cents; customers who are cut off cost more."},
			"quota-bypass-large": {Text: "let calls of up to 10 dollars through without a quota", Kind: model.Bypass, Who: Commander, Cosign: policy.Cosign{Count: 1, Of: finance},
				Scope: []string{apiCore}, Bypass: quota(10_00, 10_000_00, 500, seconds(1800), 2), Lead: f.pace.Lead, Advice: byHand,
				Why: "Large jobs on somebody else's money: one person of finance signs the very order."},
		},
	}
}
