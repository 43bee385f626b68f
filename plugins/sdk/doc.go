// Package sdk is what a break-glass backend is written with, and the host's side
// of the same protocol.
//
// A backend carries signed directives to hosts when the flag service is down. It
// cannot mint authority: the tokens it carries are opaque to it, and a host
// verifies them for itself. An author implements Backend, calls Serve in main,
// and runs conformance.Run in a test. What no backend may forget is kept once,
// in Session: fitting the tokens into the carrier, the plan's digest, refusing
// when the world has changed since the plan, one operation at a time, Stop.
//
// docs/backend-protocol.md is the contract for authors who do not write Go.
//
// May import: the standard library, go-plugin, grpc, protobuf. Must never import
// a package under internal: authors outside this module have only what is here.
// Must never judge, sign or change a directive.
package sdk
