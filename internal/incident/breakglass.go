package incident

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/breakglass"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/plugins/sdk"
	"github.com/oklog/ulid/v2"
)

// Codes of what stands in the way of a push or of its removal.
const (
	nothingToCarry = "nothing is in force that a pipeline could carry"
	onlySource     = "a shed or off in force would have no other source, and no host is known to hold it on disk"
)

// PlanBreak asks a backend what carrying everything in force would change. It
// changes nothing.
func (d *Desk) PlanBreak(ctx context.Context, backend string) (BreakPlan, error) {
	d.Refresh(ctx)
	w := d.world()
	tokens := d.carried(&w)
	plan := BreakPlan{Backend: backend, At: w.Now, Verdict: model.Verdict{Outcome: model.Permitted, Direction: model.Tighten, Assurance: model.HostHeld}}
	if err := d.mayPush(tokens); err != nil {
		return plan, err
	}
	b, open, err := d.start(ctx, backend)
	if err != nil {
		return plan, err
	}
	defer open.Close()
	return d.planWith(ctx, b, open, tokens, &w, plan)
}

func (d *Desk) planWith(ctx context.Context, b Backend, open OpenBackend, tokens []sdk.Token, w *model.World, plan BreakPlan) (BreakPlan, error) {
	described, err := open.Describe(ctx)
	if err != nil {
		return plan, fmt.Errorf("%s: describe: %w", b.Name, err)
	}
	plan.Hosts, plan.Rehearsed = targetsOf(w, b.Config.Targets), w.Rehearsals["backend/"+b.Name]
	made, err := open.Plan(ctx, sdk.PlanRequest{Tokens: tokens, Targets: plan.Hosts})
	if err != nil {
		return plan, fmt.Errorf("%s: plan: %w", b.Name, err)
	}
	d.described.Store(b.Name, described)
	plan.Carrier, plan.Digest = string(described.Carrier), made.Digest
	plan.Restarts, plan.Targets, plan.LeftOut = made.Restarts, made.Targets, made.LeftOut
	plan.LastKnownGood = lastKnownGood(w, plan.Hosts, made.LastKnownGood)
	for _, t := range tokens {
		if !slices.Contains(made.LeftOut, t.ID) {
			plan.IDs = append(plan.IDs, t.ID)
		}
	}
	for _, c := range made.Changes {
		plan.Changes = append(plan.Changes, BreakChange{Target: c.Target, Before: c.Before, After: c.After, Owner: c.Owner})
		if c.Conflict {
			plan.Conflicts = append(plan.Conflicts, fmt.Sprintf("%s belongs to %s and stays untouched", c.Target, c.Owner))
		}
	}
	id, err := ulid.New(ulid.Timestamp(w.Now), d.o.Rand)
	if err != nil {
		return plan, fmt.Errorf("make an operation id: %w", err)
	}
	plan.Operation = strings.ToLower(id.String())
	return plan, nil
}

func (d *Desk) mayPush(tokens []sdk.Token) error {
	switch {
	case d.o.Person == "":
		return fmt.Errorf("%w: no key of yours is in the trust root", ErrReadOnly)
	case len(tokens) == 0:
		return fmt.Errorf("%w: %s", ErrNeeds, nothingToCarry)
	}
	return nil
}

func (d *Desk) start(ctx context.Context, name string) (Backend, OpenBackend, error) {
	b, ok := d.backend(name)
	if !ok {
		return b, nil, fmt.Errorf("the policy names no backend %q", name)
	}
	open, err := b.Open(ctx)
	if err != nil {
		return b, nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, open, nil
}

// carried is everything that a host has to know: what is in force, and every
// ending, which costs little and repairs a host that has missed one. The most
// important comes first.
func (d *Desk) carried(w *model.World) []sdk.Token { return breakglass.InOrder(d.ranked(w)) }

func (d *Desk) ranked(w *model.World) []breakglass.Ranked {
	var ranked []breakglass.Ranked
	for i := range w.Issued {
		is := &w.Issued[i]
		live := is.LiveAt(w.Now) || w.Now.Before(is.Directive.NotBefore) && is.EndedBy == ""
		if is.Token == "" || !live {
			continue
		}
		ranked = append(ranked, breakglass.Ranked{Directive: is.Directive, Token: is.Token})
	}
	return ranked
}

// CarrierValue is what a person would put on a host by hand when no pipeline is
// left: the same tokens in the same order, and the ids of what did not fit into
// limit bytes (0: as much as hosts read). It holds no secret and changes nothing.
func (d *Desk) CarrierValue(limit int) (value string, leftOut []string) {
	w := d.world()
	return breakglass.CarrierValue(d.ranked(&w), limit)
}

// targetsOf lists the hosts that run one of the services a backend reaches.
func targetsOf(w *model.World, services []string) []string {
	var out []string
	for i := range w.Hosts {
		h := &w.Hosts[i]
		if slices.Contains(services, model.AnyScope) || slices.ContainsFunc(h.Services, func(s string) bool { return slices.Contains(services, s) }) {
			out = append(out, h.Host)
		}
	}
	return out
}

// lastKnownGood puts into words how many targets would come back from a restart
// with what they know. What a backend cannot tell, the hosts' own reports do.
func lastKnownGood(w *model.World, targets []string, told sdk.LastKnownGood) string {
	if told.Yes+told.No == 0 {
		told = breakglass.KnownGood(w.Hosts, targets)
	}
	switch {
	case told.No == 0 && told.Unknown == 0:
		return "yes"
	case told.Yes == 0 && told.No == 0:
		return "unknown"
	case told.Yes == 0 && told.Unknown == 0:
		return "no"
	default:
		return fmt.Sprintf("partly: %d yes, %d no, %d unknown", told.Yes, told.No, told.Unknown)
	}
}

// Push carries out a plan that was shown. The plan is made again first: when the
// world has moved, nothing is done.
func (d *Desk) Push(ctx context.Context, shown BreakPlan, asked bool, progress func(Progress)) (Result, error) {
	plan, log, result, err := d.apply(ctx, shown, asked, progress)
	if err != nil {
		return result, err
	}
	d.observePush(ctx, log, &plan, shown.Operation, &result, progress)
	d.publish()
	return result, nil
}

// apply takes a push as far as the backend's answer. Counting hosts afterwards
// holds up no other act.
func (d *Desk) apply(ctx context.Context, shown BreakPlan, asked bool, progress func(Progress)) (plan BreakPlan, log *audit.Writer, result Result, err error) {
	d.acts.Lock()
	defer d.acts.Unlock()
	d.Refresh(ctx)
	w := d.world()
	result = Result{ID: shown.Operation, Incident: w.Incident.ID}
	tokens := d.carried(&w)
	if err = d.mayPush(tokens); err != nil {
		return plan, nil, result, err
	}
	b, open, err := d.start(ctx, shown.Backend)
	if err != nil {
		return plan, nil, result, err
	}
	defer open.Close()
	if plan, err = d.planWith(ctx, b, open, tokens, &w, BreakPlan{Backend: shown.Backend}); err != nil {
		return plan, nil, result, err
	}
	if shown.Operation == "" || plan.Digest != shown.Digest {
		return plan, nil, result, fmt.Errorf("%w: the plan has changed since it was shown: look at the new one", ErrNeeds)
	}
	if log, err = d.session(ctx, &w); err != nil {
		return plan, nil, result, err
	}
	result.Incident = w.Incident.ID
	result.Receipt = d.note(log, audit.PushIntent{Operation: shown.Operation, Backend: b.Name, PlanDigest: plan.Digest, IDs: plan.IDs, Restarts: plan.Restarts})
	if !asked {
		d.note(log, audit.Note{Text: "nobody was asked before the push " + shown.Operation})
	}
	d.publish()
	heard := d.relay(b.Name, progress)
	if err = open.Apply(ctx, plan.Digest, shown.Operation, heard.report); err != nil {
		result.State = Unknown
		d.note(log, audit.PushOutcome{Operation: shown.Operation, State: audit.StateUnconfirmed, Detail: err.Error(), Total: plan.Targets})
		d.publish()
		return plan, log, result, fmt.Errorf("%s: push: %w: what became of it is UNKNOWN until hosts report (ic status)", b.Name, err)
	}
	result.State, result.Carriers = Sent, heard.lines
	d.note(log, audit.PushOutcome{Operation: shown.Operation, State: audit.StateSent, Detail: strings.Join(heard.lines, "; "), Total: plan.Targets})
	return plan, log, result, nil
}

// relayed collects what a backend says about itself, for the log.
type relayed struct {
	backend string
	show    func(Progress)
	lines   []string
}

// maxRelayed bounds the lines of one operation in the log.
const maxRelayed = 20

func (d *Desk) relay(backend string, show func(Progress)) *relayed {
	return &relayed{backend: backend, show: show}
}

func (r *relayed) report(p sdk.Progress) error {
	if r.show != nil {
		r.show(Progress{Phase: string(p.Phase), Target: p.Target, Done: p.Done, Total: p.Total, Message: p.Message})
	}
	if len(r.lines) < maxRelayed {
		line := fmt.Sprintf("%s: %s %s", r.backend, p.Phase, p.Target)
		if p.RemoteID != "" {
			line += " (" + p.RemoteID + ")"
		}
		r.lines = append(r.lines, line)
	}
	return nil
}

// pushObserve is how long host reports are waited for after a push: a pipeline
// restarts in batches. What is not there by then is unconfirmed, and the console
// goes on counting.
const pushObserve = 90 * time.Second

// observePush counts the targets that hold everything that was pushed.
func (d *Desk) observePush(ctx context.Context, log *audit.Writer, plan *BreakPlan, operation string, result *Result, progress func(Progress)) {
	if d.o.Hosts == nil {
		result.State, result.Detail = Unconfirmed, "no host reports are configured"
		return
	}
	delivery := breakglass.Delivery{Operation: operation, Backend: plan.Backend, IDs: plan.IDs, Targets: plan.Hosts, SentAt: d.o.Clock.Now().Wall}
	looks := d.looks(ctx, pushObserve)
	defer looks.end()
	var state breakglass.State
	for {
		d.lookAtHosts(looks.ctx)
		w := d.world()
		delivery.IDs = standing(&w, plan.IDs)
		state = breakglass.StateOf(delivery, w.Hosts, w.Now)
		delivery.Held = state.Holding
		if progress != nil {
			progress(Progress{Phase: "hosts", Done: state.N, Total: state.M, Message: "hosts hold all of it, by their own reports"})
		}
		d.publish()
		if state.Word == breakglass.Effective {
			break
		}
		if !looks.next() {
			break
		}
	}
	result.Done, result.Total, result.State = state.N, state.M, State(state.Word)
	result.Detail = fmt.Sprintf("%s: %d of %d hosts hold all of it", state, state.N, state.M)
	d.note(log, audit.PushOutcome{Operation: operation, State: string(state.Word), Detail: result.Detail, Done: state.N, Total: state.M})
}

// pushPatience is how long after a push silence still means "sent".
const pushPatience = 3 * time.Minute

// overridesOf puts into the overrides how far hosts say that they have come.
func (d *Desk) overridesOf(w *model.World) []model.Override {
	out := slices.Clone(w.Overrides)
	for i := range out {
		b, ok := d.backend(out[i].Backend)
		if !ok {
			continue
		}
		ids := standing(w, out[i].IDs)
		if len(ids) == 0 {
			out[i].State = "run out"
			continue
		}
		delivery := breakglass.Delivery{
			Operation: out[i].Operation, Backend: out[i].Backend, IDs: ids, Targets: targetsOf(w, b.Config.Targets),
			SentAt: out[i].Since, Patience: pushPatience,
		}
		if out[i].State == audit.StateUnconfirmed {
			delivery.Patience = 0 // it died in the middle, or nobody wrote down how it ended
		}
		out[i].State = breakglass.StateOf(delivery, w.Hosts, w.Now).String()
	}
	return out
}

// standing leaves out what has run out or was ended since it was pushed: no host
// has to hold it any more.
func standing(w *model.World, ids []string) []string {
	var out []string
	for _, id := range ids {
		at := slices.IndexFunc(w.Issued, func(is model.Issued) bool { return is.Directive.ID == id })
		if at < 0 || w.Issued[at].EndedBy == "" && (w.Issued[at].Directive.NotAfter.IsZero() || w.Now.Before(w.Issued[at].Directive.NotAfter)) {
			out = append(out, id)
		}
	}
	return out
}

// findOverride finds an override by its operation, by the end of it, or by its
// backend; "" means the only one there is.
func findOverride(w *model.World, name string) (*model.Override, error) {
	var found *model.Override
	for i := range w.Overrides {
		o := &w.Overrides[i]
		if name == "" || o.Operation == name || o.Backend == name || len(name) >= 4 && strings.HasSuffix(o.Operation, name) {
			if found != nil {
				return nil, fmt.Errorf("%w: more than one override fits: name the operation", ErrNeeds)
			}
			found = o
		}
	}
	if found == nil {
		return nil, errors.New("there is no such override: see ic status")
	}
	return found, nil
}

// onlyCarrierOf names a live shed or off that only this override carries and that
// none of its targets is known to hold on disk; "" when there is none.
func (d *Desk) onlyCarrierOf(w *model.World, over *model.Override) string {
	h := d.seen.copy()
	targets := []string{}
	if b, ok := d.backend(over.Backend); ok {
		targets = targetsOf(w, b.Config.Targets)
	}
	for i := range w.Issued {
		is := &w.Issued[i]
		kind := is.Directive.EndedAs()
		if !slices.Contains(over.IDs, is.Directive.ID) || !is.LiveAt(w.Now) || kind != model.Shed && kind != model.Off {
			continue
		}
		if !h.carries(is.Directive.ID) && !otherOverride(w, over, is.Directive.ID) && !heldOnDisk(w, targets, is.Directive.ID) {
			return TitleOf(&is.Directive)
		}
	}
	return ""
}

// carries reports whether a carrier that answers now holds a directive. That one
// has acknowledged it some time is no source for a host that restarts now.
func (h *heard) carries(id string) bool {
	return slices.ContainsFunc(h.carriers, func(c carrierState) bool {
		_, there := c.tokens[id]
		return there && c.err == nil && !c.readAt.IsZero()
	})
}

func otherOverride(w *model.World, over *model.Override, id string) bool {
	return slices.ContainsFunc(w.Overrides, func(o model.Override) bool {
		return o.Operation != over.Operation && o.Backend != over.Backend && slices.Contains(o.IDs, id)
	})
}

func heldOnDisk(w *model.World, targets []string, id string) bool {
	for i := range w.Hosts {
		h := &w.Hosts[i]
		if !slices.Contains(targets, h.Host) || !h.Reachable || h.Report == nil || !inForce(h.Report, id) {
			continue
		}
		if breakglass.KnownGood(w.Hosts[i:i+1], []string{h.Host}).Yes > 0 {
			return true
		}
	}
	return false
}

// CheckBackends runs the daily check of one backend, or of all.
func (d *Desk) CheckBackends(ctx context.Context, name string) map[string][]sdk.Finding {
	out := make(map[string][]sdk.Finding)
	for _, b := range d.o.Backends {
		if name != "" && b.Name != name {
			continue
		}
		open, err := b.Open(ctx)
		if err != nil {
			out[b.Name] = []sdk.Finding{{Name: "start", Detail: err.Error()}}
			continue
		}
		findings, err := open.Check(ctx)
		if err != nil {
			findings = append(findings, sdk.Finding{Name: "check", Detail: err.Error()})
		}
		out[b.Name] = findings
		open.Close()
	}
	return out
}
