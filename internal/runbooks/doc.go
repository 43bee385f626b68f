// Package runbooks is the format of a runbook: reading it with a line and a
// column in every error, lint, signatures over its exact bytes, and plain
// Markdown of other teams as a check list.
//
// A runbook grants nothing. It says in which order a person uses rights that the
// policy grants anyway, and every act of it goes the one road of package incident.
// What the format lacks, it lacks on purpose: loops, templates, a shell.
//
// May import: model, directive, sshsig, policy, untrusted, a Markdown block parser
// and a YAML parser. Must never execute anything, consult a clock or the network,
// or print a file again to judge it: what was signed is the bytes.
package runbooks
