package scenario

import (
	"fmt"
	"path/filepath"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/drill/sim"
)

// aborts looks whether a bound of abort_if is passed, and ends the run.
func (r *Run) aborts() bool {
	for i := range r.s.AbortIf {
		b := &r.s.AbortIf[i]
		now := b.Figure
		if figureNamed(now.Name).at { // as it is now
			now.When, now.Time = "at", r.Now()
		}
		if v, ok := Value(r.rec, now); ok && b.holds(v) {
			r.rec.Aborted = fmt.Sprintf("%s, and it was %s", b.String(), b.Figure.Print(v))
			r.Happened(score.Event{Kind: score.Stopped, What: b.Figure.String(), Detail: r.rec.Aborted})
			r.over = true
			return true
		}
	}
	return false
}

// holds reports whether a value is as the bound says.
func (b *Bound) holds(v int64) bool {
	switch b.Op {
	case "<":
		return v < b.Value
	case "<=":
		return v <= b.Value
	case "=":
		return v == b.Value
	case ">=":
		return v >= b.Value
	case ">":
		return v > b.Value
	default:
		return b.Near(v)
	}
}

// Near reports whether a value lies within what the bound allows of its own.
func (b *Bound) Near(v int64) bool {
	off := v - b.Value
	return max(off, -off) <= b.Value/million*b.Within+b.Value%million*b.Within/million
}

// judge gives the verdict. Figures "within" are those of a source and hold for the
// median over many seeds, not for each: they are for the table of baselines.
func (r *Run) judge() {
	verdict, why := score.Passed, []string(nil)
	for i := range r.s.Expect {
		e := &r.s.Expect[i]
		if e.Mode != r.o.Mode || e.Op == opWithin {
			continue
		}
		v, ok := Value(r.rec, e.Figure)
		switch {
		case !ok:
			why = append(why, fmt.Sprintf("line %d expects %s, and the run does not tell", e.Line, e.String()))
			if verdict == score.Passed {
				verdict = score.Inconclusive
			}
		case !e.holds(v):
			why = append(why, fmt.Sprintf("line %d expects %s, and it was %s", e.Line, e.String(), e.Figure.Print(v)))
			verdict = score.Failed
		}
	}
	if n := len(r.rec.Samples); r.o.Mode != score.Baseline && n > 0 && r.rec.Samples[n-1].BypassOpen > 0 && r.rec.Aborted == "" {
		verdict = score.Failed
		why = append(why, fmt.Sprintf("a bypass is alive at the end, on %d hosts", r.rec.Samples[n-1].BypassOpen))
	}
	for _, in := range r.injected {
		switch {
		case in.state == didNot:
			verdict = score.NotInjected
			why = append(why, fmt.Sprintf("%s had no effect on the world", in.name))
		case in.state == waiting && verdict == score.Passed:
			verdict = score.Inconclusive
			why = append(why, fmt.Sprintf("the run ended before %s could be seen to take", in.name))
		}
	}
	if r.rec.Aborted != "" {
		verdict = score.Aborted
	}
	r.rec.Verdict, r.rec.Why = verdict, why
}

// desksDir is where a simulated fleet keeps the logs of its desks.
const desksDir = "desks"

// evidence reads back the logs that the desks left: who signed what, and whether
// every effect can be proved.
func (r *Run) evidence() error {
	state := filepath.Join(r.o.State, desksDir)
	incidents, err := audit.List(state)
	if err != nil {
		return err
	}
	var sessions []audit.Session
	var folders []string
	for i := range incidents {
		folders = append(folders, audit.Folder(state, incidents[i].ID))
		read, err := audit.Read(incidents[i].ID, state)
		if err != nil {
			return err
		}
		sessions = append(sessions, read...)
	}
	r.name(sessions)
	if len(folders) == 0 {
		return nil // nobody acted, and there is nothing to prove
	}
	bundle := r.w.Bundle()
	result, failed := audit.Verify(audit.VerifyOptions{Realm: directive.Drill, Fleet: sim.Fleet, Trusted: func(fingerprint string) (string, bool) {
		who, ok := bundle.SignerOf(fingerprint)
		return who.Name, ok && !who.Revoked
	}}, folders...)
	r.rec.Evidence = score.EvidenceOf(&result, failed, sessions)
	return nil
}

// name puts into the events who signed what.
func (r *Run) name(sessions []audit.Session) {
	signers := map[string]string{}
	for _, s := range sessions {
		for _, entry := range s.Entries {
			if signed, ok := entry.Body.(audit.Signed); ok && len(signed.Signers) > 0 {
				signers[signed.ID] = signed.Signers[0]
			}
		}
	}
	for i := range r.rec.Events {
		if e := &r.rec.Events[i]; e.Who == "" {
			e.Who = signers[e.ID]
		}
	}
}
