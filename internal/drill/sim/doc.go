// Package sim is a whole fleet inside one process, on the kernel's virtual time:
// hosts that are real engines with a folder in memory, a flag service, a deploy
// pipeline, a shop under load, metrics behind the real query engine, and real
// desks for the people of the policy. The same seed and the same inputs leave the
// same bytes, in the event log and in the desks' logs.
//
// Keys, ids and every random draw come from the seed; the realm is always a
// drill's, so that nothing made here is believed by a production host. Nothing
// opens a socket and nothing starts a process. A person's act is a process on the
// kernel: while it waits for hosts, virtual time passes and others act.
//
// Plain is the same fleet without ic: what people had before, for comparison.
//
// May import: engine, hostrun (for the names of sources), incident, controller,
// decisions, policy, signals, audit, directive, model, plugins/sdk and the packages
// under drill. Must never reach a
// network, read the machine's clock or its random source, or sign in the
// production realm.
package sim
