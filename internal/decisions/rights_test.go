package decisions

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

const (
	small  = "risk-bypass-small-orders"
	medium = "risk-bypass-medium-orders"
)

// grant puts a bypass with the caps of the small one into the world.
func grant(w *model.World, n int, right string, from, until time.Time) *model.Issued {
	w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{
		ID: id(n), Fleet: "shop", Scope: "checkout", Kind: model.Bypass, Control: "payment-risk", Right: right, IssuedAt: from, NotBefore: from, NotAfter: until,
		Caps: model.Caps{Under: usd(5000), HostCount: 100, HostTotal: usd(200000), Total: usd(3000000)},
	}})
	return &w.Issued[len(w.Issued)-1]
}

func TestARightThatWantsARehearsalWantsARecentOne(t *testing.T) {
	const month = model.Duration(30 * 24 * time.Hour)
	b := changed(t, func(p *parts) {
		p.right(small, func(r *policy.Right) { r.RehearsedWithin = month })
		p.right("recover", func(r *policy.Right) { r.RehearsedWithin = month })
	})
	ago := func(d time.Duration) model.Rehearsal { return model.Rehearsal{Live: day0.Add(-d)} }
	for _, c := range []struct {
		name string
		by   map[string]model.Rehearsal
		want string // what the sentence says; "" permitted
	}{
		{"used today", map[string]model.Rehearsal{small: ago(time.Hour), "recover": ago(time.Hour)}, ""},
		{"used exactly as long ago as may be", map[string]model.Rehearsal{small: ago(month.Std()), "recover": ago(month.Std())}, ""},
		{"used a second longer ago", map[string]model.Rehearsal{small: ago(month.Std() + time.Second), "recover": ago(month.Std() + time.Second)}, "was last rehearsed live 30 days ago, and has to be every 30 days: rehearse over the real carriers (ic do ping)"},
		{"never", nil, "was never rehearsed live, and has to be every 30 days"},
		{"in simulation only", map[string]model.Rehearsal{small: {Simulated: day0}, "recover": {Simulated: day0}}, "never rehearsed live"},
		{"another right", map[string]model.Rehearsal{medium: ago(0), "shed": ago(0)}, "never rehearsed live"},
		{"a ping by the same carriers", map[string]model.Rehearsal{"ping": ago(time.Hour)}, ""},
		{"a date that no clock error explains", map[string]model.Rehearsal{small: ago(-25 * time.Hour), "recover": ago(-25 * time.Hour)}, "never rehearsed live"},
		{"a clock that is a minute ahead", map[string]model.Rehearsal{small: ago(-time.Minute), "recover": ago(-time.Minute)}, ""},
	} {
		w := calm()
		w.Rehearsals = c.by
		shedAt(w, 1, 2, day0.Add(-time.Hour))
		for _, ask := range []Ask{{Right: small, Reason: "x"}, {Right: "recover", Tier: NextTier}} {
			r := draft(t, b, w, ask)
			v := Evaluate(b, w, &r)
			if c.want == "" {
				expect(t, v, model.Permitted)
				continue
			}
			expect(t, v, model.Needs, NotRehearsed)
			if s := Sentence(v.Reasons[0]); !strings.Contains(s, c.want) || !strings.HasPrefix(s, ask.Right) {
				t.Errorf("%s: %q", c.name, s)
			}
		}
	}
}

func TestSheddingNeverWaitsForARehearsal(t *testing.T) {
	b, w := changed(t, func(p *parts) {
		p.right("shed", func(r *policy.Right) { r.RehearsedWithin = 1 })
		p.right("end-bypass", func(r *policy.Right) { r.RehearsedWithin = 1 })
	}), calm()
	for _, ask := range []Ask{{Right: "shed", Tier: 3}, {Right: "end-bypass", IDs: []string{id(9)}}} {
		r := draft(t, b, w, ask)
		expect(t, Evaluate(b, w, &r), model.Permitted)
	}
}

func TestAPingElsewhereIsNoRehearsalHere(t *testing.T) {
	b, w := changed(t, func(p *parts) {
		p.right(small, func(r *policy.Right) { r.RehearsedWithin = model.Duration(time.Hour) })
		p.right("ping", func(r *policy.Right) { r.Scope = []string{"edge"} })
	}), calm()
	w.Rehearsals = map[string]model.Rehearsal{"ping": {Live: day0}}
	r := draft(t, b, w, Ask{Right: small, Reason: "x"})
	v := Evaluate(b, w, &r)
	expect(t, v, model.Needs, NotRehearsed)
	if s := Sentence(v.Reasons[0]); !strings.HasSuffix(s, ": rehearse it") {
		t.Errorf("it offers a ping that does not reach the scope: %q", s)
	}
}

// noSecond makes the small bypass the one for "nobody of finance came".
func noSecond(t *testing.T) *policy.Bundle {
	return changed(t, func(p *parts) {
		p.right(small, func(r *policy.Right) {
			r.NoSecond = &policy.NoSecond{Of: medium, After: model.Duration(5 * time.Minute)}
		})
	})
}

func TestTheRightForNobodyCameIsForWhenNobodyCame(t *testing.T) {
	b := noSecond(t)
	proposed := func(ago time.Duration, change func(*model.Proposal)) []model.Proposal {
		p := model.Proposal{ID: id(7), Right: medium, Scope: "checkout", Requester: "ines", At: day0.Add(-ago), Signers: []string{"ines"}}
		change(&p)
		return []model.Proposal{p}
	}
	same := func(*model.Proposal) {}
	for _, c := range []struct {
		name      string
		proposals []model.Proposal
		code      model.Code
		want      string
	}{
		{"nobody was asked", nil, NoProposal, "propose risk-bypass-medium-orders first"},
		{"asked just now", proposed(0, same), SecondMayCome, "wait 5m: somebody may still sign"},
		{"asked a second too late", proposed(5*time.Minute-time.Second, same), SecondMayCome, "wait 1s"},
		{"asked long enough ago", proposed(5*time.Minute, same), "", ""},
		{"asked by somebody else", proposed(6*time.Minute, func(p *model.Proposal) { p.Requester, p.Signers = "dev", []string{"dev"} }), "", ""},
		{"asked for the whole fleet", proposed(6*time.Minute, func(p *model.Proposal) { p.Scope = "*" }), "", ""},
		{"asked for another service", proposed(6*time.Minute, func(p *model.Proposal) { p.Scope = "edge" }), NoProposal, ""},
		{"another right was asked for", proposed(6*time.Minute, func(p *model.Proposal) { p.Right = "shed-4" }), NoProposal, ""},
		{"the proposer signed twice", proposed(6*time.Minute, func(p *model.Proposal) { p.Signers = []string{"ines", "ines"} }), "", ""},
		{"somebody outside finance signed", proposed(6*time.Minute, func(p *model.Proposal) { p.Signers = []string{"ines", "dev", "otto"} }), "", ""},
		{"finance came: use that one", proposed(6*time.Minute, func(p *model.Proposal) { p.Signers = []string{"ines", "fiona"} }), NoProposal, ""},
		{"it could still be signed", proposed(18*time.Minute-time.Second, same), "", ""},
		{"its window is over: nobody is being asked", proposed(18*time.Minute, same), NoProposal, ""},
		{"dated ahead of this clock", proposed(-time.Minute, same), SecondMayCome, "wait 6m"},
		{"the one that waits longest counts", append(proposed(0, same), proposed(6*time.Minute, same)...), "", ""},
		{"in any order", append(proposed(6*time.Minute, same), proposed(0, same)...), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := calm()
			w.Proposals = c.proposals
			r := draft(t, b, w, Ask{Right: small, Reason: "x"})
			v := Evaluate(b, w, &r)
			if c.code == "" {
				expect(t, v, model.Permitted)
				return
			}
			expect(t, v, model.Needs, c.code)
			if s := Sentence(v.Reasons[0]); !strings.Contains(s, c.want) {
				t.Errorf("%q, want %q", s, c.want)
			}
		})
	}
}

// TestWithoutTheOtherRightNobodyCanHaveBeenAsked: a proposal of a right that is
// not in force proves nothing.
func TestWithoutTheOtherRightNobodyCanHaveBeenAsked(t *testing.T) {
	b, w := changed(t, func(p *parts) {
		p.right(small, func(r *policy.Right) {
			r.NoSecond = &policy.NoSecond{Of: "gone", After: model.Duration(time.Minute)}
		})
	}), calm()
	w.Proposals = []model.Proposal{{ID: id(7), Right: "gone", Scope: "*", Requester: "ines", At: day0.Add(-time.Hour)}}
	r := draft(t, b, w, Ask{Right: small, Reason: "x"})
	expect(t, Evaluate(b, w, &r), model.Needs, NoProposal)
}

func TestAsManyGrantsAtATimeAsTheRightAllows(t *testing.T) {
	for _, c := range []struct {
		name  string
		live  int
		issue func(*model.World)
		free  time.Duration // until a place is free; 0: there is one
	}{
		{"none is in force", 1, func(*model.World) {}, 0},
		{"one is in force", 1, func(w *model.World) { grant(w, 1, small, day0.Add(-time.Minute), day0.Add(9*time.Minute)) }, 9 * time.Minute},
		{"one is in force, two are allowed", 2, func(w *model.World) { grant(w, 1, small, day0.Add(-time.Minute), day0.Add(9*time.Minute)) }, 0},
		{"two are in force", 2, func(w *model.World) {
			grant(w, 1, small, day0.Add(-time.Minute), day0.Add(9*time.Minute))
			grant(w, 2, small, day0.Add(-time.Minute), day0.Add(3*time.Minute))
		}, 3 * time.Minute},
		{"three are in force and two have to end", 2, func(w *model.World) {
			grant(w, 1, small, day0.Add(-time.Minute), day0.Add(9*time.Minute))
			grant(w, 2, small, day0.Add(-time.Minute), day0.Add(3*time.Minute))
			grant(w, 3, small, day0.Add(-time.Minute), day0.Add(3*time.Minute))
		}, 3 * time.Minute},
		{"one has ended", 1, func(w *model.World) {
			grant(w, 1, small, day0.Add(-time.Minute), day0.Add(9*time.Minute)).EndedBy = id(2)
		}, 0},
		{"one is over", 1, func(w *model.World) { grant(w, 1, small, day0.Add(-time.Minute), day0) }, 0},
		{"one begins later", 1, func(w *model.World) { grant(w, 1, small, day0.Add(time.Minute), day0.Add(4*time.Minute)) }, 4 * time.Minute},
		{"one begins when this one ends", 1, func(w *model.World) { grant(w, 1, small, day0.Add(15*time.Minute), day0.Add(20*time.Minute)) }, 0},
		{"one of another right", 1, func(w *model.World) { grant(w, 1, medium, day0.Add(-time.Minute), day0.Add(9*time.Minute)) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, w := changed(t, func(p *parts) {
				p.right(small, func(r *policy.Right) { r.Bypass.Live, r.Bypass.PerDay = c.live, 99 })
			}), calm()
			c.issue(w)
			for range 2 {
				r := draft(t, b, w, Ask{Right: small, Reason: "x"})
				v := Evaluate(b, w, &r)
				if c.free == 0 {
					expect(t, v, model.Permitted)
				} else {
					expect(t, v, model.Needs, model.CodeOverLive)
					if got := v.Reasons[0]; got.Wait.Std() != c.free || !got.At.Equal(day0.Add(c.free)) {
						t.Errorf("a place is free in %s at %s, want %s", got.Wait, got.At, c.free)
					}
				}
				slices.Reverse(w.Issued)
			}
		})
	}
}

func TestARightThatAllowsNoneAtATimeOpensNothing(t *testing.T) {
	b, w := changed(t, func(p *parts) { p.right(small, func(r *policy.Right) { r.Bypass.Live = 0 }) }), calm()
	r := draft(t, b, w, Ask{Right: small, Reason: "x"})
	v := Evaluate(b, w, &r)
	expect(t, v, model.Needs, model.CodeOverLive)
	if got := v.Reasons[0]; got.Wait != 0 || !got.At.IsZero() {
		t.Errorf("it promises a place in %s at %s", got.Wait, got.At)
	}
	if s := Sentence(v.Reasons[0]); s != "the right allows 0 grants at a time" {
		t.Error(s)
	}
}

// TestAnExtensionIsANewGrantWhenTheFirstEnds: it begins as the other one ends, on
// the same budget.
func TestAnExtensionIsANewGrantWhenTheFirstEnds(t *testing.T) {
	b, w := shop(t, 0), calm()
	end := day0.Add(9 * time.Minute)
	grant(w, 1, small, day0.Add(-time.Minute), end)
	r := draft(t, b, w, Ask{Right: small, Reason: "x"})
	expect(t, Evaluate(b, w, &r), model.Needs, model.CodeOverLive)
	r.Directive.NotBefore, r.Directive.NotAfter = end, end.Add(15*time.Minute)
	expect(t, Evaluate(b, w, &r), model.Permitted)
	if e := WorstCase(b, w, &r.Directive); e.Together != e.WorstCase || e.Others != e.WorstCase {
		t.Errorf("a second grant of the day adds to the worst case: %+v", e)
	}
}

func TestAfterThePolicyHasExpiredTheLongDatedRightIsLeft(t *testing.T) {
	expired := day0.AddDate(0, 7, 0)
	for _, c := range []struct {
		name   string
		change func(*parts)
		code   model.Code
	}{
		{"no right outlives its document", func(*parts) {}, model.CodePolicyExpired},
		{"this one does", func(p *parts) { p.right(small, func(r *policy.Right) { r.Expires = expired.Add(time.Hour) }) }, ""},
		{"it did until now", func(p *parts) { p.right(small, func(r *policy.Right) { r.Expires = expired }) }, model.CodePolicyExpired},
		{"another one does", func(p *parts) { p.right(medium, func(r *policy.Right) { r.Expires = expired.Add(time.Hour) }) }, model.CodePolicyExpired},
		{"it does and the root has expired", func(p *parts) {
			p.right(small, func(r *policy.Right) { r.Expires = expired.Add(time.Hour) })
			p.root.Expires = expired
		}, model.CodePolicyExpired},
	} {
		b, w := changed(t, c.change), calm()
		w.Now = expired
		w.Incident.Lease.Until = expired.Add(time.Hour)
		w.Readings["errors"] = steady(0.001, expired)
		shedAt(w, 1, 2, expired.Add(-time.Hour))
		for _, ask := range []Ask{{Right: "shed", Tier: 3}, {Right: "recover", Tier: NextTier}} {
			r := draft(t, b, w, ask)
			expect(t, Evaluate(b, w, &r), model.Permitted)
		}
		r := draft(t, b, w, Ask{Right: small, Reason: "x"})
		if v := Evaluate(b, w, &r); c.code == "" {
			expect(t, v, model.Permitted)
		} else {
			expect(t, v, model.Denied, c.code)
		}
	}
}

func TestABlindRecoveryIsTwoPeopleOneTierAndTypedEvidence(t *testing.T) {
	b, w := shop(t, 0), calm()
	w.Readings = nil
	shedAt(w, 1, 3, day0.Add(-time.Hour))
	for _, c := range []struct {
		name   string
		change func(*model.Request)
		want   []model.Code
	}{
		{"all is there", func(*model.Request) {}, nil},
		{"alone", func(r *model.Request) { r.Cosigners = nil }, []model.Code{model.CodeQuorum}},
		{"the same person twice", func(r *model.Request) { r.Cosigners = []string{"ines"} }, []model.Code{model.CodeQuorum}},
		{"with somebody outside the group", func(r *model.Request) { r.Cosigners = []string{"fiona"} }, []model.Code{model.CodeQuorum}},
		{"nothing was seen", func(r *model.Request) { r.Evidence = "" }, []model.Code{NoEvidence}},
		{"two tiers at once", func(r *model.Request) { r.Directive.To = 1 }, []model.Code{OneTier}},
		{"all hosts at once", func(r *model.Request) { r.Directive.Percent = 100 }, []model.Code{NotNextPercent}},
		{"by the row that wants signals", func(r *model.Request) { r.Directive.Right = "recover" }, []model.Code{SignalUnknown}},
		{"by the controller", func(r *model.Request) { r.Actor = "ladder-controller"; r.Cosigners = []string{"dev", "ines"} }, []model.Code{NotOwn}},
	} {
		r := draft(t, b, w, Ask{Right: "recover-blind", Tier: NextTier, Evidence: "synthetic checkouts pass from two regions"})
		r.Cosigners = []string{"dev"}
		c.change(&r)
		v := Evaluate(b, w, &r)
		if !slices.Equal(codes(v), append([]model.Code{}, c.want...)) {
			t.Errorf("%s: %s %v, want %v", c.name, v.Outcome, codes(v), c.want)
		}
	}
	early := calm()
	early.Readings = nil
	shedAt(early, 1, 3, day0.Add(-time.Minute))
	r := draft(t, b, early, Ask{Right: "recover-blind", Tier: NextTier, Evidence: "I have looked"})
	r.Cosigners = []string{"dev"}
	expect(t, Evaluate(b, early, &r), model.Needs, Dwell)
}

func TestAFreezeExpiresAndPeopleShedAllTheSame(t *testing.T) {
	b, w := shop(t, 0), calm()
	f := draft(t, b, w, Ask{Right: "freeze"})
	expect(t, Evaluate(b, w, &f), model.Permitted)
	for what, change := range map[model.Code]func(*model.Directive){
		model.CodeNoEnd:        func(d *model.Directive) { d.NotAfter = time.Time{} },
		model.CodeOverDuration: func(d *model.Directive) { d.NotAfter = d.NotBefore.Add(time.Hour + time.Second) },
	} {
		bad := f
		change(&bad.Directive)
		expect(t, Evaluate(b, w, &bad), model.Denied, what)
	}
	f.Directive.ID = id(1)
	w.Issued = []model.Issued{{Directive: f.Directive}}
	shedAt(w, 2, 2, day0.Add(-time.Hour))
	frozen := func(ask Ask) model.Verdict {
		r := draft(t, b, w, ask)
		return Evaluate(b, w, &r)
	}
	for _, ask := range []Ask{{Right: "recover", Tier: NextTier}, {Right: small, Reason: "x"}} {
		expect(t, frozen(ask), model.Needs, Frozen)
	}
	for _, ask := range []Ask{{Right: "shed", Tier: 3}, {Right: "feature-off", Feature: "recommendations"}, {Right: "unfreeze"}} {
		expect(t, frozen(ask), model.Permitted)
	}
	w.Now = f.Directive.NotAfter
	w.Readings["errors"] = steady(0.001, w.Now)
	for _, ask := range []Ask{{Right: "recover", Tier: NextTier}, {Right: small, Reason: "x"}} {
		expect(t, frozen(ask), model.Permitted)
	}
}

func TestADimmerIsDraftedWithinItsRight(t *testing.T) {
	b, w := shop(t, 0), calm()
	r := draft(t, b, w, Ask{Right: "dim"})
	if d := r.Directive; d.TargetMS != 200 || d.Floor != 5 || d.Ceiling != 90 || !d.NotAfter.IsZero() {
		t.Errorf("nothing was asked for: %+v", d)
	}
	expect(t, Evaluate(b, w, &r), model.Permitted)
	r = draft(t, b, w, Ask{Right: "dim", TargetMS: 800, Floor: 10, Ceiling: 50})
	if d := r.Directive; d.TargetMS != 800 || d.Floor != 10 || d.Ceiling != 50 {
		t.Errorf("what was asked for: %+v", d)
	}
	v := Evaluate(b, w, &r)
	expect(t, v, model.Permitted)
	if v.Direction != model.Tighten {
		t.Errorf("a dimmer is %s", v.Direction)
	}
	for _, ask := range []Ask{{TargetMS: 199}, {TargetMS: 801}, {Floor: 4}, {Ceiling: 91}, {Floor: 60, Ceiling: 50}} {
		ask.Right = "dim"
		r := draft(t, b, w, ask)
		expect(t, Evaluate(b, w, &r), model.Denied, model.CodeOverCap)
	}
}

// TestWithoutAHostThatVerifiesNothingIsOpened: what makes things stricter is
// advised, and what would have to be closed again is denied.
func TestWithoutAHostThatVerifiesNothingIsOpened(t *testing.T) {
	b, w := changed(t, func(p *parts) {
		p.docs.Backends = nil
		p.right("shed", func(r *policy.Right) {
			r.Advice, r.Review = "set checkout.simple in the console of the flag service", "finance"
		})
	}), calm()
	w.Hosts = nil
	shedAt(w, 1, 2, day0.Add(-time.Hour))
	for _, ask := range []Ask{{Right: "shed", Tier: 3}, {Right: "feature-off", Feature: "recommendations"}, {Right: "recover", Tier: NextTier}} {
		r := draft(t, b, w, ask)
		v := Evaluate(b, w, &r)
		expect(t, v, model.Permitted)
		if v.Assurance != model.Advised {
			t.Errorf("%s is %s", ask.Right, v.Assurance)
		}
	}
	r := draft(t, b, w, Ask{Right: small, Reason: "x"})
	expect(t, Evaluate(b, w, &r), model.Denied, NotEnforced)
	for _, row := range Enumerate(b, w, "ines") {
		if (row.Advice != "") != (row.Name == "shed") || (row.Review == "finance") != (row.Name == "shed") {
			t.Errorf("%s: advice %q, review %q", row.Name, row.Advice, row.Review)
		}
	}

	// One host that is known is enough to be held to it, also while it is silent.
	w.Hosts = calm().Hosts[:1]
	if got := AssuranceOf(b, w); got != model.HostHeld {
		t.Errorf("with a host: %s", got)
	}
	if rows := Enumerate(b, w, "ines"); slices.ContainsFunc(rows, func(r Row) bool { return r.Advice != "" }) {
		t.Error("advice is given where hosts verify")
	}
	// A query that has not answered yet is not the same as no hosts.
	w.Hosts = nil
	if got := AssuranceOf(shop(t, 0), w); got != model.HostHeld {
		t.Errorf("with a query: %s", got)
	}
}

// TestAnOldInventoryIsToldWithItsAge and with the limit, so that somebody who is
// two minutes late knows it.
func TestAnOldInventoryIsToldWithItsAge(t *testing.T) {
	b, w := shop(t, 0), calm()
	w.Inventory = model.Inventory{At: w.Now.Add(-2 * time.Hour), MaxAge: model.Duration(90 * time.Minute)}
	r := draft(t, b, w, Ask{Right: "risk-bypass-small-orders", Reason: "risk is down"})
	v := Evaluate(b, w, &r)
	expect(t, v, model.Needs, OldInventory)
	if got := v.Reasons[0]; got.Wait != model.Duration(2*time.Hour) || got.M != 5400 {
		t.Errorf("%+v", got)
	}
	if s := Sentence(v.Reasons[0]); !strings.Contains(s, "2h") || !strings.Contains(s, "1h30m") {
		t.Error(s)
	}
	w.Inventory.At = time.Time{}
	if s := Sentence(Evaluate(b, w, &r).Reasons[0]); !strings.Contains(s, "has not been read") {
		t.Error(s)
	}
}

// TestWhatWasSeenIsSigned: reason and evidence of a blind recovery are one text.
func TestWhatWasSeenIsSigned(t *testing.T) {
	b, w := shop(t, 0), calm()
	shedAt(w, 1, 1, day0.Add(-time.Hour))
	for _, c := range []struct{ reason, evidence, signed, seen string }{
		{"load is over", " the till sells ", "load is over; seen: the till sells", "the till sells"},
		{" ", "the till sells", "seen: the till sells", "the till sells"},
		{"load is over", "", "load is over", ""},
	} {
		r := draft(t, b, w, Ask{Right: "recover-blind", Tier: NextTier, Reason: c.reason, Evidence: c.evidence})
		if r.Directive.Reason != c.signed || Seen(&r.Directive) != c.seen {
			t.Errorf("%q and %q: %q, seen %q", c.reason, c.evidence, r.Directive.Reason, Seen(&r.Directive))
		}
	}
	fits := strings.Repeat("x", model.MaxReason-len("seen: "))
	if _, err := Draft(b, w, Ask{Right: "recover-blind", Tier: NextTier, Evidence: fits}); err != nil {
		t.Error(err)
	}
	if _, err := Draft(b, w, Ask{Right: "recover-blind", Tier: NextTier, Evidence: fits + "x"}); err == nil || !strings.Contains(err.Error(), "say it shorter") {
		t.Error(err)
	}
	if r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier, Reason: "load is over", Evidence: "the till sells"}); r.Directive.Reason != "load is over" {
		t.Errorf("a recovery by signals: %q", r.Directive.Reason)
	}
}
