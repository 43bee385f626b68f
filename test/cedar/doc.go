// Package cedar asks an independent engine what decisions.Evaluate is asked: the
// rights of random policies are translated to Cedar, random requests are put to
// both, and both have to say the same. It is a module of its own, so that the
// product does not depend on Cedar.
//
// The translation reads the documents of a policy and the facts of a scene as they
// were drawn, never what package policy or package decisions make of them. Cedar
// cannot count: a quorum is spelled out as every set of people that would do.
//
// May import: policy, model and decisions, and whatever a test wants. Nothing
// imports it.
package cedar
