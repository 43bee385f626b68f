// Package ofrep speaks OpenFeature's Remote Evaluation Protocol, version 0.3, on
// the side that is asked: one flag, or all of them at once with a tag by which
// an asker that has them already is told so. What flags there are and what they
// say is given to it.
//
// May import: untrusted. Must never know what a directive is, evaluate anything
// by the context that it is sent, or answer with a value whose end is not inside
// it: a client may keep an answer for as long as it likes.
package ofrep
