// Package measures computes how well a company degrades, from the audit logs of
// its incidents and the policy that it has signed: how many of its critical
// dependencies have a fallback that was tested, how long it stood at a tier where
// it would have been down, how often a way to the fleet shared the fate of what it
// was to help, and how long an order to degrade took. And it says which rights,
// tiers, features, backends and runbooks nobody has practised for too long.
//
// Everything is pure: the logs were read by the caller. Each measure names its
// source, and what no source tells is UNKNOWN, never zero and never met.
//
// May import: audit, policy, model. Must never read a file or a clock, and must
// never count a rehearsal in simulation as a live one.
package measures
