// Command ic is the console and the runbook engine of an incident commander.
//
// This package is the composition root: one file per command, wiring only. What
// a command decides is decided in internal/decisions and carried by
// internal/incident; what it prints is what it was told.
//
// Rules of the command line:
//   - results go to stdout, everything else to stderr as "ic: …", lower case,
//     no full stop, with a hint on the next line where there is one;
//   - every command takes --json and --state; one that changes something asks,
//     and without a terminal it wants --yes;
//   - exit codes are a contract, see exit.go.
package main
