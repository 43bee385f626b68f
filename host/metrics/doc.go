// Package metrics prints what the parts of this library count, in the text format
// of Prometheus, without its client: a service that has no such client needs none,
// and one that has mounts this on a path of its own.
//
// May import: the standard library. Must never give out a label that the caller of
// a service can choose.
package metrics
