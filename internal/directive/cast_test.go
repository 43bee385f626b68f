package directive_test

import (
	"bytes"
	"crypto/elliptic"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/sshsig/sshsigtest"
	"golang.org/x/crypto/ssh"
)

const fleet = "shop-demo"

// ids of the tests, in ascending order; firstID and secondID lie between them.
const (
	thisID  = "01JDZ9A0000000000000000000"
	olderID = "01JDZ70000000000000000000A"
	rampID  = "01JDZ60000000000000000000R"
)

var at = time.Date(2026, time.November, 30, 3, 2, 0, 0, time.UTC)

// people of the tests. Ada commands, Finn is of finance.
func ada(t testing.TB) ssh.Signer   { return sshsigtest.Ed25519(t, 'a') }
func finn(t testing.TB) ssh.Signer  { return sshsigtest.Ed25519(t, 'f') }
func petra(t testing.TB) ssh.Signer { return sshsigtest.ECDSA(t, elliptic.P256(), 'p') }
func tess(t testing.TB) ssh.Signer  { return sshsigtest.NewFIDO(t, 't', sshsigtest.Touched) }

// shed is a directive with everything that every kind needs.
func shed() model.Directive {
	return model.Directive{
		ID: thisID, Fleet: fleet, Incident: "inc-20261130-0258", Reason: "payment-risk times out, p99 over 4 s",
		Scope: "checkout", Kind: model.Shed, Tier: 3, IssuedAt: at, NotBefore: at, Right: "shed-checkout",
		Policy: model.PolicyRef{Version: 7, Digest: strings.Repeat("5e", 32)},
		Log:    model.LogHead{Origin: fleet + "/inc-20261130-0258/ada-1", Size: 12, Root: strings.Repeat("c4", 32)},
	}
}

// of is shed turned into another kind.
func of(kind model.Kind, edit func(*model.Directive)) model.Directive {
	d := shed()
	d.Kind, d.Tier, d.Right = kind, 0, "right-of-"+string(kind)
	if edit != nil {
		edit(&d)
	}
	return d
}

func usd(minor int64) model.Money { return model.Money{Minor: minor, Currency: "USD"} }

func off() model.Directive {
	return of(model.Off, func(d *model.Directive) { d.Feature = "recommendations" })
}

func bypass() model.Directive {
	return of(model.Bypass, func(d *model.Directive) {
		d.Scope, d.Right, d.Control = "payment-risk", "risk-bypass-small-orders", "risk-score"
		d.Caps = model.Caps{Under: usd(5000), HostCount: 40, HostTotal: usd(100_000), Total: usd(4_000_000)}
		d.NotAfter = at.Add(15 * time.Minute)
	})
}

func timed(kind model.Kind) model.Directive {
	return of(kind, func(d *model.Directive) { d.NotAfter = at.Add(2 * time.Minute) })
}

func dimmer() model.Directive {
	return of(model.Dimmer, func(d *model.Directive) { d.TargetMS, d.Floor, d.Ceiling = 300, 2, 100 })
}

func ending(kind model.Kind, ids ...string) model.Directive {
	return of(model.End, func(d *model.Directive) { d.Ends, d.IDs = kind, ids })
}

func recovery(from, percent int) model.Directive {
	d := ending(model.Shed, olderID, firstID)
	d.From, d.To, d.Percent, d.Ramp = from, from-1, percent, rampID
	return d
}

func unknown(body string) model.Directive {
	return of("reroute", func(d *model.Directive) { d.Raw = []byte(body) })
}

// every holds one directive of every kind and form.
func every() map[string]model.Directive {
	return map[string]model.Directive{
		"shed": shed(), "off": off(), "bypass": bypass(), "freeze": timed(model.Freeze), "ping": timed(model.Ping),
		"dimmer": dimmer(), "end of a bypass": ending(model.Bypass, olderID), "end of a freeze": ending(model.Freeze, olderID, firstID),
		"recovery": recovery(3, 10), "last step to tier 0": recovery(1, 100),
		"unknown kind": unknown(`{"to":"eu-west","share":50,"via":["a","b"],"dry":false,"note":null}`),
	}
}

func encode(t testing.TB, d model.Directive) []byte {
	t.Helper()
	payload, err := directive.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// signed is the token of d with the signatures of all signers.
func signed(t testing.TB, d model.Directive, realm directive.Realm, signers ...ssh.Signer) string {
	t.Helper()
	return tokenOf(t, encode(t, d), realm.Namespace("directive", d.Fleet), signers...)
}

// tokenOf signs bytes of any kind: what directive.Sign would not.
func tokenOf(t testing.TB, payload []byte, namespace string, signers ...ssh.Signer) string {
	t.Helper()
	blobs := make([][]byte, len(signers))
	for i, s := range signers {
		sig, err := sshsig.Sign(s, nil, payload, namespace)
		if err != nil {
			t.Fatal(err)
		}
		blobs[i] = sig.Blob
	}
	return join(payload, blobs...)
}

func join(payload []byte, blobs ...[]byte) string {
	out := "ic1." + base64.RawURLEncoding.EncodeToString(payload)
	for _, b := range blobs {
		out += "." + base64.RawURLEncoding.EncodeToString(b)
	}
	return out
}

// production is the namespace of the fleet of the tests.
var production = directive.Production.Namespace("directive", fleet)

// longest is a step of a recovery that lists as many ids as fit.
func longest() model.Directive {
	d := recovery(3, 50)
	d.IDs = nil
	for i := range directive.MaxIDs {
		d.IDs = append(d.IDs, fmt.Sprintf("01JDZ4%020d", i))
	}
	return d
}

func replaced(t testing.TB, payload []byte, old, new string) []byte {
	t.Helper()
	if bytes.Count(payload, []byte(old)) != 1 {
		t.Fatalf("%q does not stand exactly once in %s", old, payload)
	}
	return bytes.Replace(payload, []byte(old), []byte(new), 1)
}
