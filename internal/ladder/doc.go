// Package ladder says what moves by itself. Next looks at the policy, at the
// world and at what has been done so far, and gives at most one move: a shed to a
// tier whose conditions hold, the next step of a recovery, or a halt. It says why,
// and if nothing moves, why not; and what a person has to be told.
//
// It holds no memory: latch, flapping, minutes at a tier and the time since the
// last move are folds over what has been signed, so that two controllers, or one
// that was restarted, come to the same. Whether a move is allowed is asked of
// decisions, as for everybody else; what is added here is what a machine has to
// refrain from besides.
//
// Everything is a pure function, and total. May import: model, policy, decisions.
// Must never do I/O, read a clock, or sign.
package ladder
