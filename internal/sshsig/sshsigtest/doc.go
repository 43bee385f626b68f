// Package sshsigtest makes keys for tests: the same key from the same seed in
// every run, so that what they sign can be a test vector, and a FIDO token in
// software.
//
// May import: the standard library and golang.org/x/crypto/ssh. Must never be
// imported by anything but a test: everybody knows these keys.
package sshsigtest
