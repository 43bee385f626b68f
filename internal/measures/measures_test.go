package measures

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
)

func now() time.Time { return policytest.Now() }

func ago(d time.Duration) time.Time { return now().Add(-d) }

const hour = time.Hour

func id(n byte) string { return "01KB0000000000000000000" + "00" + string('A'+rune(n)) }

// shed is an order of a tier on checkout; what is not said is zero.
func shed(n byte, tier int, at time.Time, outcome, endedBy string) model.Issued {
	return model.Issued{Outcome: outcome, EndedBy: endedBy, Directive: model.Directive{
		ID: id(n), Fleet: "shop", Incident: "i", Reason: "load", Scope: "checkout", Kind: model.Shed, Tier: tier, IssuedAt: at, NotBefore: at, Right: "shed",
		Policy: model.PolicyRef{Version: 1, Digest: strings.Repeat("0", 64)},
		Log:    model.LogHead{Origin: "shop/i/s", Root: strings.Repeat("0", 64)},
	}}
}

func recovery(n byte, from, percent int, at time.Time, endedBy string) model.Issued {
	i := shed(n, 0, at, audit.StateEffective, endedBy)
	i.Directive.Kind, i.Directive.Ends, i.Directive.From, i.Directive.To, i.Directive.Percent = model.End, model.Shed, from, from-1, percent
	return i
}

func opened(name string, at time.Time, issued ...model.Issued) Incident {
	return Incident{ID: name, State: audit.State{Incident: model.Incident{ID: name, OpenedAt: at}, Issued: issued, Rehearsals: map[string]model.Rehearsal{}}}
}

func input(t *testing.T, incidents ...Incident) *Input {
	t.Helper()
	_, bundle, _ := policytest.Shop(t)
	return &Input{Bundle: bundle, Incidents: incidents, Simulated: map[string]time.Time{}, Since: ago(Quarter), Now: now()}
}

func intent(t *testing.T, i model.Issued, at time.Time) audit.Entry {
	t.Helper()
	payload, err := directive.Encode(i.Directive)
	if err != nil {
		t.Fatal(err)
	}
	return audit.Entry{At: at, Body: audit.Intent{Payload: string(payload)}}
}

func outcome(i model.Issued, state string, at time.Time) audit.Entry {
	return audit.Entry{At: at, Body: audit.Outcome{ID: i.Directive.ID, Carrier: "etcd", State: state}}
}

func TestTheTimeAtDeepTiersIsCountedOnceHoweverManyOrdersHoldIt(t *testing.T) {
	// Tier 3 from -10 h; recovered to 2 on a tenth of the hosts at -9 h, on all at
	// -8 h, to 1 on all at -7 h: three hours. A second incident overlaps one of them.
	first := opened("a", ago(10*hour),
		shed(0, 3, ago(10*hour), audit.StateEffective, id(1)), recovery(1, 3, 10, ago(9*hour), id(2)),
		recovery(2, 3, 100, ago(8*hour), id(3)), recovery(3, 2, 100, ago(7*hour), ""))
	second := opened("b", ago(9*hour), shed(4, 2, ago(9*hour), audit.StatePartial, id(5)), recovery(5, 2, 100, ago(8*hour), ""))
	m := deep(input(t, first, second))
	if m.Number == nil || *m.Number != 180 {
		t.Errorf("%+v, want 180 minutes", m)
	}
	if m.Standing != Unknown || !strings.Contains(m.Text, "full outage UNKNOWN") {
		t.Errorf("outages that nobody wrote down are %s: %s", m.Standing, m.Text)
	}
}

func TestWhatLastsOrBeganBeforeIsCutAndWhatDidNotArriveIsUnknown(t *testing.T) {
	in := input(t, opened("a", ago(Quarter+hour), shed(0, 2, ago(Quarter+hour), audit.StateEffective, id(1)), recovery(1, 2, 100, ago(Quarter-hour), "")),
		opened("b", ago(hour), shed(2, 2, ago(hour), audit.StateCarried, "")),
		opened("c", ago(hour), shed(3, 4, ago(9*hour), "", ""), shed(4, 1, ago(hour), audit.StateEffective, "")))
	m := deep(in)
	if *m.Number != 120 || !slices.ContainsFunc(m.Detail, func(s string) bool { return strings.Contains(s, "whether shed 4 of checkout arrived is UNKNOWN") }) {
		t.Errorf("%d minutes, want 120: %q", *m.Number, m.Detail)
	}
	in.Outages = []Span{{ago(2 * hour), ago(hour)}, {ago(90 * time.Minute), ago(30 * time.Minute)}, {ago(2 * Quarter), ago(Quarter + hour)}}
	if m := deep(in); m.Standing != Met || m.Text != "120 min at T2+, 90 min of full outage" {
		t.Errorf("%s: %s", m.Standing, m.Text)
	}
	in.Outages = []Span{{ago(5 * hour), now()}}
	if m := deep(in); m.Standing != Missed {
		t.Errorf("300 minutes down against 120 degraded is %s", m.Standing)
	}
}

func TestTheMedianIsFromTheDecisionToHostsThatSaySo(t *testing.T) {
	a, b, c := shed(0, 2, ago(hour), audit.StateEffective, ""), shed(1, 2, ago(hour), audit.StateEffective, ""), shed(2, 2, ago(hour), audit.StateCarried, "")
	i := opened("a", ago(hour), a, b, c)
	i.Entries = []audit.Entry{
		intent(t, a, ago(hour)), outcome(a, audit.StateCarried, ago(hour-time.Second)), outcome(a, audit.StateEffective, ago(hour-8*time.Second)),
		intent(t, b, ago(hour)), {At: ago(hour - 20*time.Second), Body: audit.Reconciled{ID: b.Directive.ID, State: audit.StateEffective}},
		intent(t, c, ago(hour)), outcome(c, audit.StateCarried, ago(hour-time.Second)),
	}
	m := degrade(input(t, i))
	if m.Number == nil || *m.Number != 8_000 || m.Standing != Met {
		t.Errorf("%+v, want 8 s of two", m)
	}
	if len(m.Detail) != 1 || !strings.HasSuffix(m.Detail[0], "in force: 1; UNKNOWN, and not in the median") {
		t.Errorf("the one that no host confirmed is hidden: %q", m.Detail)
	}
	i.Entries = []audit.Entry{intent(t, a, ago(hour)), outcome(a, audit.StateEffective, ago(hour-time.Minute))}
	if m := degrade(input(t, i)); m.Standing != Missed {
		t.Errorf("a whole minute is not less than one: %+v", m)
	}
	if m := degrade(input(t)); m.Number != nil || m.Standing != Unknown {
		t.Errorf("without an order it is %+v", m)
	}
}

func TestAnIncidentWhoseCarrierOrPipelineFailedSharedItsFate(t *testing.T) {
	a := shed(0, 2, ago(hour), audit.StateEffective, "")
	failed := opened("a", ago(hour), a)
	failed.Entries = []audit.Entry{outcome(a, audit.StateFailed, ago(hour)),
		{Body: audit.PushIntent{Operation: "p", Backend: "git"}}, {Body: audit.PushOutcome{Operation: "p", State: audit.StateFailed}}}
	fine := opened("b", ago(hour), a)
	fine.Entries = []audit.Entry{outcome(a, audit.StateCarried, ago(hour)),
		{Body: audit.Outcome{ID: a.Directive.ID, Carrier: "hosts", State: audit.StateUnconfirmed}}} // nobody was asked in time
	m := sharedFate(input(t, failed, fine, opened("old", ago(2*Quarter))))
	if m.Number == nil || *m.Number != 1 || m.Text != "1 of 2" || m.Standing != Missed || m.Detail[0] != "a: backend git, carrier etcd" {
		t.Errorf("%+v", m)
	}
	if m := sharedFate(input(t)); m.Number != nil || m.Standing != Unknown {
		t.Errorf("without an incident it is %+v", m)
	}
	broken := fine
	broken.Err = errors.New("byte 7")
	if m := sharedFate(input(t, broken)); !slices.ContainsFunc(m.Detail, func(s string) bool { return strings.Contains(s, "not all of its log can be read") }) {
		t.Errorf("damage is hidden: %q", m.Detail)
	}
}

func TestAFallbackIsTestedByTrafficAGameDayOrARight(t *testing.T) {
	in := input(t)
	before := tested(in)
	line := func(m Measure, what string) string {
		at := slices.IndexFunc(m.Detail, func(s string) bool { return strings.HasPrefix(s, what) })
		if at < 0 {
			t.Fatalf("%q is missing in %q", what, m.Detail)
		}
		return m.Detail[at]
	}
	if got := line(before, "place-order/pay on payment-risk"); !strings.Contains(got, "not used or rehearsed within a quarter") {
		t.Error(got)
	}
	if got := line(before, "place-order/pay on card-network"); !strings.HasSuffix(got, "required, no fallback") {
		t.Error(got)
	}
	in.Simulated["risk-bypass-small-orders"] = ago(24 * hour)
	after := tested(in)
	if *after.Number <= *before.Number || after.Standing != Missed {
		t.Errorf("from %s to %s, %s", before.Text, after.Text, after.Standing)
	}
	in.Bundle.Features = nil
	if m := tested(in); m.Number != nil || m.Standing != Unknown {
		t.Errorf("without features it is %+v", m)
	}
}

func named(t *testing.T, list []Freshness, name string) Freshness {
	t.Helper()
	at := slices.IndexFunc(list, func(f Freshness) bool { return f.Name == name })
	if at < 0 {
		t.Fatalf("%s wants no practice", name)
	}
	return list[at]
}

// strictShop is the shop, where the only right with a "no_second" has to be
// rehearsed live every quarter.
func strictShop(t *testing.T) *policy.Bundle {
	t.Helper()
	files, err := templates.Shop(policytest.Params())
	if err != nil {
		t.Fatal(err)
	}
	const before = "    no_second:\n"
	name := string(templates.PaymentsDomain) + ".yaml"
	if n := strings.Count(string(files[name]), before); n != 1 {
		t.Fatalf("%d rights of %s have a no_second, want 1", n, name)
	}
	files[name] = []byte(strings.Replace(string(files[name]), before, "    rehearsed_within: 2208h\n"+before, 1))
	dir := t.TempDir()
	bundle, _, err := policy.LoadDir(dir, policytest.Sign(t, dir, files))
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

func TestASimulatedRehearsalIsNoLiveOne(t *testing.T) {
	in := input(t)
	const strict = "risk-bypass-medium-alone"
	in.Bundle = strictShop(t)
	in.Simulated[strict], in.Simulated["shed"] = ago(hour), ago(hour)
	list := Practice(in)
	if f := named(t, list, strict); !f.Stale || !f.LiveOnly || f.Why != "never used or rehearsed live" {
		t.Errorf("%+v", f)
	}
	if f := named(t, list, "shed"); f.Stale {
		t.Errorf("%+v", f)
	}
	if f := named(t, list, "backend/git"); !f.Stale || f.Why != "never practised" {
		t.Errorf("%+v", f)
	}
}

func TestWhatIsOldOrDatedAheadIsStale(t *testing.T) {
	in := input(t, Incident{State: audit.State{
		Rehearsals: map[string]model.Rehearsal{"backend/git": {Live: ago(Quarter + 24*hour)}, "backend/hostfile": {Live: now().Add(hour)}, "tier/*/2": {Live: ago(hour)}},
	}}, Incident{State: audit.State{Rehearsals: map[string]model.Rehearsal{"tier/*/2": {Live: ago(2 * Quarter)}}}})
	in.Simulated["tier/*/1"] = ago(hour)
	list := Practice(in)
	if f := named(t, list, "backend/git"); f.Why != "last practised 93 days ago, at most 92" {
		t.Errorf("%+v", f)
	}
	if f := named(t, list, "backend/hostfile"); !f.Stale {
		t.Errorf("a date ahead of now counts: %+v", f)
	}
	for _, name := range []string{"tier/checkout/1", "tier/checkout/2"} {
		if f := named(t, list, name); f.Stale {
			t.Errorf("%+v", f)
		}
	}
}

// A runbook is on the shelf, a feature is in the policy, and neither is named by a
// right: both want practice. What a rehearsal has practised and nobody asks for is
// listed, and is not stale.
func TestRunbooksAndFeaturesWantPracticeAndEveryDateIsListed(t *testing.T) {
	in := input(t)
	in.Runbooks = []string{"payment-risk-down", "prometheus-blind"}
	in.Simulated["runbook/prometheus-blind"] = ago(hour)
	in.Simulated["feature/recommendations"] = ago(hour)
	in.Simulated["runbook/of-somebody-else"] = ago(2 * Quarter)
	in.Simulated["tier/*/1"] = ago(hour)
	list := Practice(in)
	for name, stale := range map[string]bool{
		"runbook/payment-risk-down": true, "runbook/prometheus-blind": false, "feature/recommendations": false, "feature/reviews": true,
		"runbook/of-somebody-else": false, "tier/edge/1": false, "tier/edge/2": true,
	} {
		if f := named(t, list, name); f.Stale != stale {
			t.Errorf("%+v, want stale %v", f, stale)
		}
	}
	if f := named(t, list, "runbook/of-somebody-else"); !strings.HasPrefix(f.Why, "in neither the policy nor") {
		t.Errorf("%+v", f)
	}
	for _, f := range list {
		if f.Name == "feature/place-order" || strings.HasPrefix(f.Name, "tier/*/") {
			t.Errorf("%+v wants practice", f)
		}
	}
}
