package audit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// issue completes a directive so that it encodes.
func issue(d model.Directive, head model.LogHead) model.Directive {
	d.Fleet, d.Incident, d.Reason = fleet, incident, "because"
	d.IssuedAt, d.NotBefore = noon, noon
	d.Policy = model.PolicyRef{Version: 1, Digest: strings.Repeat("0", 64)}
	if head.Origin == "" {
		head = model.LogHead{Origin: fleet + "/" + incident + "/laptop", Root: strings.Repeat("0", 64)}
	}
	d.Log = head
	return d
}

func bypass(id string, head model.LogHead) model.Directive {
	usd := func(minor int64) model.Money { return model.Money{Minor: minor, Currency: "USD"} }
	d := issue(model.Directive{ID: id, Kind: model.Bypass, Scope: "checkout", Control: "payment-risk", Right: "bypass-small",
		Caps: model.Caps{Under: usd(5000), HostCount: 10, HostTotal: usd(20000), Total: usd(900000)}}, head)
	d.NotAfter = noon.Add(15 * time.Minute)
	return d
}

func shed(id string, tier int) model.Directive {
	return issue(model.Directive{ID: id, Kind: model.Shed, Scope: "checkout", Tier: tier, Right: "shed"}, model.LogHead{})
}

func endOf(id string, kind model.Kind, scope string, ids ...string) model.Directive {
	return issue(model.Directive{ID: id, Kind: model.End, Scope: scope, Right: "end", Ends: kind, IDs: ids}, model.LogHead{})
}

func recovery(id string, percent int, ids ...string) model.Directive {
	return issue(model.Directive{ID: id, Kind: model.End, Scope: "checkout", Right: "recover", Ends: model.Shed, IDs: ids,
		From: 3, To: 2, Ramp: ulid(900), Percent: percent}, model.LogHead{})
}

func payload(t rapidOrTesting, d model.Directive) string {
	t.Helper()
	raw, err := directive.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// signedBy is the entry of a token. Fold does not judge signatures, so any bytes
// stand for one.
func signedBy(t rapidOrTesting, d model.Directive, signers ...string) Signed {
	t.Helper()
	return Signed{ID: d.ID, Token: "ic1." + b64(payload(t, d)) + "." + b64(strings.Repeat("s", 1+len(signers))), Signers: signers}
}

// ulid is the n-th of a fixed series of ULIDs.
func ulid(n int) string { return fmt.Sprintf("01JDZ000000000000000000%03d", n) }

// at is an entry body at a time, in seconds after noon.
type at struct {
	second int
	body   Body
}

// session makes one as a reader would return it.
func session(name string, entries ...at) Session {
	s := Session{File: name + ".jsonl", Name: fleet + "/" + incident + "/" + name, Segment: 1, Person: name}
	s.Origin = s.Name
	for i, e := range entries {
		s.Entries = append(s.Entries, Entry{Seq: int64(i + 1), At: noon.Add(time.Duration(e.second) * time.Second),
			Session: name, Actor: name, Body: e.body})
	}
	return s
}

func TestFoldOfAnIncident(t *testing.T) {
	b, s, r := bypass(ulid(1), model.LogHead{}), shed(ulid(2), 3), recovery(ulid(3), 10, ulid(2))
	state := Fold([]Session{
		session("amara",
			at{0, IncidentOpen{"payment-risk is down"}},
			at{1, LeaseAct{Action: LeaseTake, Lease: model.Lease{Holder: "amara", From: noon, Until: noon.Add(3 * time.Hour)}}},
			at{2, Intent{Payload: payload(t, b), Asked: true}},
			at{3, signedBy(t, b, "amara")},
			at{4, Outcome{b.ID, "etcd", StateCarried, ""}},
			at{5, Outcome{b.ID, "fleet", StateEffective, "60/60"}},
			at{6, signedBy(t, s, "amara")},
			at{7, PushIntent{"op1", "git", "d", []string{b.ID}, 12}},
			at{8, PushOutcome{"op1", StateEffective, "", 60, 60}},
			at{9, signedBy(t, r, "amara")},
			at{10, Outcome{r.ID, "etcd", StateFailed, "no route"}},
		),
		session("bo", at{20, LeaseAct{Action: LeaseAccept, Lease: model.Lease{Holder: "bo", From: noon.Add(20 * time.Second), Until: noon.Add(4 * time.Hour)}}}),
	})
	if i := state.Incident; i.ID != incident || i.Title != "payment-risk is down" || !i.OpenedAt.Equal(noon) || i.Lease.Holder != "bo" {
		t.Errorf("incident %+v", i)
	}
	if !state.IsOpen() || state.OpenedBy != "amara" {
		t.Errorf("open %v by %s", state.IsOpen(), state.OpenedBy)
	}
	type row struct{ id, ended, outcome, carried string }
	var got []row
	for _, i := range state.Issued {
		got = append(got, row{i.Directive.ID, i.EndedBy, i.Outcome, strings.Join(i.Carried, " ")})
	}
	want := []row{{b.ID, "", StateEffective, "etcd fleet"}, {s.ID, r.ID, "", ""}, {r.ID, "", StateFailed, ""}}
	if !slices.Equal(got, want) {
		t.Errorf("issued\n%v, want\n%v", got, want)
	}
	if seen := state.Issued[0].FirstSeen; !seen.Equal(noon.Add(5*time.Second)) || !state.Issued[1].FirstSeen.IsZero() {
		t.Errorf("hosts had the bypass at %s", seen)
	}
	if u := state.Unknown(); len(u) != 1 || u[0].Directive.ID != s.ID {
		t.Errorf("unknown: %+v, want the shed, which was signed and of which nothing was heard", u)
	}
	if o := state.Overrides; len(o) != 1 || o[0].Operation != "op1" || o[0].State != StateEffective || !o[0].Since.Equal(noon.Add(7*time.Second)) {
		t.Errorf("overrides %+v", o)
	}
	if got := state.Activations; len(got) != 2 || got[Use{"bypass-small", "2026-11-30"}] != 1 || got[Use{"shed", "2026-11-30"}] != 1 {
		t.Errorf("activations %v; an ending is none", got)
	}
	if got := state.Rehearsals; len(got) != 2 || !got["bypass-small"].Live.Equal(noon.Add(5*time.Second)) || !got["backend/git"].Live.Equal(noon.Add(8*time.Second)) {
		t.Errorf("live uses %v; what failed or is unknown is none", got)
	}
	if len(state.Lines) != 12 || state.Lines[11].Text != "command accepted by bo until 2026-11-30T16:00:00.000Z" {
		t.Errorf("%d lines, the last %+v", len(state.Lines), state.Lines[len(state.Lines)-1])
	}
}

// What was used live counts for what it is about, besides its right: a tier, a feature,
// and a runbook whose run was finished.
func TestWhatWasUsedLive(t *testing.T) {
	s, off := shed(ulid(1), 3), shed(ulid(2), 3)
	off.Kind, off.Tier, off.Feature, off.Right = model.Off, 0, "search", "feature-off"
	nowhere := shed(ulid(3), 4)
	got := Fold([]Session{session("amara",
		at{0, signedBy(t, s, "amara")}, at{1, Outcome{s.ID, "etcd", StateCarried, ""}},
		at{2, signedBy(t, off, "amara")}, at{3, Outcome{off.ID, "etcd", StateCarried, ""}},
		at{4, signedBy(t, nowhere, "amara")}, at{5, Outcome{nowhere.ID, "etcd", StateFailed, "no route"}},
		at{6, RunStart{Run: "r", Runbook: "risk-down"}}, at{7, RunEnd{Run: "r", State: RunFinished}},
		at{8, RunStart{Run: "s", Runbook: "other"}}, at{9, RunEnd{Run: "s", State: RunAborted}},
	)}).Rehearsals
	want := map[string]time.Duration{"shed": 1, "tier/" + s.Scope + "/3": 1, "feature-off": 3, "feature/search": 3, "runbook/risk-down": 7}
	for name, seconds := range want {
		if !got[name].Live.Equal(noon.Add(seconds * time.Second)) {
			t.Errorf("%s: %v", name, got[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("live uses %v", got)
	}
}

// rule is what holds of the state of some sessions.
type rule struct {
	sessions []Session
	holds    func(State) bool
}

func (r rule) check(t *testing.T) {
	if state := Fold(r.sessions); !r.holds(state) {
		t.Errorf("it does not hold of %+v", state)
	}
}

func TestWhatIsSignedEndedAndWaiting(t *testing.T) {
	b, s := bypass(ulid(1), model.LogHead{}), shed(ulid(2), 3)
	proposal := Proposed{ID: b.ID, Payload: payload(t, b), Needs: []model.Reason{{Code: model.CodeQuorum}}}
	for name, r := range map[string]rule{
		"an ending ends what is of its kind": {
			[]Session{session("a", at{0, signedBy(t, b)}, at{1, signedBy(t, endOf(ulid(9), model.Bypass, "checkout", b.ID))}, at{2, Outcome{ulid(9), "etcd", StateCarried, ""}})},
			func(s State) bool { return s.Issued[0].EndedBy == ulid(9) }},
		"an ending of which nothing is known ends nothing": {
			[]Session{session("a", at{0, signedBy(t, b)}, at{1, signedBy(t, endOf(ulid(9), model.Bypass, "checkout", b.ID))})},
			func(s State) bool { return s.Issued[0].EndedBy == "" }},
		"an ending that no carrier took ends nothing": {
			[]Session{session("a", at{0, signedBy(t, b)}, at{1, signedBy(t, endOf(ulid(9), model.Bypass, "checkout", b.ID))}, at{2, Outcome{ulid(9), "etcd", StateFailed, "no route"}})},
			func(s State) bool { return s.Issued[0].EndedBy == "" }},
		"an ending of another kind ends nothing": {
			[]Session{session("a", at{0, signedBy(t, b)}, at{1, signedBy(t, endOf(ulid(9), model.Freeze, "checkout", b.ID))})},
			func(s State) bool { return s.Issued[0].EndedBy == "" }},
		"an ending of another scope ends nothing": {
			[]Session{session("a", at{0, signedBy(t, b)}, at{1, signedBy(t, endOf(ulid(9), model.Bypass, "*", b.ID))})},
			func(s State) bool { return s.Issued[0].EndedBy == "" }},
		"an ending ends also what is signed after it": {
			[]Session{session("a", at{0, signedBy(t, endOf(ulid(9), model.Bypass, "checkout", b.ID))}, at{1, Outcome{ulid(9), "etcd", StateCarried, ""}}, at{2, signedBy(t, b)})},
			func(s State) bool { return s.Issued[0].EndedBy == ulid(9) }},
		"a recovery counts as a shed until it is ended": {
			[]Session{session("a", at{0, signedBy(t, s)}, at{1, signedBy(t, recovery(ulid(3), 10, s.ID))}, at{2, signedBy(t, recovery(ulid(4), 50, s.ID, ulid(3)))})},
			func(s State) bool {
				return s.Issued[0].EndedBy == ulid(3) && s.Issued[1].EndedBy == ulid(4) && s.Issued[2].EndedBy == ""
			}},
		"who has proposed, and when, stays when others sign": {
			[]Session{session("a", at{0, proposal}), session("b", at{5, Proposed{ID: b.ID, Payload: proposal.Payload, Token: "ic1.more", Needs: proposal.Needs}})},
			func(s State) bool {
				return len(s.Proposals) == 1 && s.Proposals[0].Actor == "a" && s.Proposals[0].Token == "ic1.more" && s.Proposals[0].At.Equal(noon)
			}},
		"advice is an outcome and no use": {
			[]Session{session("a", at{0, signedBy(t, s)}, at{1, Outcome{ID: s.ID, Carrier: "by-hand", State: StateAdvised}})},
			func(st State) bool {
				return st.Issued[0].Outcome == StateAdvised && len(st.Issued[0].Carried) == 0 && st.Rehearsals[s.Right].Live.IsZero()
			}},
		"a proposal waits": {
			[]Session{session("a", at{0, proposal})},
			func(s State) bool {
				return len(s.Proposals) == 1 && s.Proposals[0].Directive.ID == b.ID && s.Proposals[0].Actor == "a"
			}},
		"a proposal that is signed, by another session whose clock is behind, waits no longer": {
			[]Session{session("a", at{0, proposal}), session("b", at{-600, signedBy(t, b, "a", "b")})},
			func(s State) bool { return len(s.Proposals) == 0 && len(s.Issued) == 1 }},
		"a proposal that is withdrawn waits no longer": {
			[]Session{session("a", at{0, proposal}, at{1, Outcome{ID: b.ID, State: StateWithdrawn}})},
			func(s State) bool { return len(s.Proposals) == 0 && len(s.Issued) == 0 }},
		"the token with more signatures counts, and all who signed": {
			[]Session{session("a", at{5, signedBy(t, b, "a")}), session("b", at{0, signedBy(t, b, "a", "b")})},
			func(s State) bool {
				return slices.Equal(s.Issued[0].Signers, []string{"a", "b"}) && s.Issued[0].Token == signedBy(t, b, "a", "b").Token
			}},
	} {
		t.Run(name, r.check)
	}
}

func TestWhatBecameOfADirective(t *testing.T) {
	b := bypass(ulid(1), model.LogHead{})
	for name, r := range map[string]rule{
		"reality supersedes what carriers had said": {
			[]Session{session("a", at{0, signedBy(t, b)}, at{1, Outcome{b.ID, "etcd", StateCarried, ""}}, at{2, Reconciled{b.ID, StateAbsent, ""}})},
			func(s State) bool { return s.Issued[0].Outcome == StateAbsent && len(s.Issued[0].Carried) == 0 }},
		"and what they say after it counts again": {
			[]Session{session("a", at{0, signedBy(t, b)}, at{1, Reconciled{b.ID, StateAbsent, ""}}, at{2, Outcome{b.ID, "git", StateCarried, ""}})},
			func(s State) bool {
				return s.Issued[0].Outcome == StateCarried && slices.Equal(s.Issued[0].Carried, []string{"git"})
			}},
		"a carrier's last word counts": {
			[]Session{session("a", at{0, signedBy(t, b)}, at{1, Outcome{b.ID, "etcd", StateFailed, ""}}, at{2, Outcome{b.ID, "etcd", StateCarried, ""}})},
			func(s State) bool { return s.Issued[0].Outcome == StateCarried }},
		"within a session seq counts, whatever the wall clock did": {
			[]Session{session("a", at{100, Outcome{b.ID, "etcd", StateFailed, ""}}, at{0, signedBy(t, b)}, at{1, Outcome{b.ID, "etcd", StateCarried, ""}})},
			func(s State) bool { return s.Issued[0].Outcome == StateCarried }},
	} {
		t.Run(name, r.check)
	}
}

func TestOverridesLeaseAndIncident(t *testing.T) {
	b := bypass(ulid(1), model.LogHead{})
	push := PushIntent{"op1", "git", "d", []string{b.ID}, 12}
	for name, r := range map[string]rule{
		"an override without an outcome is unconfirmed": {
			[]Session{session("a", at{0, push})},
			func(s State) bool { return len(s.Overrides) == 1 && s.Overrides[0].State == StateUnconfirmed }},
		"an override that was undone in part is open": {
			[]Session{session("a", at{0, push}, at{1, UndoIntent{"op1", "git", 12}}, at{2, UndoOutcome{"op1", StatePartial, "", 3, 12}})},
			func(s State) bool { return len(s.Overrides) == 1 }},
		"an override that was undone is closed, in whatever order it is told": {
			[]Session{session("b", at{0, push}), session("a", at{-5, UndoOutcome{"op1", StateUndone, "", 12, 12}})},
			func(s State) bool { return len(s.Overrides) == 0 }},
		"a lease of a later start counts, also when it is told earlier": {
			[]Session{session("a", at{9, LeaseAct{Lease: model.Lease{Holder: "a", From: noon}}}), session("b", at{0, LeaseAct{Lease: model.Lease{Holder: "b", From: noon.Add(time.Minute)}}})},
			func(s State) bool { return s.Incident.Lease.Holder == "b" }},
		"an offer changes the lease that it is of": {
			[]Session{session("a", at{0, LeaseAct{Lease: model.Lease{Holder: "a", From: noon}}}, at{1, LeaseAct{Lease: model.Lease{Holder: "a", OfferedTo: "b", From: noon}}})},
			func(s State) bool { return s.Incident.Lease.OfferedTo == "b" }},
		"an incident that is closed": {
			[]Session{session("a", at{0, IncidentOpen{"x"}}, at{60, IncidentClose{Note: "done"}})},
			func(s State) bool { return !s.IsOpen() && s.ClosedAt.Equal(noon.Add(time.Minute)) }},
		"an incident that is opened again": {
			[]Session{session("a", at{0, IncidentOpen{"x"}}, at{60, IncidentClose{Note: "done"}}, at{90, IncidentOpen{"y"}})},
			func(s State) bool {
				return s.IsOpen() && s.Incident.OpenedAt.Equal(noon) && s.Incident.Title == "y"
			}},
		"what is late counts as what it is, at its own time": {
			[]Session{session("a", at{100, Late{lateOf(t, 7, "c", IncidentOpen{"late"})}})},
			func(s State) bool {
				return s.Incident.OpenedAt.Equal(noon.Add(7*time.Second)) && s.OpenedBy == "c" && s.Lines[0].Late && s.Lines[0].Text == "incident opened: late"
			}},
		"a token that is no token is said to be unreadable": {
			[]Session{session("a", at{0, Signed{ID: ulid(5), Token: "ic1.x"}}, at{0, Signed{ID: ulid(6), Token: signedBy(t, b).Token}}, at{1, Proposed{ID: ulid(7), Payload: "{}"}})},
			func(s State) bool {
				return len(s.Issued) == 0 && slices.Equal(s.Unreadable, []string{ulid(5), ulid(6), ulid(7)})
			}},
		"no log at all": {nil, func(s State) bool { return !s.IsOpen() && s.Incident.ID == "" && len(s.Lines) == 0 }},
	} {
		t.Run(name, r.check)
	}
}

func lateOf(t rapidOrTesting, second int, actor string, body Body) Receipt {
	t.Helper()
	raw, err := canonical(body)
	if err != nil {
		t.Fatal(err)
	}
	return Receipt{At: stamp(noon.Add(time.Duration(second) * time.Second)), Actor: actor, Kind: body.Kind(), Body: raw}
}

func TestLinesAreSafeToPrint(t *testing.T) {
	state := Fold([]Session{session("a", at{0, Note{"\x1b[2Jgone\u202e"}}, at{1, Foreign{Name: "no\u009bvel"}}, at{2, Note{strings.Repeat("x", 2*MaxText)}})})
	if got := state.Lines[0].Text; got != `\x1b[2Jgone\u202e` {
		t.Errorf("a note reads %q", got)
	}
	if got := state.Lines[1]; got.Kind != `no\u009bvel` || !strings.Contains(got.Text, "does not know") {
		t.Errorf("an unknown kind reads %+v", got)
	}
	if got := state.Lines[2].Text; len(got) > MaxText {
		t.Errorf("a line of %d bytes", len(got))
	}
}

// anyBody draws a body that Fold acts on, about few ids, so that entries of
// several sessions meet.
func anyBody(t *rapid.T) Body {
	n := rapid.IntRange(1, 4).Draw(t, "id")
	state := rapid.SampledFrom([]string{StateCarried, StateFailed, StateEffective, StateUndone, StateAbsent, "odd"}).Draw(t, "state")
	carrier := rapid.SampledFrom([]string{"etcd", "git"}).Draw(t, "carrier")
	operation := rapid.SampledFrom([]string{"op1", "op2"}).Draw(t, "operation")
	signers := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 2, rapid.ID).Draw(t, "signers")
	switch rapid.IntRange(0, 11).Draw(t, "kind") {
	case 0:
		return IncidentOpen{carrier}
	case 1:
		return IncidentClose{Note: state}
	case 2:
		return signedBy(t, shed(ulid(n), n), signers...)
	case 3:
		return signedBy(t, bypass(ulid(10+n), model.LogHead{}), signers...)
	case 4:
		return signedBy(t, endOf(ulid(20+n), model.Bypass, "checkout", ulid(10+n), ulid(15)), signers...)
	case 5:
		return Proposed{ID: ulid(10 + n), Payload: payload(t, bypass(ulid(10+n), model.LogHead{}))}
	case 6:
		return Outcome{ID: ulid(n), Carrier: carrier, State: state}
	case 7:
		return Reconciled{ID: ulid(n), State: state}
	case 8:
		return PushIntent{Operation: operation, Backend: carrier}
	case 9:
		return PushOutcome{Operation: operation, State: state}
	case 10:
		return UndoOutcome{Operation: operation, State: state}
	default:
		return LeaseAct{Action: LeaseTake, Lease: model.Lease{Holder: carrier, From: noon.Add(time.Duration(n) * time.Minute)}}
	}
}

func anySessions(t *rapid.T) []Session {
	var out []Session
	for _, name := range []string{"a", "b", "c"} {
		var entries []at
		for range rapid.IntRange(0, 8).Draw(t, "entries") {
			entries = append(entries, at{rapid.IntRange(0, 5).Draw(t, "second"), anyBody(t)})
		}
		whole := session(name, entries...)
		cut := rapid.IntRange(0, len(entries)).Draw(t, "segment")
		first, second := whole, whole
		first.Entries, second.Entries = whole.Entries[:cut], whole.Entries[cut:]
		second.Segment, second.Origin, second.File = 2, whole.Origin+".2", name+".2.jsonl"
		out = append(out, first, second)
	}
	return out
}

func TestFoldDoesNotDependOnHowFilesInterleave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sessions := anySessions(t)
		want := Fold(sessions)
		shuffled := slices.Clone(sessions)
		shuffle := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		shuffle.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(want, Fold(shuffled)); diff != "" {
			t.Fatalf("another order of files, another state:\n%s", diff)
		}
	})
}

// Clocks of two machines disagree. What is signed, ended, waiting and still on
// hosts must not depend on them.
func TestFoldKeepsWhatMattersWhateverTheClocksSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sessions := anySessions(t)
		before := Fold(sessions)
		ahead := time.Duration(rapid.IntRange(-3600, 3600).Draw(t, "ahead")) * time.Second
		for i, s := range sessions {
			if s.Name != sessions[0].Name {
				continue
			}
			sessions[i].Entries = slices.Clone(s.Entries)
			for n := range sessions[i].Entries {
				sessions[i].Entries[n].At = s.Entries[n].At.Add(ahead)
			}
		}
		if diff := cmp.Diff(facts(before), facts(Fold(sessions))); diff != "" {
			t.Fatalf("a clock %s ahead changes what is in force:\n%s", ahead, diff)
		}
	})
}

// facts are the parts of a state that clocks have no say in.
func facts(s State) []string {
	out := []string{fmt.Sprint(s.Activations), "lease " + s.Incident.Lease.From.String()}
	for _, i := range s.Issued {
		out = append(out, fmt.Sprintf("issued %s ended by %q token %s signers %v known %v", i.Directive.ID, i.EndedBy, i.Token, i.Signers, i.Outcome != ""))
	}
	for _, p := range s.Proposals {
		out = append(out, "waits "+p.Directive.ID)
	}
	for _, o := range s.Overrides {
		out = append(out, "override "+o.Operation)
	}
	slices.Sort(out)
	return out
}
