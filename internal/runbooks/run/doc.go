// Package run follows a runbook: it acts, proves and resumes. The run is entries
// of the audit log and nothing else; whoever takes it up folds them.
//
// Every effect goes the road of incident.Desk, after its preview was shown. What a
// step is about to do is on disk before, with the id that its directive or push
// will have, so that after a crash reality can be asked for exactly that. What
// cannot be read is UNKNOWN and a person's to answer; nothing is done twice.
//
// May import: runbooks, incident and what is below it. Must never sign, carry or
// judge by itself, execute a fence, hold state that the log does not have, or let
// silence permit what adds risk or forbid a pre-signed shed.
package run
