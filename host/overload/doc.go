// Package overload tells whether this process has more to do than it can: NORMAL,
// DEGRADED or SEVERE. It goes up with the first reading that is too high and comes
// down slowly: one mode at a time, after every reading of ten minutes was below a
// lower threshold. So load that comes back does not find the door wide open, and a
// service does not go back and forth.
//
// It is the process's own view and acts at once, without a directive. A tier is
// what people and the controller decide for all of them; a service obeys the
// stricter of both.
//
//	d, err := overload.New(overload.Config{Name: "checkout", Limits: []overload.Limit{
//		{Signal: "p95-ms", Degraded: overload.Band{Enter: 800, Leave: 500}},
//		{Signal: "db-pool", Severe: overload.Band{Enter: 0.9, Leave: 0.7}},
//	}})
//	…
//	d.Update(map[string]float64{"p95-ms": 912, "db-pool": 0.4}) // every few seconds
//	if d.Mode() >= overload.Severe { … }
//
// May import: host/metrics and the standard library. Must never come down on a
// reading that is missing.
package overload
