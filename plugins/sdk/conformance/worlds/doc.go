// Package worlds makes the worlds in which the bundled backends are proved: a
// bare git repository, a folder per host. The same world serves a backend in the
// test's own process and one behind the real plugin protocol.
//
// May import: plugins/sdk, conformance, testing and the standard library. Must
// never use a bundled backend to read or disturb its world.
package worlds
