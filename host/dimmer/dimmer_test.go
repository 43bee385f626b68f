package dimmer_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/host/dimmer"
	"github.com/degradedmode/ic/host/metrics"
)

// lamp is a dimmer with a clock that is moved by hand.
type lamp struct {
	*dimmer.Dimmer
	t      *testing.T
	now    time.Time
	signed dimmer.Bounds
}

func newLamp(t *testing.T, change func(*dimmer.Config)) *lamp {
	t.Helper()
	l := &lamp{t: t, now: time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)}
	cfg := dimmer.Config{
		Name: "recommendations", Now: func() time.Time { return l.now }, Rand: rand.New(rand.NewPCG(1, 2)).Float64,
		Signed: func() (dimmer.Bounds, bool) { return l.signed, l.signed != dimmer.Bounds{} },
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	if l.Dimmer, err = dimmer.New(cfg); err != nil {
		t.Fatal(err)
	}
	return l
}

// requests all take the same time; then five seconds are over.
func (l *lamp) requests(n int, took time.Duration) {
	for range n {
		l.Observe(took)
	}
	l.now = l.now.Add(dimmer.Every)
}

func (l *lamp) wantShare(want, within float64) {
	l.t.Helper()
	if got := l.Share(); math.Abs(got-want) > within {
		l.t.Errorf("the share is %g, want %g", got, want)
	}
}

// fine is what the width of a bucket of latency may do to a share in one step.
const fine = 0.3 * 0.033

func TestTheShareFollowsTheFormula(t *testing.T) {
	l := newLamp(t, nil)
	l.wantShare(1, 0)
	want := 1.0
	for _, took := range []time.Duration{600, 450, 310, 200, 50, 900, 300, 300, 250} { // ms, at a target of 300
		took *= time.Millisecond
		l.requests(100, took)
		before := l.Share()
		want = max(0.02, min(1, want+0.3*float64(300*time.Millisecond-took)/float64(300*time.Millisecond)))
		l.wantShare(want, fine*float64(took)/float64(300*time.Millisecond)+1e-9)
		want = before // errors do not add up in what is compared
	}
}

func TestTheShareStaysBetweenFloorAndCeiling(t *testing.T) {
	l := newLamp(t, nil)
	for range 10 {
		l.requests(100, 30*time.Second)
	}
	l.wantShare(0.02, 0)
	for range 10 {
		l.requests(100, time.Millisecond)
	}
	l.wantShare(1, 0)
}

func TestItComesToRestAtTheTarget(t *testing.T) {
	l := newLamp(t, nil)
	for range 100 { // optional work costs 400 ms on top of 150
		l.requests(100, 150*time.Millisecond+time.Duration(l.Share()*float64(400*time.Millisecond)))
	}
	l.wantShare(0.375, 0.03)
}

func TestSignedBoundsCountAtOnceAndUntilTheyEnd(t *testing.T) {
	l := newLamp(t, nil)
	l.signed = dimmer.Bounds{Target: 100 * time.Millisecond, Floor: 0.1, Ceiling: 0.4}
	l.wantShare(0.4, 0)
	l.requests(100, 150*time.Millisecond)
	l.wantShare(0.4-0.15, fine*1.5)
	for range 5 {
		l.requests(100, time.Second)
	}
	l.wantShare(0.1, 0)
	l.signed = dimmer.Bounds{}
	l.wantShare(0.1, 0) // it has to be earned back
	l.requests(100, 150*time.Millisecond)
	l.wantShare(0.25, fine)
}

func TestBoundsThatMakeNoSenseAreNotObeyed(t *testing.T) {
	l := newLamp(t, nil)
	for _, b := range []dimmer.Bounds{
		{Floor: 0.1, Ceiling: 0.4}, {Target: 1, Ceiling: 0.4}, {Target: 1, Floor: 0.5, Ceiling: 0.4}, {Target: 1, Floor: 0.5, Ceiling: 1.1},
		{Target: 1, Floor: math.NaN(), Ceiling: 0.4}, {Target: -1, Floor: 0.1, Ceiling: 0.4},
	} {
		l.signed = b
		l.wantShare(1, 0)
		if b.Floor != 0 && b.Target != 0 {
			if _, err := dimmer.New(dimmer.Config{Name: "x", Bounds: b}); err == nil {
				t.Errorf("%+v are taken", b)
			}
		}
	}
	if _, err := dimmer.New(dimmer.Config{}); err == nil {
		t.Error("a dimmer without a name is taken")
	}
}

func TestWithoutMeasurementsNothingMoves(t *testing.T) {
	l := newLamp(t, nil)
	l.requests(100, 600*time.Millisecond)
	l.wantShare(0.7, fine*2)
	before := l.Share()
	for range 5 {
		l.requests(0, 0)
		l.wantShare(before, 0)
	}
	l.requests(dimmer.MinSamples-1, time.Millisecond)
	l.wantShare(before, 0)
	l.requests(1, time.Millisecond) // the twentieth, a step later
	l.wantShare(1, fine)
}

func TestOldMeasurementsAreNotAddedToNewOnes(t *testing.T) {
	l := newLamp(t, nil)
	l.requests(dimmer.MinSamples-1, 30*time.Second)
	for range 13 {
		l.requests(0, 0)
		l.Share()
	}
	l.requests(1, time.Millisecond)
	l.wantShare(1, 0)
}

func TestAfterAPauseThereIsOneStepAndNotOneForEachThatWasMissed(t *testing.T) {
	l := newLamp(t, nil)
	l.requests(100, 600*time.Millisecond)
	l.now = l.now.Add(time.Hour)
	for range 3 {
		l.wantShare(0.7, fine*2)
	}
}

func TestWhoIsShownSomethingIsShownItAtEveryHigherShare(t *testing.T) {
	shown := map[string]int{}
	const users = 10_000
	for i, share := range []float64{0.02, 0.1, 0.5, 0.9} {
		l := newLamp(t, nil)
		l.signed = dimmer.Bounds{Target: time.Second, Floor: share, Ceiling: share}
		n := 0
		for u := range users {
			user := fmt.Sprint("user-", u)
			if l.ShowFor("recommendations", user) {
				n++
				shown[user]++
			} else if shown[user] > 0 {
				t.Fatalf("%s is shown it at a share below %g, and not there", user, share)
			}
		}
		if got := float64(n) / users; math.Abs(got-share) > 0.015 {
			t.Errorf("share %d: %g of the users, want %g", i, got, share)
		}
	}
}

func TestFeaturesAreNotAllShownToTheSameUsers(t *testing.T) {
	l := newLamp(t, nil)
	l.signed = dimmer.Bounds{Target: time.Second, Floor: 0.5, Ceiling: 0.5}
	both := 0
	for u := range 1000 {
		user := fmt.Sprint(u)
		if l.ShowFor("recommendations", user) && l.ShowFor("reviews", user) {
			both++
		}
	}
	if both < 200 || both > 300 {
		t.Errorf("%d of 1000 see both halves", both)
	}
}

func TestChanceShowsTheShareAndTheSameSeedTheSameRequests(t *testing.T) {
	run := func() (pattern string, shown int) {
		l := newLamp(t, nil)
		l.signed = dimmer.Bounds{Target: time.Second, Floor: 0.3, Ceiling: 0.3}
		for range 2000 {
			if l.Show() {
				pattern += "1"
				shown++
			} else {
				pattern += "0"
			}
		}
		return pattern, shown
	}
	first, n := run()
	second, _ := run()
	if first != second || n < 540 || n > 660 {
		t.Errorf("the same %v, %d of 2000 shown", first == second, n)
	}
}

func TestItSaysHowItStands(t *testing.T) {
	l := newLamp(t, nil)
	l.requests(100, 600*time.Millisecond)
	l.signed = dimmer.Bounds{Target: 300 * time.Millisecond, Floor: 0.5, Ceiling: 0.5}
	l.ShowFor("recommendations", "a")
	var out bytes.Buffer
	if err := metrics.Write(&out, l); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`ic_dimmer_share{dimmer="recommendations"} 0.5`, `ic_dimmer_target_seconds{dimmer="recommendations"} 0.3`,
		`ic_dimmer_p95_seconds{dimmer="recommendations"} 0.6`, `ic_dimmer_requests_total{dimmer="recommendations",shown="true"} `} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%s is missing in\n%s", line, &out)
		}
	}
}

func TestManyRequestsAtTheSameTimeMoveItOnce(t *testing.T) {
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	d, err := dimmer.New(dimmer.Config{Name: "x", Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 3
	for range rounds {
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for range 200 {
					d.Show()
					d.Observe(400 * time.Millisecond)
					d.Metrics()
				}
			})
		}
		wait.Wait()
		mu.Lock()
		now = now.Add(dimmer.Every)
		mu.Unlock()
	}
	if got := d.Share(); math.Abs(got-(1-rounds*0.1)) > rounds*fine*1.4 {
		t.Errorf("after %d steps of -0.1 the share is %g", rounds, got)
	}
}

func BenchmarkShow(b *testing.B) {
	d, err := dimmer.New(dimmer.Config{Name: "x"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		d.Show()
	}
}

func BenchmarkShowFor(b *testing.B) {
	d, err := dimmer.New(dimmer.Config{Name: "x"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		d.ShowFor("recommendations", "user-4711")
	}
}

func BenchmarkObserve(b *testing.B) {
	d, err := dimmer.New(dimmer.Config{Name: "x"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		d.Observe(100 * time.Millisecond)
	}
}

func ExampleDimmer() {
	now := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	d, err := dimmer.New(dimmer.Config{Name: "recommendations", Now: func() time.Time { return now }})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f\n", d.Share())
	for range 100 { // requests that take twice as long as they should
		d.Observe(600 * time.Millisecond)
	}
	now = now.Add(dimmer.Every)
	fmt.Printf("%.1f\n", d.Share())
	fmt.Println(d.ShowFor("recommendations", "user-2"), d.ShowFor("recommendations", "user-3"))
	// Output:
	// 1.00
	// 0.7
	// true true
}
