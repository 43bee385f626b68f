package directive_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"golang.org/x/crypto/ssh"
)

var update = flag.Bool("update", false, "write the test vectors again; the format is frozen, so think twice")

var vectorDir = filepath.Join("..", "..", "testdata", "vectors")

// vector is one file of testdata/vectors/token, as docs/token-format.md
// describes it. Either Directive and Signers or Code is set.
type vector struct {
	Name      string           `json:"name"`
	What      string           `json:"what"`
	Realm     directive.Realm  `json:"realm"`
	Fleet     string           `json:"fleet"`
	Keys      []string         `json:"keys"`    // public keys that signed, in the order of the token
	Payload   string           `json:"payload"` // as text; the token has the bytes
	Token     string           `json:"token"`
	Code      model.Code       `json:"code,omitempty"`
	Signers   []string         `json:"signers,omitempty"`
	Directive *model.Directive `json:"directive,omitempty"`
}

// drawn is what a vector is made from.
type drawn struct {
	name, what string
	payload    []byte
	signers    []ssh.Signer
	realm      directive.Realm // of the signatures; Production if empty
	read       directive.Realm // of the reader; that of the signatures if empty
	tamper     func(token string) string
	code       model.Code
}

// vectors makes every vector anew: the keys come from seeds and all signatures
// are deterministic.
func vectors(t testing.TB) []vector {
	t.Helper()
	var out []vector
	for _, c := range slices.Concat(acceptedVectors(t), malformedVectors(t), refusedVectors(t)) {
		if c.realm == "" {
			c.realm = directive.Production
		}
		if c.read == "" {
			c.read = c.realm
		}
		v := vector{Name: c.name, What: c.what, Realm: c.read, Fleet: fleet, Payload: string(c.payload), Code: c.code, Keys: []string{}}
		v.Token = tokenOf(t, c.payload, c.realm.Namespace("directive", fleet), c.signers...)
		if c.tamper != nil {
			v.Token = c.tamper(v.Token)
		}
		for _, s := range c.signers {
			v.Keys = append(v.Keys, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey()))))
			if c.code == "" {
				v.Signers = append(v.Signers, ssh.FingerprintSHA256(s.PublicKey()))
			}
		}
		if c.code == "" {
			d, err := directive.Parse(c.payload)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			v.Directive = &d
		}
		out = append(out, v)
	}
	return out
}

func acceptedVectors(t testing.TB) []drawn {
	one, two := []ssh.Signer{ada(t)}, []ssh.Signer{ada(t), finn(t)}
	say := func(reason string) []byte {
		return encode(t, with(shed(), func(d *model.Directive) { d.Reason = reason }))
	}
	return []drawn{
		{name: "shed", what: "checkout sheds to tier 3", payload: encode(t, shed()), signers: one},
		{name: "shed-everywhere", what: "the scope * is every service", signers: one,
			payload: encode(t, with(shed(), func(d *model.Directive) { d.Scope, d.Tier = model.AnyScope, 6 }))},
		{name: "shed-by-fido-key", what: "an sk-ssh-ed25519 key that was touched", payload: encode(t, shed()), signers: []ssh.Signer{tess(t)}},
		{name: "shed-by-p256-key", what: "an ecdsa-sha2-nistp256 key", payload: encode(t, shed()), signers: []ssh.Signer{petra(t)}},
		{name: "shed-in-drill", what: "the realm of drills", payload: encode(t, shed()), signers: one, realm: directive.Drill},
		{name: "shed-without-reason", what: "an empty reason is there", payload: say(""), signers: one},
		{name: "reason-escapes", what: "only the quote and the backslash are escaped", payload: say(`"a" \ <b> & 'c'`), signers: one},
		{name: "reason-accents", what: "letters of any script stand as they are", payload: say("Zürich: 決済が遅い, оплата"), signers: one},
		{name: "off", what: "a feature off", payload: encode(t, off()), signers: one},
		{name: "bypass-two-signers", what: "15 minutes for orders under 50.00 USD", payload: encode(t, bypass()), signers: two},
		{name: "bypass-four-signers", what: "all key types on one token", payload: encode(t, bypass()), signers: []ssh.Signer{finn(t), petra(t), ada(t), tess(t)}},
		{name: "bypass-largest-caps", what: "the largest amounts and count", signers: two,
			payload: encode(t, with(bypass(), func(d *model.Directive) {
				d.Caps = model.Caps{Under: usd(model.MaxMinor), HostCount: 1<<63 - 1, HostTotal: usd(model.MaxMinor), Total: usd(model.MaxMinor)}
			}))},
		{name: "freeze", what: "no automatic move for two minutes", payload: encode(t, timed(model.Freeze)), signers: one},
		{name: "ping", what: "a live rehearsal", payload: encode(t, timed(model.Ping)), signers: one},
		{name: "dimmer", what: "a latency target of 300 ms", payload: encode(t, dimmer()), signers: one},
		{name: "end-of-bypass", what: "an ending lists exactly what it ends", payload: encode(t, ending(model.Bypass, olderID)), signers: one},
		{name: "end-of-off", what: "a feature on again", payload: encode(t, ending(model.Off, olderID, firstID)), signers: one},
		{name: "recovery-step", what: "from tier 3 to 2 on a tenth of the hosts", payload: encode(t, recovery(3, 10)), signers: one},
		{name: "recovery-last-step", what: "to tier 0 on all hosts", payload: encode(t, recovery(1, 100)), signers: one},
		{name: "recovery-longest-chain", what: "48 ids", payload: encode(t, longest()), signers: two},
		{name: "unknown-kind", what: "a kind of a later version is kept, not obeyed", signers: one,
			payload: encode(t, unknown(`{"to":"eu-west","share":50,"via":["a","b"],"dry":false,"note":null}`))},
	}
}

// malformedVectors are signed in earnest: it is the form that refuses them.
func malformedVectors(t testing.TB) []drawn {
	type respelling struct {
		name, what string
		base       model.Directive
		old, new   string
	}
	reason := func(name, what, text string) respelling {
		return respelling{name, what, shed(), `"reason":"` + shed().Reason + `"`, `"reason":"` + text + `"`}
	}
	var out []drawn
	for _, c := range []respelling{
		{"space", "white space between tokens of JSON", shed(), `"v":1,`, `"v": 1,`},
		{"newline", "a line feed at the end", shed(), ` over 4 s"}`, " over 4 s\"}\n"},
		{"bom", "a byte order mark", shed(), `{"v":1,`, "\ufeff{\"v\":1,"},
		{"key-order", "fields in another order", shed(), `"v":1,"id":"` + thisID + `"`, `"id":"` + thisID + `","v":1`},
		{"key-twice", "a field twice, of which lenient readers take different ones", shed(), `{"tier":3}`, `{"tier":6,"tier":3}`},
		{"key-in-capitals", "a name that only a lenient reader knows", shed(), `{"tier":3}`, `{"Tier":3}`},
		{"key-unknown", "a field that version 1 does not have", shed(), `{"tier":3}`, `{"tier":3,"until":4}`},
		{"key-missing", "no right", shed(), `"right":"shed-checkout",`, ``},
		{"escaped-letter", "a letter written as an escape", shed(), `"scope":"checkout"`, `"scope":"\u0063heckout"`},
		{"escaped-html", "< written as an escape", shed(), `over 4 s`, `\u003c 4 s`},
		{"exponent", "a number with an exponent", shed(), `{"tier":3}`, `{"tier":3e0}`},
		{"minus-zero", "a zero with a sign", shed(), `"size":12`, `"size":-0`},
		{"number-too-large", "a number of more than 64 bits", shed(), `"size":12`, `"size":18446744073709551628`},
		{"time-offset", "a time that is not written in UTC", shed(), `"not_before":"2026-11-30T03:02:00Z"`, `"not_before":"2026-11-30T04:02:00+01:00"`},
		{"time-fraction", "a part of a second", shed(), `"not_before":"2026-11-30T03:02:00Z"`, `"not_before":"2026-11-30T03:02:00.5Z"`},
		reason("reason-control", "an escape character in the reason", `\u001b[2J`),
		reason("reason-bidi", "a bidirectional control in the reason", "pay \u202eton"),
		reason("reason-zero-width", "a zero-width character in the reason", "pay\u200bment"),
		reason("reason-too-long", "a reason of 201 bytes", strings.Repeat("a", model.MaxReason+1)),
		{"id-lower-case", "a ULID in small letters", shed(), thisID, strings.ToLower(thisID)},
		{"tier-0", "a shed to no tier", shed(), `{"tier":3}`, `{"tier":0}`},
		{"tier-7", "a shed beyond the ladder", shed(), `{"tier":3}`, `{"tier":7}`},
		{"shed-with-end", "a shed holds until it is ended", shed(), `"right":`, `"not_after":"2026-11-30T04:02:00Z","right":`},
		{"bypass-without-end", "a bypass always ends", bypass(), `"not_after":"2026-11-30T03:17:00Z",`, ``},
		{"bypass-ends-before", "not_after before not_before", bypass(), `"not_after":"2026-11-30T03:17:00Z"`, `"not_after":"2026-11-30T03:01:59Z"`},
		{"bypass-without-cap", "a missing bound", bypass(), `"host_count":40,`, ``},
		{"bypass-two-currencies", "amounts that cannot be compared", bypass(), `"total":"40000.00 USD"`, `"total":"40000.00 EUR"`},
		{"money-spelling", "an amount without its cents", bypass(), `"under":"50.00 USD"`, `"under":"50 USD"`},
		{"end-unsorted", "ids in another order", recovery(3, 10), `"` + olderID + `","` + firstID + `"`, `"` + firstID + `","` + olderID + `"`},
		{"end-of-itself", "an ending that lists itself", recovery(3, 10), `"` + firstID + `"]`, `"` + thisID + `"]`},
		{"end-of-ending", "an ending cannot be ended", ending(model.Bypass, olderID), `"ends":"bypass"`, `"ends":"end"`},
		{"recovery-two-tiers", "a step over a tier", recovery(3, 10), `"to":2`, `"to":1`},
		{"recovery-without-steps", "an end of sheds that says no step", ending(model.Bypass, olderID), `"ends":"bypass"`, `"ends":"shed"`},
		{"unknown-kind-key-twice", "the body of an unknown kind with a field twice", unknown(`{"a":1}`), `{"a":1}`, `{"a":1,"a":2}`},
		{"unknown-kind-fraction", "the body of an unknown kind with a fraction", unknown(`{"a":1}`), `{"a":1}`, `{"a":1.5}`},
	} {
		out = append(out, drawn{name: "malformed-" + c.name, what: c.what, payload: replaced(t, encode(t, c.base), c.old, c.new),
			signers: []ssh.Signer{ada(t)}, code: model.CodeMalformed})
	}
	return out
}

func refusedVectors(t testing.TB) []drawn {
	payload, one := encode(t, shed()), []ssh.Signer{ada(t)}
	other := encode(t, with(shed(), func(d *model.Directive) { d.Tier = 1 }))
	part := func(token string, n int) string { return strings.Split(token, ".")[n] }
	return []drawn{
		{name: "malformed-no-signature", what: "the signature was taken off", payload: payload, code: model.CodeMalformed},
		{name: "malformed-padding", what: "base64 with padding", payload: payload, signers: one, code: model.CodeMalformed,
			tamper: func(token string) string { return token + "=" }},
		{name: "malformed-line-feed", what: "a line feed inside", payload: payload, signers: one, code: model.CodeMalformed,
			tamper: func(token string) string { return token[:60] + "\n" + token[60:] }},
		{name: "malformed-nine-signatures", what: "more signatures than eight", payload: payload, signers: one, code: model.CodeMalformed,
			tamper: func(token string) string { return token + strings.Repeat(".AAAA", directive.MaxSignature) }},
		{name: "too-long", what: "4,097 bytes", payload: payload, signers: one, code: model.CodeTooLong,
			tamper: func(token string) string { return token + strings.Repeat("A", directive.MaxToken+1-len(token)) }},
		{name: "unsupported-version", what: "a payload of version 2", payload: []byte(`{"v":2,"statement":{"shed":3}}`), signers: one, code: model.CodeUnsupported},
		{name: "unsupported-form", what: "a token of a later form", payload: payload, signers: one, code: model.CodeUnsupported,
			tamper: func(token string) string { return "ic2" + token[3:] }},
		{name: "foreign-fleet", what: "for the fleet shop-prod, by a good key", signers: one, code: model.CodeForeignFleet,
			payload: encode(t, with(shed(), func(d *model.Directive) { d.Fleet = "shop-prod" }))},
		{name: "bad-signature-drill-in-production", what: "a drill's signature", payload: payload, signers: one,
			realm: directive.Drill, read: directive.Production, code: model.CodeBadSignature},
		{name: "bad-signature-production-in-drill", what: "a signature of production in a drill", payload: payload, signers: one,
			read: directive.Drill, code: model.CodeBadSignature},
		{name: "bad-signature-other-payload", what: "the signature of a shed to tier 1 on a shed to tier 3", payload: payload, signers: one, code: model.CodeBadSignature,
			tamper: func(token string) string {
				return "ic1." + part(token, 1) + "." + part(tokenOf(t, other, production, ada(t)), 2)
			}},
		{name: "bad-signature-second-of-two", what: "one bad signature spoils the token", payload: payload, signers: one, code: model.CodeBadSignature,
			tamper: func(token string) string { return token + "." + part(tokenOf(t, other, production, finn(t)), 2) }},
		{name: "bad-signature-cut", what: "a signature without its last byte", payload: payload, signers: one, code: model.CodeBadSignature,
			tamper: func(token string) string { return token[:len(token)-4] }},
		{name: "duplicate-signer", what: "one key signed twice", payload: payload, signers: []ssh.Signer{ada(t), finn(t), ada(t)}, code: model.CodeDuplicateSigner},
	}
}

// The format is frozen: what this software makes is what the files say.
func TestVectorsAreFrozen(t *testing.T) {
	dir := filepath.Join(vectorDir, "token")
	made := make(map[string]bool)
	for _, v := range vectors(t) {
		frozen(t, filepath.Join(dir, v.Name+".json"), v)
		made[v.Name+".json"] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !made[e.Name()] {
			t.Errorf("%s is a vector that nothing makes", e.Name())
		}
	}
}

// frozen compares v with a file, or writes it with -update.
func frozen(t *testing.T, path string, v any) {
	t.Helper()
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what is made now:\n%s", path, want.String())
	}
}

// This test reads the files as another implementation would, and knows nothing
// of how they were made.
func TestVectors(t *testing.T) {
	codes := make(map[model.Code]int)
	for path, v := range readVectors(t) {
		got, err := directive.Verify(v.Token, v.Realm, v.Fleet)
		var r *directive.Refusal
		switch {
		case v.Code != "":
			if !errors.As(err, &r) || r.Code != v.Code {
				t.Errorf("%s: %v, want %s", path, err, v.Code)
			}
		case err != nil:
			t.Errorf("%s: %v", path, err)
		default:
			if !reflect.DeepEqual(got.Directive, *v.Directive) || string(got.Payload) != v.Payload || !slices.Equal(got.Fingerprints(), v.Signers) {
				t.Errorf("%s: read as %+v", path, got)
			}
		}
		codes[v.Code]++
	}
	for _, code := range []model.Code{"", model.CodeMalformed, model.CodeTooLong, model.CodeUnsupported,
		model.CodeForeignFleet, model.CodeBadSignature, model.CodeDuplicateSigner} {
		if codes[code] == 0 {
			t.Errorf("no vector has the code %q", code)
		}
	}
}

func readVectors(t testing.TB) map[string]vector {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(vectorDir, "token", "*.json"))
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d vectors: %v", len(paths), err)
	}
	out := make(map[string]vector)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		var v vector
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out[path] = v
	}
	return out
}

type postureVector struct {
	IDs     []string `json:"ids"`
	Posture string   `json:"posture"`
}

type bucketVector struct {
	Host   string `json:"host"`
	Ramp   string `json:"ramp"`
	Bucket int    `json:"bucket"`
}

func TestPostureAndBucketVectorsAreFrozen(t *testing.T) {
	var postures []postureVector
	for _, ids := range [][]string{{}, {firstID}, {firstID, firstID}, {firstID, secondID}, {secondID, firstID}, {thisID, secondID, olderID, firstID}} {
		postures = append(postures, postureVector{ids, directive.Posture(ids)})
	}
	frozen(t, filepath.Join(vectorDir, "posture.json"), postures)
	var buckets []bucketVector
	for _, ramp := range []string{firstID, rampID} {
		for _, service := range []string{"edge", "catalog", "checkout", "payment-risk"} {
			for n := 1; n <= 5; n++ {
				host := fmt.Sprintf("%s-%02d", service, n)
				buckets = append(buckets, bucketVector{host, ramp, directive.Bucket(host, ramp)})
			}
		}
	}
	frozen(t, filepath.Join(vectorDir, "bucket.json"), buckets)
}
