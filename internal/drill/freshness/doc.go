// Package freshness keeps what rehearsals have left behind: one file for each run
// in the folder rehearsals of a state folder, and out of these the dates and the
// measured effects of every right, tier, feature, backend and runbook that was
// practised in simulation.
//
// A simulated date never counts as a live one: it opens nothing that the policy
// wants rehearsed, it only tells people what they have practised. The files are
// not signed, because nothing is permitted by them.
//
// May import: drill/score, model, the standard library and renameio. Must never
// read a clock, write outside of its folder, or let one damaged file hide the
// others.
package freshness
