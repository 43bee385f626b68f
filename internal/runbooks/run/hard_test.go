package run_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/runbooks/run"
	"github.com/degradedmode/ic/plugins/sdk"
)

// pipeline is a deploy pipeline in memory: one value, on every host.
type pipeline struct {
	shop          *shop
	value         string
	before, plans map[string]string
	applied       int
}

func (p *pipeline) option(o *incident.Options) {
	o.Backends = []incident.Backend{{Name: "git", Config: policy.Backend{Targets: []string{model.AnyScope}},
		Open: func(context.Context) (incident.OpenBackend, error) { return p, nil }}}
}

func (p *pipeline) Describe(context.Context) (sdk.Description, error) {
	return sdk.Description{Carrier: sdk.File}, nil
}
func (p *pipeline) Check(context.Context) ([]sdk.Finding, error)      { return nil, nil }
func (p *pipeline) Close() error                                      { return nil }
func (p *pipeline) Observe(context.Context, string, sdk.Report) error { return nil }
func (p *pipeline) Plan(_ context.Context, r sdk.PlanRequest) (sdk.Plan, error) {
	var texts []string
	for _, token := range r.Tokens {
		texts = append(texts, token.Text)
	}
	after := strings.Join(texts, " ")
	sum := sha256.Sum256([]byte(p.value + "\n" + after))
	digest := hex.EncodeToString(sum[:])
	p.plans[digest] = after
	return sdk.Plan{Targets: len(r.Targets), Digest: digest}, nil
}

func (p *pipeline) Apply(_ context.Context, digest, operation string, report sdk.Report) error {
	p.applied++
	p.before[operation], p.value = p.value, p.plans[digest]
	return p.deploy(report, sdk.Written)
}

func (p *pipeline) Undo(_ context.Context, operation string, report sdk.Report) error {
	p.value = p.before[operation]
	return p.deploy(report, sdk.Undone)
}

func (p *pipeline) deploy(report sdk.Report, phase sdk.Phase) error {
	for _, h := range p.shop.hosts {
		h.engine.Seen("file", strings.Fields(p.value), nil, p.shop.Now())
	}
	return report(sdk.Progress{Phase: phase, Target: "file", Done: 1, Total: 1})
}

const (
	pushStep = `
id: push
push: {backend: git}
timeout: 5m
on_timeout: stop
probe: {reach: {at_least: 95}}
undo: {push: {undo: git}}`
	takeBackStep = `
id: take-back
push: {undo: git}
timeout: 5m
on_timeout: stop
probe: {reach: {at_least: 95}}
irreversible: it can be pushed again`
)

func TestAPushIsProvedByHostsAndTakenBackByTheSameRun(t *testing.T) {
	s := newShop(t)
	p := &pipeline{shop: s, before: map[string]string{}, plans: map[string]string{}}
	d := s.desk("ines", p.option)
	s.down = true // the flag service is dead: glass is broken
	r := s.start(d, book(t, "risk-down", strings.Replace(shedStep, "on_timeout: stop", "on_timeout: continue", 1), pushStep, takeBackStep))
	v := step(t, r)
	if v.State != run.Failed || v.Done != 0 {
		t.Fatalf("a shed that reached nobody: %+v", v)
	}
	v = step(t, r)
	if v.State != run.Done || p.applied != 1 || s.hosts[1].engine.Tier("checkout", s.Now()) != 2 {
		t.Fatalf("%+v, %d pushes", v, p.applied)
	}
	if over := d.Snapshot().Overrides; len(over) != 1 || over[0].Operation != v.Directive || v.Directive != strings.ToLower(v.Directive) {
		t.Errorf("the operation is not the step's: %+v, %s", over, v.Directive)
	}
	s.down = false // else it would be the only source of the shed
	if _, err := d.Reissue(context.Background()); err != nil {
		t.Fatal(err)
	}
	if v = step(t, r); v.State != run.Done || len(d.Snapshot().Overrides) != 0 {
		t.Errorf("%+v, %d overrides", v, len(d.Snapshot().Overrides))
	}
}

func TestOnAnotherMachineTheRunGoesOnAndRepeatsNothing(t *testing.T) {
	s := newShop(t)
	rb := book(t, "risk-down", shedStep, openStep, seenStep)
	here := s.desk("ines")
	r := s.start(here, rb)
	step(t, r)
	step(t, r)
	night := here.Snapshot().World.Incident.ID
	if err := here.Close(); err != nil {
		t.Fatal(err)
	}
	// What ic incident pack and unpack do: the logs, byte for byte. The clock of the
	// other machine is ten minutes behind.
	from := s.state
	s.state = t.TempDir()
	if err := os.CopyFS(filepath.Join(s.state, "incidents", night), os.DirFS(audit.Folder(from, night))); err != nil {
		t.Fatal(err)
	}
	s.at = s.at.Add(-10 * time.Minute)
	there := s.desk("dev")
	o := s.options(there, nil) // it has never seen the file
	back, err := run.Resume(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	v := s.follow(back)
	if states(v) != "shed=done open=done seen=done" || v.By != "ines" || v.TakenBy != "dev" || v.Steps[2].By != "dev" {
		t.Errorf("%+v", v)
	}
	if s.issued(model.Shed) != 1 || s.issued(model.Bypass) != 1 {
		t.Errorf("%d sheds, %d bypasses", s.issued(model.Shed), s.issued(model.Bypass))
	}
}

// Power is lost between the intent of the step and its signature, and nobody can be
// read afterwards.
func TestWhatCannotBeReadIsUnknownAndAPersonAnswers(t *testing.T) {
	s := newShop(t)
	rb := book(t, "risk-down", shedStep, seenStep)
	d := s.desk("ines")
	r := s.start(d, rb)
	begin := audit.RunStep{Run: r.Name(), N: 1, Step: "shed", Does: "do", Key: "aa", ID: "01M8N4KA20W72CR9XEGGCTEJC5", Params: "{}"}
	if _, err := d.Record(context.Background(), begin, true); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	s.down, s.hosts[2].silent = true, true
	r, err := run.Resume(context.Background(), s.options(s.desk("ines"), rb))
	if err != nil {
		t.Fatal(err)
	}
	if got := states(r.View()); got != "shed=UNKNOWN seen=pending" {
		t.Fatalf("%s", got)
	}
	q, err := r.Question(context.Background())
	if err != nil || q.Kind != run.AskReality {
		t.Fatalf("%v %+v", err, q)
	}
	ctx := context.Background()
	if _, err := r.Next(ctx, run.Answer{Confirm: true}); !errors.Is(err, run.ErrAnswer) {
		t.Errorf("it acts although it is UNKNOWN: %v", err)
	}
	if _, err := r.Next(ctx, run.Answer{Choose: run.ChooseAgain}); !errors.Is(err, run.ErrStopped) {
		t.Errorf("nothing can be read still: %v", err)
	}
	if _, err := r.Next(ctx, run.Answer{Choose: run.ChooseNotDone, Seen: "ok"}); !errors.Is(err, run.ErrAnswer) {
		t.Errorf("a word that says nothing: %v", err)
	}
	if s.puts != 0 {
		t.Fatal("something was sent")
	}
	s.down, s.hosts[2].silent = false, false
	if _, err := r.Next(ctx, run.Answer{Choose: run.ChooseAgain}); err != nil {
		t.Fatal(err)
	}
	if got := states(r.View()); got != "shed=not-done seen=pending" {
		t.Errorf("read again: %s", got)
	}
	if v := s.follow(r); states(v) != "shed=done seen=done" || s.issued(model.Shed) != 1 {
		t.Errorf("%+v", v)
	}
}

func TestAFullDiskHoldsUpNoShedAndEveryOpening(t *testing.T) {
	s := newShop(t)
	full := &mortal{dead: new(atomic.Bool)}
	d := s.desk("ines", func(o *incident.Options) { o.FS = full })
	r := s.start(d, book(t, "risk-down", shedStep, openStep))
	full.mu.Lock()
	full.full = true
	full.mu.Unlock()
	q, err := r.Question(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(context.Background(), say(q)); err != nil {
		t.Fatalf("a shed with a full disk: %v", err)
	}
	if s.issued(model.Shed) != 1 || len(r.Receipts()) == 0 || r.View().Steps[0].State != run.Done {
		t.Errorf("%d sheds, %d receipts, %+v", s.issued(model.Shed), len(r.Receipts()), r.View().Steps[0])
	}
	if q, err = r.Question(context.Background()); err == nil {
		_, err = r.Next(context.Background(), say(q))
	}
	if !errors.Is(err, incident.ErrNeeds) || s.issued(model.Bypass) != 0 {
		t.Errorf("an opening without a durable intent: %v, %d bypasses", err, s.issued(model.Bypass))
	}
}

func TestSilenceNamesTheNextAndOpensNothing(t *testing.T) {
	s := newShop(t)
	medium := strings.NewReplacer("risk-bypass-small-orders", "risk-bypass-medium-orders", "timeout: 5m", "timeout: 6m").Replace(openStep)
	d := s.desk("ines")
	o := s.options(d, book(t, "risk-down", medium, seenStep))
	var told []string
	o.Progress = func(text string) { told = append(told, text) }
	r, err := run.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	q, err := r.Question(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Next(context.Background(), say(q))
	if !errors.Is(err, run.ErrStopped) || !strings.Contains(err.Error(), "nothing was opened") || s.issued(model.Bypass) != 0 {
		t.Fatalf("silence: %v", err)
	}
	first := slices.IndexFunc(told, func(l string) bool {
		return strings.Contains(l, "call fiona (phone list, finance)") && strings.Contains(l, "the next is ravi")
	})
	second := slices.IndexFunc(told, func(l string) bool {
		return strings.Contains(l, "call ravi (phone list, risk)") && strings.Contains(l, "no answer from fiona")
	})
	if first < 0 || second < first {
		t.Errorf("who is called: %q", told)
	}
	if got := states(r.View()); got != "open=failed seen=pending" {
		t.Errorf("%s", got)
	}
}

func TestASecondSignatureLetsTheStepGoOn(t *testing.T) {
	s := newShop(t)
	medium := strings.NewReplacer("risk-bypass-small-orders", "risk-bypass-medium-orders", "timeout: 5m", "timeout: 10m").Replace(openStep)
	d := s.desk("ines")
	r := s.start(d, book(t, "risk-down", medium, seenStep))
	fiona := s.desk("fiona")
	s.onWait = func() {
		s.onWait = nil
		fiona.Refresh(context.Background())
		waits := fiona.Snapshot().Proposals
		if len(waits) != 1 {
			t.Fatalf("%d proposals", len(waits))
		}
		a, err := fiona.ReadProposal(context.Background(), waits[0].Token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fiona.Cosign(context.Background(), a, true); err != nil {
			t.Fatal(err)
		}
	}
	if v := step(t, r); v.State != run.Done || s.issued(model.Bypass) != 1 {
		t.Errorf("%+v", v)
	}
}

func TestARoleIsAskedForWhatAddsRiskOnly(t *testing.T) {
	s := newShop(t)
	as := func(step, role string) string { return step + "\nrole: " + role }
	r := s.start(s.desk("ines"), book(t, "risk-down", as(shedStep, "ladder-controller"), as(openStep, "ladder-controller"), as(seenStep, "incident-commander")))
	if v := step(t, r); v.State != run.Done || !strings.Contains(v.Detail, "does not hold the role ladder-controller") {
		t.Errorf("a pre-signed shed: %+v", v)
	}
	_, err := r.Next(context.Background(), run.Answer{Confirm: true})
	if !errors.Is(err, run.ErrRole) || !errors.Is(err, incident.ErrDenied) || s.issued(model.Bypass) != 0 {
		t.Errorf("an opening for another role: %v", err)
	}
	other := s.start(s.desk("ines"), book(t, "other", as(openStep, "incident-commander")))
	if v := step(t, other); v.State != run.Done || v.Detail != "" {
		t.Errorf("%+v", v)
	}
}

func TestTimeoutsGoWhereTheStepSays(t *testing.T) {
	for _, c := range []struct{ onTimeout, noData, want string }{
		{"stop", "", "look=failed other=pending seen=pending"},
		{"ask", "", "look=failed other=pending seen=pending"},
		{"continue", "", "look=failed other=current seen=pending"},
		{"seen", "", "look=failed other=not-taken seen=current"},
		{"continue", "stop", "look=failed other=pending seen=pending"}, // no answer is never a yes
		{"continue", "ask", "look=failed other=pending seen=pending"},
	} {
		s := newShop(t)
		check := "id: look\ncheck: {promql: 'up', is: '> 5', for: 10s}\ntimeout: 1m\non_timeout: " + c.onTimeout
		if c.noData != "" {
			check = strings.Replace(check, "for: 10s", "for: 10s, no_data: "+c.noData, 1)
		}
		o := s.options(s.desk("ines"), book(t, "risk-down", check, strings.Replace(seenStep, "id: seen", "id: other", 1), seenStep))
		if c.noData == "" {
			o.Query = func(context.Context, string) model.Reading {
				return model.Reading{State: model.ReadingValue, Value: 3, At: s.Now().Wall.Add(-7 * time.Second)}
			}
		}
		r, err := run.Start(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		began := s.Now().Wall
		v, err := r.Next(context.Background(), run.Answer{})
		if got := states(r.View()); got != c.want || (err != nil) != strings.Contains(c.want, "other=pending") {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
		if waited := s.Now().Wall.Sub(began); waited != time.Minute {
			t.Errorf("%+v: waited %s", c, waited)
		}
		if c.noData == "" && (v.Value != "3, wanted > 5" || v.AgeS != 7) {
			t.Errorf("%+v: evidence %q, %d s old", c, v.Value, v.AgeS)
		}
		q, err := r.Question(context.Background())
		switch {
		case err != nil:
			t.Fatal(err)
		case c.noData == "ask":
			if _, err := r.Next(context.Background(), run.Answer{Choose: run.ChooseHolds, Seen: "ok"}); q.Kind != run.AskNoData || !errors.Is(err, run.ErrAnswer) {
				t.Errorf("%+v: %+v, %v", c, q, err)
			}
			if v, err := r.Next(context.Background(), run.Answer{Choose: run.ChooseHolds, Seen: "7 on the wall"}); err != nil || v.State != run.Done {
				t.Errorf("%+v: %v", v, err)
			}
		case c.onTimeout == "ask":
			if v, err := r.Next(context.Background(), run.Answer{Choose: run.ChooseGoOn}); q.Kind != run.AskMissed || err != nil || v.State != run.Failed || r.View().Current != "other" {
				t.Errorf("%+v: %+v, %v", v, q, err)
			}
		case c.onTimeout == "stop":
			o.Query = nil
			if q != nil {
				t.Errorf("it asks %+v", q)
			}
		}
	}
}

func TestACheckHoldsForItsTimeWithoutABreak(t *testing.T) {
	s := newShop(t)
	values := []float64{9, 9, 1, 9, 9, 9, 9, 9, 9, 9}
	o := s.options(s.desk("ines"), book(t, "risk-down", "id: look\ncheck: {promql: 'up', is: '> 5', for: 6s}\ntimeout: 1m\non_timeout: stop"))
	asked := 0
	o.Query = func(context.Context, string) model.Reading {
		asked++
		return model.Reading{State: model.ReadingValue, Value: values[min(asked, len(values))-1], At: s.Now().Wall}
	}
	r, err := run.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := r.Next(context.Background(), run.Answer{}); err != nil || asked != 7 || v.Value != "9, wanted > 5, for 6s" {
		t.Errorf("%d looks, %v %+v", asked, err, v)
	}
}

func TestChecksReadTheFleet(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	o := s.options(d, book(t, "risk-down",
		"id: a\ncheck: {tier: {scope: checkout, is: 0}}", "id: b\ncheck: {bypass: {control: payment-risk, is: closed}}", openStep,
		"id: c\ncheck: {bypass: {control: payment-risk, is: open}}", shedStep, "id: d\ncheck: {tier: {scope: checkout, is: 2}}",
		"id: e\ncheck: {signal: checkout-p99, is: normal}", "id: f\ncheck: {http: {url: 'https://shop.example/healthz', status: 200}}"))
	o.Get = func(_ context.Context, url string) (int, error) { return 200, nil }
	r, err := run.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	v := s.follow(r)
	for _, st := range v.Steps {
		if st.State != run.Done || st.Value == "" && st.Kind == runbooks.KindCheck {
			t.Errorf("%+v", st)
		}
	}
	if got := v.Steps[5].Value; got != "checkout is at tier 2 as issued, 3 of 3 hosts report it" {
		t.Errorf("%s", got)
	}
	closed := s.start(s.desk("ines"), book(t, "closed", "id: b\ncheck: {bypass: {control: payment-risk, is: closed}}"))
	if _, err := closed.Next(context.Background(), run.Answer{}); !errors.Is(err, run.ErrStopped) || !strings.Contains(err.Error(), "open on 3 of 3 hosts") {
		t.Errorf("an open control: %v", err)
	}
}

func TestARecoveryIsTheStepThatWasWrittenOrNone(t *testing.T) {
	s := newShop(t)
	recover := "id: back\nrecover: {scope: checkout, to: 1, percent: PERCENT}\ntimeout: 5m\non_timeout: stop\nprobe: {reach: {at_least: 95}}\nirreversible: shed again"
	r := s.start(s.desk("ines"), book(t, "risk-down", shedStep, strings.Replace(recover, "PERCENT", "50", 1)))
	step(t, r)
	s.pass(time.Hour)
	if _, err := r.Question(context.Background()); !errors.Is(err, incident.ErrNeeds) || !strings.Contains(err.Error(), "the next step of the ramp is tier 1 on 10 %") {
		t.Errorf("another step of the ramp: %v", err)
	}
	right := s.start(s.desk("ines"), book(t, "back", strings.Replace(recover, "PERCENT", "10", 1)))
	if v := step(t, right); v.State != run.Done {
		t.Errorf("%+v", v)
	}
	if s.issued(model.End) != 1 {
		t.Errorf("%d recoveries", s.issued(model.End))
	}
}

func TestTheIdOfAStepSaysWhoseItIs(t *testing.T) {
	s := newShop(t)
	r := s.start(s.desk("ines"), book(t, "risk-down", shedStep, seenStep))
	id := step(t, r).Directive
	var key string
	for _, e := range logged(t, s.desk("dev")) {
		if b, ok := e.Body.(audit.RunStep); ok {
			key = b.Key
			if want := run.Key(r.Runbook().Digest, r.Name(), "shed", b.Params); b.Key != want {
				t.Errorf("key %s, want %s", b.Key, want)
			}
		}
	}
	raw, err := hex.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	if got := crockford(raw[:10]); !strings.HasSuffix(id, got) {
		t.Errorf("id %s does not end in %s", id, got)
	}
	if _, err := directive.Verify(s.tokens[id], directive.Production, "shop-demo"); err != nil {
		t.Error(err)
	}
}

// crockford is base32 as in a ULID, by hand.
func crockford(raw []byte) string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	out, bits, have := "", 0, 0
	for _, b := range raw {
		bits, have = bits<<8|int(b), have+8
		for have >= 5 {
			have -= 5
			out += string(digits[bits>>have&31])
		}
		bits &= 1<<have - 1
	}
	return out
}
