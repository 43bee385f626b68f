// Package promrules reads PromQL on behalf of the policy: whether a query yields
// one series, whether it can yield nothing, between which numbers its values lie,
// and which signals the alerting rules of a team would make.
//
// Everything here is a first draft or a conservative answer. What cannot be
// shown to yield one series counts as several. An imported rule becomes a signal
// whose why names every decision that is still a person's; nothing is ever
// signed, sent or obeyed because of this package.
//
// May import: prometheus/promql/parser, policy, model, directive, untrusted. Must
// never be imported by policy, host or ic-agent, which stay small; must do no
// I/O, ask no Prometheus and evaluate no query.
package promrules
