// Package directive is the signed statement: its canonical bytes, the token that
// carries it, signing and verifying.
//
// A token is "ic1.<base64url payload>.<base64url SSHSIG blob>[.<blob>…]", the
// same in an environment variable, a file and a key-value store. The payload is
// one line of JSON and is signed as the exact bytes sent. See
// docs/token-format.md.
//
// May import: model, sshsig, golang.org/x/crypto/ssh and oklog/ulid. Must do no
// I/O, read no clock, and never decide whether a directive is allowed:
// that is policy.Admit.
package directive
