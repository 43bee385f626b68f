// Package shop models the demo's shop: load, four services with their pools and
// dependencies, and the orders that go through them. Every second of virtual
// time it asks each host for its posture and computes what follows for latency,
// CPU, errors and money.
//
// It is a calibrated fluid model in integers: rates in millionths of a request
// per second, shares in parts per million, times in microseconds, money in
// cents. Orders alone are discrete, because each has an amount that a host
// allows or does not. docs/drill-model.md has the equations and says which
// figures come from the documents and which were fitted.
//
// May import: model, drill/kernel and the standard library. Must never compute
// in floating point (the export excepted, where Prometheus wants it), iterate a
// map, or decide what a host may do: the host says.
package shop
