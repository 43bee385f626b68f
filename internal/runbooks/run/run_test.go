package run_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/runbooks/run"
)

func TestARunActsProvesAndLeavesEvidence(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	r := s.start(d, book(t, "risk-down", lookStep, decideStep, shedStep, openStep, waitStep, seenStep))
	v := s.follow(r)
	if got, want := states(v), "look=done what=done shed=done open=done settle=done seen=done"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	if v.End != run.Finished || s.issued(model.Shed) != 1 || s.issued(model.Bypass) != 1 {
		t.Errorf("end %q, %d sheds, %d bypasses", v.End, s.issued(model.Shed), s.issued(model.Bypass))
	}
	shed := v.Steps[2]
	if shed.Done != 3 || shed.Total != 3 || shed.By != "ines" || shed.Value != "3 of 3 hosts report it" || len(shed.Directive) != 26 || s.tokens[shed.Directive] == "" {
		t.Errorf("evidence of the shed: %+v", shed)
	}
	if seen := v.Steps[5]; !strings.Contains(seen.Seen, "0.4 s") || v.Steps[1].Choice != "grows" || v.Steps[4].Value != "waited 3m" {
		t.Errorf("evidence: %+v %+v %+v", seen, v.Steps[1], v.Steps[4])
	}
	if title := d.Snapshot().World.Incident.Title; title != "Payment risk is down" {
		t.Errorf("the incident is called %q", title)
	}
	for _, h := range s.hosts {
		if want := map[bool]int{true: 2}[h.service == "checkout"]; h.engine.Tier(h.service, s.Now()) != want {
			t.Errorf("%s at tier %d", h.name, h.engine.Tier(h.service, s.Now()))
		}
	}
	intentBefore := false // the id is on disk before there is a signature
	for _, e := range logged(t, d) {
		switch b := e.Body.(type) {
		case audit.RunStep:
			intentBefore = intentBefore || b.ID == shed.Directive
		case audit.Signed:
			if b.ID == shed.Directive && !intentBefore {
				t.Error("signed before the step's intent was written down")
			}
		}
	}
	if !intentBefore {
		t.Error("the log has no intent of the step with the directive's id")
	}
	if _, err := r.Next(context.Background(), run.Answer{}); !errors.Is(err, run.ErrOver) {
		t.Errorf("after the end: %v", err)
	}
}

// A controller, or somebody at another console, may have opened the incident since
// this one last looked.
func TestARunGoesIntoTheIncidentThatSomebodyElseHasOpened(t *testing.T) {
	s := newShop(t)
	d, other := s.desk("ines"), s.desk("ines")
	opened, err := other.Command(context.Background(), incident.Open, "", "the ladder has shed")
	if err != nil {
		t.Fatal(err)
	}
	if !d.Snapshot().World.Incident.OpenedAt.IsZero() {
		t.Fatal("the first console knows of it already")
	}
	s.start(d, book(t, "risk-down", lookStep))
	if got := d.Snapshot().World.Incident; got.ID != opened.Incident || got.Title != "the ladder has shed" {
		t.Errorf("the run is in %s %q, and %s was open", got.ID, got.Title, opened.Incident)
	}
}

func TestWhatSaysNothingIsNoObservation(t *testing.T) {
	s := newShop(t)
	r := s.start(s.desk("ines"), book(t, "risk-down", seenStep, waitStep))
	for _, said := range []string{"", "  ", "done", "Done.", "ok", "OK!", "yes", "y", "ok done", "it is fine", "…"} {
		if _, err := r.Next(context.Background(), run.Answer{Seen: said}); !errors.Is(err, run.ErrAnswer) {
			t.Errorf("%q was taken: %v", said, err)
		}
		if _, err := r.Skip(context.Background(), said); !errors.Is(err, run.ErrAnswer) {
			t.Errorf("%q was taken as a reason: %v", said, err)
		}
	}
	if r.View().Current != "seen" {
		t.Fatalf("it went on to %q", r.View().Current)
	}
	if v, err := r.Next(context.Background(), run.Answer{Seen: "12"}); err != nil || v.Seen != "12" {
		t.Errorf("a number that was seen: %v %+v", err, v)
	}
}

func TestADecisionLeadsAroundSteps(t *testing.T) {
	s := newShop(t)
	r := s.start(s.desk("ines"), book(t, "risk-down", decideStep, shedStep, seenStep))
	if _, err := r.Next(context.Background(), run.Answer{Choose: "panic"}); !errors.Is(err, run.ErrAnswer) || !strings.Contains(err.Error(), "grows, stable") {
		t.Errorf("a word that is no option: %v", err)
	}
	if _, err := r.Next(context.Background(), run.Answer{Choose: "stable"}); err != nil {
		t.Fatal(err)
	}
	if got, want := states(r.View()), "what=done shed=not-taken seen=current"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if s.issued(model.Shed) != 0 {
		t.Error("it shed")
	}
}

func TestAnEffectWantsConfirmationOfWhatWasShown(t *testing.T) {
	s := newShop(t)
	r := s.start(s.desk("ines"), book(t, "risk-down", openStep))
	q, err := r.Question(context.Background())
	if err != nil || q.Kind != run.AskConfirm || q.Preview == nil || q.Preview.Exposure == nil || q.Typed != "skip payment-risk" {
		t.Fatalf("%v %+v", err, q)
	}
	if _, err := r.Next(context.Background(), run.Answer{}); !errors.Is(err, run.ErrAnswer) {
		t.Errorf("without confirmation: %v", err)
	}
	if len(s.tokens) != 0 {
		t.Error("something was signed")
	}
}

func TestOnlyWhatIsSignedIsFollowedInARealFleet(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	for _, state := range []runbooks.SignState{runbooks.Unsigned, runbooks.Changed, runbooks.Short} {
		o := s.options(d, book(t, "risk-down", seenStep))
		o.Signature = runbooks.Signature{State: state}
		if _, err := run.Start(context.Background(), o); !errors.Is(err, incident.ErrDenied) || !errors.Is(err, run.ErrUnsigned) || !strings.Contains(err.Error(), "ic runbook sign") {
			t.Errorf("%s: %v", state, err)
		}
	}
	if !d.Snapshot().World.Incident.OpenedAt.IsZero() {
		t.Error("a refused run has opened an incident")
	}
	plain, err := runbooks.Parse("theirs.md", []byte("# Theirs\n\n## Look at the queue\n\n```sh\nrm -rf /\n```\n\n## Call somebody\n"))
	if err != nil || !plain.Manual {
		t.Fatalf("%v %+v", err, plain)
	}
	o := s.options(d, plain)
	o.Signature = runbooks.Signature{State: runbooks.Unsigned}
	r, err := run.Start(context.Background(), o)
	if err != nil {
		t.Fatalf("a check list without effects: %v", err)
	}
	if v := s.follow(r); v.Signature != "plain" || len(s.tokens) != 0 {
		t.Errorf("%+v", v)
	}

	drill := s.desk("ines", func(o *incident.Options) { o.Realm, o.State = directive.Drill, t.TempDir() })
	o = s.options(drill, book(t, "risk-down", seenStep))
	o.Signature = runbooks.Signature{State: runbooks.Unsigned}
	if _, err := run.Start(context.Background(), o); err != nil {
		t.Errorf("in a rehearsal: %v", err)
	}
}

func TestTwoRunsOfOneRunbook(t *testing.T) {
	s := newShop(t)
	rb := book(t, "risk-down", shedStep, seenStep)
	first := s.start(s.desk("ines"), rb)
	other := s.desk("dev")
	if _, err := run.Start(context.Background(), s.options(other, rb)); !errors.Is(err, run.ErrRunning) || !strings.Contains(err.Error(), first.Name()+" by ines") {
		t.Fatalf("the second is not told: %v", err)
	}
	o := s.options(other, rb)
	o.Again = true
	second, err := run.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	step(t, first)
	step(t, second)
	if s.issued(model.Shed) != 2 {
		t.Errorf("%d sheds of two runs: their keys do not differ", s.issued(model.Shed))
	}
	if _, err := run.Look(run.Options{Desk: other, Clock: s}); !errors.Is(err, incident.ErrNeeds) || errors.Is(err, run.ErrNoRun) || !strings.Contains(err.Error(), "2 runs fit, name one of them: ") {
		t.Errorf("which of two: %v", err)
	}
}

func TestWhoTakesARunUpIsTheOneWhoFollowsIt(t *testing.T) {
	s := newShop(t)
	rb := book(t, "risk-down", lookStep, shedStep, seenStep)
	mine := s.start(s.desk("ines"), rb)
	step(t, mine)
	theirs, err := run.Resume(context.Background(), s.options(s.desk("dev"), rb))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mine.Next(context.Background(), run.Answer{Confirm: true}); !errors.Is(err, run.ErrTaken) || !strings.Contains(err.Error(), "dev") {
		t.Errorf("the first goes on: %v", err)
	}
	v := s.follow(theirs)
	if v.By != "ines" || v.TakenBy != "dev" || v.Steps[0].By != "ines" || v.Steps[1].By != "dev" || s.issued(model.Shed) != 1 {
		t.Errorf("%+v", v)
	}
}

func TestARunbookThatChangedStopsTheRun(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	step(t, s.start(d, book(t, "risk-down", lookStep, shedStep, seenStep)))
	changed := book(t, "risk-down", lookStep, strings.Replace(shedStep, "tier: 2", "tier: 3", 1), waitStep)
	_, err := run.Resume(context.Background(), s.options(d, changed))
	var differs *run.ChangedError
	if !errors.Is(err, run.ErrChanged) || !errors.As(err, &differs) || !strings.Contains(err.Error(), "steps: shed changed, seen gone, settle added") {
		t.Fatalf("%v", err)
	}
	o := s.options(d, changed)
	o.Kept = true
	r, err := run.Resume(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	v := s.follow(r)
	if !v.Kept || states(v) != "look=done shed=done seen=done" {
		t.Errorf("%+v", v)
	}
	for _, h := range s.hosts[1:] {
		if h.engine.Tier("checkout", s.Now()) != 2 {
			t.Errorf("%s follows the changed text", h.name)
		}
	}
}

func TestASkippedStepKeepsItsReasonAndAnAbortOffersTheUndos(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	r := s.start(d, book(t, "risk-down", shedStep, openStep, waitStep, seenStep))
	step(t, r)
	step(t, r)
	if v, err := r.Skip(context.Background(), "the queue is empty already"); err != nil || v.State != run.Skipped || v.Seen != "the queue is empty already" {
		t.Fatalf("%v %+v", err, v)
	}
	if err := r.Abort(context.Background(), "risk answers again"); err != nil {
		t.Fatal(err)
	}
	undos := r.Undos()
	if len(undos) != 2 || undos[0].Step != "open" || undos[0].What != "use the right end-bypass" || undos[1].What != "recover checkout" {
		t.Fatalf("undos %+v", undos)
	}
	open := undos[0].Directive
	q, err := r.UndoQuestion(context.Background(), "open")
	if err != nil || q.Preview.Request.Directive.IDs[0] != open {
		t.Fatalf("%v %+v", err, q)
	}
	if _, err := r.Undo(context.Background(), "open", run.Answer{Confirm: true, Asked: true}); err != nil {
		t.Fatal(err)
	}
	if ok, _ := s.hosts[1].engine.Allow("payment-risk", "checkout", model.Money{Minor: 100, Currency: "USD"}, s.Now()); ok {
		t.Error("the bypass is still open")
	}
	if left := r.Undos(); len(left) != 1 || left[0].Step != "shed" {
		t.Errorf("left %+v", left)
	}
	if _, err := r.Undo(context.Background(), "open", run.Answer{Confirm: true}); !errors.Is(err, run.ErrOver) {
		t.Errorf("twice: %v", err)
	}
	// Dwell: the policy holds the recovery back, whatever the runbook says.
	if _, err := r.Undo(context.Background(), "shed", run.Answer{Confirm: true}); !errors.Is(err, incident.ErrNeeds) {
		t.Errorf("a recovery too early: %v", err)
	}
	s.pass(time.Hour)
	if v, err := r.Undo(context.Background(), "shed", run.Answer{Confirm: true}); err != nil && !errors.Is(err, run.ErrStopped) {
		t.Errorf("a recovery: %v %+v", err, v)
	}
}
