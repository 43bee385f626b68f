// Package controller is the loop that runs the ladder: it looks every ten seconds,
// asks ladder what moves, and has a desk carry it out, as a machine with a key of
// its own. It tells people by pages, and monitoring by metrics.
//
// Nothing here is remembered that matters: what has been done is read from the log
// and the carriers at every look, so a controller may be killed, paused or doubled
// at any moment. What it keeps in memory is since when a signal has been missing;
// whenever time has jumped, or nobody has looked for a while, it forgets that and
// begins again. It acts on nothing that it has not just read.
//
// A Pager reads the log from a durable cursor and tells each of its sinks until it
// has taken it: at least once. Alarms are states, told again and again as long as
// they last.
//
// May import: incident, ladder, decisions, policy, audit, model, untrusted. Must
// never sign or carry by itself, judge what is allowed, wait without a deadline,
// or let a page hold up a move.
package controller
