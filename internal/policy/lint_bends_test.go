package policy_test

import (
	"slices"

	"github.com/degradedmode/ic/internal/policy"
)

// bent is one change of the example policy and the one thing that lint has to say
// about it. Every code has at least one row.
type bent struct {
	code           string
	severity       policy.Severity
	file, old, new string
	at             string // the path that is named
	says           string
}

func bends() []bent {
	return slices.Concat(formatBends(), boundBends(), standardBends(), rootBends())
}

// formatBends are about documents that contradict themselves or one another.
func formatBends() []bent {
	const e, w = policy.LintError, policy.LintWarning
	const features, ladder, rights, payments, backends, journeys = "features.yaml", "ladder.yaml", "rights.yaml", "payments.yaml", "backends.yaml", "journeys.yaml"
	const small = "rights.risk-bypass-small-orders"
	return []bent{
		{"syntax", e, payments, "per_day: 4", "per_day: 04", small + ".bypass.per_day", "plain digits"},
		{"not-canonical", e, payments, "v: 1", "v:  1", "", "run `ic policy fmt`"},
		{"root", e, "roots/1.yaml", "publish: reliability", "publish: nobody", "", `group "nobody" is used and not defined`},
		{"header", e, payments, "fleet: shop-demo", "fleet: other", "fleet", `it is for fleet "other"`},
		{"syntax", e, payments, "v: 1", "v: 7", "v", "the file is of format 7"},
		{"header", e, payments, "domain: payments", "domain: cash", "domain", "its file is payments.yaml"},
		{"header", e, payments, "version: 1", "version: 0", "version", "start at 1"},
		{"domain-without-owner", e, "roots/1.yaml", "  journeys:\n    group: product\n    grants: []\n", "", "domain", "it can never be active"},

		{"feature-owner", e, features, "owner: priya", "owner: bob", "features.browse-catalog.owner", `owner "bob"`},
		{"feature-owner", e, features, "owner: priya", `owner: ""`, "features.browse-catalog.owner", `owner ""`},
		{"review-overdue", e, features, "2026-08-30", "2025-08-30", "features.browse-catalog.reviewed", "last reviewed on 2025-08-30"},
		{"unknown-service", e, features, "service: catalog", "service: katalog", "features.browse-catalog.service", `no service "katalog"`},
		{"tier-behaviour-missing", e, features, "      4: \"off\"\n", "", "features.delivery-dates.tiers", `nothing is said about tier 4`},
		{"tier-behaviour-missing", e, features, `4: "off"`, `4: " "`, "features.delivery-dates.tiers", `nothing is said about tier 4`},
		{"tier-behaviour-unknown", e, features, `      4: "off"`, "      4: \"off\"\n      5: \"off\"", "features.delivery-dates.tiers.5", "no tier 5"},
		{"control-as-feature", e, features, "  personal-prices:", "  payment-risk:", "features.payment-risk", "never switched off as a feature"},
		{"control-in-behaviour", e, features, "one-page order form, card only", "one-page order form, payment-risk skipped", "features.place-order.tiers.3", "no tier weakens a control"},
		{"journey-unbreakable", e, journeys, "      - [place-order]\n      - [sign-in]", "      - []", "journeys.buy.broken_by", "no set is empty"},
		{"unknown-feature", e, journeys, "[place-order]", "[place-odrer]", "journeys.buy.broken_by[0][0]", `no feature "place-odrer"`},

		{"tier-numbers", e, ladder, "  - tier: 2", "  - tier: 3", "tiers[1].tier", "tier 3 stands where tier 2 belongs"},
		{"tier-without-text", e, ladder, "name: lean", `name: ""`, "tiers[0]", "what the user sees"},
		{"tier-owner", e, ladder, "owner: ines", "owner: bob", "tiers[0].owner", `owner "bob"`},
		{"ramp", e, ladder, "ramp: [10, 50, 100]", "ramp: [10, 10, 100]", "tiers[0].ramp", "rises from at least 1 to 100"},
		{"ramp", e, ladder, "ramp: [10, 50, 100]", "ramp: [10, 50]", "tiers[0].ramp", "to 100"},
		{"ramp", e, ladder, "ramp: [10, 50, 100]", "ramp: [0, 100]", "tiers[0].ramp", "at least 1"},
		{"ramp", e, ladder, "ramp: [10, 50, 100]", "ramp: []", "tiers[0].ramp", "rises"},
		{"dwell", e, ladder, "dwell: 10m", "dwell: 0s", "tiers[0]", "or the ladder flaps"},
		{"threshold-shape", e, ladder, "        above: 0.8\n", "", "tiers[0].enter[0]", "either above or below"},
		{"threshold-shape", e, ladder, "        above: 0.8\n", "        above: 0.8\n        below: 0.7\n", "tiers[0].enter[0]", "and not both"},
		{"threshold-shape", e, ladder, "    abnormal:\n      above: 1\n", "    abnormal: {}\n", "signals.checkout-errors.abnormal", "either above or below"},
		{"unknown-signal", e, ladder, "      - signal: cpu", "      - signal: cpus", "tiers[0].enter[1].signal", `no signal "cpus"`},
		{"condition-too-short", e, ladder, "        for: 2m", "        for: 10s", "tiers[0].enter[0].for", "shorter than two steps"},
		{"exit-missing", e, ladder, "      - signal: cpu\n        below: 60\n        for: 10m\n", "", "tiers[0].enter[1]", "left without looking at it"},
		{"exit-missing", e, ladder, "    leave:\n      - signal: checkout-p99\n        below: 0.5\n        for: 10m\n      - signal: cpu\n        below: 60\n        for: 10m\n      - signal: checkout-errors\n        below: 0.5\n        for: 10m\n", "    leave: []\n", "tiers[0].leave", "on no evidence"},
		{"exit-not-inside", e, ladder, "below: 0.5\n        for: 10m\n      - signal: cpu", "below: 0.8\n        for: 10m\n      - signal: cpu", "tiers[0].leave[0]", "strictly inside the entry"},
		{"exit-not-inside", e, ladder, "below: 60", "above: 60", "tiers[0].leave[1]", "strictly inside the entry"},
		{"exit-window", e, ladder, "        for: 10m", "        for: 5m", "tiers[0].leave[0].for", "out is at least 3 times in"},
		{"tier-nobody-may-enter", e, rights, "      from: 4", "      from: 5", "tiers[3]", "no right sheds to tier 4"},
		{"tier-nobody-may-enter", e, "roots/1.yaml", "machines: [ladder-controller]\n    tightens: true\n    max_tier: 2", "machines: [ladder-controller]\n    tightens: true\n    max_tier: 1", "tiers[1].auto", "no machine holds a right"},
		{"tier-nobody-may-leave", e, rights, "text: \"leave a tier, one step at a time\"\n    kind: end\n    ends: shed", "text: \"leave a tier, one step at a time\"\n    kind: end\n    ends: bypass", "tiers[3]", "no right recovers from tier 4"},
		{"signal-bounds", e, ladder, "max_age: 1m", "max_age: 0s", "signals.checkout-errors", "a max_age"},
		{"signal-bounds", e, ladder, "step: 10s", "step: 0s", "signals.checkout-errors", "a step above zero"},
		{"signal-bounds", e, ladder, "step: 10s", "step: 2m", "signals.checkout-errors", "at most the max_age"},
		{"undecided", e, ladder, `why: "One order in a hundred fails."`, `why: "Drafted from an alert. DECIDE: the unit is a guess"`, "signals.checkout-errors.why", "left something for a person to decide"},
		{"unknown-right", e, ladder, "right: shed", "right: shedd", "signals.checkout-errors.right", `no document grants a right "shedd"`},
		{"unknown-runbook", e, ladder, `runbook: ""`, "runbook: latency", "signals.checkout-errors.runbook", `no runbook "latency"`},
		{"service-tiers", e, ladder, "tiers: 1\n    dependencies", "tiers: 5\n    dependencies", "services.payment-risk.tiers", "at most the 4 of the ladder"},

		{"right-nobody-holds", e, rights, "who: incident-commander", "who: incident-comander", "rights.end-bypass.who", `nobody holds the role "incident-comander"`},
		{"tiers-over-role", w, rights, "      to: 2", "      to: 3", "rights.auto-recover.tiers.to", "reaches tier 2 only"},
		{"cosign", e, payments, "count: 0\n      of: finance", "count: 0\n      of: finanse", small + ".cosign.of", `no group "finanse"`},
		{"cosign", e, payments, "count: 0\n      of: finance", "count: 3\n      of: finance", small + ".cosign.count", "never has so many"},
		{"cosign", e, payments, "count: 0\n      of: finance", "count: -1\n      of: finance", small + ".cosign.count", "not negative"},
		{"cosign", e, rights, "count: 1\n      of: reliability", "count: 2\n      of: reliability", "rights.recover-blind.cosign.count", "besides the one who asks"},
		{"scope", e, rights, `scope: ["*"]`, "scope: []", "rights.auto-recover.scope", "the scope is empty"},
		{"scope", e, payments, "scope: [checkout]", "scope: [chekout]", "rights.risk-bypass-medium-orders.scope", `no service "chekout"`},
		{"shed-without-tiers", e, rights, "    tiers:\n      from: 1\n      to: 2\n", "", "rights.auto-recover.tiers", "has tiers from 1"},
		{"shed-without-tiers", e, rights, "      from: 4", "      from: 5", "rights.shed-4.tiers", "has tiers from 1"},
		{"off-without-feature", e, rights, "    feature: \"*\"\n", "", "rights.feature-off", "names a feature"},
		{"off-without-feature", e, rights, "feature: \"*\"", "feature: revews", "rights.feature-off.feature", `no feature "revews"`},
		{"end-without-kind", e, rights, "    ends: bypass\n", "", "rights.end-bypass", "names the kind that it ends"},
		{"window-without-end", e, rights, "    lasts: 1h\n", "", "rights.freeze", "how long it lasts at most"},
		{"bypass-without-cap", e, payments, `under: "50.00 USD"`, `under: "0.00 USD"`, small + ".bypass.under", "under is not above zero"},
		{"bypass-without-cap", e, payments, "host_count: 100", "host_count: 0", small + ".bypass.host_count", "a bypass has every cap"},
		{"bypass-without-cap", e, payments, "max_replacements: 4", "max_replacements: -1", "rights.risk-bypass-medium-orders.bypass.max_replacements", "every cap"},
		{"bypass-without-cap", e, rights, "    kind: ping", "    kind: bypass", "rights.ping", "has no bounds at all"},
		{"foreign-bound", e, payments, "    lead: 3m", "    lasts: 10m\n    lead: 3m", "rights.risk-bypass-medium-orders.lasts", "lasts means nothing for a right of kind bypass"},
		{"foreign-bound", e, rights, "    kind: ping", "    kind: ping\n    ends: shed", "rights.ping.ends", "ends means nothing"},
		{"blind-alone", e, rights, "count: 1\n      of: reliability", "count: 0\n      of: reliability", "rights.recover-blind.cosign", "wants a second person"},
		{"unknown-runbook", e, payments, "    lead: 3m", "    lead: 3m\n    runbook: none", "rights.risk-bypass-medium-orders.runbook", `no runbook "none"`},
		{"over-grant", e, payments, `"200.00 USD"`, `"300.00 USD"`, "rights.risk-bypass-medium-orders", "the root allows 250.00 USD"},
		{"over-grant", e, rights, "    kind: ping", "    kind: dimmer", "rights.ping", "bounds of a dimmer belong to rights of kind dimmer"},
		{"over-grant", e, "roots/1.yaml", "freeze, ping, end, dimmer]", "freeze, ping, end]", "rights.slow-extras", "does not let this domain grant dimmer"},
		{"right-granted-twice", e, payments, "risk-bypass-small-orders", "shed", "rights.shed", "rights.yaml grants a right of this name already"},

		{"authorization-opens", e, payments, "protects: money\n    fails: closed", "protects: authorization\n    fails: open", "controls.payment-risk.fails", "authorization never opens"},
		{"over-grant", e, payments, "protects: money", "protects: authorization", small, "never opens, whoever signs"},
		{"control-owner", e, payments, "owner: fiona", "owner: bob", "controls.payment-risk.owner", `owner "bob"`},
		{"control-services", e, payments, "services: [checkout]", "services: []", "controls.payment-risk.services", "names the services"},
		{"control-services", e, payments, "services: [checkout]", "services: [chekout]", "controls.payment-risk.services", `no service "chekout"`},
		{"item-over-host", e, payments, `"50.00 USD"`, `"1600.00 USD"`, small + ".bypass.under", "more than a host may let through"},
		{"total-out-of-reach", w, payments, `total: "30000.00 USD"`, `total: "30000.01 USD"`, small + ".bypass.total", "all hosts together let through 30000.00 USD"},
		{"worst-case-over-total", w, payments, `host_total: "1500.00 USD"`, `host_total: "1500.01 USD"`, small + ".bypass.host_total", "together they let through 30000.20 USD"},

		{"backend-kind", e, backends, "    bundled: git\n", "", "backends.git", "either bundled or a program"},
		{"backend-kind", e, backends, "    bundled: git\n", "    bundled: git\n    path: \"/opt/git\"\n", "backends.git", "either bundled or a program"},
		{"unknown-backend", e, backends, "bundled: git", "bundled: argo", "backends.git.bundled", `no backend "argo"; it has git, hostfile`},
		{"foreign-unpinned", e, backends, "bundled: git", `path: "/opt/git"`, "backends.git", "pinned by one SHA-256"},
		{"foreign-unpinned", e, backends, "bundled: git", `path: "opt/../git"`, "backends.git.path", "not an absolute path"},
		{"foreign-unpinned", e, backends, "    bundled: git\n", "    path: \"/opt/git\"\n    sha256:\n      linux: \"abc\"\n", "backends.git.sha256.linux", "not a system and an architecture"},
		{"foreign-unpinned", e, backends, "    bundled: git\n", "    path: \"/opt/git\"\n    sha256:\n      \"linux/amd64\": \"abc\"\n", "backends.git.sha256.linux/amd64", "not a SHA-256"},
		{"foreign-unpinned", e, backends, "    bundled: git\n", "    bundled: git\n    sha256:\n      \"linux/amd64\": \"abc\"\n", "backends.git.sha256", "part of ic"},
		{"shared-fate", w, backends, "[git-host, deploy-pipeline]", "[git-host, etcd]", "backends.git.dependencies", "it needs etcd, and so does the flag service"},
		{"backend-targets", e, backends, `targets: ["*"]`, "targets: []", "backends.git.targets", "names the services that it reaches"},
		{"backend-targets", e, backends, `targets: ["*"]`, "targets: [chekout]", "backends.git.targets", `no service "chekout"`},
		{"inventory", e, backends, "host: edge-02", "host: edge-01", "inventory.hosts[1].host", `"edge-01" has no name or is listed twice`},
		{"inventory", e, backends, "services: [edge]", "services: [egde]", "inventory.hosts[0].services", `no service "egde"`},
		{"inventory", e, backends, "max_age: 24h", "max_age: 0s", "inventory.max_age", "max_age above zero"},
		{"inventory", e, backends, "inventory:\n  max_age: 24h\n", "inventory:\n  max_age: 24h\n  query: up\n", "inventory", "either a list of hosts or a query"},
	}
}

// boundBends are about bounds of what a person or a machine may do at night.
func boundBends() []bent {
	const e, w = policy.LintError, policy.LintWarning
	const features, ladder, rights, payments, root = "features.yaml", "ladder.yaml", "rights.yaml", "payments.yaml", "roots/1.yaml"
	const small, alone = "rights.risk-bypass-small-orders", "rights.risk-bypass-unseconded"
	const prices, stock = "features.personal-prices.endpoints.browse.dependencies.price-service", "features.stock-counts.endpoints.browse.dependencies.stock-service"
	const unseconded = "nobody of finance came to sign\"\n    kind: bypass\n    who: incident-commander\n    cosign:\n"
	const cosigned = "    cosign:\n      count: 0\n      of: business\n    scope: [\"*\"]\n    tiers:\n      from: 1\n      to: "
	const shedding = "tier 1, 2 or 3\"\n    kind: shed\n    who: incident-commander\n" + cosigned
	const on = "    ends: \"off\"\n    who: incident-commander\n    cosign:\n      count: 0\n      of: business\n    "
	return []bent{
		{"control-defined-twice", e, "stock.yaml", "  stock-check:", "  payment-risk:", "controls.payment-risk", "payments.yaml defines a control of this name already"},
		{"control-fails-open", e, payments, "fails: closed", "fails: open", "controls.payment-risk.fails", "what protects money never fails open"},
		{"control-fails-open", e, "stock.yaml", "protects: inventory\n    fails: closed", "protects: inventory\n    fails: open", "controls.stock-check.fails", "what protects inventory never fails open"},
		{"authorization-opens", e, "stock.yaml", "protects: authorization\n    fails: closed", "protects: authorization\n    fails: open", "controls.basket-owner.fails", "authorization never opens"},
		{"live-over-per-day", e, payments, "per_day: 4\n      live: 1", "per_day: 4\n      live: 5", small + ".bypass.live", "live is at most per_day"},
		{"no-second", e, payments, "after: 10m", "after: 0s", alone + ".no_second.after", "used at once"},
		{"no-second", e, payments, "after: 10m", "after: 13m", alone + ".no_second.after", "so it can never have waited 13m"},
		{"no-second", e, payments, "of: risk-bypass-medium-orders", "of: risk-bypass-small-orders", alone + ".no_second.of", "so nobody can fail to come"},
		{"no-second", e, payments, "of: risk-bypass-medium-orders", "of: risk-bypass-large-orders", alone + ".no_second.of", `grants no bypass "risk-bypass-large-orders"`},
		{"no-second", e, payments, `under: "100.00 USD"`, `under: "200.00 USD"`, alone + ".bypass.under", "under is 200.00 USD, in risk-bypass-medium-orders it is 200.00 USD"},
		{"no-second", e, payments, `under: "100.00 USD"`, `under: "100.00 EUR"`, alone + ".bypass.under", "under is 100.00 EUR, in risk-bypass-medium-orders it is 200.00 USD"},
		{"no-second", e, payments, "      host_count: 10\n      host_total: \"500.00 USD\"", "      host_count: 21\n      host_total: \"500.00 USD\"", alone + ".bypass.host_count", "host_count is 21, in risk-bypass-medium-orders it is 20"},
		{"no-second", e, payments, unseconded + "      count: 0", unseconded + "      count: 1", alone + ".cosign.count", "its count is 0"},
		{"no-second", e, payments, "      after: 10m\n    review: finance\n", "      after: 10m\n", alone, "name it in review"},
		{"no-second", e, payments, unseconded + "      count: 0\n      of: finance\n    scope: [checkout]", unseconded + "      count: 0\n      of: finance\n    scope: [\"*\"]", alone + ".scope", "reaches further than risk-bypass-medium-orders"},
		{"no-second", e, payments, "      control: payment-risk\n      under: \"100.00 USD\"", "      control: stock-check\n      under: \"100.00 USD\"", alone + ".no_second.of", "bypasses payment-risk, this right stock-check"},
		{"no-second", e, rights, "    kind: ping\n", "    kind: bypass\n    bypass:\n      control: payment-risk\n      under: \"1.00 USD\"\n      host_count: 1\n      host_total: \"1.00 USD\"\n      total: \"1.00 USD\"\n      lasts: 1m\n      per_day: 1\n      live: 1\n" +
			"      max_replacements: 0\n      volatile_hosts: false\n    no_second:\n      of: shed\n      after: 1m\n", "rights.ping.no_second.of", `rights.yaml grants no bypass "shed"`},
		{"over-grant", e, payments, "control: payment-risk\n      under: \"50.00 USD\"", "control: payment-rsk\n      under: \"50.00 USD\"", small, "only the document that defines a control may weaken it"},
		{"outlives-document", e, payments, "expires: 2028-05-30T00:00:00Z", "expires: 2028-12-01T00:00:00Z", "rights.risk-bypass-unrenewed.expires", "more than 366 days after its document"},
		{"outlives-document", e, payments, `under: "20.00 USD"`, `under: "60.00 USD"`, "rights.risk-bypass-unrenewed.bypass.under", "its under of 60.00 USD is over the 50.00 USD of risk-bypass-small-orders"},
		{"expires-idle", w, payments, "expires: 2028-05-30T00:00:00Z", "expires: 2027-05-30T00:00:00Z", "rights.risk-bypass-unrenewed.expires", "a right ends with its document"},
		{"expires-idle", w, root, "expires: 2028-11-30T00:00:00Z", "expires: 2028-01-30T00:00:00Z", "rights.risk-bypass-unrenewed.expires", "the root ends on 2028-01-30"},
		{"review", e, payments, "after: 10m\n    review: finance", "after: 10m\n    review: finanse", alone + ".review", `no group "finanse"`},
		{"review", e, root, "members: [ines, dev]", "members: [dev]", "rights.slow-extras.review", "nobody of platform could review a use but the one who made it"},
		{"dimmer-bounds", e, rights, "from: 200\n        to: 500", "from: 200\n        to: 100", "rights.slow-extras.dimmer.target_ms.to", "100 is not between 200 and 60000"},
		{"dimmer-bounds", e, rights, "      floor: 2", "      floor: 0", "rights.slow-extras.dimmer.floor", "0 is not between 1 and 100"},
		{"dimmer-bounds", e, rights, "      ceiling: 100", "      ceiling: 1", "rights.slow-extras.dimmer.ceiling", "1 is not between 2 and 100"},
		{"dimmer-bounds", e, rights, "    kind: ping", "    kind: dimmer", "rights.ping", "has no bounds at all"},
		{"nobody-may-end", w, rights, "ends: freeze", "ends: ping", "rights.freeze", `nobody may end a freeze for "*"`},
		{"nobody-may-end", w, rights, "ends: bypass", "ends: ping", small, `nobody may end a bypass for "checkout"`},
		{"nobody-may-end", w, rights, "ends: dimmer\n    who: incident-commander", "ends: dimmer\n    who: ladder-controller", "rights.slow-extras", "nobody may end a dimmer"},
		{"nobody-may-end", w, rights, on + `scope: ["*"]`, on + "scope: [checkout]", "rights.feature-off", `nobody may end a switch-off for "*"`},
		{"unexplained", w, rights, `why: "Closing is always allowed."`, `why: ""`, "rights.end-bypass.why", "why is empty"},
		{"unexplained", w, features, `text: "the list price"`, `text: " "`, "features.personal-prices.endpoints.browse.dependencies.price-service.fallback.text", "text is empty"},
		{"unexplained", w, payments, `text: "every order is scored for fraud before it is paid"`, `text: ""`, "controls.payment-risk.text", "text is empty"},
		{"unexplained", w, ladder, `why: "Three times the load for two days."`, `why: ""`, "schedule.spring-sale.why", "why is empty"},

		{"enter-needs", e, ladder, "enter_needs: 1", "enter_needs: 4", "tiers[0].enter_needs", "4 of the 3 reasons have to hold"},
		{"enter-needs", e, ladder, "enter_needs: 1", "enter_needs: 0", "tiers[0].enter_needs", "1 for any, up to all"},
		{"enter-needs", e, ladder, "    enter:\n      - signal: checkout-errors\n        above: 25\n        for: 1m\n", "    enter: []\n", "tiers[3].enter", "no reason to enter it"},
		{"query-series", e, ladder, `query: "avg(up{job=\"payment-risk\"})"`, "query: up", "signals.payment-risk-up.query", "it can yield several series"},
		{"automatic-limits", e, ladder, "  every: 5m", "  every: 0s", "automatic.every", "every is not above zero"},
		{"automatic-limits", e, ladder, "  flap_window: 10m", "  flap_window: 0s", "automatic.flap_window", "not above zero"},
		{"automatic-limits", e, ladder, "  stuck: 4h", "  stuck: 0s", "automatic.stuck", "not above zero"},
		{"automatic-limits", e, ladder, "  flaps: 3", "  flaps: 101", "automatic.flaps", "101 is not between 1 and 100"},
		{"automatic-limits", e, ladder, "  blind: 1", "  blind: 2", "automatic.blind", "2 is not between 0 and 1"},
		{"stuck-too-early", w, ladder, "  stuck: 4h", "  stuck: 10m", "automatic.stuck", "tier 1 is held for 10m"},
		{"flap-guard-idle", w, ladder, "  shed_at_once: true", "  shed_at_once: false", "automatic.flaps", "at most 3 in 10m, so 4 never latch"},
		{"event", e, ladder, "spring-sale:\n    tier: 1", "spring-sale:\n    tier: 5", "schedule.spring-sale.tier", "no tier 5"},
		{"event", e, ladder, "until: 2027-03-22T00:00:00Z", "until: 2027-03-20T00:00:00Z", "schedule.spring-sale.until", "until comes after from"},
		{"event", e, ladder, "soak: 10m", "soak: 5m", "schedule.spring-sale.soak", "shorter than 10m"},
		{"event", e, ladder, "    scope: [\"*\"]\n    from", "    scope: []\n    from", "schedule.spring-sale.scope", "the scope is empty"},
		{"event", e, ladder, "    scope: [\"*\"]\n    from", "    scope: [chekout]\n    from", "schedule.spring-sale.scope", `no service "chekout"`},
		{"event-nobody-sheds", e, rights, shedding + "3", shedding + "2", "schedule.stocktaking", "sheds catalog to tier 3"},
		{"event-over", w, ladder, "from: 2027-03-20T00:00:00Z\n    until: 2027-03-22T00:00:00Z", "from: 2026-03-20T00:00:00Z\n    until: 2026-03-22T00:00:00Z", "schedule.spring-sale.until", "it was over at 2026-03-22T00:00:00Z"},

		{"fallback-not-enhancing", e, features, "need: enhancing", "need: required", prices + ".fallback", "is required and has a fallback all the same"},
		{"fallback-ages", e, features, "refresh: 10m", "refresh: 0s", stock + ".fallback.refresh", "has a refresh above zero"},
		{"fallback-ages", e, features, "refresh: 0s", "refresh: 5m", prices + ".fallback.refresh", "means nothing for a fallback of source static"},
		{"fallback-ages", e, features, "source: static", "source: cache", prices + ".fallback.max_age", "source cache has a max_age above zero"},
		{"criticality-against-class", w, features, "criticality: 0", "criticality: 3", "features.place-order.endpoints.pay.criticality", "critical and its requests are rejected first"},
		{"criticality-against-class", w, features, "criticality: 3", "criticality: 0", "features.recommendations.endpoints.browse.criticality", "sheddable and its requests are rejected last"},
		{"dependency-unlisted", w, ladder, "dependencies: [catalog, payment-risk]", "dependencies: [catalog]", "features.place-order.endpoints.pay.dependencies.payment-risk", "does not list payment-risk among the dependencies of checkout"},
		{"out-of-range", e, features, "calls: 8", "calls: 10001", "features.browse-catalog.calls", "10001 is not between 0 and 10000"},
		{"out-of-range", e, features, "criticality: 0", "criticality: 4", "features.place-order.endpoints.pay.criticality", "4 is not between 0 and 3"},
		{"out-of-range", e, features, "qps: 900", "qps: -1", prices + ".qps", "-1 is not between 0 and 10000000"},
		{"out-of-range", e, features, "timeout_ms: 200", "timeout_ms: 0", prices + ".timeout_ms", "0 is not between 1 and 60000"},
		{"out-of-range", e, features, "attempts: 2", "attempts: 11", prices + ".attempts", "11 is not between 1 and 10"},
		{"out-of-range", e, features, "traffic: 1", "traffic: 100.5", prices + ".fallback.traffic", "100.5 is not between 0 and 100"},
		{"out-of-range", e, features, "retained: 80", "retained: 101", "programme.retained", "101 is not between 0 and 100"},
		{"out-of-range", e, ladder, "peak: 4200", "peak: -1", "services.catalog.peak", "-1 is not between 0 and 100000000"},
		{"out-of-range", e, root, "max_tier: 4", "max_tier: 7", "roles.incident-commander.max_tier", "7 is not between 0 and 6"},
	}
}
