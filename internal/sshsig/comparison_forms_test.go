package sshsig_test

import (
	"crypto/dsa" //nolint:staticcheck // deprecated, as the case says
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"io"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/sshsig/sshsigtest"
	"golang.org/x/crypto/ssh"
)

// hashed is the digest of content by the hash that a head names; an unknown
// name gets SHA-512.
func hashed(name string, content []byte) []byte {
	if name == "sha256" {
		sum := sha256.Sum256(content)
		return sum[:]
	}
	sum := sha512.Sum512(content)
	return sum[:]
}

func pairOf(r, s *big.Int) []byte { return ssh.Marshal(struct{ R, S *big.Int }{r, s}) }

// dsaKey signs with DSA, which x/crypto knows no longer. Looking for its primes
// takes a second, so it is made once.
type dsaKey struct{ private dsa.PrivateKey }

var newDSAKey = sync.OnceValues(func() (dsaKey, error) {
	var k dsaKey
	if err := dsa.GenerateParameters(&k.private.Parameters, rand.Reader, dsa.L1024N160); err != nil {
		return k, err
	}
	return k, dsa.GenerateKey(&k.private, rand.Reader)
})

func dsaSigner(t testing.TB) ssh.Signer {
	t.Helper()
	key, err := newDSAKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (k dsaKey) PublicKey() ssh.PublicKey { return k }

func (k dsaKey) Type() string { return "ssh-dss" }

func (k dsaKey) Marshal() []byte {
	p := &k.private
	return ssh.Marshal(struct {
		Name       string
		P, Q, G, Y *big.Int
	}{k.Type(), p.P, p.Q, p.G, p.Y})
}

func (k dsaKey) Verify([]byte, *ssh.Signature) error {
	return errors.New("only stock verifies DSA here")
}

func (k dsaKey) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	digest := sha1.Sum(data)
	r, s, err := dsa.Sign(rand.Reader, &k.private, digest[:])
	if err != nil {
		return nil, err
	}
	return &ssh.Signature{Format: k.Type(), Blob: slices.Concat(r.FillBytes(make([]byte, 20)), s.FillBytes(make([]byte, 20)))}, nil
}

func contentCases() []comparison {
	content := func(text string) func(testing.TB, *question) {
		return func(_ testing.TB, q *question) { q.content = []byte(text) }
	}
	signing := func(text string) func(testing.TB, *question) {
		return func(t testing.TB, q *question) { q.content = []byte(text); q.by(t, sshsigtest.Ed25519(t, 1)) }
	}
	in := func(namespace string) func(testing.TB, *question) {
		return func(t testing.TB, q *question) {
			q.signed(t, sshsigtest.Ed25519(t, 1), outer{Version: 1, Namespace: namespace, Hash: "sha512"})
		}
	}
	return []comparison{
		{name: "no content at all", want: accept, ask: signing("")},
		{name: "a mebibyte", want: accept, ask: signing(strings.Repeat("x", 1<<20))},
		{name: "bytes that are no text", want: accept, ask: signing("\x00\xff\r\n\x1a")},
		{name: "changed content", want: refuse, ask: content("v: 2\n")},
		{name: "content without its last newline", want: refuse, ask: content("v: 1")},
		{name: "content with CRLF", want: refuse, ask: content("v: 1\r\n")},
		{name: "content that became empty", want: refuse, ask: content("")},
		{name: "the namespace of a root", want: refuse, ask: in("ic-root-v1@shop")},
		{name: "the namespace of another fleet", want: refuse, ask: in("ic-policy-v1@shop2")},
		{name: "the namespace of a drill", want: refuse, ask: in("ic-drill-policy-v1@shop")},
		{name: "the namespace of files", want: refuse, ask: in("file")},
		{name: "the namespace in capitals", want: refuse, ask: in("IC-POLICY-V1@SHOP")},
		{name: "a namespace with a NUL behind", want: refuse, ask: in(signedFor + "\x00")},
		{name: "an empty namespace", want: refuse, ask: in("")},
		{name: "the namespace changed afterwards", want: refuse, ask: func(t testing.TB, q *question) {
			in("ic-root-v1@shop")(t, q)
			q.respelled(t, func(o *outer, _ *inner) { o.Namespace = signedFor })
		}},
	}
}

// rsaBy signs honestly with RSA-3072 under an algorithm that it names.
func rsaBy(t testing.TB, q *question, algorithm string) {
	t.Helper()
	signer := rsaSigner(t, 3072)
	q.by(t, signer)
	data := append([]byte("SSHSIG"), ssh.Marshal(signedData{q.namespace, "", "sha512", hashed("sha512", q.content)})...)
	sig, err := signer.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, data, algorithm)
	if err != nil {
		t.Fatal(err)
	}
	q.respelled(t, func(_ *outer, i *inner) { i.Format, i.Blob = sig.Format, sig.Blob })
}

// named changes only the name of the algorithm in a signature.
func named(make func(testing.TB) ssh.Signer, format string) func(testing.TB, *question) {
	return func(t testing.TB, q *question) {
		q.by(t, make(t))
		q.respelled(t, func(_ *outer, i *inner) { i.Format = format })
	}
}

func algorithmCases() []comparison {
	ed := func(t testing.TB) ssh.Signer { return sshsigtest.Ed25519(t, 1) }
	over := func(hash string) func(testing.TB, *question) {
		return func(t testing.TB, q *question) {
			q.signed(t, ed(t), outer{Version: 1, Namespace: q.namespace, Hash: hash})
		}
	}
	return []comparison{
		{name: "SHA-256 over the content", want: stricter, why: "one hash: whatever is compared by digest has one", ask: over("sha256")},
		{name: "the hash sha1", want: refuse, ask: over("sha1")},
		{name: "the hash sha384", want: refuse, ask: over("sha384")},
		{name: "the hash SHA512 in capitals", want: refuse, ask: over("SHA512")},
		{name: "no hash", want: refuse, ask: over("")},
		{name: "sha512 renamed to sha256", want: refuse, ask: func(t testing.TB, q *question) {
			q.respelled(t, func(o *outer, _ *inner) { o.Hash = "sha256" })
		}},
		{name: "RSA with SHA-512", want: accept, ask: func(t testing.TB, q *question) { rsaBy(t, q, ssh.KeyAlgoRSASHA512) }},
		{name: "RSA with SHA-256", want: stricter, why: "one algorithm per key type: one spelling of a signature", ask: func(t testing.TB, q *question) { rsaBy(t, q, ssh.KeyAlgoRSASHA256) }},
		{name: "RSA with SHA-1 (ssh-rsa)", want: refuse, ask: func(t testing.TB, q *question) { rsaBy(t, q, ssh.KeyAlgoRSA) }},
		{name: "RSA with SHA-256 that says SHA-512", want: refuse, ask: func(t testing.TB, q *question) {
			rsaBy(t, q, ssh.KeyAlgoRSASHA256)
			q.respelled(t, func(_ *outer, i *inner) { i.Format = ssh.KeyAlgoRSASHA512 })
		}},
		{name: "Ed25519 that says RSA", want: refuse, ask: named(ed, ssh.KeyAlgoRSASHA512)},
		{name: "Ed25519 that says sk-Ed25519", want: refuse, ask: named(ed, ssh.KeyAlgoSKED25519)},
		{name: "P-256 that says P-384", want: refuse, ask: named(curve(elliptic.P256()), ssh.KeyAlgoECDSA384)},
		{name: "an algorithm that nobody knows", want: refuse, ask: named(ed, "ssh-ed448")},
		{name: "an algorithm without a name", want: refuse, ask: named(ed, "")},
	}
}

// pair rewrites the two numbers of a P-256 signature as they are on the wire.
func pair(edit func(r, s []byte) (r2, s2 []byte)) func(testing.TB, *question) {
	return func(t testing.TB, q *question) {
		q.by(t, sshsigtest.ECDSA(t, elliptic.P256(), 7))
		q.respelled(t, func(_ *outer, i *inner) {
			var p struct{ R, S []byte }
			if err := ssh.Unmarshal(i.Blob, &p); err != nil {
				t.Fatal(err)
			}
			p.R, p.S = edit(p.R, p.S)
			i.Blob = ssh.Marshal(p)
		})
	}
}

// cut keeps the first part of the blob.
func cut(keep func(n int) int) func(testing.TB, *question) {
	return func(t testing.TB, q *question) {
		blob := q.blob(t)
		q.file = sshsig.Armor(blob[:keep(len(blob))])
	}
}

// shortRSA signs contents until a signature starts with a zero byte, and drops it.
func shortRSA(t testing.TB, q *question) {
	t.Helper()
	signer := rsaSigner(t, 3072)
	for n := 0; ; n++ {
		q.content = []byte(strings.Repeat("x", n))
		q.by(t, signer)
		short := false
		blob := respell(t, q.blob(t), func(_ *outer, i *inner) {
			if short = i.Blob[0] == 0; short {
				i.Blob = i.Blob[1:]
			}
		})
		if short {
			q.file = sshsig.Armor(blob)
			return
		}
	}
}

func blobCases() []comparison {
	respelled := func(edit func(*outer, *inner)) func(testing.TB, *question) {
		return func(t testing.TB, q *question) { q.respelled(t, edit) }
	}
	const spelling = "one spelling of a signature: nobody makes a second blob from a good one"
	zeros := func(n []byte) []byte { return append([]byte{0, 0}, n...) }
	return []comparison{
		{name: "nothing", want: refuse, ask: cut(func(int) int { return 0 })},
		{name: "cut inside the magic", want: refuse, ask: cut(func(int) int { return 3 })},
		{name: "cut behind the magic", want: refuse, ask: cut(func(int) int { return 6 })},
		{name: "cut inside the key", want: refuse, ask: cut(func(int) int { return 40 })},
		{name: "cut inside the signature", want: refuse, ask: cut(func(n int) int { return n - 20 })},
		{name: "cut before the last byte", want: refuse, ask: cut(func(n int) int { return n - 1 })},
		{name: "a byte behind the blob", want: refuse, ask: func(t testing.TB, q *question) { q.file = sshsig.Armor(append(q.blob(t), 0)) }},
		{name: "the blob twice", want: refuse, ask: func(t testing.TB, q *question) { q.file = sshsig.Armor(append(q.blob(t), q.blob(t)...)) }},
		{name: "a byte behind the key", want: refuse, ask: respelled(func(o *outer, _ *inner) { o.Key += "\x00" })},
		{name: "a byte behind the signature", want: refuse, ask: respelled(func(_ *outer, i *inner) { i.Rest = append(i.Rest, 0) })},
		{name: "a byte more in the signature", want: refuse, ask: respelled(func(_ *outer, i *inner) { i.Blob = append(i.Blob, 0) })},
		{name: "a byte less in the signature", want: refuse, ask: respelled(func(_ *outer, i *inner) { i.Blob = i.Blob[:63] })},
		{name: "another magic", want: refuse, ask: respelled(func(o *outer, _ *inner) { o.Magic[0] = 's' })},
		{name: "version 0", want: stricter, why: "there is no version 0", ask: respelled(func(o *outer, _ *inner) { o.Version = 0 })},
		{name: "version 2", want: refuse, ask: respelled(func(o *outer, _ *inner) { o.Version = 2 })},
		{name: "a reserved field, added afterwards", want: stricter, why: "nobody signed it: stock passes over it", ask: respelled(func(o *outer, _ *inner) { o.Reserved = "x" })},
		{name: "a reserved field, signed", want: refuse, ask: func(t testing.TB, q *question) {
			q.signed(t, sshsigtest.Ed25519(t, 1), outer{Version: 1, Namespace: q.namespace, Reserved: "x", Hash: "sha512"})
		}},
		{name: "another key in its place", want: refuse, ask: func(t testing.TB, q *question) {
			other := sshsigtest.Ed25519(t, 2).PublicKey()
			q.lines = append(q.lines, line{principals: "ada", key: authorizedKey(other)})
			q.respelled(t, func(o *outer, _ *inner) { o.Key = string(other.Marshal()) })
		}},
		{name: "Ed25519 with S + L", want: stricter, why: spelling, ask: respelled(func(_ *outer, i *inner) { addOrder(i.Blob[32:]) })},
		{name: "P-256 with zeros before r", want: stricter, why: spelling, ask: pair(func(r, s []byte) ([]byte, []byte) { return zeros(r), s })},
		{name: "P-256 with zeros before s", want: stricter, why: spelling, ask: pair(func(r, s []byte) ([]byte, []byte) { return r, zeros(s) })},
		{name: "P-256 with a negative r", want: refuse, ask: pair(func(r, s []byte) ([]byte, []byte) { return plus(r, new(big.Int).Neg(n)), s })},
		{name: "P-256 with r + n", want: refuse, ask: pair(func(r, s []byte) ([]byte, []byte) { return plus(r, n), s })},
		{name: "P-256 with an r of zero", want: refuse, ask: pair(func(_, s []byte) ([]byte, []byte) { return nil, s })},
		{name: "P-256 with n - s", want: accept, ask: pair(func(r, s []byte) ([]byte, []byte) {
			return r, ssh.Marshal(struct{ N *big.Int }{new(big.Int).Sub(n, new(big.Int).SetBytes(s))})[4:]
		})},
		{name: "RSA with its leading zero dropped", want: stricter, why: spelling, ask: shortRSA},
		{name: "RSA with a zero in front", want: refuse, ask: func(t testing.TB, q *question) {
			q.by(t, rsaSigner(t, 3072))
			q.respelled(t, func(_ *outer, i *inner) { i.Blob = append([]byte{0}, i.Blob...) })
		}},
	}
}

// addOrder adds the order of the group to a little-endian scalar.
func addOrder(scalar []byte) {
	slices.Reverse(scalar)
	new(big.Int).Add(new(big.Int).SetBytes(scalar), l).FillBytes(scalar)
	slices.Reverse(scalar)
}

const (
	beginLine = "-----BEGIN SSH SIGNATURE-----\n"
	endLine   = "-----END SSH SIGNATURE-----\n"
)

func armorCases() []comparison {
	// rewritten changes the file; text is its base64 without line ends.
	rewritten := func(edit func(file, text string) string) func(testing.TB, *question) {
		return func(t testing.TB, q *question) {
			q.file = []byte(edit(string(q.file), base64.StdEncoding.EncodeToString(q.blob(t))))
		}
	}
	folded := func(width int) func(testing.TB, *question) {
		return rewritten(func(_, text string) string {
			var out strings.Builder
			for chunk := range slices.Chunk([]byte(text), width) {
				out.Write(append(chunk, '\n'))
			}
			return beginLine + out.String() + endLine
		})
	}
	const exact = "one exact armor: two files with the same signature are the same bytes"
	return []comparison{
		{name: "one exact block", want: accept, ask: folded(70)},
		{name: "lines of 64", want: stricter, why: exact, ask: folded(64)},
		{name: "lines of 76", want: stricter, why: exact, ask: folded(76)},
		{name: "one long line", want: stricter, why: exact, ask: folded(4000)},
		{name: "lines of one character", want: stricter, why: exact, ask: folded(1)},
		{name: "CRLF", want: refuse, ask: rewritten(func(file, _ string) string { return strings.ReplaceAll(file, "\n", "\r\n") })},
		{name: "a bare CR in the base64", want: stricter, why: exact, ask: rewritten(func(_, text string) string { return beginLine + text[:9] + "\r" + text[9:] + "\n" + endLine })},
		{name: "spaces in the base64", want: stricter, why: exact, ask: rewritten(func(_, text string) string { return beginLine + text[:9] + "  " + text[9:] + "\n" + endLine })},
		{name: "a tab in the base64", want: stricter, why: exact, ask: rewritten(func(_, text string) string { return beginLine + text[:9] + "\t" + text[9:] + "\n" + endLine })},
		{name: "an empty line in the base64", want: stricter, why: exact, ask: rewritten(func(_, text string) string { return beginLine + text[:40] + "\n\n" + text[40:] + "\n" + endLine })},
		{name: "a header line", want: refuse, ask: rewritten(func(_, text string) string { return beginLine + "Comment: ada\n\n" + text + "\n" + endLine })},
		{name: "no newline at the end", want: stricter, why: exact, ask: rewritten(func(file, _ string) string { return strings.TrimSuffix(file, "\n") })},
		{name: "no newline before the END line", want: refuse, ask: rewritten(func(_, text string) string { return beginLine + text + endLine })},
		{name: "an empty line before", want: refuse, ask: rewritten(func(file, _ string) string { return "\n" + file })},
		{name: "text before", want: refuse, ask: rewritten(func(file, _ string) string { return "From: ada\n" + file })},
		{name: "a byte order mark before", want: refuse, ask: rewritten(func(file, _ string) string { return "\ufeff" + file })},
		{name: "an empty line behind", want: stricter, why: exact, ask: rewritten(func(file, _ string) string { return file + "\n" })},
		{name: "text behind", want: stricter, why: "what stands behind a signature looks signed and is not", ask: rewritten(func(file, _ string) string { return file + "approved by everybody\n" })},
		{name: "two good blocks", want: stricter, why: "stock reads the first and passes over the second", ask: rewritten(func(file, _ string) string { return file + file })},
		{name: "a good block, then another key's", want: stricter, why: "stock reads the first and passes over the second", ask: func(t testing.TB, q *question) {
			good := q.file
			q.signed(t, sshsigtest.Ed25519(t, 2), outer{Version: 1, Namespace: q.namespace, Hash: "sha512"})
			q.file = slices.Concat(good, q.file)
		}},
		{name: "another key's block, then a good one", want: refuse, ask: func(t testing.TB, q *question) {
			good := q.file
			q.signed(t, sshsigtest.Ed25519(t, 2), outer{Version: 1, Namespace: q.namespace, Hash: "sha512"})
			q.file = slices.Concat(q.file, good)
		}},
		{name: "no END line", want: refuse, ask: rewritten(func(file, _ string) string { return strings.TrimSuffix(file, endLine) })},
		{name: "no BEGIN line", want: refuse, ask: rewritten(func(file, _ string) string { return strings.TrimPrefix(file, beginLine) })},
		{name: "another label", want: refuse, ask: rewritten(func(file, _ string) string { return strings.ReplaceAll(file, "SSH SIGNATURE", "PGP SIGNATURE") })},
		{name: "padding missing", want: refuse, ask: rewritten(func(file, _ string) string { return strings.ReplaceAll(file, "=", "") })},
		{name: "a character outside base64", want: refuse, ask: rewritten(func(_, text string) string { return beginLine + text[:9] + "*" + text[9:] + "\n" + endLine })},
		{name: "the blob without an armor", want: refuse, ask: func(t testing.TB, q *question) { q.file = q.blob(t) }},
		{name: "an empty file", want: refuse, ask: func(_ testing.TB, q *question) { q.file = []byte{} }},
		{name: "an armor of nothing", want: refuse, ask: func(_ testing.TB, q *question) { q.file = sshsig.Armor(nil) }},
		{name: "8 KiB of spaces inside", want: stricter, why: "a signature file has at most 4,096 bytes", ask: rewritten(func(_, text string) string { return beginLine + text + strings.Repeat(" ", 8192) + "\n" + endLine })},
	}
}
