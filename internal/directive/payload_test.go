package directive_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

func TestEveryKindIsReadBackAsItWasWritten(t *testing.T) {
	for name, d := range every() {
		payload := encode(t, d)
		got, err := directive.Parse(payload)
		if err != nil || !reflect.DeepEqual(got, d) {
			t.Errorf("%s: %v\ngot  %+v\nwant %+v", name, err, got, d)
		}
	}
}

func TestAPayloadIsOneLineOfItsOwnOrder(t *testing.T) {
	const want = `{"v":1,"id":"01JDZ9A0000000000000000000","fleet":"shop-demo","incident":"inc-20261130-0258",` +
		`"scope":"payment-risk","kind":"bypass","body":{"control":"risk-score",` +
		`"caps":{"under":"50.00 USD","host_count":40,"host_total":"1000.00 USD","total":"40000.00 USD"}},` +
		`"issued_at":"2026-11-30T03:02:00Z","not_before":"2026-11-30T03:02:00Z","not_after":"2026-11-30T03:17:00Z",` +
		`"right":"risk-bypass-small-orders",` +
		`"policy":{"version":7,"digest":"5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"},` +
		`"log":{"origin":"shop-demo/inc-20261130-0258/ada-1","size":12,` +
		`"root":"c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4c4"},` +
		`"reason":"payment-risk times out, p99 over 4 s"}`
	if got := string(encode(t, bypass())); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// respellings change how a payload is written and not what a lenient reader
// takes from it.
var respellings = []struct{ what, old, new string }{
	{"a space", `"v":1,`, `"v": 1,`},
	{"a space before", `{"v":1,`, ` {"v":1,`},
	{"a space behind", ` over 4 s"}`, ` over 4 s"} `},
	{"a line feed behind", ` over 4 s"}`, " over 4 s\"}\n"},
	{"a line feed inside", `{"v":1,`, "{\n\"v\":1,"},
	{"a tab", `"v":1,`, "\"v\":1,\t"},
	{"a byte order mark", `{"v":1,`, "\ufeff{\"v\":1,"},
	{"another order", `"v":1,"id":"` + thisID + `"`, `"id":"` + thisID + `","v":1`},
	{"a field twice, equal", `"v":1,`, `"v":1,"v":1,`},
	{"a field twice, the last counts", `"kind":"shed",`, `"kind":"ping","kind":"shed",`},
	{"a field of the body twice", `{"tier":3}`, `{"tier":6,"tier":3}`},
	{"a field of the policy twice", `"policy":{"version":7,`, `"policy":{"version":9,"version":7,`},
	{"a field of the log twice", `"size":12,`, `"size":13,"size":12,`},
	{"an unknown field", `"v":1,`, `"v":1,"x":1,`},
	{"an unknown field in the body", `{"tier":3}`, `{"tier":3,"x":1}`},
	{"an unknown field in the policy", `"policy":{`, `"policy":{"x":1,`},
	{"capitals in a name of a field", `"kind":"shed"`, `"Kind":"shed"`},
	{"capitals in a name of the body", `{"tier":3}`, `{"Tier":3}`},
	{"a field twice by capitals", `{"tier":3}`, `{"TIER":6,"tier":3}`},
	{"a long s in a name", `"scope":`, `"ſcope":`},
	{"an escaped letter", `"scope":"checkout"`, `"scope":"\u0063heckout"`},
	{"an escaped letter in a name", `"scope":`, `"s\u0063ope":`},
	{"an escaped slash", `"shop-demo/inc-20261130-0258/ada-1"`, `"shop-demo\/inc-20261130-0258/ada-1"`},
	{"an HTML escape", `out, p99 over 4 s`, `out\u003c`},
	{"an exponent", `{"tier":3}`, `{"tier":3e0}`},
	{"a fraction", `{"tier":3}`, `{"tier":3.0}`},
	{"a sign", `{"tier":3}`, `{"tier":+3}`},
	{"a leading zero", `{"tier":3}`, `{"tier":03}`},
	{"minus zero", `"size":12,`, `"size":-0,`},
	{"a number as text", `{"tier":3}`, `{"tier":"3"}`},
	{"more than 64 bits", `"size":12,`, `"size":18446744073709551628,`},
	{"null for a body", `{"tier":3}`, `null`},
	{"a list for a body", `{"tier":3}`, `[3]`},
	{"an empty not_after", `"right":`, `"not_after":"","right":`},
	{"null for not_after", `"right":`, `"not_after":null,"right":`},
	{"a time with an offset", `"not_before":"2026-11-30T03:02:00Z"`, `"not_before":"2026-11-30T03:02:00+00:00"`},
	{"a time with a fraction", `"not_before":"2026-11-30T03:02:00Z"`, `"not_before":"2026-11-30T03:02:00.0Z"`},
	{"a time with a small t", `"not_before":"2026-11-30T03:02:00Z"`, `"not_before":"2026-11-30t03:02:00z"`},
	{"a time with 24 h", `"not_before":"2026-11-30T03:02:00Z"`, `"not_before":"2026-11-29T24:00:00Z"`},
	{"a leap second", `"not_before":"2026-11-30T03:02:00Z"`, `"not_before":"2026-11-30T23:59:60Z"`},
	{"a comment", `{"v":1,`, `{/**/"v":1,`},
	{"a second value", ` over 4 s"}`, ` over 4 s"}{}`},
	{"a comma at the end", ` over 4 s"}`, ` over 4 s",}`},
	{"nothing at the end", ` over 4 s"}`, ` over 4 s"`},
	{"bytes that are not UTF-8", `out, p99`, "out, \xff"},
}

func TestOnlyTheCanonicalBytesAreRead(t *testing.T) {
	good := encode(t, shed())
	for _, c := range respellings {
		if d, err := directive.Parse(replaced(t, good, c.old, c.new)); !errors.Is(err, directive.ErrPayload) {
			t.Errorf("%s: %v, read as %+v", c.what, err, d)
		}
	}
	for _, whole := range []string{"", "null", "{}", "[]", "1", `""`, `{"v":1}`} {
		if _, err := directive.Parse([]byte(whole)); !errors.Is(err, directive.ErrPayload) {
			t.Errorf("%q: %v", whole, err)
		}
	}
}

func TestTheFormOfMoneyIsExact(t *testing.T) {
	good := encode(t, bypass())
	for _, text := range []string{
		`50 USD`, `50.0 USD`, `050.00 USD`, `50.00 usd`, `50.00USD`, `-50.00 USD`, `0.00 USD`, `50.00 EUR`, `5e1 USD`,
		`50.00`, ``, ` 50.00 USD`, `50,00 USD`, `10000000000.01 USD`, `\u00350.00 USD`,
	} {
		if _, err := directive.Parse(replaced(t, good, `"under":"50.00 USD"`, `"under":"`+text+`"`)); !errors.Is(err, directive.ErrPayload) {
			t.Errorf("a cap of %q: %v", text, err)
		}
	}
	for _, text := range []string{`null`, `5000`, `{}`} {
		if _, err := directive.Parse(replaced(t, good, `"under":"50.00 USD"`, `"under":`+text)); !errors.Is(err, directive.ErrPayload) {
			t.Errorf("a cap of %s: %v", text, err)
		}
	}
}

// The body of a kind from the future is kept as it came, which must be the one
// way to write it: whoever knows the kind later reads the same.
func TestTheBodyOfAnUnknownKindIsKeptAndCanonical(t *testing.T) {
	good := encode(t, unknown(`{"a":1}`))
	for _, body := range []string{
		`{}`, `{"a":1,"b":-5,"c":"x y","d":[],"e":{"f":[1,2,{"g":"ü"}]},"h":true,"i":null}`, `{"a":"\"\\"}`, `{"a":{"a":1}}`,
		`{"A":1,"a":2}`, `{"a":9223372036854775807,"b":-9223372036854775808}`, `{"<&>":"<&>"}`,
	} {
		d, err := directive.Parse(replaced(t, good, `{"a":1}`, body))
		if err != nil || string(d.Raw) != body || d.Kind != "reroute" {
			t.Errorf("%s: kept as %s: %v", body, d.Raw, err)
		}
	}
	for what, body := range map[string]string{
		"nothing": ``, "null": `null`, "a list": `[]`, "a number": `1`, "text": `"x"`, "two values": `{}{}`,
		"a space": `{"a": 1}`, "a space before": ` {"a":1}`, "a line feed": "{\"a\":\n1}",
		"a field twice": `{"a":1,"a":1}`, "a field twice, deep": `{"x":[{"a":1,"b":2,"a":3}]}`, "a field twice by escape": `{"a":1,"\u0061":2}`,
		"an escaped letter": `{"\u0061":1}`, "an escaped slash": `{"a":"\/"}`, "an HTML escape": `{"a":"\u003c"}`,
		"a fraction": `{"a":1.5}`, "a whole fraction": `{"a":1.0}`, "an exponent": `{"a":1e0}`, "minus zero": `{"a":-0}`,
		"more than 64 bits": `{"a":9223372036854775808}`, "not UTF-8": "{\"a\":\"\xff\"}", "half a surrogate": `{"a":"\ud800"}`,
		"a control character": `{"a":"\u0007"}`, "a bidi control": "{\"a\":\"\u202e\"}", "an escaped bidi control": `{"a":"\u202e"}`,
		"a line separator": `{"a":"\u2028"}`, "a hidden name": "{\"\u200b\":1}", "open": `{"a":1`, "open list": `{"a":[1}`, "a comma": `{"a":1,}`,
		"a number as a name": `{1:1}`, "no colon": `{"a" 1}`,
	} {
		if _, err := directive.Parse(replaced(t, good, `{"a":1}`, body)); !errors.Is(err, directive.ErrPayload) {
			t.Errorf("%s is read: %v", what, err)
		}
		if payload, err := directive.Encode(unknown(body)); !errors.Is(err, directive.ErrPayload) {
			t.Errorf("%s is written as %s: %v", what, payload, err)
		}
	}
	deep := strings.Repeat(`{"a":`, 300) + `1` + strings.Repeat(`}`, 300)
	if d, err := directive.Parse(replaced(t, good, `{"a":1}`, deep)); err != nil || string(d.Raw) != deep {
		t.Errorf("a deep body: %v", err)
	}
}

func TestAnEndingWithoutABodyIsRefused(t *testing.T) {
	good := encode(t, ending(model.Bypass, olderID))
	for _, edit := range []struct{ old, new string }{
		{`"body":{"ends":"bypass","ids":["` + olderID + `"]},`, ``},
		{`{"ends":"bypass","ids":["` + olderID + `"]}`, `{}`},
		{`["` + olderID + `"]`, `null`},
		{`["` + olderID + `"]`, `[null]`},
		{`["` + olderID + `"]`, `"` + olderID + `"`},
		{`"ends":"bypass"`, `"ends":"bypass","Ends":"shed"`},
		{`"ends":"bypass"`, `"ends":"shed"`},
	} {
		if _, err := directive.Parse(replaced(t, good, edit.old, edit.new)); !errors.Is(err, directive.ErrPayload) {
			t.Errorf("%s instead of %s: %v", edit.new, edit.old, err)
		}
	}
}

func TestOnlyARecoveryHasSteps(t *testing.T) {
	steps := `"from":3,"to":2,"ramp":"` + rampID + `","percent":10`
	bare := replaced(t, encode(t, recovery(3, 10)), ","+steps, "")
	if _, err := directive.Parse(bare); !errors.Is(err, directive.ErrPayload) {
		t.Errorf("an end of sheds without steps: %v", err)
	}
	other := replaced(t, encode(t, ending(model.Off, olderID)), `"]}`, `"],`+steps+`}`)
	if _, err := directive.Parse(other); !errors.Is(err, directive.ErrPayload) {
		t.Errorf("an end of offs with steps: %v", err)
	}
}

func TestEncodeRefusesWhatItWouldNotReadBack(t *testing.T) {
	for what, d := range map[string]model.Directive{
		"a tier on a bypass":      with(bypass(), func(d *model.Directive) { d.Tier = 2 }),
		"a feature on a shed":     with(shed(), func(d *model.Directive) { d.Feature = "x" }),
		"caps on a shed":          with(shed(), func(d *model.Directive) { d.Caps = bypass().Caps }),
		"steps on another ending": with(ending(model.Bypass, olderID), func(d *model.Directive) { d.From, d.To = 3, 2 }),
		"ids on a freeze":         with(timed(model.Freeze), func(d *model.Directive) { d.IDs = []string{olderID} }),
		"a raw body on a ping":    with(timed(model.Ping), func(d *model.Directive) { d.Raw = []byte(`{}`) }),
		"half a second":           with(shed(), func(d *model.Directive) { d.NotBefore = at.Add(time.Second / 2) }),
		"a year of five digits":   with(shed(), func(d *model.Directive) { d.NotBefore = at.AddDate(8000, 0, 0) }),
		"a year before the first": with(shed(), func(d *model.Directive) { d.IssuedAt = at.AddDate(-3000, 0, 0) }),
		"an amount over the most": with(bypass(), func(d *model.Directive) { d.Caps.Total = usd(model.MaxMinor + 1) }),
		"a currency in small":     with(bypass(), func(d *model.Directive) { d.Caps = inCurrency(d.Caps, "usd") }),
		"no currency":             with(bypass(), func(d *model.Directive) { d.Caps = inCurrency(d.Caps, "") }),
	} {
		if payload, err := directive.Encode(d); !errors.Is(err, directive.ErrPayload) {
			t.Errorf("%s: written as %s: %v", what, payload, err)
		}
	}
}

func TestEncodeTakesATimeOfAnyZone(t *testing.T) {
	zone := with(shed(), func(d *model.Directive) { d.NotBefore = at.In(time.FixedZone("", 3600)) })
	if got, want := string(encode(t, zone)), string(encode(t, shed())); got != want {
		t.Errorf("got %s", got)
	}
}

func with(d model.Directive, edit func(*model.Directive)) model.Directive {
	edit(&d)
	return d
}

func inCurrency(c model.Caps, currency string) model.Caps {
	c.Under.Currency, c.HostTotal.Currency, c.Total.Currency = currency, currency, currency
	return c
}
