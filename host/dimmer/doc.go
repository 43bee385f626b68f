// Package dimmer decides for which share of requests optional work is done, so that
// the latency of all of them stays at a target. Every five seconds
//
//	share += 0.3 * (target - p95) / target
//
// within a floor and a ceiling. The floor keeps the optional part in use, a little,
// at the worst of times; the ceiling below 1 keeps its fallback in use at the best.
// The formula and its figures are those of brownout (Klein et al., ICSE 2014) as it
// is used in the field.
//
//	d, err := dimmer.New(dimmer.Config{Name: "recommendations", Signed: func() (dimmer.Bounds, bool) { return h.Dimmer("catalog") }})
//	…
//	if d.Show() { page.Recommendations = recommendations(r) }
//	d.Observe(time.Since(began))
//
// May import: host/latency, host/metrics and the standard library. Must never read
// missing measurements as good ones, nor leave the bounds that are signed.
package dimmer
