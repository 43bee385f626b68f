package scenario

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/drill/sim"
)

// written is a record of four minutes with a sample a minute.
func written() *score.Record {
	r := &score.Record{Mode: score.WithIC, LastsMS: 4 * minute, CapCents: 900}
	for i := range int64(5) {
		r.Samples = append(r.Samples, score.Sample{
			AtMS: i * minute, Tier: map[string]int{"edge": int(i)}, ErrorsPPM: map[string]int64{"edge": i * 100_000}, ImpactPPM: i * 250_000,
			Reached: int(i), Hosts: 4, Orders: map[string]int64{"scored": 10 * i}, UnscoredCents: 100 * i, LostCents: 7 * i, BypassOpen: int(i % 2),
		})
	}
	r.Events = []score.Event{
		{AtMS: 5_000, Kind: score.Injected}, {AtMS: 9_000, Kind: score.Injected}, {AtMS: 20_000, Kind: score.Alarm}, {AtMS: 65_000, Kind: score.Decided},
		{AtMS: 70_000, Kind: score.Denied, Code: "quorum"}, {AtMS: 71_000, Kind: score.Denied, Code: "dwell"},
		{AtMS: minute, Kind: score.Moved, Scope: "edge"}, {AtMS: 2 * minute, Kind: score.Moved, Scope: "edge"}, {AtMS: minute, Kind: score.Moved, Scope: "catalog"},
	}
	return r
}

func TestFiguresOfARecord(t *testing.T) {
	at := func(f Figure, when string, d time.Duration) Figure { f.When, f.Time = when, d; return f }
	for _, c := range []struct {
		figure Figure
		want   int64
		known  bool
	}{
		{Figure{Name: "unscored"}, 400, true},
		{at(Figure{Name: "unscored"}, "until", 2*time.Minute), 200, true},
		{Figure{Name: "lost"}, 28, true},
		{Figure{Name: "cap"}, 900, true},
		{Figure{Name: "orders", Of: "scored"}, 40, true},
		{Figure{Name: "bypass-open"}, 0, true},
		{at(Figure{Name: "bypass-open"}, "at", 3*time.Minute), 1, true},
		{Figure{Name: "tier", Of: "edge"}, 4, true},
		{at(Figure{Name: "tier", Of: "edge"}, "at", 100*time.Second), 1, true},
		{at(Figure{Name: "reached"}, "at", 3*time.Minute), 750_000, true},
		{at(Figure{Name: "errors", Of: "edge"}, "at", 2*time.Minute), 200_000, true},
		{at(Figure{Name: "peak-errors", Of: "edge"}, "until", 3*time.Minute), 300_000, true},
		{Figure{Name: "moves", Of: "edge"}, 2, true},
		{at(Figure{Name: "moves", Of: "edge"}, "until", 90*time.Second), 1, true},
		{Figure{Name: "denied"}, 2, true},
		{Figure{Name: "denied", Of: "quorum"}, 1, true},
		{Figure{Name: "detected"}, 15_000, true},
		{Figure{Name: "decided"}, 60_000, true},
		{Figure{Name: "effective"}, 0, false},
		// 0, 25, 50 and 75 % of everybody, a minute each; the last sample is the end.
		{Figure{Name: "impact"}, 90_000, true},
		{at(Figure{Name: "impact"}, "until", 150*time.Second), 30_000, true},
	} {
		v, ok := Value(written(), c.figure)
		if ok != c.known || ok && v != c.want {
			t.Errorf("%s is %d (%v), want %d (%v)", c.figure, v, ok, c.want, c.known)
		}
	}
	for _, f := range figures {
		if _, ok := Value(&score.Record{Mode: score.Baseline}, Figure{Name: f.Name}); ok && f.Name != "denied" && f.Name != "moves" {
			t.Errorf("an empty record has %s", f.Name)
		}
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		op        string
		value     int64
		yes, no   int64
		withinPPM int64
	}{
		{"<", 10, 9, 10, 0}, {"<=", 10, 10, 11, 0}, {"=", 10, 10, 9, 0}, {">=", 10, 10, 9, 0}, {">", 10, 11, 10, 0},
		{opWithin, 41_000_00, 43_050_00, 43_051_00, 50_000}, {opWithin, 41_000_00, 38_950_00, 38_949_00, 50_000}, {opWithin, 20, 21, 22, 50_000},
	} {
		b := Bound{Op: c.op, Value: c.value, Within: c.withinPPM}
		if !b.holds(c.yes) || b.holds(c.no) {
			t.Errorf("%s %d: %d is %v, %d is %v", c.op, c.value, c.yes, b.holds(c.yes), c.no, b.holds(c.no))
		}
	}
}

func TestBuyingNeedsAPage(t *testing.T) {
	facts := func(browse, till int64) *sim.Facts {
		return &sim.Facts{Services: []sim.ServiceFacts{{Service: shop.Checkout, ImpactPPM: till}, {Service: shop.Edge, ImpactPPM: browse, ErrorsPPM: browse, Up: 10}}}
	}
	for _, c := range []struct{ browse, till, want int64 }{
		{0, 0, 0}, {million, 0, million}, {0, million, million / 2}, {500_000, 500_000, 625_000},
	} {
		if got := impact(facts(c.browse, c.till)); got != c.want {
			t.Errorf("%d and %d ppm hit give %d, want %d", c.browse, c.till, got, c.want)
		}
	}
	// 120 orders a minute of 57.35 are ten in five seconds; half of the visitors see no page.
	if got := missed(facts(500_000, 0), million, 120); got != 5*meanOrder {
		t.Errorf("missed %d cents", got)
	}
	static := facts(0, 0)
	static.Services[1].Tiers = map[int]int{4: 10}
	if got := missed(static, million, 120); got != 10*meanOrder {
		t.Errorf("with static pages missed %d cents", got)
	}
}

func TestTheOracleShedsAsMuchAsTheEdgeNeeds(t *testing.T) {
	for load, want := range map[int64]int{million: 0, 1_830_000: 1, 2_200_000: 1, 2_600_000: 2, 5_000_000: 4} {
		r := &Run{params: shop.Default(), load: load}
		if got := r.roomAt(load); got != want {
			t.Errorf("at a load of %d ppm the oracle is at tier %d, want %d", load, got, want)
		}
	}
}

func TestTheFormatIsDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/scenario-format.md")
	if err != nil {
		t.Fatal(err)
	}
	words := append(figureNames(), settingNames()...)
	for _, word := range append(append(words, verbNames(sectionBaseline)...), append(verbNames(sectionRunbook), keywords[:]...)...) {
		if !strings.Contains(string(raw), "`"+word) {
			t.Errorf("docs/scenario-format.md does not explain %q", word)
		}
	}
}
