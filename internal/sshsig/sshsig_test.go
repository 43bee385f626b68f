package sshsig_test

import (
	"bytes"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/sshsig/sshsigtest"
	"golang.org/x/crypto/ssh"
)

func TestASignatureNamesItsKeyAndCoversItsContent(t *testing.T) {
	for name, signer := range accepted(t) {
		sig := sign(t, signer)
		if want := ssh.FingerprintSHA256(signer.PublicKey()); sig.Fingerprint != want || sig.Namespace != namespace {
			t.Errorf("%s: it names %s in %q", name, sig.Fingerprint, sig.Namespace)
		}
		if err := opens(sig.Blob, sshsig.ForPolicy); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := sig.Verify(append([]byte(" "), content...), namespace); !errors.Is(err, sshsig.ErrSignature) {
			t.Errorf("%s over other content: %v", name, err)
		}
	}
}

func TestWhichKeysMaySignWhat(t *testing.T) {
	for _, c := range []struct {
		what              string
		key               ssh.PublicKey
		policy, directive bool
	}{
		{"Ed25519", sshsigtest.Ed25519(t, 1).PublicKey(), true, true},
		{"Ed25519 on a FIDO token", sshsigtest.NewFIDO(t, 9, sshsigtest.Touched).PublicKey(), true, true},
		{"P-256", sshsigtest.ECDSA(t, elliptic.P256(), 7).PublicKey(), true, true},
		{"P-384", sshsigtest.ECDSA(t, elliptic.P384(), 7).PublicKey(), false, false},
		{"P-521", sshsigtest.ECDSA(t, elliptic.P521(), 7).PublicKey(), false, false},
		{"RSA-2048", rsaSigner(t, 2048).PublicKey(), false, false},
		{"RSA-3072", rsaSigner(t, 3072).PublicKey(), true, false},
		{"a certificate", certificate(t).PublicKey(), false, false},
	} {
		for use, want := range map[sshsig.Use]bool{sshsig.ForPolicy: c.policy, sshsig.ForDirective: c.directive} {
			if err := sshsig.AcceptKey(c.key, use); (err == nil) != want || err != nil && !errors.Is(err, sshsig.ErrKeyType) {
				t.Errorf("%s for use %d: %v", c.what, use, err)
			}
		}
	}
}

// certificate signs with a key that a certificate authority vouches for.
func certificate(t testing.TB) ssh.Signer {
	t.Helper()
	key := sshsigtest.Ed25519(t, 1)
	cert := &ssh.Certificate{Key: key.PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"ada"}, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, sshsigtest.Ed25519(t, 2)); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewCertSigner(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func TestTheKeyTypeIsAskedAgainWhenABlobIsRead(t *testing.T) {
	rsa := sign(t, rsaSigner(t, 3072)).Blob
	if err := opens(rsa, sshsig.ForPolicy); err != nil {
		t.Errorf("RSA-3072 for policy: %v", err)
	}
	if err := opens(rsa, sshsig.ForDirective); !errors.Is(err, sshsig.ErrKeyType) {
		t.Errorf("RSA-3072 for a directive: %v", err)
	}
	cert := respell(t, sign(t, sshsigtest.Ed25519(t, 1)).Blob, func(o *outer, _ *inner) {
		o.Key = string(certificate(t).PublicKey().Marshal())
	})
	if err := opens(cert, sshsig.ForPolicy); !errors.Is(err, sshsig.ErrKeyType) {
		t.Errorf("a certificate in the place of its key: %v", err)
	}
}

func TestSignRefusesKeysThatNobodyAccepts(t *testing.T) {
	for name, signer := range map[string]ssh.Signer{
		"P-384":         sshsigtest.ECDSA(t, elliptic.P384(), 7),
		"RSA-2048":      rsaSigner(t, 2048),
		"a certificate": certificate(t),
	} {
		if _, err := sshsig.Sign(signer, rand.Reader, content, namespace); !errors.Is(err, sshsig.ErrKeyType) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestANamespaceIsExactAndNeverEmpty(t *testing.T) {
	signer := sshsigtest.Ed25519(t, 1)
	sig := sign(t, signer)
	for _, other := range []string{"", "ic-directive-v1@shop2", "ic-drill-directive-v1@shop", "ic-directive-v1@shop ", "file"} {
		if err := sig.Verify(content, other); !errors.Is(err, sshsig.ErrNamespace) {
			t.Errorf("namespace %q: %v", other, err)
		}
	}
	if _, err := sshsig.Sign(signer, rand.Reader, content, ""); err == nil {
		t.Error("it signs without a namespace")
	}
	// One that a looser tool has made, with a valid signature over it.
	none := forge(t, signer, outer{Version: 1, Hash: "sha512"}, content)
	if _, err := sshsig.Parse(none, sshsig.ForPolicy); !errors.Is(err, sshsig.ErrNamespace) {
		t.Errorf("a blob without a namespace: %v", err)
	}
	var zero sshsig.Signature
	if err := zero.Verify(content, ""); !errors.Is(err, sshsig.ErrNamespace) {
		t.Errorf("the zero signature in no namespace: %v", err)
	}
}

// forge signs honestly what head says, whether this package would or not.
func forge(t testing.TB, signer ssh.Signer, head outer, digest []byte) []byte {
	t.Helper()
	copy(head.Magic[:], "SSHSIG")
	head.Key = string(signer.PublicKey().Marshal())
	data := append([]byte("SSHSIG"), ssh.Marshal(signedData{head.Namespace, head.Reserved, head.Hash, digest})...)
	sig, err := signer.Sign(rand.Reader, data)
	if algorithms, ok := signer.(ssh.AlgorithmSigner); ok && signer.PublicKey().Type() == ssh.KeyAlgoRSA {
		sig, err = algorithms.SignWithAlgorithm(rand.Reader, data, ssh.KeyAlgoRSASHA512) // not over SHA-1
	}
	if err != nil {
		t.Fatal(err)
	}
	head.Signature = string(ssh.Marshal(sig))
	return ssh.Marshal(head)
}

func TestOnlyOneHashIsAccepted(t *testing.T) {
	digest := sha256.Sum256(content)
	blob := forge(t, sshsigtest.Ed25519(t, 1), outer{Version: 1, Namespace: namespace, Hash: "sha256"}, digest[:])
	if _, err := sshsig.Parse(blob, sshsig.ForPolicy); !errors.Is(err, sshsig.ErrBlob) {
		t.Errorf("a signature over SHA-256: %v", err)
	}
}

func TestAFIDOKeyHasToBeTouched(t *testing.T) {
	for name, c := range map[string]struct {
		flags byte
		ok    bool
	}{
		"touched":         {sshsigtest.Touched, true},
		"touched and PIN": {sshsigtest.Touched | sshsigtest.Verified, true},
		"not touched":     {0, false},
		"PIN, no touch":   {sshsigtest.Verified, false},
	} {
		sig, err := sshsig.Sign(sshsigtest.NewFIDO(t, 9, c.flags), rand.Reader, content, namespace)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, sshsig.ErrSignature) {
			t.Errorf("%s: sign: %v", name, err)
		}
		if c.ok {
			if err := sig.Verify(content, namespace); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestAFIDOKeyThatWasNotTouchedCannotClaimIt(t *testing.T) {
	blob := sign(t, sshsigtest.NewFIDO(t, 9, sshsigtest.Touched)).Blob
	for flags := range 256 {
		other := respell(t, blob, func(_ *outer, i *inner) { i.Rest[0] = byte(flags) })
		if err := opens(other, sshsig.ForPolicy); (err == nil) != (byte(flags) == sshsigtest.Touched) {
			t.Errorf("flags %#x: %v", flags, err)
		}
	}
}

// liar answers with a signature over something else, as an agent with a fault
// or a forwarded one with an intention would.
type liar struct{ ssh.Signer }

func (l liar) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return l.Signer.Sign(rand, append(data, '!'))
}

func TestWhatASignerReturnsIsVerifiedBeforeItLeaves(t *testing.T) {
	if _, err := sshsig.Sign(liar{sshsigtest.Ed25519(t, 1)}, rand.Reader, content, namespace); !errors.Is(err, sshsig.ErrSignature) {
		t.Errorf("a signer that signs something else: %v", err)
	}
}

// padder answers with a good signature and bytes behind it.
type padder struct{ ssh.Signer }

func (p padder) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	sig, err := p.Signer.Sign(rand, data)
	if err == nil {
		sig.Rest = []byte("padding")
	}
	return sig, err
}

func TestASignatureInAnotherSpellingDoesNotLeave(t *testing.T) {
	if _, err := sshsig.Sign(padder{sshsigtest.Ed25519(t, 1)}, rand.Reader, content, namespace); !errors.Is(err, sshsig.ErrBlob) {
		t.Errorf("a signer that pads: %v", err)
	}
}

func TestArmorIsReadBackExactly(t *testing.T) {
	for n := range 300 {
		blob := bytes.Repeat([]byte{0xa5}, n)
		got, err := sshsig.Unarmor(sshsig.Armor(blob))
		if err != nil || !bytes.Equal(got, blob) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestUnarmorTakesOneBlockAndNothingElse(t *testing.T) {
	good := string(sshsig.Armor(sign(t, sshsigtest.Ed25519(t, 1)).Blob))
	const begin, end = "-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n"
	body := good[len(begin) : len(good)-len(end)]
	lines := func(width int) string {
		text, out := string(bytes.ReplaceAll([]byte(body), []byte("\n"), nil)), ""
		for len(text) > width {
			out, text = out+text[:width]+"\n", text[width:]
		}
		return begin + out + text + "\n" + end
	}
	if lines(70) != good {
		t.Fatal("the test folds lines in another way than Armor")
	}
	replace := func(old, new string) string { return strings.ReplaceAll(good, old, new) }
	for name, text := range map[string]string{
		"nothing":                  "",
		"text before":              "hello\n" + good,
		"an empty line before":     "\n" + good,
		"a byte order mark before": "\ufeff" + good,
		"text behind":              good + "hello\n",
		"an empty line behind":     good + "\n",
		"a space behind":           good + " ",
		"two blocks":               good + good,
		"two blocks in one":        begin + body + end + begin + body + end,
		"no newline at the end":    good[:len(good)-1],
		"CRLF":                     replace("\n", "\r\n"),
		"CR in the body":           begin + body[:10] + "\r" + body[10:] + end,
		"lines of 64":              lines(64),
		"lines of 76":              lines(76),
		"one long line":            lines(2000),
		"an empty line inside":     begin + "\n" + body + end,
		"a header":                 begin + "Hash: sha512\n\n" + body + end,
		"a space at a line's end":  begin + body[:len(body)-1] + " \n" + end,
		"padding missing":          replace("=", ""),
		"base64url":                replace("+", "-") + "x",
		"BEGIN alone":              begin,
		"END alone":                end,
		"another label":            "-----BEGIN SSH PUBLIC KEY-----\n" + body + "-----END SSH PUBLIC KEY-----\n",
	} {
		if _, err := sshsig.Unarmor([]byte(text)); !errors.Is(err, sshsig.ErrArmor) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnarmorHasALimit(t *testing.T) {
	if _, err := sshsig.Unarmor(sshsig.Armor(make([]byte, sshsig.MaxArmor))); !errors.Is(err, sshsig.ErrArmor) {
		t.Errorf("an armor of more than %d bytes: %v", sshsig.MaxArmor, err)
	}
	if _, err := sshsig.Unarmor(sshsig.Armor(make([]byte, sshsig.MaxBlob))); err != nil {
		t.Errorf("the longest blob does not fit the longest armor: %v", err)
	}
}
