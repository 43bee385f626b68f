// Package scenario reads drills from text and plays them. A scenario says in one
// file what the fleet is, what goes wrong and when, what people did without ic,
// what the same people do with it, and what has to come out: documentation, test
// and game day at once. docs/scenario-format.md is its specification.
//
// Parse turns text into a Scenario and says what is wrong with line and column;
// Format prints it again; Play runs it on a simulated fleet and writes down what
// happened as a score.Record. The same scenario, seed and mode give the same
// record, byte for byte.
//
// May import: drill/sim, drill/score, drill/shop, drill/faults, drill/kernel, the
// policy's templates (names of people and signals), incident, decisions, policy,
// signals, audit, directive, model, untrusted, plugins/sdk, and Prometheus' series
// notation. Must never touch a real fleet, read a clock, or give people in one mode
// other reaction times than in another.
package scenario
