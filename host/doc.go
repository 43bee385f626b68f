// Package host is how a service asks what holds for it: its tier, features that
// are off, and whether one item may pass a control whose check cannot be made.
//
//	h, err := host.Open(host.Config{
//		Fleet: "shop", Name: "checkout-01", Services: []string{"checkout"},
//		Policy: "/etc/ic/policy", RootSHA256: "…", State: "/var/lib/ic/checkout",
//		Etcd: []string{"https://etcd-1:2379"}, File: "/run/ic/directives",
//		Directives: os.Getenv("IC_DIRECTIVES"),
//	})
//	…
//	if h.Tier("checkout") >= 2 { … }
//	if ok, why := h.Allow("payment-risk", 4999, "USD"); !ok { … }
//
// Answers come from memory, without a network and without waiting for one: what
// the host has on disk is in force as soon as Open returns. A service in another
// language asks an ic-agent over HTTP and gets the same answers.
//
// May import: internal/hostrun and what it imports. Must never show a type of an
// internal package.
package host
