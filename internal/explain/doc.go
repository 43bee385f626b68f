// Package explain says in sentences what a policy means: what somebody signs
// (Explain), what its own numbers add up to (Plan), and what a change changes
// (Diff). Every sentence is made from fields of the documents, every amount by
// package decisions, and what one key can do by asking policy.Admit, so that no
// page can promise what a host would not do.
//
// Everything is a pure function of its arguments.
//
// May import: decisions, policy, model, directive, untrusted. Must never do I/O,
// read a clock, or judge a signature: who signed what is passed in as Load has
// found it.
package explain
