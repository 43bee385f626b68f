// Package fleet knows the hosts: which there should be (the inventory), what
// each reports, and how far that is from what was issued (version skew).
//
// Reports come by direct pull, or from Prometheus, which has scraped what
// WriteMetrics prints. Neither goes through a flag service, so skew is seen
// while one is down. A host that says nothing is unreachable, which is a state
// of its own and never "as issued".
//
// An inventory may be asked of Prometheus (Roster). The last list is kept on disk,
// so that a night without Prometheus still knows which hosts there should be.
//
// May import: model, directive, untrusted, client_golang/api. Must never decide
// what a host should do, follow a redirect, or take a host's word about another
// host.
package fleet
