package decisions

import (
	"errors"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

func TestEveryRefusalSaysWhatWasWrongWithWhat(t *testing.T) {
	b := shop(t, 0)
	cases := []struct {
		name   string
		change func(*model.Request)
		want   string // part of the first sentence
	}{
		{"a right nobody granted", func(r *model.Request) { r.Directive.Kind, r.Directive.Right = model.Bypass, "free-lunch" }, `no right named "free-lunch"`},
		{"a stranger", func(r *model.Request) { r.Actor = "mallory" }, `"mallory" is not in the trust root`},
		{"another role", func(r *model.Request) { r.Actor = "otto" }, "only the role incident-commander"},
		{"another fleet", func(r *model.Request) { r.Directive.Fleet = "bank" }, "another fleet (bank)"},
		{"a tier of another row", func(r *model.Request) { r.Directive.Tier = 4 }, "covers tiers 1 to 3"},
		{"a freeze for ever", func(r *model.Request) {
			r.Directive = model.Directive{Fleet: "shop", Scope: "*", Kind: model.Freeze, Right: "freeze", NotBefore: day0}
		}, "an absolute end is required"},
		{"a freeze for too long", func(r *model.Request) {
			r.Directive = model.Directive{Fleet: "shop", Scope: "*", Kind: model.Freeze, Right: "freeze", NotBefore: day0, NotAfter: day0.Add(2 * time.Hour)}
		}, "lasts at most 1h00m"},
		{"an unknown feature", func(r *model.Request) {
			r.Directive = model.Directive{Fleet: "shop", Scope: "*", Kind: model.Off, Right: "feature-off", Feature: "teleport"}
		}, `no feature "teleport"`},
		{"a bypass somewhere else", func(r *model.Request) {
			r.Directive = model.Directive{Fleet: "shop", Scope: "edge", Kind: model.Bypass, Right: "risk-bypass-small-orders", Control: "payment-risk"}
		}, `does not cover "edge"`},
		{"a bypass of another control", func(r *model.Request) {
			r.Directive = model.Directive{Fleet: "shop", Scope: "checkout", Kind: model.Bypass, Right: "risk-bypass-small-orders", Control: "fraud", Policy: b.Ref}
		}, `no control "fraud"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := calm()
			r := draft(t, b, w, Ask{Right: "shed", Tier: 2})
			c.change(&r)
			v := Evaluate(b, w, &r)
			if v.Outcome != model.Denied || !strings.Contains(Sentence(v.Reasons[0]), c.want) {
				t.Errorf("%s: %q, want %q", v.Outcome, Sentence(v.Reasons[0]), c.want)
			}
		})
	}
}

// TestATighteningOfAnUnknownRightIsForWhoMayTighten: the matrix may have lost a
// signature; what makes the fleet stricter does not need it, everything else does.
func TestATighteningOfAnUnknownRightIsForWhoMayTighten(t *testing.T) {
	b, w := shop(t, 0), calm()
	shed := model.Request{Actor: "ines", Directive: model.Directive{Fleet: "shop", Scope: "*", Kind: model.Shed, Tier: 2, Right: "lost", NotBefore: day0}}
	expect(t, Evaluate(b, w, &shed), model.Permitted)
	shed.Actor = "otto"
	expect(t, Evaluate(b, w, &shed), model.Denied, model.CodeUnknownRight)

	shedAt(w, 1, 2, day0.Add(-time.Hour))
	back := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	back.Directive.Right, back.Directive.Policy.Version = "lost", b.Ref.Version+1 // a host would trust the newer policy
	expect(t, Evaluate(b, w, &back), model.Denied, model.CodeUnknownRight)
}

func TestWithoutALadderNothingIsKnownToBeGood(t *testing.T) {
	full := shop(t, 0)
	rights := map[string]policy.Right{}
	for _, name := range []string{"recover", "recover-blind", "feature-on", "feature-off"} {
		rights[name], _, _ = full.Right(name)
	}
	b, err := policy.NewBundle(full.Root, full.Ref, full.Domains, policy.Documents{
		Rights: &policy.RightsDoc{Rights: rights}, Features: &policy.FeaturesDoc{Features: full.Features}})
	if err != nil {
		t.Fatal(err)
	}
	w := calm()
	shedAt(w, 1, 2, day0.Add(-time.Hour))
	r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	expect(t, Evaluate(b, w, &r), model.Denied, NoExit)
	blind := draft(t, b, w, Ask{Right: "recover-blind", Tier: NextTier, Evidence: "I have looked"})
	blind.Cosigners = []string{"dev"}
	expect(t, Evaluate(b, w, &blind), model.Permitted)

	w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{ID: id(2), Kind: model.Off, Scope: "*", Feature: "recommendations", NotBefore: day0}})
	on := draft(t, b, w, Ask{Right: "feature-on"})
	expect(t, Evaluate(b, w, &on), model.Denied, NoExit)
	if h := HeadlineOf(b, w); h.Calm || !strings.Contains(h.Text, "names no signal") {
		t.Errorf("without any signal: %+v", h)
	}
}

func TestAShedAboveTheLadderIsNotLeftOnNoEvidence(t *testing.T) {
	b, w := shop(t, 0), calm()
	shedAt(w, 1, 5, day0.Add(-time.Hour)) // by a newer policy
	r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	if v := Evaluate(b, w, &r); v.Outcome != model.Denied || !slices.Contains(codes(v), NoExit) {
		t.Errorf("%s %v", v.Outcome, codes(v))
	}
}

func TestSwitchingOnWantsEverySignalGood(t *testing.T) {
	b := shop(t, 0)
	for _, c := range []struct {
		name    string
		reading *model.Reading
		code    model.Code
	}{
		{"good", ptr(steady(0.001, day0)), ""},
		{"absent", nil, SignalUnknown},
		{"stale", &model.Reading{State: model.ReadingStale}, SignalUnknown},
		{"abnormal", ptr(steady(0.5, day0)), SignalNotGood},
		{"not a number", ptr(steady(math.NaN(), day0)), SignalNotGood},
		{"exactly at the limit", ptr(steady(0.01, day0)), ""},
	} {
		w := calm()
		delete(w.Readings, "errors")
		if c.reading != nil {
			w.Readings["errors"] = *c.reading
		}
		w.Issued = []model.Issued{{Directive: model.Directive{ID: id(1), Kind: model.Off, Scope: "*", NotBefore: day0}}}
		r := draft(t, b, w, Ask{Right: "feature-on"})
		if c.code == "" {
			expect(t, Evaluate(b, w, &r), model.Permitted)
			continue
		}
		expect(t, Evaluate(b, w, &r), model.Needs, c.code)
	}
}

func TestSwitchingOnWantsWhatMustNotBeLowNotToBeLow(t *testing.T) {
	limit := below(0.5)
	b := changed(t, func(p *parts) {
		p.docs.Ladder.Signals = map[string]policy.Signal{"errors": {Abnormal: &limit}}
	})
	for value, want := range map[float64]model.Outcome{0.4: model.Needs, 0.5: model.Permitted, 0.9: model.Permitted} {
		w := calm()
		w.Readings["errors"] = steady(value, day0)
		w.Issued = []model.Issued{{Directive: model.Directive{ID: id(1), Kind: model.Off, Scope: "*", NotBefore: day0}}}
		r := draft(t, b, w, Ask{Right: "feature-on"})
		if v := Evaluate(b, w, &r); v.Outcome != want {
			t.Errorf("at %v: %s %v", value, v.Outcome, codes(v))
		}
		if h := HeadlineOf(b, w); h.Calm != (want == model.Permitted) || h.Right != "" {
			t.Errorf("at %v: %+v", value, h)
		}
	}
}

func TestAnEndingWorksWithinItsOwnKindAndScope(t *testing.T) {
	b, w := shop(t, 0), calm()
	w.Issued = []model.Issued{
		{Directive: model.Directive{ID: id(1), Kind: model.Bypass, Scope: "checkout", NotBefore: day0, NotAfter: day0.Add(time.Minute)}},
		{Directive: model.Directive{ID: id(2), Kind: model.Off, Scope: "*", NotBefore: day0}},
	}
	ask := func(right, scope string, ids ...string) model.Verdict {
		r := draft(t, b, w, Ask{Right: right, Scope: scope, IDs: ids})
		return Evaluate(b, w, &r)
	}
	expect(t, ask("end-bypass", "checkout", id(1)), model.Permitted)
	expect(t, ask("end-bypass", "*", id(1)), model.Denied, OtherThing)
	expect(t, ask("end-bypass", "*", id(2)), model.Denied, OtherThing)
	expect(t, ask("end-bypass", "*", id(7)), model.Permitted) // hosts may hold what we do not know
	expect(t, ask("feature-on", "*", id(2)), model.Permitted)
	expect(t, ask("feature-on", "*", id(7)), model.Denied, NothingToEnd) // nobody can end what he has not seen
}

func TestAnEndingFindsTheScopeInWhichThereIsSomething(t *testing.T) {
	b, w := shop(t, 0), calm()
	w.Issued = []model.Issued{{Directive: model.Directive{ID: id(1), Kind: model.Bypass, Scope: "checkout", NotBefore: day0, NotAfter: day0.Add(time.Minute)}}}
	if d := draft(t, b, w, Ask{Right: "end-bypass"}).Directive; d.Scope != "checkout" || !slices.Equal(d.IDs, []string{id(1)}) {
		t.Errorf("the end of the bypass is %s %v", d.Scope, d.IDs)
	}
	for n, scope := range []string{"edge", "checkout"} {
		w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{ID: id(2 + n), Kind: model.Shed, Tier: 2, Scope: scope, NotBefore: day0}})
	}
	if d := draft(t, b, w, Ask{Right: "recover", Tier: NextTier}).Directive; d.Scope != "checkout" || d.From != 2 {
		t.Errorf("recovery begins with %s at %d", d.Scope, d.From)
	}
	shedAt(w, 4, 1, day0)
	if d := draft(t, b, w, Ask{Right: "recover", Tier: NextTier}).Directive; d.Scope != "*" || d.From != 1 {
		t.Errorf("what holds for all comes first, not %s at %d", d.Scope, d.From)
	}
}

func TestScopesAddUpAndAreLeftOneByOne(t *testing.T) {
	b, w := shop(t, 0), calm()
	shedAt(w, 1, 1, day0.Add(-time.Hour))
	w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{ID: id(2), Kind: model.Shed, Tier: 3, Scope: "checkout", NotBefore: day0.Add(-time.Hour)}})
	if c, e := TierOf(w, "checkout"), TierOf(w, "edge"); c != 3 || e != 1 {
		t.Fatalf("checkout is at %d and edge at %d", c, e)
	}
	r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	step(w, 3, r.Directive, day0)
	if c := ChainOf(w, "checkout"); c.Tier != 3 || !slices.Equal(c.IDs, []string{id(2)}) {
		t.Errorf("recovering * has touched checkout: %+v", c)
	}
	if c, e := TierOf(w, "checkout"), TierOf(w, "edge"); c != 3 || e != 1 {
		t.Errorf("at 10 %% of *: checkout %d, edge %d", c, e)
	}
}

// TestAStepListsWhatEarlierStepsHaveEnded: a host that has missed a step still
// holds what that step has ended.
func TestAStepListsWhatEarlierStepsHaveEnded(t *testing.T) {
	b, w := shop(t, 0), calm()
	shedAt(w, 1, 2, day0.Add(-time.Hour))
	first := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	step(w, 2, first.Directive, day0.Add(-10*time.Minute))
	second := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	expect(t, Evaluate(b, w, &second), model.Permitted)
	second.Directive.IDs = []string{id(2)} // all that is live
	expect(t, Evaluate(b, w, &second), model.Denied, IncompleteChain)
}

func TestAnotherRampAndAnotherPaceAreRefused(t *testing.T) {
	b, w := shop(t, 0), calm()
	shedAt(w, 1, 3, day0.Add(-time.Hour))
	first := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	fast := first
	fast.Directive.Percent = 100
	expect(t, Evaluate(b, w, &fast), model.Denied, NotNextPercent)
	wrong := first
	wrong.Directive.From, wrong.Directive.To = 2, 1
	expect(t, Evaluate(b, w, &wrong), model.Denied, NotThatTier)
	step(w, 2, first.Directive, day0.Add(-time.Minute))
	other := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	other.Directive.Ramp = id(9)
	v := Evaluate(b, w, &other)
	expect(t, v, model.Denied, OtherRamp, RampStep)
	if got := Sentence(v.Reasons[1]); got != "wait 1m: 10 % of hosts have to hold before 50 %" {
		t.Error(got)
	}
}

// TestTwoRampsOfOneSecondAreOrderedByName: two consoles may have recovered at the
// same second; everybody has to continue the same ramp.
func TestTwoRampsOfOneSecondAreOrderedByName(t *testing.T) {
	w := calm()
	for n := range 2 {
		w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{ID: id(n), Scope: "*", Kind: model.End, Ends: model.Shed, From: 2, To: 1, Percent: 10, Ramp: id(10 + n), NotBefore: day0}})
	}
	one := ChainOf(w, "*")
	slices.Reverse(w.Issued)
	if two := ChainOf(w, "*"); one.Ramp.ID != id(11) || two.Ramp.ID != id(11) || one.By != two.By {
		t.Errorf("%+v and %+v", one.Ramp, two.Ramp)
	}
}

func TestWhatIsJudgedAgainDoesNotCountAgainstItself(t *testing.T) {
	b, w := shop(t, 0), calm()
	for n := range 2 {
		w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{ID: id(n), Kind: model.Bypass, Right: "risk-bypass-small-orders", NotBefore: day0.Add(-time.Hour), NotAfter: day0.Add(-time.Minute)}})
	}
	r := draft(t, b, w, Ask{Right: "risk-bypass-small-orders", Reason: "x"})
	expect(t, Evaluate(b, w, &r), model.Denied, PerDay)
	r.Directive.ID = id(1)
	expect(t, Evaluate(b, w, &r), model.Permitted)
}

func TestAWindowThatIsOverDoesNothing(t *testing.T) {
	b, w := shop(t, 0), calm()
	bypass := draft(t, b, w, Ask{Right: "risk-bypass-small-orders", Reason: "x"})
	freeze := draft(t, b, w, Ask{Right: "freeze", Lasts: model.Duration(15 * time.Minute)})
	w.Now = bypass.Directive.NotAfter
	expect(t, Evaluate(b, w, &bypass), model.Denied, EndsSoon)
	expect(t, Evaluate(b, w, &freeze), model.Denied, EndsSoon)
}

func TestBlanksAreNoReasonAndNoEvidence(t *testing.T) {
	b, w := shop(t, 0), calm()
	r := draft(t, b, w, Ask{Right: "risk-bypass-small-orders", Reason: "  "})
	expect(t, Evaluate(b, w, &r), model.Needs, NoReason)
	shedAt(w, 1, 2, day0.Add(-time.Hour))
	blind := draft(t, b, w, Ask{Right: "recover-blind", Tier: NextTier, Evidence: " \t"})
	blind.Cosigners = []string{"dev"}
	expect(t, Evaluate(b, w, &blind), model.Needs, NoEvidence)
}

func TestTheFreezeThatLastsLongestIsNamed(t *testing.T) {
	b, w := shop(t, 0), calm()
	for n, scope := range []string{"checkout", "*", "edge"} {
		w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{ID: id(n), Kind: model.Freeze, Scope: scope, NotBefore: day0, NotAfter: day0.Add(time.Duration(n+1) * time.Hour)}})
	}
	r := draft(t, b, w, Ask{Right: "risk-bypass-small-orders", Reason: "x"})
	v := Evaluate(b, w, &r)
	expect(t, v, model.Needs, Frozen)
	if v.Reasons[0].Name != id(1) { // the one of edge lasts longer and does not concern checkout
		t.Errorf("named %s", v.Reasons[0].Name)
	}
}

func TestAnAmountThatNobodyCanSignIsRefused(t *testing.T) {
	b, w := shop(t, 0), calm()
	r := draft(t, b, w, Ask{Right: "risk-bypass-small-orders", Reason: "x"})
	for _, change := range []func(*model.Caps){
		func(c *model.Caps) { c.HostCount = -5 }, func(c *model.Caps) { c.HostTotal.Minor = 0 },
		func(c *model.Caps) { c.Under.Minor = 0 }, func(c *model.Caps) { c.Total.Minor = -1 },
	} {
		bad := r
		change(&bad.Directive.Caps)
		if v := Evaluate(b, w, &bad); v.Outcome != model.Denied || !slices.Contains(codes(v), NoRoom) {
			t.Errorf("%+v: %s %v", bad.Directive.Caps, v.Outcome, codes(v))
		}
	}
	least := r
	least.Directive.Caps = model.Caps{Under: usd(1), HostCount: 1, HostTotal: usd(1), Total: usd(1)}
	expect(t, Evaluate(b, w, &least), model.Permitted)
	small := draft(t, b, w, Ask{Right: "risk-bypass-small-orders", Reason: "x", Under: usd(1000)})
	e := WorstCase(b, w, &small.Directive)
	if e.PerHost != usd(999*100) { // a hundred items, each a cent under the cap
		t.Errorf("per host %s", e.PerHost)
	}
}

func TestAWorstCaseTooLargeToSayIsNotSmall(t *testing.T) {
	b := odd(t)
	w := calm()
	r := draft(t, b, w, Ask{Right: "huge-risk", Reason: "x"})
	r.Directive.Caps.HostTotal = usd(math.MaxInt64 / 2)
	if e := WorstCase(b, w, &r.Directive); e.WorstCase.Minor != math.MaxInt64 {
		t.Errorf("worst case %d", e.WorstCase.Minor)
	}
}

func TestADraftSaysWhatItCannotMean(t *testing.T) {
	b, w := shop(t, 0), calm()
	if _, err := Draft(b, w, Ask{Right: "free-lunch"}); !errors.Is(err, ErrNoRight) {
		t.Errorf("an unknown right: %v", err)
	}
	if _, err := Draft(b, w, Ask{Right: "shed", Scope: "chekcout"}); !errors.Is(err, ErrDraft) || errors.Is(err, ErrNoRight) || !strings.Contains(err.Error(), "chekcout") {
		t.Errorf("a misspelt service: %v", err)
	}
	if d := draft(t, b, w, Ask{Right: "shed"}).Directive; d.Tier != 1 {
		t.Errorf("the next tier is %d", d.Tier)
	}
	one := changed(t, func(p *parts) { p.right("feature-off", func(r *policy.Right) { r.Feature = "recommendations" }) })
	if d := draft(t, one, w, Ask{Right: "feature-off"}).Directive; d.Feature != "recommendations" {
		t.Errorf("a right to switch one feature off is drafted for %q", d.Feature)
	}
	if d := draft(t, b, w, Ask{Right: "freeze", Lasts: -5}).Directive; d.NotAfter != day0.Add(time.Hour) {
		t.Errorf("a freeze of less than nothing ends at %s", d.NotAfter)
	}
	if d := draft(t, b, w, Ask{Right: "end-bypass", IDs: []string{id(2), id(1), id(2)}}).Directive; !slices.Equal(d.IDs, []string{id(1), id(2)}) {
		t.Errorf("ids %v", d.IDs)
	}
	none := Evaluate(nil, w, &model.Request{})
	if none.Outcome != model.Denied {
		t.Error("no policy permits something")
	}
}

func TestTheMatrixShowsMineFirst(t *testing.T) {
	b, w := shop(t, 0), calm()
	for _, row := range Enumerate(b, w, "otto") {
		if row.Mine || row.Verdict.Outcome != model.Denied {
			t.Errorf("otto holds no role, and %s is %s", row.Name, row.Verdict.Outcome)
		}
	}
	rows := Enumerate(b, w, "ines")
	theirs := false
	for _, row := range rows {
		if theirs = theirs || !row.Mine; theirs && row.Mine {
			t.Errorf("%s of mine comes after those of others", row.Name)
		}
		if (row.Exposure != nil) != (row.Verdict.Direction == model.Loosen) {
			t.Errorf("%s: exposure %v", row.Name, row.Exposure)
		}
		if row.Name == "feature-off" && row.Request.Directive.Feature != "recommendations" {
			t.Errorf("feature-off is judged with %q, which may not be switched off", row.Request.Directive.Feature)
		}
	}
}

func TestTheHeadlineSaysWhatIsHandledAndWhatIsNotKnown(t *testing.T) {
	b, w := shop(t, 0), calm()
	w.Readings["errors"] = steady(0.35, day0)
	w.Issued = []model.Issued{{Directive: model.Directive{ID: id(1), Kind: model.Bypass, Right: "risk-bypass-small-orders", NotBefore: day0, NotAfter: day0.Add(time.Minute)}}}
	if h := HeadlineOf(b, w); h.Calm || !strings.Contains(h.Text, "risk-bypass-small-orders is in force") {
		t.Errorf("handled: %+v", h)
	}
	w.Readings["errors"] = steady(math.NaN(), day0)
	if h := HeadlineOf(b, w); h.Calm || !strings.Contains(h.Text, "not known") {
		t.Errorf("not a number: %+v", h)
	}
}

func TestSignalsAndWaitsReadLikeSpeech(t *testing.T) {
	for want, got := range map[string]string{
		"0.42": Quantity(0.42, ""), "35 %": Quantity(0.35, "ratio"), "7 %": Quantity(7, "percent"), "3 s": Quantity(3, "seconds"), "12 orders/min": Quantity(12, "orders/min"),
		"above 1 %": LimitText(&policy.Signal{Unit: "ratio", Abnormal: ptr(above(0.01))}), "below 5 s": LimitText(&policy.Signal{Unit: "seconds", Abnormal: ptr(below(5))}),
		"45s": Spoken(model.Duration(45 * time.Second)), "3m": Spoken(model.Duration(3 * time.Minute)), "3m12s": Spoken(model.Duration(192 * time.Second)), "1h05m": Spoken(model.Duration(65 * time.Minute)),
		"1 more signature": plural(1, "more signature", "more signatures"), "2 more signatures": plural(2, "more signature", "more signatures"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if LimitText(&policy.Signal{}) != "" || LimitText(&policy.Signal{Abnormal: &policy.Threshold{}}) != "" {
		t.Error("no threshold has no text")
	}
	if got := WindowOf(shop(t, 0), "errors"); got != model.Duration(10*time.Minute) {
		t.Errorf("errors have to be known for %s back", got)
	}
}

// TestEveryCodeHasASentence: a code without one would reach a person as a word of
// ours.
func TestEveryCodeHasASentence(t *testing.T) {
	for _, code := range []model.Code{
		NoLease, NotOwn, Frozen, Dwell, RampStep, NotThatTier, OneTier, NotNextPercent, OtherRamp, IncompleteChain, OtherThing, NoExit, NoRoom, NothingToEnd,
		SignalUnknown, SignalNotGood, NoEvidence, NotDurable, PerDay, OverTotal, NoInventory, OldInventory, NoReason, IsReadOnly, EndsSoon,
		NotRehearsed, NoProposal, SecondMayCome, NotEnforced, Scheduled, model.CodeOverLive,
		model.CodeUnknownRight, model.CodeInactiveDomain, model.CodeUnknownKey, model.CodeWrongRole, model.CodeQuorum, model.CodeOutOfScope,
		model.CodeOverTier, model.CodeOverCap, model.CodeOverDuration, model.CodeNoEnd, model.CodePolicyExpired, model.CodeNeverOpens,
		model.CodeClockUnfit, model.CodeWrongKind, model.CodeUnknownFeature, model.CodeUnknownControl, model.CodePolicyBehind,
		model.CodePolicyMismatch, model.CodeForeignFleet, model.CodeFuture, model.CodeUnsupported,
	} {
		for _, r := range []model.Reason{{Code: code}, {Code: code, Name: "ines", N: 3, Wait: model.Duration(time.Minute)}} {
			if s := Sentence(r); s == "" || strings.HasPrefix(s, "refused:") {
				t.Errorf("%s: %q", code, s)
			}
		}
	}
	if s := Sentence(model.Reason{Code: "from-the-future"}); s != "refused: from-the-future" {
		t.Errorf("an unknown code: %q", s)
	}
}

// TestThePageOfRightsNamesEveryCode that a person can be told.
func TestThePageOfRightsNamesEveryCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/explanation/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]bool{}
	for _, file := range []string{"reasons.go", "../model/codes.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\t\w+ +model\.Code += "([a-z-]+)"|^\tCode\w+ +Code += "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1) {
			given[m[1]+m[2]] = true
		}
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(cells[1], -1) {
				named[m[1]] = true
			}
		}
	}
	for code := range given {
		if !named[code] {
			t.Errorf("the page does not say what to do about %s", code)
		}
	}
	if len(given) < 50 {
		t.Errorf("only %d codes were found", len(given))
	}
}
