// Package conformance is the one suite that every break-glass backend passes, in
// whatever way it is reached: in the test's own process, or as a real plugin.
//
// An author describes a world with a Subject, and Run asks for a new one per
// statement. The world is read and disturbed behind the backend's back, so that
// no backend is taken at its word.
//
// May import: plugins/sdk, testing and the standard library. Must never know what
// a backend writes to.
package conformance
