// Package follow lets a runbook act in a scenario with nobody at the console: the
// product's own run of a runbook, at the product's own desk, on a simulated fleet.
//
// One person of the scenario follows it, as quick as the scenario says he is, from
// the first alarm on, or from where the scenario says so. Every question has a fixed
// answer, so that a seed gives one run: an effect that was shown is confirmed; of a
// decision's options the first is chosen; what was to be seen was seen by nobody, and
// the log says so. A step that is too early is waited for. One that did not hold, or
// of which nobody can say what became of it, is looked at three times more; then the
// run goes on without it, or ends where the runbook says stop. What was begun is
// asked about, never begun again. A step that the policy denies ends the run, and the
// rehearsal fails. The other people of the scenario sign what waits for them.
//
// May import: drill/scenario, drill/score, runbooks, runbooks/run, incident and
// what is below them. Must never meet a fleet that is not simulated.
package follow
