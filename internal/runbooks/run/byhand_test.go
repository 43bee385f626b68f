package run_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/runbooks/run"
)

// bare is a desk before a fleet of which no host verifies directives and to which no
// carrier leads: a person does by hand what ic says.
func bare(o *incident.Options) { o.Carriers, o.Hosts, o.Inventory = nil, nil, nil }

func TestWhatIsDoneByHandIsSaidWholeAndProvedByWhoeverSeesIt(t *testing.T) {
	params := policytest.Params()
	params.Hosts = []policy.InventoryHost{}
	_, bundle, keys := policytest.ShopWith(t, params)
	s := newShopOf(t, bundle, keys)
	d := s.desk("ines", bare)
	o := s.options(d, book(t, "risk-down", strings.Replace(shedStep, "on_timeout: stop", "on_timeout: ask", 1), seenStep))
	var told []string
	o.Progress = func(text string) { told = append(told, text) }
	r, err := run.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	right, _, _ := bundle.Right("shed")
	whole := []string{"by hand, now: shed checkout to tier 2", right.Advice, "it counts as in force until ic recover says otherwise"}
	for _, f := range bundle.Features {
		if does := f.Tiers[2]; f.Service == "checkout" && does != "" && does != policy.NoChange {
			whole = append(whole, does)
		}
	}
	if v, err := r.Next(context.Background(), run.Answer{Confirm: true}); !errors.Is(err, run.ErrStopped) {
		t.Fatalf("%v %+v", err, v)
	}
	for _, line := range whole {
		if !strings.Contains(told[0], line) {
			t.Errorf("it is not said at once: %q in %q", line, told)
		}
	}

	// Also to whoever takes the run up without having heard it.
	if r, err = run.Resume(context.Background(), s.options(d, o.Runbook)); err != nil {
		t.Fatal(err)
	}
	q, err := r.Question(context.Background())
	if err != nil || q == nil || q.Kind != run.AskNoData || len(q.Options) != 3 || q.Options[1].Choose != run.ChooseHolds {
		t.Fatalf("what a person sees is not asked for: %v %+v", err, q)
	}
	for _, line := range whole {
		if !strings.Contains(q.Text, line) {
			t.Errorf("the question does not say %q: %q", line, q.Text)
		}
	}
	if _, err := r.Next(context.Background(), run.Answer{Choose: run.ChooseHolds, Seen: "done"}); !errors.Is(err, run.ErrAnswer) {
		t.Errorf("a word that says nothing: %v", err)
	}
	v, err := r.Next(context.Background(), run.Answer{Choose: run.ChooseHolds, Seen: "tier 2 in the configuration of all four hosts"})
	if err != nil || v.State != run.Done || !strings.Contains(v.Seen, "all four hosts") {
		t.Errorf("%v %+v", err, v)
	}
	if got := r.View().Current; got != "seen" {
		t.Errorf("it stands at %q", got)
	}
}

func TestOnlyHostsThatHaveTheControlAreAskedAboutIt(t *testing.T) {
	const closeStep = `
id: close
do: {right: end-bypass, scope: checkout, reason: the check is back}
timeout: 5m
on_timeout: stop
probe: {bypass: {control: payment-risk, is: closed}}
irreversible: closed is the safe state`
	s := newShop(t)
	r := s.start(s.desk("ines"), book(t, "risk-down", openStep, closeStep))
	if v := step(t, r); v.State != run.Done || v.Total != 3 || v.Value != "payment-risk: 1 grant in force, open on 3 of 3 hosts that have it, 0 silent" {
		t.Errorf("open: %+v", v)
	}
	s.hosts[0].silent = true // of edge, which scores no order
	if v := step(t, r); v.State != run.Done || !strings.Contains(v.Value, "open on 0 of 3") {
		t.Errorf("closed: %+v", v)
	}
	if s.issued(model.Bypass) != 1 {
		t.Errorf("%d bypasses", s.issued(model.Bypass))
	}
}
