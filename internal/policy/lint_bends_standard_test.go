package policy_test

import (
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
)

// standardBends depart from the standard, and from what is asked of an exception.
func standardBends() []bent {
	const e, w = policy.LintError, policy.LintWarning
	const features, ladder = "features.yaml", "ladder.yaml"
	const prices, stock = "features.personal-prices.endpoints.browse.dependencies.price-service", "features.stock-counts.endpoints.browse.dependencies.stock-service"
	const service = "    local_state: true\n    criticality: passes\n    capacity: 0\n    peak: 0\n    game_day: 2026-08-30T00:00:00Z\n"
	const invariants = "          price:\n            source: price-service\n            max_age: 0s\n            authorization: \"the signed-in customer\"\n            degraded: \"the list price\"\n" +
		"            disclosure: \"the discount is given at the till\"\n            owner: priya\n"
	return []bent{
		{"owner-does-not-sign", w, features, "owner: priya", "owner: fiona", "features.browse-catalog.owner", `not in the group "product"`},
		{"owner-does-not-sign", w, features, "owner: priya", "owner: finance", "features.browse-catalog.owner", "the owner never approves"},
		{"review-overdue", e, features, "2026-08-30", "2026-12-01", "features.browse-catalog.reviewed", "a day that has not come"},
		{"service-without-behaviour", w, ladder, "services:\n", "services:\n  billing:\n    tiers: 1\n    dependencies: []\n" + service, "services.billing", "nobody has said what it does at any tier"},
		{"degradable-without-fallback", e, features, "2: \"a range of days per region\"\n      3: \"a range of days per region\"", "2: \"no change\"\n      3: \"off\"", "features.delivery-dates.tiers", "or call it sheddable"},
		{"remote-state", e, ladder, "local_state: true", "local_state: false", "services.catalog.local_state", "catalog asks a control plane for its tier"},
		{"criticality-ignored", e, ladder, "criticality: passes", "criticality: ignores", "services.catalog.criticality", "catalog drops the criticality"},
		{"criticality-reassigned", e, ladder, "criticality: passes", "criticality: assigns", "services.catalog.criticality", "requests that come from checkout"},
		{"criticality-not-assigned", e, ladder, "criticality: assigns", "criticality: passes", "services", "no service assigns"},
		{"game-day", w, ladder, "game_day: 2026-08-30", "game_day: 2026-08-29", "services.catalog.game_day", "on 2026-08-29, more than 92 days ago"},
		{"game-day", w, ladder, "game_day: 2026-08-30", "game_day: 2027-01-30", "services.catalog.game_day", "which has not come"},
		{"game-day", w, ladder, "    game_day: 2026-08-30T00:00:00Z\n", "", "services.catalog", "never taken part"},
		{"game-day", w, ladder, "since: 2026-11-01T00:00:00Z", "since: 2026-12-01T00:00:00Z", "services.payment-risk", "never taken part"},
		{"enhancing-without-fallback", e, features, "need: required", "need: enhancing", "features.place-order.endpoints.pay.dependencies.payment-risk", "payment-risk is enhancing and has no fallback"},
		{"fallback-shared-fate", e, features, "resources: [object-storage, region-b]", "resources: [object-storage, region-a, stock-pool]", stock + ".fallback.resources", "both need region-a, stock-pool"},
		{"fallback-shared-fate", e, features, "resources: [product-file]", "resources: [price-service]", prices + ".fallback.resources", "both need price-service"},
		{"fallback-shared-fate", e, ladder, "services:\n", "services:\n  object-storage:\n    tiers: 1\n    dependencies: [stock-pool]\n" + service, stock + ".fallback.resources", "stock-pool (by way of object-storage)"},
		{"fallback-shared-fate", e, ladder, "services:\n", "services:\n  stock-service:\n    tiers: 1\n    dependencies: [object-storage]\n" + service, stock + ".fallback.resources", "object-storage (the primary by way of stock-service)"},
		{"resources-unnamed", e, features, "resources: [price-service, price-pool, region-a]", "resources: []", prices + ".resources", "names nothing that the call needs"},
		{"resources-unnamed", e, features, "resources: [object-storage, region-b]", "resources: []", stock + ".fallback.resources", "a fallback from snapshot needs something"},
		{"fallback-difference", e, features, `differs: "the list price is part of the product file on every host"`, `differs: ""`, prices + ".fallback.differs", "nothing says how"},
		{"fallback-unmarked", e, features, "marked: true", "marked: false", prices + ".fallback.marked", "does not say that it is degraded"},
		{"fallback-traffic", w, features, "traffic: 1", "traffic: 0.9", prices + ".fallback.traffic", "0.9 percent of requests"},
		{"snapshot-max-age", e, features, "job: 5m", "job: 6m", stock + ".fallback.max_age", "is 26m old after one missed run; max_age is 25m"},
		{"invariants-missing", e, features, "        invariants:\n" + invariants, "        invariants: {}\n", "features.personal-prices.endpoints.browse.invariants", "nothing says what stays true"},
		{"invariant-incomplete", e, features, `authorization: "the signed-in customer"`, `authorization: ""`, "features.personal-prices.endpoints.browse.invariants.price.authorization", "authorization is empty"},
		{"invariant-incomplete", e, features, "till\"\n            owner: priya", "till\"\n            owner: bob", "features.personal-prices.endpoints.browse.invariants.price.owner", `owner "bob"`},
		{"staler-than-invariant", e, features, "source: stock-service\n            max_age: 25m", "source: stock-service\n            max_age: 20m", stock + ".fallback.max_age", "25m old, the invariant of stock tolerates 20m"},

		{"exception-code", e, ladder, "code: game-day", "code: authorization-opens", "exceptions.risk-not-drilled.code", `"authorization-opens" is not a rule of the standard`},
		{"exception-code", e, ladder, "code: game-day", "code: gameday", "exceptions.risk-not-drilled.code", `"gameday" is not a rule`},
		{"exception-path", e, ladder, `path: "ladder.yaml services.payment-risk"`, "path: services.payment-risk", "exceptions.risk-not-drilled.path", "not a file and a path"},
		{"exception-owner", e, ladder, "path: \"ladder.yaml services.payment-risk\"\n    owner: ines", "path: \"ladder.yaml services.payment-risk\"\n    owner: bob", "exceptions.risk-not-drilled.owner", `owner "bob"`},
		{"exception-dates", e, ladder, "until: 2027-04-30T00:00:00Z", "until: 2027-05-30T00:00:00Z", "exceptions.risk-not-drilled.until", "two quarters (184 days)"},
		{"exception-dates", e, ladder, "since: 2026-11-01T00:00:00Z", "since: 2027-11-01T00:00:00Z", "exceptions.risk-not-drilled.until", "until comes after since"},
		{"exception-over", e, ladder, "since: 2026-11-01T00:00:00Z\n    until: 2027-04-30T00:00:00Z", "since: 2026-05-01T00:00:00Z\n    until: 2026-10-30T00:00:00Z", "exceptions.risk-not-drilled.until", "it was over on 2026-10-30"},
		{"exception-idle", w, ladder, `path: "ladder.yaml services.payment-risk"`, `path: "ladder.yaml services.catalog"`, "exceptions.risk-not-drilled", "nothing there departs from it"},
		{"exception-idle", w, ladder, `path: "ladder.yaml services.payment-risk"`, `path: "ladder.yaml services"`, "exceptions.risk-not-drilled", "nothing there departs from it"},
		{"exception-idle", w, ladder, `path: "ladder.yaml services.payment-risk"`, `path: "ladder.yaml services.pay"`, "exceptions.risk-not-drilled", "nothing there departs from it"},
	}
}

// rootBends are about the people behind the policy, and about time running out.
func rootBends() []bent {
	const e, w = policy.LintError, policy.LintWarning
	const root = "roots/1.yaml"
	fiona := fingerprint(policytest.Key("fiona"))
	return []bent{
		{"person-unreachable", w, root, `reach: "pager platform"`, `reach: ""`, "people.dev.reach", "how dev is reached at night"},
		{"person-without-part", w, root, "people:\n", "people:\n  bob:\n    name: Bob\n    reach: phone\n    keys: [\"" + authorized(policytest.Key("bob")) + "\"]\n", "people.bob", "bob is in no group and has no role"},
		{"group-out-of-reach", e, root, "revoked: [", "revoked: [\"" + fiona + "\", ", "domains.payments.group", "group finance signs payments.yaml and has too few people left"},
		{"alone-may-grant", w, root, "  finance:\n    any: 2", "  finance:\n    any: 1", "domains.payments.group", "fiona alone satisfies finance"},
		{"revoked-stranger", w, root, `revoked: ["SHA256:69`, `revoked: ["SHA256:96`, "revoked[0]", "nobody's key in this root"},
		{"expired", e, "payments.yaml", "expires: 2027-11-30T00:00:00Z", "expires: 2026-11-30T02:30:00Z", "expires", "it expired at 2026-11-30T02:30:00Z"},
		{"expired", e, root, "expires: 2028-11-30T00:00:00Z", "expires: 2026-11-29T00:00:00Z", "expires", "loosens nothing"},
		{"expires-soon", w, "payments.yaml", "expires: 2027-11-30T00:00:00Z", "expires: 2026-12-30T00:00:00Z", "expires", "in 29 days: begin to renew it"},
		{"expires-soon", w, "payments.yaml", "expires: 2027-11-30T00:00:00Z", "expires: 2026-12-14T00:00:00Z", "expires", "in 13 days: collect the signatures this week"},
		{"expires-soon", w, "payments.yaml", "expires: 2027-11-30T00:00:00Z", "expires: 2026-12-07T00:00:00Z", "expires", "in 6 days: sign a new version now"},
	}
}
