package incident

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/policytest"
)

var update = flag.Bool("update", false, "write testdata/worlds anew; only when the example policy or a verdict was meant to change")

// worlds holds saved worlds of the example shop, and the verdict of every row of
// its matrix in each of them.
var worlds = filepath.Join("..", "..", "testdata", "worlds")

// verdictOf is one row of a matrix in a file.
type verdictOf struct {
	Right   string        `json:"right"`
	Verdict model.Verdict `json:"verdict"`
}

func verdicts(t *testing.T, s *Scene) []byte {
	t.Helper()
	var rows []verdictOf
	for _, r := range s.Matrix() {
		rows = append(rows, verdictOf{r.Name, r.Verdict})
	}
	raw, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(raw, '\n')
}

// nights are scenes that differ in everything a verdict looks at.
func nights(t *testing.T) map[string]Scene {
	out := map[string]Scene{}
	seated := func(s *shop) *Desk {
		return s.desk("ines", func(o *Options) { o.Rand = rand.NewChaCha8([32]byte{1}) })
	}
	calm := newShop(t)
	out["calm"] = seated(calm).Scene()

	shed := anotherShop(t)
	d := seated(shed)
	shed.must(d, decisions.Ask{Right: "shed", Tier: 2, Reason: "load"})
	shed.must(d, decisions.Ask{Right: small, Reason: "risk is down"})
	shed.propose(d)
	shed.pass(5 * time.Minute)
	d.Refresh(context.Background())
	out["shed"] = d.Scene()

	blind := anotherShop(t)
	d = seated(blind)
	blind.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	blind.must(d, decisions.Ask{Right: "freeze", Reason: "hold it"})
	for name := range blind.readings {
		blind.readings[name] = model.Reading{Signal: name, State: model.ReadingNoData, Detail: "prometheus does not answer"}
	}
	blind.hosts[0].silent = true
	d.Refresh(context.Background())
	lost := d.Scene()
	lost.World.Durable, lost.World.Clock = false, model.ClockBehind
	lost.World.Incident.Lease.Until = lost.World.Now
	out["blind"] = lost

	dry := desert(t)
	d = dry.desk("ines", bare, func(o *Options) { o.Rand = rand.NewChaCha8([32]byte{1}) })
	if _, err := dry.act(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"}); err != nil {
		t.Fatal(err)
	}
	out["advised"] = d.Scene()
	for _, scene := range out {
		for name, r := range scene.World.Readings {
			r.History = r.History[len(r.History)-min(len(r.History), 20):] // enough to tell a window from a gap
			scene.World.Readings[name] = r
		}
	}
	return out
}

func TestAVerdictIsTheSameWhenItsWorldIsReadBack(t *testing.T) {
	for name, scene := range nights(t) {
		t.Run(name, func(t *testing.T) {
			raw, err := scene.Save(nil)
			if err != nil {
				t.Fatal(err)
			}
			saved, err := ReadSaved(raw, policytest.Fleet)
			if err != nil {
				t.Fatal(err)
			}
			again := Scene{Bundle: scene.Bundle, World: saved.World, Actor: saved.Actor}
			if want, got := verdicts(t, &scene), verdicts(t, &again); !bytes.Equal(want, got) {
				t.Errorf("the matrix was\n%s\nand is\n%s", want, got)
			}
			for _, row := range scene.Matrix() {
				one, err := scene.Save(&row.Request)
				if err != nil {
					t.Fatal(err)
				}
				saved, err := ReadSaved(one, policytest.Fleet)
				if err != nil {
					t.Fatal(err)
				}
				want, err1 := json.Marshal(scene.Judge(row.Request))
				got, err2 := json.Marshal(again.Judge(*saved.Request))
				if err := errors.Join(err1, err2); err != nil || !bytes.Equal(want, got) {
					t.Errorf("%s: %v\n%s\n%s", row.Name, err, want, got)
				}
			}
			if *update {
				err := errors.Join(os.MkdirAll(worlds, 0o755), os.WriteFile(filepath.Join(worlds, name+".json"), raw, 0o644),
					os.WriteFile(filepath.Join(worlds, name+".verdicts.json"), verdicts(t, &scene), 0o644))
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestSavedWorldsAreJudgedAsTheyWere: what a verdict of this version was, it is in
// every later one.
func TestSavedWorldsAreJudgedAsTheyWere(t *testing.T) {
	s, dry := newShop(t), desert(t)
	found, err := filepath.Glob(filepath.Join(worlds, "*.verdicts.json"))
	if err != nil || len(found) < 4 {
		t.Fatalf("%d saved worlds, %v", len(found), err)
	}
	outcomes := map[model.Outcome]int{}
	for _, path := range found {
		want, err1 := os.ReadFile(path)
		raw, err2 := os.ReadFile(strings.TrimSuffix(path, ".verdicts.json") + ".json")
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		saved, err := ReadSaved(raw, policytest.Fleet)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		scene := Scene{Bundle: s.bundle, World: saved.World, Actor: saved.Actor}
		if len(saved.World.Hosts) == 0 {
			scene.Bundle = dry.bundle
		}
		if got := verdicts(t, &scene); !bytes.Equal(got, want) {
			t.Errorf("%s: it was\n%s\nand is\n%s", path, want, got)
		}
		for _, row := range scene.Matrix() {
			outcomes[row.Verdict.Outcome]++
		}
	}
	if len(outcomes) != 3 {
		t.Errorf("only %v among the saved verdicts", outcomes)
	}
}

func TestASavedWorldIsReadStrictly(t *testing.T) {
	scene := nights(t)["calm"]
	good, err := scene.Save(nil)
	if err != nil {
		t.Fatal(err)
	}
	with := func(old, new string) string {
		t.Helper()
		if !strings.Contains(string(good), old) {
			t.Fatalf("%s is not there", old)
		}
		return strings.Replace(string(good), old, new, 1)
	}
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                      {"", "line 1, column 1: EOF"},
		"not JSON":                     {"world", "line 1, column 1: invalid character"},
		"cut off":                      {string(good[:len(good)/2]), "unexpected"},
		"more than one":                {string(good) + "{}", "something follows"},
		"an unknown field":             {with(`"durable"`, `"duration"`), `unknown field "duration"`},
		"a field on a line of its own": {"{\n \"v\": 1,\n \"king\": true\n}", `line 3, column 2: unknown field "king"`},
		"a field twice":                {with(`"durable": true`, `"durable": true, "durable": false`), `"durable" stands twice`},
		"in capitals":                  {with(`"durable": true`, `"durable": true, "DURABLE": false`), `"DURABLE" stands twice`},
		"a wrong kind":                 {with(`"durable": true`, `"durable": "yes"`), "cannot unmarshal string"},
		"an escape":                    {with(`"actor": "ines"`, `"actor": "\u001b[31mines"`), `not safe to show: "\\x1b[31mines"`},
		"text turned over":             {with(`"actor": "ines"`, `"actor": "\u202e"`), "not safe to show"},
		"an unsafe key":                {with(`"durable"`, `"dur\u200bable"`), "not safe to show"},
		"too deep":                     {`{"v": ` + deep + `}`, "nested deeper"},
		"another version":              {with(`"v": 1`, `"v": 2`), "of version 2.1"},
		"another world":                {with(`"world": {`+"\n  "+`"v": 1`, `"world": {`+"\n  "+`"v": 7`), "of version 1.7"},
		"another fleet":                {with(`"fleet": "`+policytest.Fleet, `"fleet": "bank`), `of fleet "bank`},
		"a quote in a key":             {`{"a\\\"b": 1}`, `column 2: unknown field`},
		"too large":                    {string(make([]byte, MaxSaved+1)), "bytes, at most"},
	} {
		if _, err := ReadSaved([]byte(c.text), policytest.Fleet); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := ReadSaved(good, policytest.Fleet); err != nil {
		t.Error(err)
	}
}

// TestWhatWouldReadBackDifferentlyIsNotSaved, so that a replay is one.
func TestWhatWouldReadBackDifferentlyIsNotSaved(t *testing.T) {
	scene := nights(t)["calm"]
	scene.World.Incident.Title = "what a person typed: \x1b[31m"
	if _, err := scene.Save(nil); err != nil {
		t.Errorf("a title that no verdict reads: %v", err)
	}
	for name, spoil := range map[string]func(*Scene){
		"no number": func(s *Scene) {
			s.World.Readings = map[string]model.Reading{"x": {State: model.ReadingValue, Value: math.NaN()}}
		},
		"unsafe text":     func(s *Scene) { s.World.Incident.Lease.Holder = "\u202esenI" },
		"half a second":   func(s *Scene) { s.World.Inventory.MaxAge = model.Duration(time.Second / 2) },
		"bytes, not text": func(s *Scene) { s.Actor = "\xff" },
	} {
		s := scene
		spoil(&s)
		if _, err := s.Save(nil); err == nil {
			t.Errorf("%s was saved", name)
		}
	}
}
