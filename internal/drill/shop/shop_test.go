package shop

import (
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

var begins = time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)

// puppet is a host whose posture the test sets.
type puppet struct {
	Spec
	down    bool
	tier    int
	off     map[string]bool
	under   int64 // cents; 0: no bypass
	spent   bool  // the bypass has no budget left
	allowed []int64
}

func (p *puppet) Name() string            { return p.Spec.Name }
func (p *puppet) Service() string         { return p.Spec.Service }
func (p *puppet) Up() bool                { return !p.down }
func (p *puppet) Tier() int               { return p.tier }
func (p *puppet) Off(feature string) bool { return p.off[feature] }
func (p *puppet) Open(control string) bool {
	return control == PaymentRisk && p.under > 0
}

func (p *puppet) Allow(control string, amount model.Money) bool {
	ok := control == PaymentRisk && amount.Currency == "USD" && amount.Minor < p.under && !p.spent
	if ok {
		p.allowed = append(p.allowed, amount.Minor)
	}
	return ok
}

// bench is a shop of puppets.
type bench struct {
	t     testing.TB
	shop  *Shop
	hosts []*puppet
}

func newBench(t testing.TB, n int, change func(*Params)) *bench {
	t.Helper()
	p := Default()
	if change != nil {
		change(&p)
	}
	b := &bench{t: t}
	var hosts []Host
	for _, spec := range Fleet(n) {
		h := &puppet{Spec: spec, off: make(map[string]bool)}
		b.hosts = append(b.hosts, h)
		hosts = append(hosts, h)
	}
	shop, err := New(p, 1, hosts)
	if err != nil {
		t.Fatal(err)
	}
	b.shop = shop
	return b
}

// each applies do to the hosts of a service.
func (b *bench) each(service string, do func(*puppet)) {
	for _, h := range b.hosts {
		if service == "" || h.Spec.Service == service {
			do(h)
		}
	}
}

// sum is what happened over some seconds.
type sum struct {
	rate, errors int64 // of one service, in millionths
	seconds      int64
	orders       map[string]Tally
	last         Tick
}

func (s *sum) errorPPM() int64 { return part(s.errors, million, s.rate) }

// run lets seconds pass and adds up one service.
func (b *bench) run(seconds int, service string) *sum {
	b.t.Helper()
	out := &sum{orders: make(map[string]Tally), seconds: int64(seconds)}
	for range seconds {
		tick := b.shop.Tick()
		r := tick.Service(service)
		out.rate += r.Rate
		out.errors += of(r.Rate, r.Errors)
		for _, o := range tick.Orders {
			t := out.orders[o.Outcome]
			out.orders[o.Outcome] = Tally{t.Count + 1, t.Cents + o.Cents}
		}
		out.last = *tick
	}
	return out
}

// ended is the share (ppm) of a service's requests of the last second that ended
// in one way.
func (b *bench) ended(service string, outcome int) int64 {
	var n, all int64
	for _, h := range b.shop.cells[service].up {
		for o, count := range h.now {
			all += count
			if o == outcome {
				n += count
			}
		}
	}
	return part(n, million, all)
}

// near fails unless got is within tolerance (ppm) of want.
func (b *bench) near(what string, got, want, tolerance int64) {
	b.t.Helper()
	if got < want-of(want, tolerance) || got > want+of(want, tolerance) {
		b.t.Errorf("%s is %d, want %d within %d ppm", what, got, want, tolerance)
	}
}

const percent = 10_000 // ppm

func TestAGoodDayIsAsTheParametersSay(t *testing.T) {
	b := newBench(t, 60, nil)
	got := b.run(1800, Checkout)
	b.near("checkout's rate", got.rate/got.seconds, 45*million, 1*percent)
	b.near("checkout's errors", got.errorPPM(), 1_000, 2*percent)
	scored := got.orders[Scored]
	b.near("orders in 30 min", scored.Count, 118*30, 5*percent)
	b.near("an average order", scored.Cents/scored.Count, 5_735, 8*percent)
	if len(got.orders) != 1 {
		t.Errorf("orders ended as %v on a good day", got.orders)
	}
	for service, want := range map[string]struct{ p99, cpu int64 }{
		Edge: {200_000, 450_000}, Catalog: {40_000, 500_000}, Checkout: {380_000, 400_000}, PaymentRisk: {150_000, 350_000},
	} {
		r := got.last.Service(service)
		b.near(service+"'s p99", r.P99, want.p99, 4*percent)
		b.near(service+"'s CPU", r.CPU, want.cpu, 4*percent)
		if r.P50 <= 0 || r.P50 >= r.P95 || r.P95 >= r.P99 || r.Breakers != 0 || r.Up != r.Hosts {
			t.Errorf("%s: %+v", service, r)
		}
	}
}

func TestHalfOfTheOrdersAreBelow38DollarsAndTheTailIsHeavy(t *testing.T) {
	b := &bench{t: t}
	below := map[int64]int64{3_800: 0, 5_000: 0, 30_000: 0}
	var sum, n int64
	for share := int64(0); share < million; share += 101 {
		cents := amountAt(share)
		for limit := range below {
			if cents < limit {
				below[limit]++
			}
		}
		sum += cents
		n++
	}
	b.near("orders below 38.00", part(below[3_800], million, n), 500_000, percent/2)
	b.near("orders below 50.00", part(below[5_000], million, n), 619_000, percent/2)
	b.near("orders above 300.00", million-part(below[30_000], million, n), 11_200, percent)
	b.near("the mean", sum/n, 5_735, percent/2)
	if amountAt(0) != 100 || amountAt(million) != 120_000 {
		t.Errorf("amounts reach from %d to %d cents", amountAt(0), amountAt(million))
	}
}

func TestDeadPaymentRiskMakesTheFiguresOfTheDocument(t *testing.T) {
	b := newBench(t, 60, nil)
	b.shop.SetRiskDown(true)
	b.run(30, Checkout)
	got := b.run(600, Checkout)
	b.near("errors", got.errorPPM(), 350_000, 1*percent)
	b.near("p99", got.last.Service(Checkout).P99, 3_000_000, 2*percent)
	if r := got.last.Service(Checkout); r.Breakers != 25 {
		t.Errorf("%d of 25 breakers are open", r.Breakers)
	}
	if got.orders[Failed].Count == 0 || got.orders[Scored].Count+got.orders[Unscored].Count != 0 {
		t.Errorf("orders ended as %v without a check and without a bypass", got.orders)
	}
	b.shop.SetRiskDown(false)
	b.run(30, Checkout)
	after := b.run(60, Checkout)
	b.near("errors after recovery", after.errorPPM(), 1_000, 2*percent)
	if r := after.last.Service(Checkout); r.Breakers != 0 || after.orders[Failed].Count != 0 {
		t.Errorf("after recovery: %+v, %v", r, after.orders)
	}
}

func TestABypassOnTheHostsThatItReachedMakesTheFiguresOfTheDocument(t *testing.T) {
	for _, c := range []struct {
		name        string
		reached     func(*puppet) bool
		errors, p99 int64
	}{
		{"48 % of the hosts", func(h *puppet) bool { return h.Half == 0 }, 184_400, 3_000_000},
		{"every host", func(*puppet) bool { return true }, 5_000, 340_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 60, nil)
			b.shop.SetRiskDown(true)
			bypassed := int64(0)
			b.each(Checkout, func(h *puppet) {
				if c.reached(h) {
					h.under = 5_000
					bypassed++
				}
			})
			b.run(60, Checkout)
			got := b.run(1200, Checkout)
			b.near("errors", got.errorPPM(), c.errors, 1*percent)
			b.near("p99", got.last.Service(Checkout).P99, c.p99, 4*percent)
			orders := int64(118 * 20)
			b.near("un-scored orders", got.orders[Unscored].Count, orders*bypassed/25*619/1000, 8*percent)
			b.near("refused orders", got.orders[Refused].Count, orders*bypassed/25*381/1000, 10*percent)
			b.near("failed orders", got.orders[Failed].Count+1, orders*(25-bypassed)/25+1, 8*percent)
		})
	}
}

func TestTheDocumentsTimeLineExposes41000Dollars(t *testing.T) {
	b := newBench(t, 60, nil)
	bypass := func(under int64, half int) {
		b.each(Checkout, func(h *puppet) {
			if half < 0 || h.Half == half {
				h.under = under
			}
		})
	}
	b.shop.SetRiskDown(true)
	b.run(5*60, Checkout)
	bypass(5_000, 0) // minute 5: 48 % of the hosts receive the flag
	b.run(15*60, Checkout)
	bypass(5_000, -1) // minute 20: break-glass
	b.run(15*60, Checkout)
	b.shop.SetRiskDown(false) // minute 35
	b.run(60, Checkout)
	bypass(0, -1)
	exposed := b.shop.Tallies()[1]
	b.near("un-scored cents", exposed.Cents, 4_100_000, 5*percent)
	var byHost Tally
	b.each(Checkout, func(h *puppet) {
		on := b.shop.UnscoredOn(h.Name())
		byHost.Count += on.Count
		byHost.Cents += on.Cents
		if on.Count != int64(len(h.allowed)) {
			t.Errorf("%s counts %d un-scored orders, its engine allowed %d", h.Name(), on.Count, len(h.allowed))
		}
	})
	if byHost != exposed {
		t.Errorf("the hosts add up to %+v, the shop has %+v", byHost, exposed)
	}
}

func TestAnOrderSkipsTheCheckOnlyIfItsHostSaysSo(t *testing.T) {
	b := newBench(t, 60, nil)
	b.shop.SetRiskDown(true)
	b.each(Checkout, func(h *puppet) { h.under = 5_000 })
	for range 900 {
		for _, o := range b.shop.Tick().Orders {
			if small := o.Cents < 5_000; small != (o.Outcome == Unscored) || !small != (o.Outcome == Refused) {
				t.Fatalf("an order of %d cents was %s", o.Cents, o.Outcome)
			}
		}
	}
	b.each(Checkout, func(h *puppet) { h.spent = true })
	got := b.run(600, Checkout)
	if got.orders[Unscored].Count != 0 || got.orders[Refused].Count == 0 {
		t.Errorf("with the budgets spent: %v", got.orders)
	}
	b.near("errors with the budgets spent", got.errorPPM(), 5_000, 2*percent)
}

func TestABypassThatNobodyNeedsIsNotUsed(t *testing.T) {
	b := newBench(t, 60, nil)
	b.each(Checkout, func(h *puppet) { h.under = 5_000 })
	if got := b.run(600, Checkout); got.orders[Unscored].Count+got.orders[Refused].Count != 0 {
		t.Errorf("payment-risk answers, and yet: %v", got.orders)
	}
}

func TestARestartedHostHasNoBypassUntilItsEngineSaysSo(t *testing.T) {
	b := newBench(t, 60, nil)
	b.shop.SetRiskDown(true)
	b.each(Checkout, func(h *puppet) { h.under = 5_000 })
	b.run(60, Checkout)
	victim := b.hosts[20]
	if victim.Spec.Service != Checkout {
		t.Fatalf("%s is not a checkout host", victim.Name())
	}
	victim.down = true
	b.run(5, Checkout)
	victim.down, victim.under = false, 0 // it came up on defaults: the document's minute 8
	got := b.run(120, Checkout)
	b.near("errors with one of 25 on defaults", got.errorPPM(), 5_000+345_000/25, 3*percent)
	for range 600 {
		for _, o := range b.shop.Tick().Orders {
			if o.Host == victim.Name() && o.Outcome != Failed {
				t.Fatalf("on a host without a bypass an order was %s", o.Outcome)
			}
		}
	}
}
