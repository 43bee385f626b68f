// Package integration drives the built programs from outside, as people and
// machines do: the console through a terminal, the commands through their exit
// codes, ic-agent through HTTP, and Debian's Prometheus in between.
//
// It holds tests only. They may import what reads and checks (policy, fleet,
// model, the example policy) and the parts a fleet is made of (internal/drill);
// they must never call what they test, and never give an order but through the
// programs.
//
// They are built with the tag integration, since together they take minutes:
//
//	IC_INTEGRATION=1 go test -tags integration ./test/integration
//
// A test that wants a program which is not on this machine says which one and
// passes it over; with IC_INTEGRATION=1 that is a failure.
package integration
