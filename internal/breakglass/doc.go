// Package breakglass reaches the fleet when the flag service is down: it starts
// backends behind hashicorp/go-plugin, speaks ic.backend.v1 with them, and says
// from the hosts' own reports how far a delivery has come.
//
// A backend is a stranger, also a bundled one. It runs as a process of its own
// without a terminal, with an allow-listed environment and no way to outlive us;
// a foreign one is executed from the very descriptor that was hashed. Everything
// it says is bounded and made safe here, every wait has a deadline, and a plan
// that is not what was asked for is refused. It carries bytes and cannot mint
// authority. Its word can make a state worse, never better: effective is what
// hosts report.
//
// May import: model, directive, untrusted, plugins/sdk and the bundled backends.
// Must never read a policy, sign, decide whether a push is allowed, or start a
// program from PATH.
package breakglass
