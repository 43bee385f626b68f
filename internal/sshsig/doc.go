// Package sshsig signs and verifies SSHSIG signatures, more strictly than stock
// ssh-keygen: one exact armor without garbage around it, SHA-512 only, no
// certificates, an allow-list of key types, a namespace always, a canonical
// blob, and the user-presence bit of FIDO keys.
//
// It answers only "did this key sign these bytes in this namespace". Whose key
// it is, and what it may do, is said in policy.
//
// May import: github.com/hiddeco/sshsig, golang.org/x/crypto/ssh. Must never
// look a key up, read a file or consult a clock.
package sshsig
