// Package keys finds what a person or a machine proves itself with: signing keys
// in ssh-agent or in OpenSSH files, and the tokens of other services.
//
// The two are kept apart. A keyring can be read by every process of its user, so
// it holds tokens and never a signing key. A secret comes from where a person
// has put it, is never taken from or put into an argument, never written in the
// clear, and never part of an error.
//
// May import: model, directive, sshsig, untrusted. Must never decide whose key it
// is or what it may do, write to a terminal, wait without a limit, or fall back
// from a source that a person has named to another one.
package keys
