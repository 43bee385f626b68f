// Package incident is the one road: verdict, intent on disk, sign, carry,
// observe, outcome on disk. Console, command, runbook, controller and
// break-glass all go through Desk.Execute; permission is checked there and
// nowhere else.
//
// It builds the World from the log, the carriers, the readings and the reports,
// keeps command (the lease), and knows what still has to be done before an
// incident may close and what is owed afterwards. Where no host verifies
// directives it says what a person has to do instead. A Bench puts an incident into
// one file for another machine; a Scene is a verdict's whole input, which can be
// saved and judged again.
//
// May import: everything below it (decisions, policy, directive, audit, signals,
// fleet, carriers, breakglass, keys, model, untrusted). Must never draw, parse
// flags, or hold a permission of its own.
package incident
