package audit

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/degradedmode/ic/internal/model"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNothingUnseenStandsRawInTheLog(t *testing.T) {
	for name, text := range map[string]string{
		"escape":            "\x1b[2J",
		"line feed":         "a\nb",
		"carriage return":   "safe\rrm -rf",
		"delete":            "a\x7fb",
		"C1":                "a\u009bb",
		"bidi override":     "a\u202eb",
		"bidi isolate":      "a\u2066b",
		"zero width":        "a\u200bb",
		"byte order mark":   "\ufeffa",
		"line separator":    "a\u2028b",
		"tag":               "a\U000e0041b",
		"variation":         "a\ufe0fb",
		"invalid UTF-8":     "a\xffb",
		"replacement":       "a\ufffdb",
		"soft hyphen":       "a\u00adb",
		"ordinary letters":  "Grüße, 世界 — <b>&amp;</b>",
		"quotes and slash":  `"\/`,
		"looks like escape": `\u202e`,
	} {
		t.Run(name, func(t *testing.T) {
			line := lineWith(t, Note{Text: text})
			for _, r := range string(line) {
				if r < ' ' || isUnseen(r) || r == utf8.RuneError {
					t.Errorf("%q holds %U", line, r)
				}
			}
			e, err := readEntry(line)
			if err != nil {
				t.Fatalf("%s does not read back: %v", line, err)
			}
			if got, want := e.Body, (Note{Text: string([]rune(text))}); got != Body(want) {
				t.Errorf("read back %q, want %q", got, want)
			}
		})
	}
}

func lineWith(t rapidOrTesting, body Body) []byte {
	t.Helper()
	d, err := newDraft(newClock().Now(), person, body)
	if err != nil {
		t.Fatal(err)
	}
	line, err := d.line("laptop", 1, noPrev)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// rapidOrTesting is what both kinds of test can do.
type rapidOrTesting interface {
	Helper()
	Fatal(...any)
}

func TestAnyTextReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		e, err := readEntry(lineWith(t, Note{Text: text}))
		if err != nil {
			t.Fatal(err)
		}
		// Each byte that is not UTF-8 is one U+FFFD, as a range over a string sees it.
		if got, want := e.Body.(Note).Text, string([]rune(text)); got != want {
			t.Fatalf("read back %q, wrote %q", got, want)
		}
	})
}

// everyBody holds one body of each kind with every field set.
func everyBody() []Body {
	at := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	reasons := []model.Reason{{Code: "dwell", Name: "checkout", Wait: model.Duration(3 * time.Minute), At: at, Amount: model.Money{Minor: 1, Currency: "USD"}}}
	ask := Ask{Actor: person, Right: "bypass-small", Kind: model.Bypass, Scope: "checkout", Reason: "because", Evidence: "seen", Cosigners: []string{"bo"}}
	heads := []model.LogHead{{Origin: "f/i/s", Size: 3, Root: noPrev}}
	return []Body{
		SessionEnd{"quit"},
		IncidentOpen{"payment-risk is down"},
		IncidentClose{Note: "over", Signoffs: []Signoff{{"{}", []byte{1, 2}}}},
		Intent{Payload: "{}", Request: ask, Verdict: model.Verdict{Outcome: model.Needs, Direction: model.Loosen, Assurance: model.HostHeld, Reasons: reasons}, Asked: true},
		Proposed{ID: "1", Payload: "{}", Token: "ic1.a.b", Needs: reasons},
		Signed{ID: "1", Token: "ic1.a.b", Signers: []string{person}},
		Outcome{"1", "etcd", StateCarried, "revision 7"},
		Reconciled{"1", StateAbsent, "no host has it"},
		PushIntent{"op", "git", noPrev, []string{"1"}, 12},
		PushOutcome{"op", StatePartial, "10 of 12", 10, 12},
		UndoIntent{"op", "git", 12},
		UndoOutcome{"op", StateUndone, "", 12, 12},
		LeaseAct{LeaseTake, model.Lease{Holder: person, Deputy: "bo", OfferedTo: "cy", From: at, Until: at.Add(3 * time.Hour), Confirmed: true}, "{}", []byte{3}},
		Denied{ask, reasons},
		Note{"hello"},
		Late{Receipt{At: stamp(at), Boot: "b", MonoNS: 1, Actor: person, Kind: KindNote, Body: []byte(`{"text":"x"}`), Why: "disk full"}},
		Verified{2, 40, heads, "x"},
		Exported{"csv", noPrev, heads},
		Signoff{Statement: `{"v":1}`, Signature: []byte{1}},
	}
}

func TestEveryKindReadsBackAsItWasWritten(t *testing.T) {
	seen := map[Kind]bool{KindSession: true} // written by the writer alone
	for _, body := range everyBody() {
		e, err := readEntry(lineWith(t, body))
		if err != nil {
			t.Errorf("%s: %v", body.Kind(), err)
			continue
		}
		if diff := cmp.Diff(body, e.Body); diff != "" {
			t.Errorf("%s differs (-written +read):\n%s", body.Kind(), diff)
		}
		if body.Kind() != KindLate && strings.Contains(sentence(body), "does not know") { // a late entry reads as what it holds
			t.Errorf("%s has no sentence", body.Kind())
		}
		seen[body.Kind()] = true
	}
	for _, kind := range []Kind{KindSession, KindSessionEnd, KindIncidentOpen, KindIncidentEnd, KindIntent, KindProposed, KindSigned,
		KindOutcome, KindReconciled, KindPushIntent, KindPushOutcome, KindUndoIntent, KindUndoOutcome, KindLease, KindDenied, KindNote,
		KindLate, KindVerified, KindExported} {
		if !seen[kind] {
			t.Errorf("no body of kind %s was tried", kind)
		}
	}
}

func TestALineHasOneSpelling(t *testing.T) {
	good := string(lineWith(t, Note{Text: "hello"}))
	if _, err := readEntry([]byte(good)); err != nil {
		t.Fatal(err)
	}
	swap := func(old, new string) string {
		t.Helper()
		if !strings.Contains(good, old) {
			t.Fatalf("%s has no %s", good, old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for name, line := range map[string]string{
		"a space":                     swap(`"v":1`, `"v": 1`),
		"another version":             swap(`"v":1`, `"v":2`),
		"an unknown field":            swap(`"v":1`, `"v":1,"x":1`),
		"an unknown field in a body":  swap(`"text":"hello"`, `"text":"hello","x":1`),
		"a doubled key":               swap(`"seq":1`, `"seq":2,"seq":1`),
		"a doubled key in a body":     swap(`"text":"hello"`, `"text":"bye","text":"hello"`),
		"another order":               swap(`"v":1,"seq":1`, `"seq":1,"v":1`),
		"a key in capitals":           swap(`"text"`, `"Text"`),
		"an escape without need":      swap(`hello`, `\u0068ello`),
		"a number as a fraction":      swap(`"seq":1`, `"seq":1.0`),
		"a time without milliseconds": swap(`12:00:00.000Z`, `12:00:00Z`),
		"a time of another zone":      swap(`12:00:00.000Z`, `12:00:00.000+00:00`),
		"a day that does not exist":   swap(`2026-11-30`, `2026-11-31`),
		"a raw bidi control":          swap(`hello`, "he\u202ello"),
		"a body of null":              swap(`{"text":"hello"}`, `null`),
		"a missing body":              swap(`,"body":{"text":"hello"}`, ``),
		"something behind":            good + `{}`,
		"a space behind":              good + ` `,
	} {
		if _, err := readEntry([]byte(line)); err == nil {
			t.Errorf("%s: %s is read as an entry", name, line)
		}
	}
}

func TestAnUnknownKindIsKeptInOneSpelling(t *testing.T) {
	line := func(body string) []byte {
		return bytes.Replace(bytes.Replace(lineWith(t, Note{Text: "hello"}), []byte(`{"text":"hello"}`), []byte(body), 1), []byte(`"note"`), []byte(`"novel"`), 1)
	}
	for _, body := range []string{`{}`, `{"z":1,"a":[true,null,-1.5e3,"x\n\u202e"],"o":{"a":{}}}`, `"text"`, `[]`} {
		e, err := readEntry(line(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if f, ok := e.Body.(Foreign); !ok || f.Name != "novel" || string(f.Raw) != body {
			t.Errorf("%s is read as %#v", body, e.Body)
		}
	}
	for name, body := range map[string]string{
		"space": `{ }`, "doubled key": `{"a":1,"a":1}`, "raw control": "\"\u009b\"", "escape without need": `"\u0061"`,
		"raw invalid UTF-8": "\"\xff\"", "HTML escape": `"\u003c"`,
	} {
		if _, err := readEntry(line(body)); err == nil {
			t.Errorf("%s: %s is kept", name, body)
		}
	}
}
