package sshsig_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/sshsig/sshsigtest"
	"golang.org/x/crypto/ssh"
)

// group is a part of the table.
type group struct {
	name  string
	cases []comparison
}

func comparisons() []group {
	return []group{
		{"Keys", keyCases()}, {"FIDO tokens", tokenCases()}, {"Whose key", ownerCases()}, {"Dates of keys", dateCases()},
		{"Certificates", certificateCases()}, {"Revocation", revocationCases()}, {"Namespace and content", contentCases()},
		{"Hashes and algorithms", algorithmCases()}, {"The blob", blobCases()}, {"The armor", armorCases()},
	}
}

// by is a case that differs only in the key.
func by(make func(t testing.TB) ssh.Signer) func(testing.TB, *question) {
	return func(t testing.TB, q *question) { q.by(t, make(t)) }
}

func rsaOf(bits int) func(testing.TB) ssh.Signer {
	return func(t testing.TB) ssh.Signer { return rsaSigner(t, bits) }
}

func curve(c elliptic.Curve) func(testing.TB) ssh.Signer {
	return func(t testing.TB) ssh.Signer { return sshsigtest.ECDSA(t, c, 7) }
}

// forDirective asks ours as a host would.
func forDirective(ask func(testing.TB, *question)) func(testing.TB, *question) {
	return func(t testing.TB, q *question) { ask(t, q); q.directive = true }
}

const (
	whyKeyType = "Ed25519, P-256 and RSA are taken: fewer to get wrong, and every host reads them"
	whyRSA     = "under 3,072 bits: too short for a signature that is trusted for years"
)

func keyCases() []comparison {
	return []comparison{
		{name: "Ed25519", want: accept, ask: func(testing.TB, *question) {}},
		{name: "Ed25519, for a directive", want: accept, ask: forDirective(func(testing.TB, *question) {})},
		{name: "P-256", want: accept, ask: by(curve(elliptic.P256()))},
		{name: "P-256, for a directive", want: accept, ask: forDirective(by(curve(elliptic.P256())))},
		{name: "P-384", want: stricter, why: whyKeyType, ask: by(curve(elliptic.P384()))},
		{name: "P-521", want: stricter, why: whyKeyType, ask: by(curve(elliptic.P521()))},
		{name: "RSA-1024", want: stricter, why: whyRSA, ask: by(rsaOf(1024))},
		{name: "RSA-2048", want: stricter, why: whyRSA, ask: by(rsaOf(2048))},
		{name: "RSA-3072", want: accept, ask: by(rsaOf(3072))},
		{name: "RSA-3072, for a directive", want: stricter, why: "RSA signs policy only: two of its signatures do not fit a token", ask: forDirective(by(rsaOf(3072)))},
		{name: "RSA-4096", want: accept, ask: by(rsaOf(4096))},
		{name: "DSA", want: stricter, why: "SHA-1 and 1,024 bits; OpenSSH 10 dropped it too", retired: true, ask: by(dsaSigner)},
	}
}

// token is a FIDO token in software that answers with these flags.
func token(flags byte) func(testing.TB) ssh.Signer {
	return func(t testing.TB) ssh.Signer { return sshsigtest.NewFIDO(t, 9, flags) }
}

func tokenCases() []comparison {
	const why = "a signature that nobody touched the token for may be malware's; stock reports the touch and does not ask for it"
	return []comparison{
		{name: "sk-Ed25519, touched", want: accept, ask: by(token(sshsigtest.Touched))},
		{name: "sk-Ed25519, touched and PIN", want: accept, ask: by(token(sshsigtest.Touched | sshsigtest.Verified))},
		{name: "sk-Ed25519, not touched", want: stricter, why: why, ask: by(token(0))},
		{name: "sk-Ed25519, not touched, for a directive", want: stricter, why: why, ask: forDirective(by(token(0)))},
		{name: "sk-Ed25519, PIN and no touch", want: stricter, why: why, ask: by(token(sshsigtest.Verified))},
		{name: "sk-Ed25519, touch claimed afterwards", want: refuse, ask: func(t testing.TB, q *question) {
			q.by(t, sshsigtest.NewFIDO(t, 9, 0))
			q.respelled(t, func(_ *outer, i *inner) { i.Rest[0] = sshsigtest.Touched })
		}},
		{name: "sk-Ed25519, another counter", want: refuse, ask: func(t testing.TB, q *question) {
			q.by(t, sshsigtest.NewFIDO(t, 9, sshsigtest.Touched))
			q.respelled(t, func(_ *outer, i *inner) { i.Rest[4]++ })
		}},
		{name: "sk-Ed25519, without flags and counter", want: refuse, ask: func(t testing.TB, q *question) {
			q.by(t, sshsigtest.NewFIDO(t, 9, sshsigtest.Touched))
			q.respelled(t, func(_ *outer, i *inner) { i.Rest = nil })
		}},
		{name: "sk-Ed25519, a byte behind the counter", want: refuse, ask: func(t testing.TB, q *question) {
			q.by(t, sshsigtest.NewFIDO(t, 9, sshsigtest.Touched))
			q.respelled(t, func(_ *outer, i *inner) { i.Rest = append(i.Rest, 0) })
		}},
		{name: "sk-Ed25519, the token's key in a plain signature", want: refuse, ask: func(t testing.TB, q *question) {
			q.by(t, sshsigtest.NewFIDO(t, 9, sshsigtest.Touched))
			q.respelled(t, func(_ *outer, i *inner) { i.Format, i.Rest = ssh.KeyAlgoED25519, nil })
		}},
		{name: "sk-P-256, touched", want: stricter, why: whyKeyType, ask: by(func(t testing.TB) ssh.Signer { return newTokenP256(t) })},
	}
}

// tokenP256 is a FIDO token in software with a P-256 key: sshsigtest has none,
// because nothing here takes its signatures.
type tokenP256 struct {
	key *ecdsa.PrivateKey
	pub ssh.PublicKey
}

func newTokenP256(t testing.TB) tokenP256 {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	pub, err := ssh.ParsePublicKey(ssh.Marshal(struct {
		Name, Curve string
		Point       []byte
		Application string
	}{ssh.KeyAlgoSKECDSA256, "nistp256", point, "ssh:"}))
	if err != nil {
		t.Fatal(err)
	}
	return tokenP256{key, pub}
}

func (k tokenP256) PublicKey() ssh.PublicKey { return k.pub }

func (k tokenP256) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	app, digest := sha256.Sum256([]byte("ssh:")), sha256.Sum256(data)
	tail := binary.BigEndian.AppendUint32([]byte{sshsigtest.Touched}, 41)
	message := sha256.Sum256(bytes.Join([][]byte{app[:], tail, digest[:]}, nil))
	r, s, err := ecdsa.Sign(rand.Reader, k.key, message[:])
	if err != nil {
		return nil, err
	}
	return &ssh.Signature{Format: ssh.KeyAlgoSKECDSA256, Blob: pairOf(r, s), Rest: tail}, nil
}

func ownerCases() []comparison {
	plain := func(t testing.TB, seed byte) string { return authorizedKey(sshsigtest.Ed25519(t, seed).PublicKey()) }
	const oneOwner = "a key has one owner, so that counting people is counting keys"
	return []comparison{
		{name: "a key that nobody listed", want: refuse, ask: func(t testing.TB, q *question) { q.lines[0].key = plain(t, 2) }},
		{name: "nobody is listed", want: refuse, ask: func(_ testing.TB, q *question) { q.lines = nil }},
		{name: "another person's key", want: refuse, ask: func(t testing.TB, q *question) {
			q.lines[0].principals = "bob"
			q.lines = append(q.lines, line{principals: "ada", key: plain(t, 2)})
		}},
		{name: "the other of two keys of one person", want: accept, ask: func(t testing.TB, q *question) {
			q.lines = append([]line{{principals: "ada", key: plain(t, 2)}}, q.lines...)
		}},
		{name: "a key listed twice for one person", want: stricter, why: oneOwner, ask: func(_ testing.TB, q *question) { q.lines = append(q.lines, q.lines[0]) }},
		{name: "a key listed for two people", want: stricter, why: oneOwner, ask: func(_ testing.TB, q *question) {
			q.lines = append(q.lines, line{principals: "bob", key: q.lines[0].key})
		}},
		{name: "two people on one line", want: stricter, why: oneOwner, ask: func(_ testing.TB, q *question) { q.lines[0].principals = "ada,bob" }},
		{name: "a wildcard for a person", want: stricter, why: "a wildcard makes one key everybody's", ask: func(_ testing.TB, q *question) { q.lines[0].principals = "*" }},
		{name: "a wildcard that leaves ada out", want: refuse, ask: func(_ testing.TB, q *question) { q.lines[0].principals = "!ada,*" }},
		{name: "a person in capitals", want: refuse, ask: func(_ testing.TB, q *question) { q.person = "Ada" }},
		{name: "a person named by an address", want: stricter, why: "people have plain names, which are file names on every system", ask: func(_ testing.TB, q *question) {
			q.person, q.lines[0].principals = "ada@example.com", "ada@example.com"
		}},
		{name: "a comment behind the key", want: stricter, why: "a root has one spelling; a comment would be signed text that nobody reads", ask: func(_ testing.TB, q *question) { q.lines[0].key += " ada@laptop" }},
		{name: "a line that is no key before the good one", want: stricter, why: "a root with a part that cannot be read is not read at all", ask: func(_ testing.TB, q *question) {
			q.lines = append([]line{{principals: "bob", key: "ssh-ed25519 AAAA"}}, q.lines...)
		}},
		{name: "an unknown option before the key", want: refuse, ask: func(_ testing.TB, q *question) { q.lines[0].options = "no-pty" }},
		{name: "the line of a certificate authority", want: refuse, ask: func(_ testing.TB, q *question) { q.lines[0].options = "cert-authority" }},
	}
}

// dated limits the key to a time and asks at another, in a zone of ssh-keygen.
func dated(options, at, zone string) func(testing.TB, *question) {
	return func(_ testing.TB, q *question) { q.lines[0].options, q.at, q.zone = options, at, zone }
}

func dateCases() []comparison {
	const why = "keys have no dates here: a key is revoked, or its root expires, in UTC; whose clock and zone count is no question then"
	return []comparison{
		{name: "valid-before with Z, before it", want: stricter, why: why, ask: dated(`valid-before="20261130120000Z"`, "20261130115959Z", "")},
		{name: "valid-before with Z, at it", want: stricter, why: why, ask: dated(`valid-before="20261130120000Z"`, "20261130120000Z", "")},
		{name: "valid-before with Z, after it", want: refuse, ask: dated(`valid-before="20261130120000Z"`, "20261130120001Z", "")},
		{name: "valid-before with Z, before it, read in New York", want: stricter, why: why, ask: dated(`valid-before="20261130120000Z"`, "20261130115959Z", "EST5")},
		{name: "valid-before without Z, after it in UTC", want: refuse, ask: dated(`valid-before="20261130120000"`, "20261130130000Z", "")},
		{name: "valid-before without Z, the same moment read in New York", want: stricter, why: "the same line and moment: without a zone the reader's own decides", ask: dated(`valid-before="20261130120000"`, "20261130130000Z", "EST5")},
		{name: "valid-before as a day", want: stricter, why: why, ask: dated(`valid-before="20261201"`, "20261130120000Z", "")},
		{name: "valid-after with Z, before it", want: refuse, ask: dated(`valid-after="20261130120000Z"`, "20261130115959Z", "")},
		{name: "valid-after with Z, after it", want: stricter, why: why, ask: dated(`valid-after="20261130120000Z"`, "20261130120001Z", "")},
		{name: "valid-after without Z, before it in UTC", want: refuse, ask: dated(`valid-after="20261130120000"`, "20261130110000Z", "")},
		{name: "valid-after without Z, the same moment read in Tokyo", want: stricter, why: "the same line and moment: without a zone the reader's own decides", ask: dated(`valid-after="20261130120000"`, "20261130110000Z", "JST-9")},
		{name: "valid-after later than valid-before", want: refuse, ask: dated(`valid-after="20271130Z",valid-before="20261130Z"`, "20270601Z", "")},
		{name: "a time that is none", want: refuse, ask: dated(`valid-before="tomorrow"`, "20261130115959Z", "")},
		{name: "an empty time", want: refuse, ask: dated(`valid-before=""`, "20261130115959Z", "")},
	}
}

// vouched is a certificate for ada's key by the authority with the seed 2.
func vouched(t testing.TB, edit func(*ssh.Certificate)) ssh.Signer {
	t.Helper()
	key := sshsigtest.Ed25519(t, 1)
	cert := &ssh.Certificate{Key: key.PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"ada"}, ValidBefore: ssh.CertTimeInfinity}
	if edit != nil {
		edit(cert)
	}
	if err := cert.SignCert(rand.Reader, sshsigtest.Ed25519(t, 2)); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewCertSigner(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// authority asks with a certificate and the line that is given.
func authority(edit func(*ssh.Certificate), lines func(t testing.TB, cert ssh.PublicKey) []line) func(testing.TB, *question) {
	return func(t testing.TB, q *question) {
		signer := vouched(t, edit)
		q.by(t, signer)
		q.lines = lines(t, signer.PublicKey())
	}
}

func certificateCases() []comparison {
	ca := func(t testing.TB, _ ssh.PublicKey) []line {
		return []line{{principals: "ada", options: "cert-authority", key: authorizedKey(sshsigtest.Ed25519(t, 2).PublicKey())}}
	}
	const why = "an authority could name anybody; people and keys stand in the root, which people signed"
	return []comparison{
		{name: "a certificate and its authority", want: stricter, why: why, ask: authority(nil, ca)},
		{name: "a certificate without its authority: its key is listed", want: refuse, ask: authority(nil, func(t testing.TB, _ ssh.PublicKey) []line {
			return []line{{principals: "ada", key: authorizedKey(sshsigtest.Ed25519(t, 1).PublicKey())}}
		})},
		{name: "a certificate without its authority: it is listed as a key", want: stricter, why: "stock takes it as a key, whoever vouched for it and until when", ask: authority(nil, func(_ testing.TB, cert ssh.PublicKey) []line {
			return []line{{principals: "ada", key: authorizedKey(cert)}}
		})},
		{name: "a certificate whose authority is listed as a key", want: refuse, ask: authority(nil, func(t testing.TB, _ ssh.PublicKey) []line {
			return []line{{principals: "ada", key: authorizedKey(sshsigtest.Ed25519(t, 2).PublicKey())}}
		})},
		{name: "a certificate of another authority", want: refuse, ask: authority(nil, func(t testing.TB, _ ssh.PublicKey) []line {
			return []line{{principals: "ada", options: "cert-authority", key: authorizedKey(sshsigtest.Ed25519(t, 3).PublicKey())}}
		})},
		{name: "a certificate for somebody else", want: refuse, ask: authority(func(c *ssh.Certificate) { c.ValidPrincipals = []string{"bob"} }, ca)},
		{name: "a certificate that has run out", want: refuse, ask: authority(func(c *ssh.Certificate) {
			c.ValidBefore = uint64(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
		}, ca)},
		{name: "a certificate of a host", want: refuse, ask: authority(func(c *ssh.Certificate) { c.CertType = ssh.HostCert }, ca)},
		{name: "a certificate put into a signature of its key", want: refuse, ask: func(t testing.TB, q *question) {
			cert := vouched(t, nil).PublicKey()
			q.lines = append(q.lines, ca(t, nil)...)
			q.lines = append(q.lines, line{principals: "ada", key: authorizedKey(cert)})
			q.respelled(t, func(o *outer, i *inner) { o.Key = string(cert.Marshal()); i.Blob[0] ^= 1 })
		}},
	}
}

// revoking says what the revocation file holds and what the root's list.
func revoking(file string, entries ...string) func(testing.TB, *question) {
	return func(_ testing.TB, q *question) { q.revoked = &revocation{file: []byte(file), entries: entries} }
}

// krl makes a revocation list by ssh-keygen -k from a public key or from a
// specification.
func krl(t testing.TB, spec string) []byte {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "spec"), filepath.Join(dir, "krl")
	if err := os.WriteFile(in, []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := run(t, nil, "ssh-keygen", "-q", "-k", "-f", out, in); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func revocationCases() []comparison {
	mark := func(t testing.TB) string { return ssh.FingerprintSHA256(sshsigtest.Ed25519(t, 1).PublicKey()) }
	other := func(t testing.TB) ssh.PublicKey { return sshsigtest.Ed25519(t, 2).PublicKey() }
	return []comparison{
		{name: "nobody is revoked", want: accept, ask: func(testing.TB, *question) {}},
		{name: "an empty file", want: accept, ask: revoking("")},
		{name: "a file of comments", want: accept, ask: revoking("# nobody yet\n\n")},
		{name: "no file", want: refuse, ask: func(_ testing.TB, q *question) { q.revoked = &revocation{absent: true} }},
		{name: "the key", want: refuse, ask: func(t testing.TB, q *question) { revoking(q.lines[0].key+"\n", mark(t))(t, q) }},
		{name: "the key, in a KRL", want: refuse, ask: func(t testing.TB, q *question) {
			q.revoked = &revocation{file: krl(t, q.lines[0].key+"\n"), entries: []string{mark(t)}}
		}},
		{name: "the key's fingerprint, in a KRL", want: refuse, ask: func(t testing.TB, q *question) {
			q.revoked = &revocation{file: krl(t, "hash: "+mark(t)+"\n"), entries: []string{mark(t)}}
		}},
		{name: "a KRL that is cut short", want: refuse, ask: func(t testing.TB, q *question) {
			raw := krl(t, q.lines[0].key+"\n")
			q.revoked = &revocation{file: raw[:len(raw)-10], entries: []string{mark(t)[:len(mark(t))-10]}}
		}},
		{name: "another key", want: accept, ask: func(t testing.TB, q *question) {
			revoking(authorizedKey(other(t))+"\n", ssh.FingerprintSHA256(other(t)))(t, q)
		}},
		{name: "another key, then this one", want: refuse, ask: func(t testing.TB, q *question) {
			revoking(authorizedKey(other(t))+"\n"+q.lines[0].key+"\n", ssh.FingerprintSHA256(other(t)), mark(t))(t, q)
		}},
		{name: "the other key of the same person", want: accept, ask: func(t testing.TB, q *question) {
			q.lines = append(q.lines, line{principals: "ada", key: authorizedKey(other(t))})
			revoking(authorizedKey(other(t))+"\n", ssh.FingerprintSHA256(other(t)))(t, q)
		}},
		{name: "a line that is neither key nor fingerprint", want: refuse, ask: revoking("everybody\n", "everybody")},
		{name: "the fingerprint in another spelling", want: refuse, ask: func(t testing.TB, q *question) {
			spelled := strings.ToLower(mark(t)[:7]) + mark(t)[7:]
			revoking(spelled+"\n", spelled)(t, q)
		}},
		{name: "a key of an authority's certificate", want: refuse, ask: func(t testing.TB, q *question) {
			signer := vouched(t, nil)
			q.by(t, signer)
			q.lines[0] = line{principals: "ada", options: "cert-authority", key: authorizedKey(other(t))}
			revoking(authorizedKey(sshsigtest.Ed25519(t, 1).PublicKey())+"\n", mark(t))(t, q)
		}},
	}
}
