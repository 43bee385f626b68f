package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/plugins/sdk"
)

// desk is the seat of somebody who acts: the product's own.
type desk = incident.Desk

// Words that acts use: what a person at a console would type.
const (
	reason   = "rehearsal of a scenario"
	evidence = "looked at what customers see: pages and orders are well on three hosts of each service"
)

// recoverLook is how often somebody who waits for the next step of a recovery looks
// at the console again.
const recoverLook = 15 * time.Second

// actAt does a step of the script at a desk: every act goes the product's one road.
func (r *Run) actAt(ctx context.Context, d *desk, step *Step) error {
	switch step.Verb {
	case "do":
		return r.do(ctx, d, step)
	case verbFollow:
		return r.o.Follows(ctx, r, d, step.Who)
	case "cosign":
		return r.cosign(ctx, d, step)
	case "recover":
		return r.recover(ctx, d, step)
	case "push":
		return r.push(ctx, d, step)
	case "undo":
		return r.undo(ctx, d, step)
	case "check":
		return r.check(ctx, d, step)
	case "command":
		person := ""
		if len(step.Args) > 1 {
			person = step.Args[1]
		}
		return r.reported(step, "", ran(d.Command(ctx, incident.Action(step.Args[0]), person, reason)))
	default:
		return r.reported(step, "", d.Note(ctx, strings.Join(step.Args, " ")))
	}
}

func ran(_ incident.Result, err error) error { return err }

// reported writes down that a step was done, or why it was not.
func (r *Run) reported(step *Step, detail string, err error) error {
	if err != nil {
		r.Happened(score.Event{Kind: score.Denied, Who: step.Who, What: step.words(), Code: codeOf(err), Detail: err.Error()})
		return err
	}
	r.Happened(score.Event{Kind: score.Step, Who: step.Who, What: step.words(), Detail: detail})
	return nil
}

// codeOf is a word for an error that has no verdict.
func codeOf(err error) string {
	switch {
	case errors.Is(err, incident.ErrNeeds):
		return "needs"
	case errors.Is(err, incident.ErrDenied):
		return "denied"
	case errors.Is(err, incident.ErrNoIncident):
		return "no-incident"
	default:
		return "failed"
	}
}

// ask is what a "do" means.
func (r *Run) ask(step *Step) decisions.Ask {
	a := decisions.Ask{Right: step.Args[0], Tier: decisions.NextTier, Reason: reason, Actor: step.Who, Evidence: evidence}
	if right, _, ok := r.w.Bundle().Right(a.Right); ok && right.Kind == model.Shed {
		a.Tier = 0
	}
	for i := 1; i+1 < len(step.Args); i += 2 {
		v := step.Args[i+1]
		switch step.Args[i] { // values were checked by Parse
		case "scope":
			a.Scope = v
		case "tier":
			a.Tier, _ = strconv.Atoi(v)
		case "feature":
			a.Feature = v
		case "for":
			a.Lasts, _ = model.ParseDuration(v)
		case "under":
			a.Under, _ = model.ParseMoney(v + " " + step.Args[i+2])
			i++
		}
	}
	return a
}

// do uses a right: look at the confirmation, type what it asks for, confirm.
func (r *Run) do(ctx context.Context, d *desk, step *Step) error {
	a := r.ask(step)
	right, _, _ := r.w.Bundle().Right(a.Right)
	if right.Kind == model.Bypass && r.o.Mode == score.NoSecondBypass && r.bypasses > 0 {
		r.skipped(step, "in this run nobody grants a second bypass")
		r.chain.moot = true
		return nil
	}
	d.Refresh(ctx)
	preview, err := d.Preview(a)
	if err != nil {
		return r.reported(step, "", err)
	}
	return r.confirm(ctx, d, step, &preview)
}

// confirm signs what was shown. A proposal that lacks only other people is done as
// far as one person can do it.
func (r *Run) confirm(ctx context.Context, d *desk, step *Step, shown *incident.Preview) error {
	if err := r.types(ctx, shown.Typed); err != nil {
		return err
	}
	result, err := d.Execute(ctx, incident.Act{Request: shown.Request, Asked: true})
	if shown.Exposure != nil && (err == nil || result.State == incident.Proposed) {
		r.rec.CapCents += shown.Exposure.WorstCase.Minor
	}
	switch {
	case err == nil:
		return r.reported(step, result.Detail, nil)
	case result.State == incident.Proposed:
		return r.reported(step, "proposed: "+result.Detail, nil)
	case len(result.Verdict.Reasons) == 0:
		return r.reported(step, "", err)
	}
	for i, one := range result.Verdict.Reasons {
		e := score.Event{Kind: score.Denied, Who: step.Who, What: step.words(), Right: shown.Request.Directive.Right, Code: string(one.Code)}
		if i < len(result.Reasons) {
			e.Detail = result.Reasons[i]
		}
		r.Happened(e)
	}
	return err
}

// types is the time that a confirmation's text takes.
func (r *Run) types(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	return r.w.Sleep(ctx, time.Duration(len(text))*keyEvery)
}

// cosign reads the newest proposal that waits and signs it.
func (r *Run) cosign(ctx context.Context, d *desk, step *Step) error {
	d.Refresh(ctx)
	waiting := d.Snapshot().Proposals
	if len(waiting) == 0 {
		r.skipped(step, "nothing waits for a signature")
		return nil
	}
	newest := slices.MaxFunc(waiting, func(a, b incident.Proposal) int { return strings.Compare(a.Directive.ID, b.Directive.ID) })
	approval, err := d.ReadProposal(ctx, newest.Token)
	if err != nil {
		return r.reported(step, "", err)
	}
	if err := r.types(ctx, approval.Typed); err != nil {
		return err
	}
	result, err := d.Cosign(ctx, approval, true)
	return r.reported(step, result.Detail, err)
}

// recover takes every step of the ramp as soon as the console permits it, and stops
// at the tier that was asked for.
func (r *Run) recover(ctx context.Context, d *desk, step *Step) error {
	scope := step.Args[0]
	to, _ := strconv.Atoi(step.Args[2]) // checked by Parse
	ask := decisions.Ask{Right: "recover", Scope: scope, Tier: decisions.NextTier, Reason: reason, Actor: step.Who, Evidence: evidence}
	through := ""
	for i := 3; i+1 < len(step.Args); i += 2 {
		if step.Args[i] == "with" {
			ask.Right = step.Args[i+1]
		} else {
			through = step.Args[i+1]
		}
	}
	said := map[string]bool{}
	for {
		d.Refresh(ctx)
		snapshot := d.Snapshot()
		chain := decisions.ChainOf(&snapshot.World, scope)
		if chain.Tier <= to {
			return r.reported(step, fmt.Sprintf("%s is at tier %d", scope, chain.Tier), nil)
		}
		preview, err := d.Preview(ask)
		if err != nil {
			return r.reported(step, "", err)
		}
		wait := recoverLook
		if preview.Verdict.Outcome == model.Permitted {
			switch err := r.confirm(ctx, d, step, &preview); {
			case errors.Is(err, incident.ErrDenied), errors.Is(err, incident.ErrNeeds): // it has changed since the look: look again
			case err != nil:
				return err
			case through != "":
				_ = r.pushBy(ctx, d, step, through) // what came of it is written down; the next look shows it
			}
		} else {
			wait = r.waitsFor(step, &preview, said)
		}
		if left, err := r.idles(ctx, step, wait); left || err != nil {
			return err
		}
	}
}

// idles lets somebody wait for the next step of a recovery. What the same person has
// to do meanwhile calls away from it, and the recovery is left where it is: nobody
// goes on with leaving a tier when the next act is due.
func (r *Run) idles(ctx context.Context, step *Step, wait time.Duration) (left bool, err error) {
	for until := r.Now() + wait; r.Now() < until; {
		if next := r.called(step.Who); next != nil {
			return true, r.reported(step, "left for: "+next.words(), nil)
		}
		if err := r.w.Sleep(ctx, min(watchEvery, until-r.Now())); err != nil {
			return false, err
		}
	}
	return false, nil
}

// waitsFor says once what a recovery waits for, and when to look again.
func (r *Run) waitsFor(step *Step, p *incident.Preview, said map[string]bool) time.Duration {
	wait := recoverLook
	for i, one := range p.Verdict.Reasons {
		wait = max(wait, min(one.Wait.Std(), time.Minute)) // how long it takes may change meanwhile
		if key := string(one.Code) + one.Name; !said[key] && i < len(p.Reasons) {
			said[key] = true
			r.Happened(score.Event{Kind: score.Step, Who: step.Who, What: score.Waits + string(one.Code), Detail: p.Reasons[i]})
		}
	}
	return wait
}

// push looks at the plan of a backend and carries it out.
func (r *Run) push(ctx context.Context, d *desk, step *Step) error {
	return r.pushBy(ctx, d, step, step.Args[0])
}

func (r *Run) pushBy(ctx context.Context, d *desk, step *Step, backend string) error {
	d.Refresh(ctx)
	plan, err := d.PlanBreak(ctx, backend)
	if err != nil {
		return r.reported(step, "", err)
	}
	began := r.Now()
	result, err := d.Push(ctx, plan, true, func(incident.Progress) {})
	if err == nil {
		r.Pushed(began, step.Who, &plan, &result)
	}
	return r.reported(step, result.Detail, err)
}

// undo takes every push out again that is still there.
func (r *Run) undo(ctx context.Context, d *desk, step *Step) error {
	d.Refresh(ctx)
	left := slices.Clone(d.Snapshot().Overrides)
	slices.SortFunc(left, func(a, b model.Override) int { return strings.Compare(b.Operation, a.Operation) }) // the last one first
	if len(left) == 0 {
		r.skipped(step, "no push is left in a pipeline")
		return nil
	}
	for _, o := range left {
		result, err := d.UndoBreak(ctx, o.Operation, true, func(incident.Progress) {})
		if err = r.reported(step, result.Detail, err); err != nil {
			return err
		}
	}
	return nil
}

// check runs the daily check of a backend, or of all.
func (r *Run) check(ctx context.Context, d *desk, step *Step) error {
	name := step.Args[0]
	if name == "all" {
		name = ""
	}
	found := d.CheckBackends(ctx, name)
	for _, backend := range slices.Sorted(maps.Keys(found)) {
		bad := slices.DeleteFunc(slices.Clone(found[backend]), func(f sdk.Finding) bool { return f.OK })
		detail := backend + ": all is well"
		if len(bad) > 0 {
			detail = backend + ": " + bad[0].Name + ": " + bad[0].Detail
		}
		r.Happened(score.Event{Kind: score.Step, Who: step.Who, What: step.words(), Detail: detail})
	}
	return nil
}

// lookForSkew lets somebody look at his console, where the share of hosts that
// differ is shown.
func (r *Run) lookForSkew(who string) {
	err := r.w.As(who, "looks", r.w.Kernel().Now(), func(ctx context.Context, d *desk) error {
		d.Refresh(ctx)
		r.chain.skewed = d.Snapshot().Skew.Alarm
		return nil
	})
	if err != nil {
		r.fail(err)
	}
}
