// Package hostfile is the bundled backend for a file that each host watches: the
// fastest path, and the one that restarts nothing.
//
// It writes <dir>/<host>/ic.directives, or another path that is given with
// {host} in it, on a filesystem that the hosts share or that is synchronised to
// them. The file holds the carrier value and a newline and belongs to ic alone.
// Beside it lies one receipt per operation: what was there before, what was
// written, and how far it got. Receipts are what makes Observe and Undo work in
// a process that never saw the plan.
//
// May import: plugins/sdk and the standard library. Must never write a file that
// holds something ic did not write, nor leave one half written.
package hostfile
