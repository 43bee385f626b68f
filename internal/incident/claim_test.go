package incident

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// threeCommanders is a shop in which a third person holds the commander's role.
func threeCommanders(t *testing.T) *shop {
	s := newShop(t)
	s.bundle = rerooted(t, s.bundle, func(r *policy.Root) {
		role := r.Roles["incident-commander"]
		role.Members = append([]string{"priya"}, role.Members...)
		roles := map[string]policy.Role{}
		for name, def := range r.Roles {
			roles[name] = def
		}
		roles["incident-commander"] = role
		r.Roles = roles
	})
	return s
}

func TestADeputyIsNamedByWhoHoldsCommand(t *testing.T) {
	s := threeCommanders(t)
	ines, dev := s.desk("ines"), s.desk("dev")
	s.command(ines, Open, "")
	s.refused(dev, Deputise, "priya", ErrDenied, "dev does not hold command")
	s.refused(s.desk(""), Deputise, "priya", ErrDenied, "a reader does not hold command")
	s.refused(ines, Deputise, "ines", ErrDenied, "nobody else")
	s.refused(ines, Deputise, "fiona", ErrDenied, "nobody else with a role")
	s.refused(ines, Take, "mallory", ErrDenied, "nobody else")
	s.command(ines, Deputise, "dev")
	l := lease(dev)
	if l.Deputy != "dev" || l.Holder != "ines" || !l.Confirmed {
		t.Fatalf("%+v", l)
	}
	s.pass(time.Hour)
	s.command(ines, Offer, "priya")
	s.command(ines, Take, "") // renews
	if l := lease(dev); l.Deputy != "dev" || l.OfferedTo != "priya" || !l.Until.Equal(l.From.Add(LeaseLasts)) || l.From.Before(s.clock.at) {
		t.Errorf("renewed: %+v", l)
	}
	s.command(ines, Take, "priya")
	if l := lease(dev); l.Deputy != "priya" {
		t.Errorf("renewed with another deputy: %+v", l)
	}
}

func TestAfterALapseTheDeputyGoesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		after  time.Duration
		who    string
		refuse string
	}{
		"the deputy at once":             {0, "dev", ""},
		"another one not yet":            {0, "priya", "dev is deputy and may take it now, anybody at 05:35:00Z"},
		"nor a second before his time":   {deputyFirst - time.Second, "priya", "dev is deputy"},
		"but then he may":                {deputyFirst, "priya", ""},
		"and who let it lapse may renew": {time.Second, "ines", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := threeCommanders(t)
			ines := s.desk("ines")
			s.command(ines, Open, "")
			s.command(ines, Deputise, "dev")
			s.pass(LeaseLasts + c.after)
			who := s.desk(c.who)
			if c.refuse != "" {
				s.refused(who, Take, "", ErrNeeds, c.refuse)
				return
			}
			s.command(who, Take, "")
			if l := lease(ines); l.Holder != c.who || !l.Confirmed {
				t.Errorf("%+v", l)
			}
		})
	}
}

// TestTheBoardKnowsTheDeputyToo: a console that has not seen the lease looks at
// the board before it writes there.
func TestTheBoardKnowsTheDeputyToo(t *testing.T) {
	s := threeCommanders(t)
	ines := s.desk("ines")
	s.command(ines, Open, "")
	race := &racing{board: s.board}
	priya := s.desk("priya", func(o *Options) { o.Board = race })
	race.meanwhile = func() {
		s.command(ines, Take, "dev")
		s.pass(LeaseLasts)
	}
	s.pass(LeaseLasts)
	s.refused(priya, Take, "", ErrNeeds, "ines has just taken command")
	if l := lease(priya); l.Holder != "ines" || l.Deputy != "dev" {
		t.Errorf("%+v", l)
	}
}

func TestOfManyWhoRunForCommandOneWinsAndTheOthersAreTold(t *testing.T) {
	s := threeCommanders(t)
	s.command(s.desk("ines"), Open, "")
	s.pass(LeaseLasts)
	people := []string{"dev", "priya"}
	desks, errs := make([]*Desk, len(people)), make([]error, len(people))
	for i, p := range people {
		desks[i] = s.desk(p)
	}
	var all sync.WaitGroup
	for i, d := range desks {
		all.Go(func() { _, errs[i] = d.Command(context.Background(), Take, "", "") })
	}
	all.Wait()
	won := lease(desks[0]).Holder
	for i, err := range errs {
		switch {
		case people[i] == won && err != nil:
			t.Errorf("%s holds command and was told %v", won, err)
		case people[i] != won && (err == nil || !strings.Contains(err.Error(), won)):
			t.Errorf("%s lost to %s and was told %v", people[i], won, err)
		}
	}
	if l := lease(desks[1]); l.Holder != won || !l.Confirmed {
		t.Errorf("the consoles do not agree: %+v, %s", l, won)
	}
}

// TestWithoutCommandOneShedsAndDoesNotRecover: a lease orders people, it is no
// safety.
func TestWithoutCommandOneShedsAndDoesNotRecover(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	s.pass(LeaseLasts)
	if _, err := s.act(d, decisions.Ask{Right: "recover", Tier: 0, Reason: "calm"}); err == nil || !strings.Contains(err.Error(), "nobody holds command") {
		t.Errorf("recovered without command: %v", err)
	}
	s.must(d, decisions.Ask{Right: "shed", Tier: 2, Reason: "load"})
	s.command(d, Take, "")
	s.pass(time.Hour)
	s.must(d, decisions.Ask{Right: "recover", Tier: decisions.NextTier, Reason: "calm"})
}

func TestALeaseIsShownInTheSameWordsEverywhere(t *testing.T) {
	from := time.Date(2026, 11, 30, 2, 30, 0, 0, time.UTC)
	until := from.Add(LeaseLasts)
	for _, c := range []struct {
		lease model.Lease
		at    time.Time
		want  string
	}{
		{model.Lease{}, from, "nobody holds command"},
		{model.Lease{Holder: "ines", From: from, Until: until, Confirmed: true}, from, "ines holds command until 05:30Z"},
		{model.Lease{Holder: "ines", Deputy: "dev", OfferedTo: "priya", From: from, Until: until}, from, "ines holds command until 05:30Z, deputy dev, offered to priya (unconfirmed)"},
		{model.Lease{Holder: "ines", From: from, Until: until, Confirmed: true}, until.Add(-10 * time.Minute), "ines holds command until 05:30Z; 10m0s left: ic incident take renews it"},
		{model.Lease{Holder: "ines", From: from, Until: until}, until, "nobody holds command: the lease of ines lapsed at 05:30Z"},
		{model.Lease{Holder: "ines", Deputy: "dev", From: from, Until: until}, until, "nobody holds command: the lease of ines lapsed at 05:30Z; dev is deputy and may take it now, anybody at 05:35:00Z"},
		{model.Lease{Holder: "ines", Deputy: "dev", From: from, Until: until}, until.Add(deputyFirst), "nobody holds command: the lease of ines lapsed at 05:30Z; dev was deputy"},
		{model.Lease{Holder: "ines", From: from, Until: from}, from, "nobody holds command: ines gave it up at 02:30Z"},
	} {
		if got := CommandText(&c.lease, c.at); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestWhoIsSlowerTwiceIsTold: each time we look, somebody writes before we do.
func TestWhoIsSlowerTwiceIsTold(t *testing.T) {
	s := newShop(t)
	ines := s.desk("ines")
	s.command(ines, Open, "")
	s.pass(LeaseLasts)
	busy := &busy{board: s.board, junk: 1}
	dev := s.desk("dev", func(o *Options) { o.Board = busy })
	busy.last = func() { s.command(ines, Take, "") }
	s.refused(dev, Take, "", ErrNeeds, "ines has just taken command")

	s.pass(LeaseLasts)
	busy.junk = 2 // nobody who could be told of, so it is ours and unconfirmed
	if r := s.command(dev, Take, ""); !strings.Contains(r.Detail, "unconfirmed: somebody was faster") {
		t.Errorf("%q", r.Detail)
	}
}

// busy is a board on which somebody writes before each of our swaps: nonsense, and
// in the end something.
type busy struct {
	*board
	junk int
	last func()
}

func (b *busy) SwapLease(ctx context.Context, previous int64, value string) error {
	if b.junk > 0 {
		b.junk--
		b.mu.Lock()
		b.lease = Cell{Value: "nonsense", Revision: b.lease.Revision + 1}
		b.mu.Unlock()
	} else if b.last != nil {
		act := b.last
		b.last = nil
		act()
	}
	return b.board.SwapLease(ctx, previous, value)
}
