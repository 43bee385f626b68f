// Package audit is the log of an incident: what was intended, signed, carried,
// seen and undone, in an order that nobody can change unseen.
//
// A writer is a session with its own file. An entry and the signed checkpoint
// over everything before it are one write and one fsync. State is never stored:
// Fold computes it from the entries of all sessions, however their files
// interleave. Verify checks form, order, tree, signatures and the heads that
// others kept. See docs/log-format.md.
//
// What loosens must be durable before it happens: Append. What tightens is
// never held up by a disk: AppendOrReceipt.
//
// May import: model, directive, sshsig, untrusted, golang.org/x/mod/sumdb. Must
// never decide what is allowed, repair a damaged file, append to a file that
// another process began, or retry a failed fsync.
package audit
