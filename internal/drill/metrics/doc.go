// Package metrics keeps the drill's samples in memory and answers as a
// Prometheus does: the real PromQL engine over the real HTTP API, so that the
// expressions of a real policy run in a drill unchanged.
//
// The package serves the part of the API that a reader of signals uses: query,
// query_range, labels, label values, series, buildinfo and the health check.
// Times are the world's: a query without a time is asked at the world's now.
//
// May import: the standard library and Prometheus' engine with the types that
// it is made of (model, promql, storage, util, and the two packages of sample
// types under tsdb). Must never import the database itself (prometheus/tsdb),
// read the machine's clock for anything but a deadline, or write to disk.
package metrics
