package incident

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
)

// desert is a shop of which the policy names no host, and that has no flag
// service.
func desert(t *testing.T) *shop {
	s := anotherShop(t)
	params := policytest.Params()
	params.Hosts = []policy.InventoryHost{}
	_, s.bundle, _ = policytest.ShopWith(t, params)
	return s
}

func bare(o *Options) { o.Carriers, o.Board, o.Hosts, o.Inventory = nil, nil, nil, nil }

func TestWhereNoHostVerifiesAPersonIsTold(t *testing.T) {
	s := desert(t)
	d := s.desk("ines", bare)
	r, err := s.act(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	if err != nil || r.State != Advised || r.Verdict.Assurance != model.Advised {
		t.Fatalf("%v %+v", err, r)
	}
	right, _, _ := s.bundle.Right("shed")
	tier, _ := s.bundle.TierOf(1)
	for _, want := range []string{"by hand, now: shed all services to tier 1", right.Advice, "tier 1, as users see it: " + tier.Text} {
		if want == "" || !slices.Contains(r.Advice, want) {
			t.Errorf("nobody was told %q: %q", want, r.Advice)
		}
	}
	for name, f := range s.bundle.Features {
		if f.Tiers[1] != policy.NoChange && !slices.Contains(r.Advice, name+": "+f.Tiers[1]) {
			t.Errorf("nobody was told what becomes of %s: %q", name, r.Advice)
		}
	}
	if !strings.Contains(r.Detail, "cannot see whether it is done") || !strings.Contains(r.Detail, "ic recover") {
		t.Errorf("detail %q", r.Detail)
	}
	snap := d.Snapshot()
	if len(snap.Live) != 1 || snap.Live[0].State != string(Advised) || len(snap.Unknown) != 0 {
		t.Errorf("in force %+v, unknown %+v", snap.Live, snap.Unknown)
	}
	if live := snap.World.Rehearsals["shed"]; !live.Live.IsZero() {
		t.Errorf("advice counts as a live use: %+v", live)
	}
	s.refused(d, CloseIt, "", ErrNeeds, "is in force")
}

func TestAnAdvisedShedIsRecoveredByTheSameRules(t *testing.T) {
	s := desert(t)
	d := s.desk("ines", bare)
	if _, err := s.act(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"}); err != nil {
		t.Fatal(err)
	}
	next := decisions.Ask{Right: "recover", Tier: decisions.NextTier, Reason: "calm"}
	if _, err := s.act(d, next); !errors.Is(err, ErrNeeds) {
		t.Fatalf("recovered within the dwell: %v", err)
	}
	s.pass(time.Hour)
	tier, _ := s.bundle.TierOf(1)
	for range tier.Ramp {
		r, err := s.act(d, next)
		if err != nil || r.State != Advised {
			t.Fatalf("%v %+v", err, r)
		}
		s.pass(tier.RampStep.Std())
	}
	if live := d.Snapshot().Live; len(live) != 0 {
		t.Errorf("still in force: %+v", live)
	}
	s.command(d, CloseIt, "")
}

func TestAControlIsNeverOpenedOnAdvice(t *testing.T) {
	s := desert(t)
	d := s.desk("ines", bare)
	if _, err := s.act(d, decisions.Ask{Right: small, Reason: "risk is down"}); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "nobody would close it again") {
		t.Errorf("%v", err)
	}
	if n := len(d.Snapshot().World.Issued); n != 0 {
		t.Errorf("%d directives were signed", n)
	}
}

func TestAdviceSaysHowItIsUndone(t *testing.T) {
	s := desert(t)
	d := s.desk("ines", bare)
	feature := ""
	for name, f := range s.bundle.Features {
		if f.Class == policy.Sheddable && (feature == "" || name < feature) {
			feature = name
		}
	}
	off, err := s.act(d, decisions.Ask{Right: "feature-off", Feature: feature, Reason: "load"})
	if err != nil || !strings.Contains(off.Detail, "ic end "+ShortID(off.ID)) {
		t.Fatalf("%v %+v", err, off)
	}
	end := model.Directive{Kind: model.End, Ends: model.Off, Scope: "*", Right: "nothing"}
	if got := whenOver(&end); got != "what it ends counts as ended" {
		t.Errorf("%q", got)
	}
	if got := adviceOf(s.bundle, &end); len(got) != 2 || got[1] != "the right nothing says nothing about how" {
		t.Errorf("%q", got)
	}
}

// TestACrashBeforeTheAdviceIsSaid: the signature is on disk and nobody was told.
func TestACrashBeforeTheAdviceIsSaid(t *testing.T) {
	s := desert(t)
	d := s.desk("ines", bare)
	if _, err := s.act(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"}); err != nil {
		t.Fatal(err)
	}
	w := d.world()
	r := d.found(&w, &w.Issued[0].Directive)
	if r.State != audit.StateAdvised || !strings.Contains(r.Detail, "shed all services to tier 1") {
		t.Errorf("%+v", r)
	}
	if err := d.Reconcile(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestAdviceNeedsNoDisk: what tightens is said, and its record is on screen.
func TestAdviceNeedsNoDisk(t *testing.T) {
	s := desert(t)
	full := &disk{full: syscall.ENOSPC}
	d := s.desk("ines", bare, on(full))
	r, err := s.act(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	if err != nil || r.State != Advised || len(r.Advice) == 0 || !strings.Contains(r.Receipt, "signed by ines is not on disk yet") {
		t.Errorf("%v %+v", err, r)
	}
}
