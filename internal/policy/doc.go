// Package policy is signed permission: the documents, their one canonical form,
// the trust root, the signatures that make a domain active, lint, and Admit, the
// static bounds that hosts and the console judge by alike.
//
// A directive lies within a rule, a rule within what the trust root lets its
// owners grant. Nothing here ever widens.
//
// May import: model, directive, sshsig, untrusted. Must never consult a clock,
// the network or the audit log; files are read and written only by Load and the
// staging verbs, in the folder they are given.
package policy
