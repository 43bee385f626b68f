package directive_test

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/sshsig/sshsigtest"
	"golang.org/x/crypto/ssh"
)

var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 3072) })

func rsaSigner(t *testing.T) ssh.Signer {
	t.Helper()
	key, err := rsaKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestATokenCarriesADirectiveAndWhoSignedIt(t *testing.T) {
	for name, d := range every() {
		for _, signers := range [][]ssh.Signer{{ada(t)}, {petra(t)}, {tess(t)}, {ada(t), finn(t)}, {finn(t), petra(t), ada(t), tess(t)}} {
			var sigs []sshsig.Signature
			var want []string
			for _, s := range signers {
				sig, err := directive.Sign(s, rand.Reader, encode(t, d), directive.Production, fleet)
				if err != nil {
					t.Fatal(err)
				}
				sigs, want = append(sigs, sig), append(want, ssh.FingerprintSHA256(s.PublicKey()))
			}
			token, err := directive.Token(encode(t, d), sigs...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := directive.Verify(token, directive.Production, fleet)
			if err != nil {
				t.Errorf("%s by %d: %v", name, len(signers), err)
				continue
			}
			if got.Directive.ID != d.ID || string(got.Payload) != string(encode(t, d)) || got.Token != token || !slices.Equal(got.Fingerprints(), want) {
				t.Errorf("%s by %v: read as %+v", name, want, got)
			}
		}
	}
}

// refused expects a code, and that nothing in the result could be taken for a
// directive that somebody signed.
func refused(t *testing.T, what, token string, realm directive.Realm, want model.Code) {
	t.Helper()
	got, err := directive.Verify(token, realm, fleet)
	var r *directive.Refusal
	if !errors.As(err, &r) || r.Code != want || directive.CodeOf(err) != want {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
	if got != nil && len(got.Signers) > 0 {
		t.Errorf("%s: refused and yet signed by %v", what, got.Fingerprints())
	}
}

func TestATokenHasOneForm(t *testing.T) {
	d := shed()
	for len(encode(t, d))%3 == 0 {
		d.Reason += "." // so that the last character of its base64 has bits to spare
	}
	good := signed(t, d, directive.Production, ada(t))
	version, rest, _ := strings.Cut(good, ".")
	payload, blob, _ := strings.Cut(rest, ".")
	stray := payload[:len(payload)-1] + string(payload[len(payload)-1]+1)
	for what, token := range map[string]string{
		"nothing":               "",
		"the version alone":     version,
		"no signature":          version + "." + payload,
		"no payload":            version + ".." + blob,
		"no version":            payload + "." + blob,
		"another name":          "jwt." + rest,
		"version 0":             "ic0." + rest,
		"version 01":            "ic01." + rest,
		"capitals":              "IC1." + rest,
		"a space before":        " " + good,
		"a line feed behind":    good + "\n",
		"a CR behind":           good + "\r",
		"a line feed inside":    good[:40] + "\n" + good[40:],
		"CRLF inside":           good[:40] + "\r\n" + good[40:],
		"padding":               version + "." + payload + strings.Repeat("=", 4-len(payload)%4) + "." + blob,
		"the other alphabet":    version + "." + payload + ".+/" + blob,
		"two tokens":            good + " " + good,
		"stray bits":            version + "." + stray + "." + blob,
		"a payload of raw JSON": version + "." + string(encode(t, d)) + "." + blob,
		"nine signatures":       good + strings.Repeat("."+blob, directive.MaxSignature),
	} {
		refused(t, what, token, directive.Production, model.CodeMalformed)
	}
	refused(t, "an empty signature", version+"."+payload+".", directive.Production, model.CodeBadSignature)
	refused(t, "a point at the end", good+".", directive.Production, model.CodeBadSignature)
}

func TestAPayloadThatIsNotCanonicalIsMalformedWhoeverSignedIt(t *testing.T) {
	good := encode(t, shed())
	for _, c := range respellings {
		token := tokenOf(t, replaced(t, good, c.old, c.new), production, ada(t))
		refused(t, c.what, token, directive.Production, model.CodeMalformed)
	}
}

func TestALaterVersionIsUnsupportedNotBroken(t *testing.T) {
	good := encode(t, shed())
	for what, payload := range map[string][]byte{
		"version 2":                    replaced(t, good, `"v":1`, `"v":2`),
		"version 2 with other fields":  []byte(`{"v":2,"statement":{"shed":3}}`),
		"version 2 in any other order": []byte(`{"statement": {"shed":3}, "v": 2}`),
	} {
		refused(t, what, tokenOf(t, payload, production, ada(t)), directive.Production, model.CodeUnsupported)
	}
	for what, payload := range map[string][]byte{
		"version 0": replaced(t, good, `"v":1`, `"v":0`), "no version": replaced(t, good, `"v":1,`, ``), "version -1": replaced(t, good, `"v":1`, `"v":-1`),
		"version 1.5": replaced(t, good, `"v":1`, `"v":1.5`), "a version in words": replaced(t, good, `"v":1`, `"v":"2"`),
	} {
		refused(t, what, tokenOf(t, payload, production, ada(t)), directive.Production, model.CodeMalformed)
	}
	token := signed(t, shed(), directive.Production, ada(t))
	refused(t, "ic2", "ic2"+token[3:], directive.Production, model.CodeUnsupported)
	refused(t, "ic12 of another shape", "ic12:x", directive.Production, model.CodeMalformed)
	refused(t, "ic12", "ic12.x", directive.Production, model.CodeUnsupported)
}

func TestATokenHasALimit(t *testing.T) {
	token := signed(t, shed(), directive.Production, ada(t))
	long := token + "." + strings.Repeat("A", directive.MaxToken-len(token)-1)
	refused(t, "4,096 bytes", long, directive.Production, model.CodeBadSignature)
	refused(t, "4,097 bytes", long+"A", directive.Production, model.CodeTooLong)
	refused(t, "a megabyte", strings.Repeat("ic1.", 1<<18), directive.Production, model.CodeTooLong)
}

func TestTokenRefusesWhatDoesNotFit(t *testing.T) {
	payload := encode(t, longest())
	sig, err := directive.Sign(ada(t), nil, payload, directive.Production, fleet)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]model.Code{0: model.CodeMalformed, 1: "", 8: model.CodeTooLong, 9: model.CodeMalformed} {
		_, err := directive.Token(payload, slices.Repeat([]sshsig.Signature{sig}, n)...)
		if want == "" && err != nil || want != "" && directive.CodeOf(err) != want {
			t.Errorf("%d signatures: %v, want %q", n, err, want)
		}
	}
}

func TestAudience(t *testing.T) {
	other := with(shed(), func(d *model.Directive) { d.Fleet = "shop-prod" })
	refused(t, "a token of another fleet", signed(t, other, directive.Production, ada(t)), directive.Production, model.CodeForeignFleet)
	// The fleet of the payload, a signature made for another one.
	moved := tokenOf(t, encode(t, shed()), directive.Production.Namespace("directive", "shop-prod"), ada(t))
	refused(t, "a signature for another fleet", moved, directive.Production, model.CodeBadSignature)
}

func TestADrillNeverCountsInProduction(t *testing.T) {
	drill := signed(t, shed(), directive.Drill, ada(t))
	live := signed(t, shed(), directive.Production, ada(t))
	refused(t, "a drill's token in production", drill, directive.Production, model.CodeBadSignature)
	refused(t, "a production token in a drill", live, directive.Drill, model.CodeBadSignature)
	if _, err := directive.Verify(drill, directive.Drill, fleet); err != nil {
		t.Errorf("a drill's token in a drill: %v", err)
	}
}

func TestANamespaceNamesRealmDocumentAndFleet(t *testing.T) {
	if got := directive.Production.Namespace("directive", "shop"); got != "ic-directive-v1@shop" {
		t.Error(got)
	}
	if got := directive.Drill.Namespace("lease", "shop"); got != "ic-drill-lease-v1@shop" {
		t.Error(got)
	}
}

func TestEverySignatureCounts(t *testing.T) {
	payload := encode(t, bypass())
	blob := func(s ssh.Signer, namespace string, content []byte) []byte {
		sig, err := sshsig.Sign(s, nil, content, namespace)
		if err != nil {
			t.Fatal(err)
		}
		return sig.Blob
	}
	good, goodFinn := blob(ada(t), production, payload), blob(finn(t), production, payload)
	other := encode(t, with(bypass(), func(d *model.Directive) { d.Caps.Under = usd(5001) }))
	for what, bad := range map[string][]byte{
		"another payload":       blob(finn(t), production, other),
		"another namespace":     blob(finn(t), directive.Production.Namespace("policy", fleet), payload),
		"an RSA key":            blob(rsaSigner(t), production, payload),
		"one byte changed":      flipped(goodFinn, len(goodFinn)-1),
		"a byte behind":         append(slices.Clone(goodFinn), 0),
		"a byte of the key":     flipped(goodFinn, 40),
		"nothing":               {},
		"the payload":           payload,
		"the signature's armor": sshsig.Armor(goodFinn),
	} {
		refused(t, what+" alone", join(payload, bad), directive.Production, model.CodeBadSignature)
		refused(t, what+" behind a good one", join(payload, good, bad), directive.Production, model.CodeBadSignature)
		refused(t, what+" before a good one", join(payload, bad, good), directive.Production, model.CodeBadSignature)
	}
	refused(t, "one key twice", join(payload, good, good), directive.Production, model.CodeDuplicateSigner)
	refused(t, "one key twice, apart", join(payload, good, goodFinn, good), directive.Production, model.CodeDuplicateSigner)
	refused(t, "no signature at all", join(payload), directive.Production, model.CodeMalformed)
	if _, err := directive.Verify(join(payload, good, goodFinn), directive.Production, fleet); err != nil {
		t.Errorf("two good ones: %v", err)
	}
}

func flipped(blob []byte, i int) []byte {
	out := slices.Clone(blob)
	out[i] ^= 1
	return out
}

// Whoever carries a token can do nothing to it but lose it.
func TestNoChangedCharacterVerifies(t *testing.T) {
	token := signed(t, bypass(), directive.Production, ada(t))
	for i := range token {
		for _, c := range []byte{'A', 'B', '_', '.', '='} {
			if token[i] == c {
				continue
			}
			changed := token[:i] + string(c) + token[i+1:]
			if _, err := directive.Verify(changed, directive.Production, fleet); err == nil {
				t.Errorf("%q at %d: it still verifies", c, i)
			}
		}
	}
}

func TestSignMakesOnlyWhatAHostWouldTake(t *testing.T) {
	payload := encode(t, shed())
	for what, c := range map[string]struct {
		signer  ssh.Signer
		payload []byte
		fleet   string
		want    error
	}{
		"an RSA key":              {rsaSigner(t), payload, fleet, sshsig.ErrKeyType},
		"a payload with a space":  {ada(t), append([]byte(" "), payload...), fleet, directive.ErrPayload},
		"what is no payload":      {ada(t), []byte("hello"), fleet, directive.ErrPayload},
		"another fleet's payload": {ada(t), payload, "shop-prod", nil},
		"a key nobody touched":    {sshsigtest.NewFIDO(t, 't', 0), payload, fleet, sshsig.ErrSignature},
	} {
		_, err := directive.Sign(c.signer, rand.Reader, c.payload, directive.Production, c.fleet)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestSplitCarrier(t *testing.T) {
	for value, want := range map[string][]string{
		"": nil, " ": nil, "a": {"a"}, "a b": {"a", "b"}, "a b\n": {"a", "b"}, "a\nb\r\n": {"a", "b"}, "  a \t b ": {"a", "b"},
	} {
		if got := directive.SplitCarrier(value); !slices.Equal(got, want) {
			t.Errorf("%q: %q", value, got)
		}
	}
}

// The sizes that people plan with: an environment variable, a row in a file.
func TestTokensAreAsSmallAsTheDocumentationSays(t *testing.T) {
	for _, c := range []struct {
		what  string
		token string
		most  int
	}{
		{"a shed by one", signed(t, shed(), directive.Production, ada(t)), 1100},
		{"a bypass by two", signed(t, bypass(), directive.Production, ada(t), finn(t)), 1600},
		{"a bypass by two with a P-256 and a FIDO key", signed(t, bypass(), directive.Production, petra(t), tess(t)), 1700},
		{"a recovery with 48 ids by two", signed(t, longest(), directive.Production, ada(t), petra(t)), directive.MaxToken},
	} {
		t.Logf("%s: %d bytes", c.what, len(c.token))
		if len(c.token) > c.most {
			t.Errorf("%s has %d bytes, more than %d", c.what, len(c.token), c.most)
		}
	}
}

// The longest payload has room for one signature of Ed25519, however long the
// names are.
func TestTheLongestPayloadFitsAToken(t *testing.T) {
	d := with(unknown(`{"a":""}`), func(d *model.Directive) { d.Fleet = strings.Repeat("f", directive.MaxName) })
	room := directive.MaxPayload - len(encode(t, d))
	d.Raw = []byte(`{"a":"` + strings.Repeat("x", room) + `"}`)
	if token := signed(t, d, directive.Drill, ada(t)); len(token) > directive.MaxToken {
		t.Errorf("%d bytes", len(token))
	}
}

// Whoever shows a refusal has the code for the table, the sentence for the person
// and the cause for the program; an error of somebody else is no form of a token.
func TestARefusalHasACodeASentenceAndACause(t *testing.T) {
	_, err := directive.Verify(join([]byte("{}"), []byte("x")), directive.Production, fleet)
	if directive.CodeOf(err) != model.CodeMalformed || !errors.Is(err, directive.ErrPayload) || !strings.HasPrefix(err.Error(), string(model.CodeMalformed)+": not a directive") {
		t.Errorf("got %v", err)
	}
	if got := directive.CodeOf(errors.New("no token at all")); got != model.CodeMalformed {
		t.Errorf("an error without a code is %q", got)
	}
}
