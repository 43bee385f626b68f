package directive_test

import (
	"bytes"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/degradedmode/ic/internal/directive"
)

// What is read is written again as the same bytes, is one line, and hides
// nothing from whoever prints it.
func FuzzParse(f *testing.F) {
	for _, v := range readVectors(f) {
		f.Add([]byte(v.Payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		d, err := directive.Parse(payload)
		if err != nil {
			return
		}
		again, err := directive.Encode(d)
		if err != nil || !bytes.Equal(again, payload) {
			t.Errorf("%q is written again as %q: %v", payload, again, err)
		}
		if len(payload) > directive.MaxPayload || !utf8.Valid(payload) {
			t.Errorf("%q is read", payload)
		}
		for _, r := range string(payload) {
			if r != ' ' && unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Bidi_Control, unicode.Join_Control) {
				t.Errorf("%q holds %U", payload, r)
			}
		}
	})
}

// Whatever is accepted was signed: the fuzzer has no key, so it can only find
// what the vectors say already, spelled as they spell it.
func FuzzVerify(f *testing.F) {
	said := make(map[string]bool)
	for _, v := range readVectors(f) {
		f.Add(v.Token)
		if v.Code == "" {
			said[string(v.Realm)+v.Payload] = true
		}
	}
	f.Fuzz(func(t *testing.T, token string) {
		for _, realm := range []directive.Realm{directive.Production, directive.Drill} {
			got, err := directive.Verify(token, realm, fleet)
			if err != nil {
				if got != nil && len(got.Signers) > 0 {
					t.Errorf("%q is refused and names a signer", token)
				}
				continue
			}
			again, err := directive.Token(got.Payload, got.Signers...)
			if err != nil || again != token {
				t.Errorf("%q is written again as %q: %v", token, again, err)
			}
			if !said[string(realm)+string(got.Payload)] {
				t.Errorf("%q is accepted and nobody signed it", token)
			}
		}
	})
}
