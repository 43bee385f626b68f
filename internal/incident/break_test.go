package incident

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/plugins/sdk"
)

// pipeline is a deploy pipeline in memory. It outlives every process that opens
// it, as a real one does.
type pipeline struct {
	mu       sync.Mutex
	shop     *shop
	value    string            // what stands on the hosts
	wrote    map[string]string // operation -> value
	before   map[string]string
	plans    map[string]string // digest -> value
	died     error             // Apply writes (or not) and dies
	arrives  bool              // when it dies: whether it has written before
	stuck    bool              // takes everything, and hosts never get it
	undoDies error
	undoLags bool // takes an undo, and hosts keep what they have
	calls    []string
}

func newPipeline(s *shop) *pipeline {
	return &pipeline{shop: s, wrote: map[string]string{}, before: map[string]string{}, plans: map[string]string{}}
}

func (p *pipeline) options(names ...string) func(*Options) {
	return func(o *Options) {
		for _, name := range names {
			o.Backends = append(o.Backends, Backend{Name: name, Config: policy.Backend{Targets: []string{model.AnyScope}},
				Open: func(context.Context) (OpenBackend, error) { return p, nil }})
		}
	}
}

func (p *pipeline) call(what string) { p.calls = append(p.calls, what) }

func (p *pipeline) Describe(context.Context) (sdk.Description, error) {
	return sdk.Description{Carrier: sdk.Env, Restarts: true}, nil
}
func (p *pipeline) Check(context.Context) ([]sdk.Finding, error) {
	return []sdk.Finding{{Name: "reach", OK: true}}, nil
}
func (p *pipeline) Close() error { return nil }

func (p *pipeline) Plan(_ context.Context, r sdk.PlanRequest) (sdk.Plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var texts []string
	for _, token := range r.Tokens {
		texts = append(texts, token.Text)
	}
	after := strings.Join(texts, " ")
	sum := sha256.Sum256([]byte(p.value + "\n" + after))
	digest := hex.EncodeToString(sum[:])
	p.plans[digest] = after
	return sdk.Plan{Changes: []sdk.Change{{Target: "env", Before: p.value, After: after}}, Targets: len(r.Targets), Digest: digest}, nil
}

func (p *pipeline) Apply(ctx context.Context, digest, operation string, report sdk.Report) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.call("apply")
	if p.died != nil && !p.arrives {
		return p.died
	}
	texts := p.plans[digest]
	p.before[operation], p.wrote[operation], p.value = p.value, texts, texts
	if !p.stuck {
		p.deploy()
	}
	if p.died != nil {
		return p.died
	}
	return report(sdk.Progress{Phase: sdk.Written, Target: "env", Done: 1, Total: 1})
}

// deploy starts every host with what stands in the pipeline.
func (p *pipeline) deploy() {
	for _, h := range p.shop.hosts {
		h.engine.Seen("env", strings.Fields(p.value), nil, p.shop.clock.Now())
	}
}

func (p *pipeline) Observe(_ context.Context, operation string, report sdk.Report) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.call("observe")
	wrote, known := p.wrote[operation]
	switch {
	case !known:
		return sdk.Refuse(sdk.CodeOperationUnknown, "there is no trace of operation %s", operation)
	case wrote != p.value:
		return report(sdk.Progress{Phase: sdk.Undone, Target: "env"})
	}
	return report(sdk.Progress{Phase: sdk.Written, Target: "env"})
}

func (p *pipeline) Undo(_ context.Context, operation string, report sdk.Report) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.call("undo")
	if _, known := p.wrote[operation]; !known {
		return sdk.Refuse(sdk.CodeOperationUnknown, "there is no trace of operation %s", operation)
	}
	p.value = p.before[operation]
	if !p.undoLags {
		p.deploy()
	}
	if p.undoDies != nil {
		return p.undoDies
	}
	return report(sdk.Progress{Phase: sdk.Undone, Target: "env"})
}

// dark is a shop whose flag service is dead, with a shed that no host has got.
func dark(t *testing.T) (*shop, *pipeline, *Desk, Result) {
	t.Helper()
	s := newShop(t)
	s.flags.down = errors.New("dead")
	p := newPipeline(s)
	d := s.desk("ines", p.options("git"))
	r, err := s.actBriefly(d, decisions.Ask{Right: "shed", Tier: 2, Reason: "load"})
	if err != nil || r.State != Unconfirmed {
		t.Fatalf("%v %+v", err, r)
	}
	return s, p, d, r
}

func (s *shop) plan(d *Desk, backend string) BreakPlan {
	s.t.Helper()
	plan, err := d.PlanBreak(context.Background(), backend)
	if err != nil {
		s.t.Fatal(err)
	}
	return plan
}

// briefly bounds the wait for hosts that will not come.
func briefly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestAPushIsEffectiveWhenHostsSaySo(t *testing.T) {
	s, p, d, r := dark(t)
	plan := s.plan(d, "git")
	if len(plan.IDs) != 1 || plan.IDs[0] != r.ID || len(plan.Hosts) != len(s.hosts) || plan.LastKnownGood == "" || len(p.calls) != 0 {
		t.Fatalf("plan %+v after %v", plan, p.calls)
	}
	var last Progress
	done, err := d.Push(context.Background(), plan, true, func(at Progress) { last = at })
	if err != nil || done.State != Effective || done.Done != len(s.hosts) || last.Done != len(s.hosts) {
		t.Fatalf("%v %+v %+v", err, done, last)
	}
	snap := d.Snapshot()
	if len(snap.Overrides) != 1 || snap.Overrides[0].State != "effective" || snap.Mode != model.BreakGlass {
		t.Errorf("%s %+v", snap.Mode, snap.Overrides)
	}
	if live := snap.World.Rehearsals["backend/git"].Live; live.IsZero() {
		t.Error("a real use counts as no rehearsal")
	}
	if b := snap.Backends; len(b) != 1 || b[0].Carrier != "env" {
		t.Errorf("backends %+v", b)
	}
	if _, err := d.Command(context.Background(), CloseIt, "", ""); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "ic break undo "+plan.Operation) {
		t.Errorf("closing over an override: %v", err)
	}
	if value, left := d.CarrierValue(0); value != p.value || len(left) != 0 {
		t.Errorf("by hand it would be %q, left out %v", value, left)
	}
}

func TestAPipelinesWordIsNoSuccess(t *testing.T) {
	s, p, d, _ := dark(t)
	p.stuck = true
	done, err := d.Push(briefly(t), s.plan(d, "git"), false, nil)
	if err != nil || done.State == Effective || done.Done != 0 {
		t.Fatalf("%v %+v", err, done)
	}
	if o := d.Snapshot().Overrides; len(o) != 1 || o[0].State == "effective" {
		t.Errorf("%+v", o)
	}
	if kinds := kindsOf(t, s, done.Incident); !strings.Contains(kinds, "push-intent note push-outcome push-outcome") {
		t.Errorf("nobody was asked, and the log has %s", kinds)
	}
}

func TestAPlanThatHasChangedIsNotCarriedOut(t *testing.T) {
	s, p, d, _ := dark(t)
	plan := s.plan(d, "git")
	if _, err := s.actBriefly(d, decisions.Ask{Right: "shed", Tier: 3, Reason: "more load"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Push(context.Background(), plan, true, nil); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "changed since it was shown") {
		t.Errorf("another shed since: %v", err)
	}
	plan = s.plan(d, "git")
	p.value = "somebody else's"
	if _, err := d.Push(context.Background(), plan, true, nil); !errors.Is(err, ErrNeeds) {
		t.Errorf("another value since: %v", err)
	}
	if _, err := d.Push(context.Background(), BreakPlan{Backend: "git"}, true, nil); !errors.Is(err, ErrNeeds) {
		t.Errorf("a plan that nobody was shown: %v", err)
	}
	if len(p.calls) != 0 || len(d.Snapshot().Overrides) != 0 {
		t.Errorf("%v was called, overrides %+v", p.calls, d.Snapshot().Overrides)
	}
}

// TestAPushThatDiedIsOpenUntilRealityWasRead: what the next status finds out is
// written down; what it cannot find out stays open.
func TestAPushThatDiedIsOpenUntilRealityWasRead(t *testing.T) {
	for _, c := range []struct {
		name    string
		arrives bool
		stuck   bool
		after   time.Duration
		want    string // state of the override; "" means that none is open
		calls   string
	}{
		{"it arrived and hosts have it", true, false, 0, "effective", "apply"},
		{"it arrived and hosts do not have it yet", true, true, 0, "sent", "apply observe"},
		{"it never arrived", false, false, pushPatience, "", "apply observe"},
		{"it may still be on its way", false, false, 0, "unconfirmed", "apply observe"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, p, d, _ := dark(t)
			p.died, p.arrives, p.stuck = errors.New("killed"), c.arrives, c.stuck
			r, err := d.Push(context.Background(), s.plan(d, "git"), true, nil)
			if err == nil || r.State != Unknown {
				t.Fatalf("%v %+v", err, r)
			}
			if o := d.Snapshot().Overrides; len(o) != 1 || !c.arrives && o[0].State != "unconfirmed" {
				t.Fatalf("after its death: %+v", o)
			}
			p.died = nil
			s.pass(c.after)
			next := s.desk("ines", p.options("git"))
			if err := next.Reconcile(context.Background()); err != nil {
				t.Fatal(err)
			}
			next.Refresh(context.Background())
			o := next.Snapshot().Overrides
			if c.want == "" && len(o) != 0 || c.want != "" && (len(o) != 1 || o[0].State != c.want) {
				t.Errorf("overrides %+v, want %q", o, c.want)
			}
			if got := strings.Join(p.calls, " "); got != c.calls {
				t.Errorf("called %s, want %s", got, c.calls)
			}
		})
	}
}

func TestAReaderPushesNothing(t *testing.T) {
	s, p, d, _ := dark(t)
	plan := s.plan(d, "git")
	reader := s.desk("", p.options("git"))
	if _, err := reader.PlanBreak(context.Background(), "git"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a reader planned: %v", err)
	}
	if _, err := reader.Push(context.Background(), plan, true, nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a reader pushed: %v", err)
	}
	if _, err := d.Push(context.Background(), plan, true, nil); err != nil {
		t.Fatal(err)
	}
	reader.Refresh(context.Background())
	if _, err := reader.UndoBreak(context.Background(), "", true, nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a reader removed: %v", err)
	}
	if got := strings.Join(p.calls, " "); got != "apply" {
		t.Errorf("called %s", got)
	}
}

func TestThereIsNothingToCarryAndNobodyToCarryIt(t *testing.T) {
	s := newShop(t)
	p := newPipeline(s)
	d := s.desk("ines", p.options("git"), func(o *Options) {
		o.Backends = append(o.Backends, Backend{Name: "broken", Open: func(context.Context) (OpenBackend, error) { return nil, errors.New("no handshake") }})
	})
	if _, err := d.PlanBreak(context.Background(), "git"); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), nothingToCarry) {
		t.Errorf("nothing in force: %v", err)
	}
	s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	if _, err := d.PlanBreak(context.Background(), "carrier-pigeon"); err == nil || !strings.Contains(err.Error(), "names no backend") {
		t.Errorf("an unknown backend: %v", err)
	}
	if _, err := d.PlanBreak(context.Background(), "broken"); err == nil || !strings.Contains(err.Error(), "no handshake") {
		t.Errorf("a broken backend: %v", err)
	}
	checked := d.CheckBackends(context.Background(), "")
	if f := checked["broken"]; len(f) != 1 || f[0].OK || !checked["git"][0].OK {
		t.Errorf("check %+v", checked)
	}
	if one := d.CheckBackends(context.Background(), "git"); len(one) != 1 {
		t.Errorf("check of one: %+v", one)
	}
	if _, err := d.UndoBreak(context.Background(), "", true, nil); err == nil || !strings.Contains(err.Error(), "no such override") {
		t.Errorf("nothing to remove: %v", err)
	}
}

func TestRemovingAnOverrideThatDiedIsTriedAgain(t *testing.T) {
	s, p, d, _ := dark(t)
	plan := s.plan(d, "git")
	if _, err := d.Push(context.Background(), plan, true, nil); err != nil {
		t.Fatal(err)
	}
	p.undoDies = errors.New("killed")
	if _, err := d.UndoBreak(context.Background(), "git", false, nil); err == nil || !strings.Contains(err.Error(), "counts as open") {
		t.Fatalf("an undo that died: %v", err)
	}
	if n := len(d.Snapshot().Overrides); n != 1 {
		t.Errorf("%d overrides are open after an undo that died", n)
	}
	p.undoDies = nil
	r, err := d.UndoBreak(context.Background(), plan.Operation[len(plan.Operation)-6:], true, nil)
	if err != nil || r.State != Effective || p.value != "" || len(d.Snapshot().Overrides) != 0 {
		t.Fatalf("%v %+v, %q stands", err, r, p.value)
	}
	calls := len(p.calls)
	if _, err := d.UndoBreak(context.Background(), plan.Operation, true, nil); err == nil || len(p.calls) != calls {
		t.Errorf("a third removal: %v, %v", err, p.calls)
	}
}

// TestARemovalIsDoneWhenHostsSaySo: a pipeline that takes an undo and restarts
// nobody has removed nothing, and an incident does not close over it.
func TestARemovalIsDoneWhenHostsSaySo(t *testing.T) {
	s, p, d, _ := dark(t)
	if _, err := d.Push(context.Background(), s.plan(d, "git"), true, nil); err != nil {
		t.Fatal(err)
	}
	p.undoLags = true
	r, err := d.UndoBreak(briefly(t), "git", true, nil)
	if err != nil || r.State != Unconfirmed || r.Done != 0 || r.Total != len(s.hosts) {
		t.Fatalf("%v %+v", err, r)
	}
	if n := len(d.Snapshot().Overrides); n != 1 {
		t.Errorf("%d overrides are open while every host carries one", n)
	}
	if _, err := d.Command(context.Background(), CloseIt, "", ""); err == nil || !strings.Contains(err.Error(), "an override of git") {
		t.Errorf("closing: %v", err)
	}
	p.undoLags = false
	if r, err = d.UndoBreak(context.Background(), "git", true, nil); err != nil || r.State != Effective || len(d.Snapshot().Overrides) != 0 {
		t.Errorf("again: %v %+v", err, r)
	}
}

// TestAShedKeepsItsLastSource: while nothing else carries a shed, and no target
// has it on disk, its override stays.
func TestAShedKeepsItsLastSource(t *testing.T) {
	views := func(s *shop, state string) func(*Options) {
		return func(o *Options) {
			o.Hosts = func(ctx context.Context) []model.HostView {
				hosts := s.views(ctx)
				for i := range hosts {
					hosts[i].Report.State = state
				}
				return hosts
			}
		}
	}
	for _, c := range []struct {
		name    string
		state   string // of every host
		flags   bool   // the flag service is back and has the shed
		second  bool   // a second backend carries it too
		allowed bool
	}{
		{"hosts without a disk", "volatile", false, false, false},
		{"a disk that did not take it", "unpersisted", false, false, false},
		{"a disk that was corrupt", "safe-defaults", false, false, false},
		{"a disk", "ok", false, false, true},
		{"the flag service has it", "volatile", true, false, true},
		{"another pipeline has it", "volatile", false, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, p, _, shed := dark(t)
			other := newPipeline(s)
			d := s.desk("ines", p.options("git"), other.options("host-file"), views(s, c.state))
			plan := s.plan(d, "git")
			if _, err := d.Push(context.Background(), plan, true, nil); err != nil {
				t.Fatal(err)
			}
			if c.second {
				if _, err := d.Push(context.Background(), s.plan(d, "host-file"), true, nil); err != nil {
					t.Fatal(err)
				}
			}
			if c.flags {
				s.flags.down = nil
				s.flags.tokens[shed.ID] = shed.Token
			}
			_, err := d.UndoBreak(context.Background(), plan.Operation, true, nil)
			if c.allowed && err != nil || !c.allowed && (!errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), onlySource)) {
				t.Errorf("allowed %v: %v", c.allowed, err)
			}
		})
	}
}

// TestACarrierThatIsDeadAgainIsNoSource: that it has once taken the shed helps no
// host that restarts now; nor does what hosts themselves have said.
func TestACarrierThatIsDeadAgainIsNoSource(t *testing.T) {
	s := newShop(t)
	p := newPipeline(s)
	d := s.desk("ines", p.options("git"), func(o *Options) {
		o.Hosts = func(ctx context.Context) []model.HostView {
			hosts := s.views(ctx)
			for i := range hosts {
				hosts[i].Report.State = "volatile"
			}
			return hosts
		}
	})
	s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"}) // carried, and effective on hosts
	plan := s.plan(d, "git")
	if _, err := d.Push(context.Background(), plan, true, nil); err != nil {
		t.Fatal(err)
	}
	s.flags.down = errors.New("dead")
	if _, err := d.UndoBreak(context.Background(), "", true, nil); !errors.Is(err, ErrDenied) {
		t.Errorf("removed the last living source: %v", err)
	}
}

func TestOneNameForTwoOverridesIsNotEnough(t *testing.T) {
	w := model.World{Overrides: []model.Override{{Operation: "op-one", Backend: "git"}, {Operation: "op-two", Backend: "git"}}}
	for name, want := range map[string]string{"": "more than one", "git": "more than one", "op-two": "", "two": "no such", "-two": "", "x": "no such"} {
		over, err := findOverride(&w, name)
		if want == "" && (err != nil || over.Operation != "op-two") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v %v", name, over, err)
		}
	}
}

func TestLastKnownGoodIsSaidInWords(t *testing.T) {
	w := model.World{Hosts: []model.HostView{
		{Host: "a", Reachable: true, Report: &model.Report{State: "ok"}}, {Host: "b", Reachable: true, Report: &model.Report{State: "volatile"}}, {Host: "c"},
	}}
	for want, targets := range map[string][]string{"yes": {"a"}, "no": {"b"}, "unknown": {"c"}, "partly: 1 yes, 1 no, 1 unknown": {"a", "b", "c"}} {
		if got := lastKnownGood(&w, targets, sdk.LastKnownGood{Unknown: len(targets)}); got != want {
			t.Errorf("%v: %s, want %s", targets, got, want)
		}
	}
	if got := lastKnownGood(&w, []string{"c"}, sdk.LastKnownGood{Yes: 1}); got != "yes" {
		t.Errorf("what a backend knows: %s", got)
	}
}
