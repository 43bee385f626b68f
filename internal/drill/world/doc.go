// Package world is the demo's world: a fleet of real engines with state folders
// of their own, a real etcd behind TCP proxies as the flag service, a bare git
// repository as the deploy pipeline, a load model, and the Prometheus HTTP API
// over its metrics. It runs as a process of its own; the console is its client
// and may die at any time.
//
// Its keys, its trust root and its namespaces are a drill's: nothing it signs is
// worth anything to a production host.
//
// May import: everything a fleet is made of (engine, hostrun, policy, directive,
// carriers, fleet) and its siblings below internal/drill. Must never import
// incident, tui or anything else of the console, and must never give an order.
package world
