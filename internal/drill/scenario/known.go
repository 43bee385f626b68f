package scenario

import (
	"slices"

	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/policy/templates"
)

// Known is what a scenario may speak of: the world that it will be played on. A
// word that is not in it is refused where it stands, before anything runs.
type Known struct {
	Faults   []string // that last until they are cleared
	Shocks   []string // that are over at once
	People   []string
	Services []string
	Signals  []string
	Features []string // that pages of the shop are made of: the flags of a baseline

	// Of the policy that the desks obey.
	Rights         []string
	Backends       []string
	PolicyFeatures []string
}

// Shop is the simulated shop.
func Shop() Known {
	return Known{
		Faults: []string{
			faults.PaymentRiskDown, faults.CatalogSlow, faults.LoadSurge, faults.FlagsPartition, faults.FlagsDown, faults.FlagsSlow,
			faults.PrometheusBlind, faults.PrometheusHollow, faults.PrometheusPartial, faults.ClockAhead, faults.ClockBehind,
			faults.HostsPaused, faults.PipelineStuck, faults.PipelineDenied, faults.GitOpsReverts, faults.ConsoleDiskFull,
			faults.CommanderAbsent, faults.ApproverAbsent,
		},
		Shocks:   []string{faults.AutoHeal},
		People:   templates.ShopPeople(),
		Services: []string{shop.Catalog, shop.Checkout, shop.Edge, shop.PaymentRisk},
		Signals:  []string{templates.CheckoutErrors, templates.CheckoutP99, templates.CPU, templates.PaymentRiskUp},
		Features: []string{shop.AlsoViewed, shop.Badges, shop.ProductPage, shop.Recommendations, shop.Reviews, shop.Search},
		Rights: []string{
			"auto-recover", "auto-shed", "end-bypass", "feature-off", "feature-on", "freeze", "ping", "recover", "recover-blind",
			"risk-bypass-expired-policy", "risk-bypass-medium-alone", "risk-bypass-medium-orders", "risk-bypass-small-orders",
			"shed", "shed-4", "unfreeze",
		},
		Backends: []string{"git", "hostfile"},
		PolicyFeatures: []string{
			"browse-catalog", "delivery-dates", "personal-prices", "place-order", "product-images", "recently-viewed",
			"recommendations", "reviews", "search-suggest", "sign-in", "stock-counts",
		},
	}
}

// ladder is who acts where a machine does: the naive ladder of a baseline, which
// the player runs. With ic it is the policy's own controller.
const ladder = score.Ladder

// keywords in the order in which they stand in a file.
var keywords = [...]string{
	"scenario", "title", "source", "why", "fleet", "lasts", "people", "shop", "policy", "series", "at", "abort_if",
	"baseline", "with", "expect", "fitted",
}

// many are the keywords of which there may be several lines.
var many = [...]string{"why", "people", "shop", "series", "at", "abort_if", "expect", "fitted"}

func rank(keyword string) int { return slices.Index(keywords[:], keyword) }

// unit is how a figure or a setting is written.
type unit string

const (
	count    unit = "a number"
	cents    unit = `an amount like "41000.00 USD"`
	percent  unit = `a share like "48 %"`
	duration unit = `a duration like "15m"`
	minutes  unit = `minutes like "12.5 min"` // customer-impact minutes
	onOff    unit = `"on" or "off"`
)

// about is what may stand after "of".
type about string

const (
	nothing about = ""
	service about = "service"
	outcome about = "order outcome"
	anyWord about = "code" // free: the code of a denial
)

// figureInfo is a number of a record that a scenario may speak of.
type figureInfo struct {
	Name      string
	unit      unit
	of        about
	ofNeeded  bool
	at, until bool
}

var figures = [...]figureInfo{
	{Name: "bypass-open", unit: count, at: true},                                   // hosts with a bypass open
	{Name: "cap", unit: cents},                                                     // the most that the granted bypasses allow
	{Name: "decided", unit: duration},                                              // from the first fault to the first decision
	{Name: "denied", unit: count, of: anyWord},                                     // attempts that the policy refused, all or with one code
	{Name: "detected", unit: duration},                                             // from the first fault to the first alarm
	{Name: "effective", unit: duration},                                            // from the first fault to the first act that is in force on 95 % of its hosts
	{Name: "errors", unit: percent, of: service, ofNeeded: true, at: true},         // share of a service's requests that fail, over the minute before
	{Name: "impact", unit: minutes, until: true},                                   // customer-impact minutes: minutes of full outage that would have hit as many customers
	{Name: "lost", unit: cents, until: true},                                       // orders that failed or were turned away, and those of visitors who got no page
	{Name: "moves", unit: count, of: service, ofNeeded: true, until: true},         // changes of a service's tier
	{Name: "orders", unit: count, of: outcome, ofNeeded: true, until: true},        // orders by how they ended
	{Name: "peak-errors", unit: percent, of: service, ofNeeded: true, until: true}, // the most that a service's share of failed requests was, over one minute
	{Name: "reached", unit: percent, at: true},                                     // share of the service's hosts on which the last flag or directive is in force
	{Name: "tier", unit: count, of: service, ofNeeded: true, at: true},             // tier of most hosts of a service
	{Name: "unscored", unit: cents, until: true},                                   // orders that skipped the risk check
}

func figureNamed(name string) *figureInfo {
	for i := range figures {
		if figures[i].Name == name {
			return &figures[i]
		}
	}
	return nil
}

func figureNames() []string {
	var out []string
	for i := range figures {
		out = append(out, figures[i].Name)
	}
	return out
}

// settingInfo is a figure of the shop that a scenario may change.
type settingInfo struct {
	name string
	unit unit
	of   bool
	set  func(p *shop.Params, service string, v int64)
}

func station(change func(*shop.Station, int64)) func(*shop.Params, string, int64) {
	return func(p *shop.Params, name string, v int64) {
		s := p.Stations[name]
		change(&s, v)
		p.Stations[name] = s
	}
}

var settings = [...]settingInfo{
	{"busy", percent, true, station(func(s *shop.Station, v int64) { s.Busy = v })},
	{"cold-work", percent, false, func(p *shop.Params, _ string, v int64) { p.ColdWork = v }},
	{"cools-down", duration, false, func(p *shop.Params, _ string, v int64) { p.CoolsDown = max(1, v/1000) }},
	{"orders-per-minute", count, false, func(p *shop.Params, _ string, v int64) { p.OrdersPerMinute = v }},
	{"shared-fallback", onOff, false, func(p *shop.Params, _ string, v int64) { p.SharedFallback = v == 1 }},
	{"surge", percent, false, func(p *shop.Params, _ string, v int64) { p.SurgeLoad = v }},
	{"warms-up", duration, false, func(p *shop.Params, _ string, v int64) { p.WarmsUp = max(1, v/1000) }},
}

func settingNamed(name string) *settingInfo {
	for i := range settings {
		if settings[i].name == name {
			return &settings[i]
		}
	}
	return nil
}

func settingNames() []string {
	var out []string
	for i := range settings {
		out = append(out, settings[i].name)
	}
	return out
}

// section is where an act stands.
type section string

// The sections.
const (
	sectionNone     section = ""
	sectionBaseline section = "baseline"
	sectionIC       section = "with ic"
	sectionRunbook  section = "with runbook" // what is done beside it, and who follows it
)

// verb is something that a step may do.
type verb struct {
	name    string
	words   int // that must follow
	text    string
	section section
}

// allBackends is every backend, for a check.
const allBackends = "all"

// verbFollow takes the scenario's runbook and follows it to its end.
const verbFollow = "follow"

// Acts of a baseline, and with ic, which may stand beside a runbook as well.
var verbs = [...]verb{
	{"decides", 1, "decides something; nothing changes yet", sectionBaseline},
	{"flag", 2, "sets a flag at the flag service: NAME VALUE", sectionBaseline},
	{"override", 2, "puts a flag into the deploy pipeline, or takes it out: NAME VALUE, NAME removed", sectionBaseline},
	{"pin", 1, "stops the naive ladder at a tier", sectionBaseline},
	{"steps", 4, `the naive ladder: SIGNAL LIMIT every TIME`, sectionBaseline},

	{"check", 1, "checks the break-glass backends: a backend, or all", sectionIC},
	{"command", 1, "take, offer PERSON, accept, deputy PERSON, relinquish", sectionIC},
	{"cosign", 0, "adds the second signature to what is proposed", sectionIC},
	{"do", 1, "uses a right: RIGHT [scope S] [tier N] [feature F] [for TIME] [under AMOUNT]", sectionIC},
	{verbFollow, 0, "takes the runbook and follows it to its end", sectionRunbook},
	{"note", 1, "writes into the log", sectionIC},
	{"push", 1, "pushes everything in force through a break-glass backend", sectionIC},
	{"recover", 3, "leaves tiers step by step: SERVICE to TIER [with RIGHT] [through BACKEND]", sectionIC},
	{"undo", 0, "takes a push out of the pipeline again", sectionIC},
}

// in reports whether a section may have the act.
func (v *verb) in(s section) bool {
	return v.section == s || v.section == sectionIC && s == sectionRunbook
}

func verbNamed(name string, s section) *verb {
	for i := range verbs {
		if verbs[i].name == name && verbs[i].in(s) {
			return &verbs[i]
		}
	}
	return nil
}

func verbNames(s section) []string {
	var out []string
	for i := range verbs {
		if verbs[i].in(s) {
			out = append(out, verbs[i].name)
		}
	}
	return out
}
