package directive_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

type edits map[string]func(*model.Directive)

// refusesEach writes base with each edit and expects a refusal, after it has
// seen that base itself is fine.
func refusesEach(t *testing.T, base model.Directive, each edits) {
	t.Helper()
	encode(t, base)
	for what, edit := range each {
		if payload, err := directive.Encode(with(base, edit)); !errors.Is(err, directive.ErrPayload) {
			t.Errorf("%s with %s: %s, %v", base.Kind, what, payload, err)
		}
	}
}

func TestWhatEveryDirectiveNeeds(t *testing.T) {
	long := strings.Repeat("a", directive.MaxName+1)
	for _, base := range every() {
		refusesEach(t, base, edits{
			"no id":                  func(d *model.Directive) { d.ID = "" },
			"an id in small letters": func(d *model.Directive) { d.ID = strings.ToLower(d.ID) },
			"an id over 128 bits":    func(d *model.Directive) { d.ID = "8" + d.ID[1:] },
			"an id with a U":         func(d *model.Directive) { d.ID = d.ID[:25] + "U" },
			"a short id":             func(d *model.Directive) { d.ID = d.ID[:25] },
			"no fleet":               func(d *model.Directive) { d.Fleet = "" },
			"a fleet with a slash":   func(d *model.Directive) { d.Fleet = "shop/demo" },
			"a fleet with an at":     func(d *model.Directive) { d.Fleet = "demo@shop" },
			"a fleet in capitals":    func(d *model.Directive) { d.Fleet = "Shop" },
			"a long fleet":           func(d *model.Directive) { d.Fleet = long },
			"a Kelvin sign":          func(d *model.Directive) { d.Fleet = "shop-\u212a" },
			"no incident":            func(d *model.Directive) { d.Incident = "" },
			"an incident of dots":    func(d *model.Directive) { d.Incident = "../x" },
			"no right":               func(d *model.Directive) { d.Right = "" },
			"no kind":                func(d *model.Directive) { d.Kind = "" },
			"a kind in capitals":     func(d *model.Directive) { d.Kind = model.Kind(strings.ToUpper(string(d.Kind))) },
			"no scope":               func(d *model.Directive) { d.Scope = "" },
			"a scope of two stars":   func(d *model.Directive) { d.Scope = "**" },
			"a scope of two":         func(d *model.Directive) { d.Scope = "edge,catalog" },
			"no issued_at":           func(d *model.Directive) { d.IssuedAt = time.Time{} },
			"no not_before":          func(d *model.Directive) { d.NotBefore = time.Time{} },
			"an end at its start":    func(d *model.Directive) { d.NotAfter = d.NotBefore },
			"an end before":          func(d *model.Directive) { d.NotAfter = d.NotBefore.Add(-time.Second) },
			"policy version 0":       func(d *model.Directive) { d.Policy.Version = 0 },
			"no policy digest":       func(d *model.Directive) { d.Policy.Digest = "" },
			"a digest in capitals":   func(d *model.Directive) { d.Policy.Digest = strings.ToUpper(d.Policy.Digest) },
			"a short digest":         func(d *model.Directive) { d.Policy.Digest = d.Policy.Digest[2:] },
			"no log root":            func(d *model.Directive) { d.Log.Root = "" },
			"a log of size -1":       func(d *model.Directive) { d.Log.Size = -1 },
			"no log origin":          func(d *model.Directive) { d.Log.Origin = "" },
			"an origin of two":       func(d *model.Directive) { d.Log.Origin = "a/b" },
			"an origin of four":      func(d *model.Directive) { d.Log.Origin = "a/b/c/d" },
			"an origin with spaces":  func(d *model.Directive) { d.Log.Origin = "a/b c/d" },
		})
	}
}

func TestAName(t *testing.T) {
	for s, want := range map[string]bool{
		"a": true, "7": true, "edge": true, "payment-risk": true, "v1.2_x": true, strings.Repeat("a", 64): true,
		"": false, "-a": false, ".a": false, "_a": false, "A": false, "é": false, "a b": false, "a/b": false, "a\n": false,
		"*": false, strings.Repeat("a", 65): false, "..": false,
	} {
		if got := directive.Name(s); got != want {
			t.Errorf("Name(%q) = %v", s, got)
		}
	}
}

func TestABypassHasFourCapsAndAnEnd(t *testing.T) {
	refusesEach(t, bypass(), edits{
		"no end":         func(d *model.Directive) { d.NotAfter = time.Time{} },
		"no control":     func(d *model.Directive) { d.Control = "" },
		"no under":       func(d *model.Directive) { d.Caps.Under = model.Money{} },
		"no host_total":  func(d *model.Directive) { d.Caps.HostTotal = model.Money{} },
		"no total":       func(d *model.Directive) { d.Caps.Total = model.Money{} },
		"no host_count":  func(d *model.Directive) { d.Caps.HostCount = 0 },
		"under of 0":     func(d *model.Directive) { d.Caps.Under.Minor = 0 },
		"total below 0":  func(d *model.Directive) { d.Caps.Total.Minor = -1 },
		"count below 0":  func(d *model.Directive) { d.Caps.HostCount = -1 },
		"two currencies": func(d *model.Directive) { d.Caps.HostTotal.Currency = "EUR" },
		"three":          func(d *model.Directive) { d.Caps.Total.Currency = "EUR"; d.Caps.Under.Currency = "CHF" },
	})
}

func TestWhatEndsByItselfAndWhatHolds(t *testing.T) {
	for _, kind := range []model.Kind{model.Freeze, model.Ping} {
		refusesEach(t, timed(kind), edits{"no end": func(d *model.Directive) { d.NotAfter = time.Time{} }})
	}
	for _, d := range []model.Directive{shed(), off(), ending(model.Bypass, olderID), recovery(3, 100)} {
		refusesEach(t, d, edits{"an end": func(d *model.Directive) { d.NotAfter = at.Add(time.Hour) }})
	}
	for _, d := range []model.Directive{dimmer(), unknown(`{}`)} {
		encode(t, with(d, func(d *model.Directive) { d.NotAfter = at.Add(time.Hour) }))
	}
}

func TestAnOffNamesAFeature(t *testing.T) {
	refusesEach(t, off(), edits{
		"no feature":    func(d *model.Directive) { d.Feature = "" },
		"all features":  func(d *model.Directive) { d.Feature = "*" },
		"in capitals":   func(d *model.Directive) { d.Feature = "Search" },
		"more than one": func(d *model.Directive) { d.Feature = "search,reviews" },
	})
}

func TestNumbersHaveBounds(t *testing.T) {
	for tier := -1; tier <= 8; tier++ {
		d := with(shed(), func(d *model.Directive) { d.Tier = tier })
		if _, err := directive.Encode(d); (err == nil) != (tier >= 1 && tier <= 6) {
			t.Errorf("a shed to tier %d: %v", tier, err)
		}
		if _, err := directive.Encode(recovery(tier, 10)); (err == nil) != (tier >= 1 && tier <= 6) {
			t.Errorf("a recovery from tier %d: %v", tier, err)
		}
	}
	for percent, ok := range map[int]bool{-1: false, 0: false, 1: true, 100: true, 101: false} {
		if _, err := directive.Encode(recovery(3, percent)); (err == nil) != ok {
			t.Errorf("a step of %d%%: %v", percent, err)
		}
	}
	refusesEach(t, dimmer(), edits{
		"no target":          func(d *model.Directive) { d.TargetMS = 0 },
		"floor 0":            func(d *model.Directive) { d.Floor = 0 },
		"ceiling 101":        func(d *model.Directive) { d.Ceiling = 101 },
		"floor over ceiling": func(d *model.Directive) { d.Floor, d.Ceiling = 51, 50 },
	})
}

func TestARecoveryStepsDownOneTier(t *testing.T) {
	refusesEach(t, recovery(3, 10), edits{
		"two tiers":           func(d *model.Directive) { d.To = 1 },
		"no tier":             func(d *model.Directive) { d.To = 3 },
		"a tier up":           func(d *model.Directive) { d.To = 4 },
		"no ramp":             func(d *model.Directive) { d.Ramp = "" },
		"a ramp in small":     func(d *model.Directive) { d.Ramp = strings.ToLower(d.Ramp) },
		"a ramp with Kelvin":  func(d *model.Directive) { d.Ramp = "\u212a" },
		"a ramp without form": func(d *model.Directive) { d.Ramp = "ramp-1" },
	})
}

func TestAnEndingListsOthersInOrder(t *testing.T) {
	many := make([]string, directive.MaxIDs+1)
	for i := range many {
		many[i] = fmt.Sprintf("01JDZ4%020d", i)
	}
	for _, base := range []model.Directive{recovery(3, 10), ending(model.Bypass, olderID, firstID)} {
		refusesEach(t, base, edits{
			"no ids":         func(d *model.Directive) { d.IDs = nil },
			"49 ids":         func(d *model.Directive) { d.IDs = many },
			"an id twice":    func(d *model.Directive) { d.IDs = []string{olderID, olderID} },
			"another order":  func(d *model.Directive) { d.IDs = []string{firstID, olderID} },
			"small letters":  func(d *model.Directive) { d.IDs = []string{strings.ToLower(olderID)} },
			"one id in two":  func(d *model.Directive) { d.IDs = []string{olderID, strings.ToLower(olderID)} },
			"what is no id":  func(d *model.Directive) { d.IDs = []string{"*"} },
			"itself":         func(d *model.Directive) { d.IDs = []string{thisID} },
			"itself as well": func(d *model.Directive) { d.IDs = []string{olderID, thisID} },
		})
		encode(t, with(base, func(d *model.Directive) { d.IDs = many[:directive.MaxIDs] }))
	}
	refusesEach(t, ending(model.Bypass, olderID), edits{
		"no kind":            func(d *model.Directive) { d.Ends = "" },
		"a kind of capitals": func(d *model.Directive) { d.Ends = "Bypass" },
		"endings to end":     func(d *model.Directive) { d.Ends = model.End },
	})
	encode(t, ending("reroute", olderID)) // a kind from the future may be ended
}

func TestAReasonIsOneLineOfPrintableText(t *testing.T) {
	good := []string{
		"", "p99 over 4 s", "a \"quote\", a \\ and <tags> & more", "paiement refusé à Zürich", "決済が遅い", "결제 지연", "оплата",
		"e\u0301 as two", "ได้", "मुझे", "€ £ ¥ ±", "🔥", "unassigned: \u0378", strings.Repeat("a", model.MaxReason),
	}
	for _, reason := range good {
		d := with(shed(), func(d *model.Directive) { d.Reason = reason })
		if got, err := directive.Parse(encode(t, d)); err != nil || got.Reason != reason {
			t.Errorf("%q: %q, %v", reason, got.Reason, err)
		}
	}
	for what, reason := range map[string]string{
		"a line feed": "a\nb", "a carriage return": "a\rb", "a tab": "a\tb", "a null": "a\x00", "a bell": "\a", "an escape": "\x1b[2J",
		"a backspace": "a\b", "a delete": "a\x7f", "a C1 control": "a\u009b2J", "next line": "a\u0085b",
		"a bidi override": "a\u202eb", "a bidi isolate": "a\u2066b", "a mark for left to right": "a\u200eb",
		"zero width space": "a\u200bb", "zero width joiner": "a\u200db", "a word joiner": "a\u2060b", "a byte order mark": "\ufeffa",
		"a soft hyphen": "a\u00adb", "a line separator": "a\u2028b", "a paragraph separator": "a\u2029b",
		"no-break space": "a\u00a0b", "an em space": "a\u2003b", "an ideographic space": "a\u3000b", "blank Braille": "a\u2800b",
		"a Hangul filler": "a\u3164b", "a variation selector": "a\ufe0f", "a tag": "a\U000e0041", "private use": "a\ue000",
		"no character": "a\ufffe", "no character of a later plane": "a\U0001ffff", "the replacement character": "a\ufffd", "not UTF-8": "a\xff", "half a character": "a\xe2\x82", "a surrogate": "a\xed\xa0\x80",
		"201 bytes":                     strings.Repeat("a", model.MaxReason+1),
		"201 bytes of fewer characters": strings.Repeat("é", 101),
	} {
		d := with(shed(), func(d *model.Directive) { d.Reason = reason })
		if _, err := directive.Encode(d); !errors.Is(err, directive.ErrPayload) {
			t.Errorf("%s is written: %v", what, err)
		}
		raw := replaced(t, encode(t, shed()), `"reason":"`+shed().Reason+`"`, `"reason":"`+reason+`"`)
		if got, err := directive.Parse(raw); !errors.Is(err, directive.ErrPayload) {
			t.Errorf("%s is read as %q: %v", what, got.Reason, err)
		}
	}
}

// The closed list is held against the tables of this program: whatever is not
// graphic today is on it, but for signs that Unicode calls format characters and
// that everybody sees.
func TestNothingUnseenIsLeftOutOfTheClosedList(t *testing.T) {
	visible := []rune{0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6dd, 0x70f, 0x890, 0x891, 0x8e2, 0x110bd, 0x110cd}
	for r := rune(0); r < 0xf0010; r++ { // the rest is private use
		hidden := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp, unicode.Zs,
			unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Noncharacter_Code_Point)
		if !hidden || r == ' ' || slices.Contains(visible, r) {
			continue
		}
		d := with(shed(), func(d *model.Directive) { d.Reason = "a" + string(r) })
		if _, err := directive.Encode(d); err == nil {
			t.Errorf("%U is let through", r)
		}
	}
}

func TestEscapedTextIsNoWayAround(t *testing.T) {
	for _, escape := range []string{`\n`, `\u000a`, `\u202e`, `\u2028`, `\u0000`, `\b`, `\ud800`, `\u00e9`, `\ud83d\ude00`} {
		raw := replaced(t, encode(t, shed()), `"reason":"`+shed().Reason+`"`, `"reason":"`+escape+`"`)
		if got, err := directive.Parse(raw); !errors.Is(err, directive.ErrPayload) {
			t.Errorf("%s is read as %q: %v", escape, got.Reason, err)
		}
	}
}

func TestAPayloadHasALimit(t *testing.T) {
	fill := func(n int) model.Directive { return unknown(`{"a":"` + strings.Repeat("x", n) + `"}`) }
	room := directive.MaxPayload - len(encode(t, fill(0)))
	payload := encode(t, fill(room))
	if len(payload) != directive.MaxPayload {
		t.Fatalf("the test fills %d bytes", len(payload))
	}
	if _, err := directive.Parse(payload); err != nil {
		t.Error(err)
	}
	if _, err := directive.Encode(fill(room + 1)); !errors.Is(err, directive.ErrPayload) {
		t.Errorf("one byte more is written: %v", err)
	}
	if _, err := directive.Parse(replaced(t, payload, `{"a":"`, `{"a":"x`)); !errors.Is(err, directive.ErrPayload) {
		t.Errorf("one byte more is read: %v", err)
	}
}
