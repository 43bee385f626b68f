package run_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/runbooks/run"
)

// longRun is a night's log: a runbook of 200 steps, half of them checks, each done
// but the last, as the entries of a run that is resumed.
func longRun(t testing.TB, s *shop) (*runbooks.Runbook, []audit.Body) {
	t.Helper()
	var steps []string
	for i := range runbooks.MaxSteps {
		if i%2 == 0 {
			steps = append(steps, fmt.Sprintf("id: s%d\ncheck: {skew: {at_least: 95}}", i))
		} else {
			steps = append(steps, fmt.Sprintf("id: s%d\nnote: {ask: 'What did the graph show?'}", i))
		}
	}
	rb := book(t, "long", steps...)
	bodies := []audit.Body{
		audit.RunSource{Digest: rb.Digest, Data: rb.Source},
		audit.RunStart{Run: "0230-00000001", Runbook: "long", Title: rb.Title, Digest: rb.Digest, Bytes: int64(len(rb.Source)), Signature: "signed", Signers: []string{}, Steps: len(rb.Steps)},
	}
	if len(rb.Source) > audit.MaxRunSource {
		t.Fatalf("the text has %d bytes", len(rb.Source))
	}
	n := 0
	for i := range len(rb.Steps) - 1 {
		id, next := rb.Steps[i].ID, rb.Steps[i+1].ID
		if rb.Steps[i].Kind == runbooks.KindCheck {
			n++
			bodies = append(bodies, audit.RunStep{Run: "0230-00000001", N: n, Step: id, Does: "check", Key: strings.Repeat("a", 64), Params: "{}"})
		}
		n++
		bodies = append(bodies, audit.RunOutcome{Run: "0230-00000001", N: n, Step: id, Key: strings.Repeat("a", 64), State: "done", Value: "4 of 4 hosts have what was issued", Next: next})
	}
	return rb, bodies
}

// BenchmarkResume200 is what a person waits for at ic runbook resume beside the
// start of the program and the fleet's answers: the run is folded, its text found
// in the log and parsed, and it is written down who takes it up. "cold" makes a
// desk of its own, which reads the log, and begins a session for it.
func BenchmarkResume200(b *testing.B) {
	s := newShop(b)
	d := s.desk("ines")
	if _, err := d.Command(context.Background(), incident.Open, "", "long"); err != nil {
		b.Fatal(err)
	}
	_, bodies := longRun(b, s)
	for _, body := range bodies {
		if _, err := d.Record(context.Background(), body, false); err != nil {
			b.Fatal(err)
		}
	}
	resume := func(d seat) {
		r, err := run.Resume(context.Background(), s.options(d, nil))
		if err != nil {
			b.Fatal(err)
		}
		if v := r.View(); v.Current != "s199" {
			b.Fatal(v.Current)
		}
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			resume(d)
		}
	})
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			resume(s.desk("ines"))
		}
	})
}

func TestTheFoldGivesTheSameForEveryOrderOfSessionsAndClocks(t *testing.T) {
	s := newShop(t)
	_, bodies := longRun(t, s)
	random := rand.New(rand.NewPCG(1, 2))
	var want []run.State
	for try := range 20 {
		// Each entry goes to one of three sessions, whose clocks are minutes apart.
		sessions := make([]audit.Session, 3)
		for i := range sessions {
			sessions[i].Name = fmt.Sprintf("shop/night/s%d", i)
		}
		at := time.Date(2026, 11, 30, 2, 30, 0, 0, time.UTC)
		for i, body := range bodies {
			k := random.IntN(3)
			skew := time.Duration(k*random.IntN(10)) * time.Minute
			e := audit.Entry{Seq: int64(len(sessions[k].Entries) + 1), At: at.Add(time.Duration(i)*time.Second + skew), Actor: "ines", Session: fmt.Sprintf("s%d", k), Body: body}
			sessions[k].Entries = append(sessions[k].Entries, e)
			if random.IntN(10) == 0 {
				sessions[k].Entries = append(sessions[k].Entries, e) // written again
			}
		}
		got := run.Fold(sessions)
		random.Shuffle(len(sessions), func(i, j int) { sessions[i], sessions[j] = sessions[j], sessions[i] })
		if again := run.Fold(sessions); !reflect.DeepEqual(got, again) {
			t.Fatalf("try %d: another order of sessions gives another state", try)
		}
		for i := range got {
			timeless(&got[i])
		}
		if want == nil {
			want = got
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("try %d: other clocks give another state", try)
		}
	}
	if len(want) != 1 || len(want[0].Steps) != runbooks.MaxSteps-1 || want[0].Takes != 1 {
		t.Errorf("%d runs, %d steps, %d takes", len(want), len(want[0].Steps), want[0].Takes)
	}
}

// timeless takes away what is allowed to differ: who wrote when.
func timeless(s *run.State) {
	s.At, s.TakenAt = time.Time{}, time.Time{}
	for _, st := range s.Steps {
		for i := range st.Begins {
			st.Begins[i].At, st.Begins[i].Session = time.Time{}, ""
		}
		for i := range st.Outcomes {
			st.Outcomes[i].At = time.Time{}
		}
	}
}

// A runbook longer than one entry is kept in parts, and found again whole.
func TestALongTextIsKeptInTheLog(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	long := strings.Repeat("What it means, at length. ", 4000)
	rb, err := runbooks.Parse("long.md", []byte(strings.Replace(string(book(t, "long", lookStep, seenStep).Source), "What it means.", long, 1)))
	if err != nil || len(rb.Source) < 2*audit.MaxRunSource {
		t.Fatal(err, len(rb.Source))
	}
	step(t, s.start(d, rb))
	r, err := run.Resume(context.Background(), s.options(d, nil))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Runbook().Source, rb.Source) || states(s.follow(r)) != "look=done seen=done" {
		t.Error("the text is another one")
	}
	if again := s.start(d, rb); again.Name() == r.Name() {
		t.Error("one name for two runs")
	}
	parts := 0
	for _, e := range logged(t, d) {
		if e.Kind() == audit.KindRunSource {
			parts++
		}
	}
	if parts != 3 {
		t.Errorf("%d parts: the text of the second run stands there again", parts)
	}
	if s.issued(model.Shed) != 0 {
		t.Error("it shed")
	}
}
