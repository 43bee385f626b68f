// Package engine is what one host knows: the set of directives it has validly
// seen and of those that were validly ended, which only grows. From it follow
// the tier of each service, the features that are off and the bypasses that are
// open, whatever the order in which statements arrived, doubled, late or lost.
//
// The engine is passive. Tokens, times and storage are passed in; it starts no
// goroutine, reads no clock and knows no carrier. What it decides, it decides
// alone, from its own policy and its own folder. See docs/host-state.md.
//
// May import: policy, directive, model. Must never reach a network, consult a
// clock of its own, take a loosening or a recovery into force before it is
// durable, keep a tightening out of force because it is not, or open a bypass
// past its end.
package engine
