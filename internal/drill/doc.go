// Package drill is the parent of the simulated world: what a rehearsal runs on
// and what the demo shows.
//
//	kernel       events in virtual time, one seeded stream per component, host clocks, the event log
//	shop         load, services, pools, dependencies and orders
//	metrics      samples in memory, behind the real PromQL engine and the Prometheus HTTP API
//	proxy        a TCP proxy on loopback that can be cut: a partition
//	flagservice  an embedded etcd on loopback that can be killed
//	pipeline     a bare git repository whose hook deploys an env file host by host
//	sim          the whole fleet in one process and in virtual time, byte for byte from a seed
//	scenario     what happens when, as a text, and playing it with and without ic
//	follow       a runbook followed unattended in a scenario
//	score        what a drill was like, axis by axis, as a table, JSON and a page
//	freshness    when each thing was last rehearsed, kept in the state folder
//	faults       the named things that can go wrong, each with its opposite
//	worldclock   the one clock of a demo, served over HTTP
//
// A drill runs the product's own code on a simulated fleet, with its own keys
// and backends; there is no flag in the product that turns an act into a drill.
// The model's equations and the origin of every figure stand in
// docs/drill-model.md.
//
// May import: model, directive, untrusted, engine, incident, audit, policy.
// Must never be imported by anything but the composition roots and test suites,
// and must never draw on a terminal.
package drill
