// Package follow lets a runbook act in a scenario with nobody at the console: the
// product's own run of a runbook, at the product's own desk, on a simulated fleet.
//
// One person of the scenario follows it, as quick as the scenario says he is, from
// the first alarm on. Every question has a fixed answer, so that a seed gives one
// run: an effect that was shown is confirmed; of a decision's options the first is
// chosen; what was to be seen was seen by nobody, and the log says so; a step that
// did not hold is looked at three times more and then passed. A step that is
// refused ends the run of the runbook, and the rehearsal fails. The other people
// of the scenario sign what waits for them.
//
// May import: drill/scenario, drill/score, runbooks, runbooks/run, incident and
// what is below them. Must never meet a fleet that is not simulated.
package follow
