package sshsig

import (
	"bytes"
	"crypto/sha512"
	"encoding/binary"
	"fmt"

	"golang.org/x/crypto/ssh"
)

const (
	magic    = "SSHSIG"
	wireHead = magic + "\x00\x00\x00\x01" // with the version
	hashName = "sha512"
)

// parsed is a wire form taken apart; every part is a part of it, without a copy.
type parsed struct {
	key, namespace, hash []byte
	signature            ssh.Signature
}

// unwire takes the wire form apart by hand: the general reader works it out from
// the names of fields, which costs a host a tenth of every token. Each part has
// its length before it and nothing may be left over, so bytes that are read here
// have no second spelling, but for that of the key, which is compared.
func unwire(blob []byte) (p parsed, err error) {
	rest, ok := bytes.CutPrefix(blob, []byte(wireHead))
	if !ok {
		return p, fmt.Errorf("%w: it does not begin with %s and version 1", ErrBlob, magic)
	}
	w := wire{rest: rest, ok: true}
	p.key, p.namespace = w.part(), w.part()
	reserved, hash, signature := w.part(), w.part(), w.part()
	inner := wire{rest: signature, ok: true}
	format, made := inner.part(), inner.part()
	if !w.ok || len(w.rest) > 0 || !inner.ok {
		return p, fmt.Errorf("%w: it is cut short, or something stands behind it", ErrBlob)
	}
	if len(reserved) > 0 {
		return p, fmt.Errorf("%w: its reserved field is not empty", ErrBlob)
	}
	p.hash, p.signature = hash, ssh.Signature{Format: string(format), Blob: made, Rest: inner.rest}
	return p, nil
}

// signedBytes is what a key signs: namespace and digest of the content, in the
// form of PROTOCOL.sshsig.
func signedBytes(content []byte, namespace string) []byte {
	digest := sha512.Sum512(content)
	out := make([]byte, 0, len(magic)+len(namespace)+len(hashName)+len(digest)+4*prefix)
	out = append(out, magic...)
	for _, part := range []string{namespace, "", hashName, string(digest[:])} {
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(part))), part...)
	}
	return out
}

const prefix = 4 // bytes of a length

// wire is what is left of a wire form. Once it is not ok, nothing of it counts.
type wire struct {
	rest []byte
	ok   bool
}

// part is the next part, without a copy.
func (w *wire) part() []byte {
	if len(w.rest) < prefix {
		w.ok = false
		return nil
	}
	n := binary.BigEndian.Uint32(w.rest)
	if uint64(n) > uint64(len(w.rest)-prefix) {
		w.ok = false
		return nil
	}
	part := w.rest[prefix : prefix+n]
	w.rest = w.rest[prefix+n:]
	return part
}
