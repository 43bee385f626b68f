// Package host is how a service asks what holds for it: its tier, features that
// are off or simpler, and whether one item may pass a control whose check cannot be
// made.
//
//	h, err := host.Open(host.Config{
//		Fleet: "shop", Name: "checkout-01", Services: []string{"checkout"},
//		Policy: "/etc/ic/policy", RootSHA256: "…", State: "/var/lib/ic/checkout",
//		Etcd: []string{"https://etcd-1:2379"}, File: "/run/ic/directives",
//		Directives: os.Getenv("IC_DIRECTIVES"), Defaults: &host.Defaults{},
//	})
//	…
//	if h.Tier("checkout") >= 2 { … }
//	if on, how := h.Feature("reviews"); on { … }
//	if ok, why := h.Allow("payment-risk", 4999, "USD"); !ok { … }
//	for change := range h.Watch(ctx) { … }
//
// Answers come from memory, without a network and without waiting for one: what
// the host has on disk is in force as soon as Open returns. A service in another
// language asks an ic-agent over HTTP and gets the same answers.
//
// Below it are parts for what a service does about them, each of use alone and none
// needing the others: [github.com/degradedmode/ic/host/degraded] marks answers,
// [github.com/degradedmode/ic/host/cache] serves old ones within bounds,
// [github.com/degradedmode/ic/host/fallback] counts what was served instead,
// [github.com/degradedmode/ic/host/dimmer] does optional work for a share of
// requests, [github.com/degradedmode/ic/host/overload] tells when there is too much,
// [github.com/degradedmode/ic/host/latency] and
// [github.com/degradedmode/ic/host/metrics] measure and print.
//
// May import: internal/hostrun and what it imports, host/dimmer, host/metrics. Must
// never show a type of an internal package.
package host
