package drill_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/oklog/ulid/v2"
)

type doing func(context.Context, *incident.Desk) error

// schedulePeople fills the night with what people try, and with the deaths of their
// consoles in the middle of it.
func (s *swarm) schedulePeople() {
	s.seated = []string{templates.Ines, templates.Dev, templates.Fiona}
	if s.rng.Below(3) == 0 {
		s.seated = append(s.seated, templates.Priya)
	}
	s.plan(templates.Ines, s.start.Add(time.Duration(s.rng.Between(1, 60))*time.Second), "take command", s.command(incident.Take, ""))
	for range s.rng.Between(10, 20) {
		person := s.seated[s.rng.Below(2)] // mostly those who may
		if s.rng.Below(8) == 0 {
			person = s.seated[s.rng.Below(int64(len(s.seated)))]
		}
		what, do := s.wish()
		s.plan(person, s.at(), what, do)
	}
	for range s.rng.Between(2, 6) {
		s.plan(s.seated[2+s.rng.Below(int64(len(s.seated)-2))], s.at(), "cosign", s.cosign)
	}
	for range s.rng.Below(4) {
		person, writes := s.seated[s.rng.Below(2)], int(s.rng.Below(8))
		s.w.Kernel().At(s.at(), func() {
			s.counts.kills++
			s.must(s.w.Kill(person, writes))
		})
	}
}

// plan has a person do something.
func (s *swarm) plan(person string, at time.Time, what string, do doing) {
	s.must(s.w.As(person, what, at, func(ctx context.Context, d *incident.Desk) error {
		s.counts.acts++
		err := do(ctx, d)
		s.truth.look()
		return err
	}))
}

// wish draws one thing to do. Bounds are drawn so that about half of what is asked
// for lies within them.
func (s *swarm) wish() (string, doing) {
	switch s.rng.Below(20) {
	case 0, 1, 2, 3:
		return "shed", s.use(decisions.Ask{Right: "shed", Scope: s.scope(), Tier: int(s.rng.Between(0, 5))})
	case 4:
		return "shed to the last tier", s.use(decisions.Ask{Right: "shed-4", Scope: s.scope(), Tier: 4})
	case 5, 6:
		return s.someBypass()
	case 7:
		what, open := s.someBypass()
		pause, shut := time.Duration(s.rng.Between(5, 60))*time.Second, s.use(decisions.Ask{Right: "end-bypass", Scope: shop.Checkout})
		return what, func(ctx context.Context, d *incident.Desk) error {
			return errors.Join(open(ctx, d), s.w.Sleep(ctx, pause), shut(ctx, d))
		}
	case 8, 9:
		return "recover", s.recover()
	case 10:
		return "recover blind", s.use(decisions.Ask{Right: "recover-blind", Scope: s.scope(), Tier: decisions.NextTier, Evidence: "looked at ten orders"})
	case 11:
		return "switch off", s.use(decisions.Ask{Right: "feature-off", Scope: s.scope(), Feature: "recommendations"})
	case 12:
		return "end something", s.use(decisions.Ask{Right: []string{"feature-on", "end-bypass", "unfreeze"}[s.rng.Below(3)], Scope: s.scope()})
	case 13:
		return "freeze or ping", s.use(decisions.Ask{Right: []string{"freeze", "ping"}[s.rng.Below(2)], Scope: "*", Lasts: s.lasts()})
	case 14, 15:
		return "push", s.push([]string{"git", "hostfile"}[s.rng.Below(2)])
	case 16:
		return "undo a push", s.undo
	case 17:
		return "someone else's right", s.use(decisions.Ask{Right: []string{"auto-shed", "auto-recover", "dimmer", "nonsense"}[s.rng.Below(4)], Scope: s.scope(), Tier: 1})
	case 18:
		return "hand over again", s.reissue
	}
	actions := []incident.Action{incident.Open, incident.Take, incident.Offer, incident.Accept, incident.Deputise, incident.Relinquish, incident.CloseIt, incident.Take}
	action := actions[s.rng.Below(int64(len(actions)))]
	return string(action), s.command(action, s.seated[s.rng.Below(2)])
}

func (s *swarm) someBypass() (string, doing) {
	rights := []string{"risk-bypass-small-orders", "risk-bypass-small-orders", "risk-bypass-medium-orders", "risk-bypass-medium-alone", "risk-bypass-expired-policy"}
	ask := decisions.Ask{Right: rights[s.rng.Below(int64(len(rights)))], Scope: shop.Checkout, Lasts: s.lasts()}
	if s.rng.Below(3) == 0 {
		ask.Under = model.Money{Minor: s.rng.Between(1, 300_00), Currency: "USD"}
	}
	if s.rng.Below(4) > 0 {
		return "bypass", s.use(ask)
	}
	return "bypass beyond its bounds", s.bent(ask)
}

func (s *swarm) lasts() model.Duration {
	return model.Duration(time.Duration(s.rng.Between(-1, 14)) * 10 * time.Second)
}

func (s *swarm) scope() string {
	scopes := []string{"*", "*", "*", shop.Checkout, shop.Edge, shop.Catalog, "", "elsewhere"}
	return scopes[s.rng.Below(int64(len(scopes)))]
}

// use asks for a right as a console does: look, preview, think, confirm. Some ask for
// the same again later, because they do not know what became of it.
func (s *swarm) use(ask decisions.Ask) doing {
	s.acts++
	ask.Reason = fmt.Sprintf("act %d", s.acts)
	thinks, again, fixed := time.Duration(s.rng.Below(8))*time.Second, s.rng.Below(6) == 0, s.newID()
	wait := time.Duration(s.rng.Between(1, 40)) * time.Second
	looks := s.rng.Below(2) == 0 // others go by what their console has shown last
	return func(ctx context.Context, d *incident.Desk) error {
		if looks {
			d.Refresh(ctx)
		}
		p, err := d.Preview(ask)
		if err != nil {
			return err
		}
		if thinks > 0 {
			if err := s.w.Sleep(ctx, thinks); err != nil {
				return err
			}
		}
		act := incident.Act{Request: p.Request, Asked: true}
		if again {
			if !s.plant.relapse {
				act.ID = fixed
			}
			// Perhaps at another console, if this one dies of what it does now.
			s.plan(d.Snapshot().Person, s.w.Kernel().Now().Add(wait), "ask again", func(ctx context.Context, d *incident.Desk) error {
				s.counts.repeated++
				return s.execute(ctx, d, act)
			})
		}
		return s.execute(ctx, d, act)
	}
}

func (s *swarm) execute(ctx context.Context, d *incident.Desk, act incident.Act) error {
	_, err := d.Execute(ctx, act)
	return err
}

func (s *swarm) newID() string {
	return ulid.MustNew(ulid.Timestamp(s.start), s.rng).String()
}

// bent changes what was confirmed before it is carried out, as a hostile console
// might ask of the same road.
func (s *swarm) bent(ask decisions.Ask) doing {
	s.acts++
	ask.Reason = fmt.Sprintf("act %d", s.acts)
	how := s.rng.Below(6)
	return func(ctx context.Context, d *incident.Desk) error {
		d.Refresh(ctx)
		p, err := d.Preview(ask)
		if err != nil {
			return err
		}
		bend(&p.Request.Directive, how)
		return s.execute(ctx, d, incident.Act{Request: p.Request, Asked: true})
	}
}

// bend takes a bypass over one of its bounds.
func bend(d *model.Directive, how int64) {
	switch how {
	case 0:
		d.Caps.Under.Minor += 200_00
	case 1:
		d.Caps.HostCount *= 10
	case 2:
		d.Caps.HostTotal.Minor *= 10
	case 3:
		d.NotAfter = d.NotAfter.Add(time.Hour)
	case 4:
		d.Control = accessCheck
	default:
		d.Scope = shop.Edge
	}
}

// recover goes one step, and often further; sometimes it asks for more than one tier.
func (s *swarm) recover() doing {
	ask := decisions.Ask{Right: "recover", Scope: s.scope(), Tier: decisions.NextTier}
	if s.rng.Below(6) == 0 {
		ask.Tier = int(s.rng.Below(4))
	}
	steps, pause := s.rng.Below(5), time.Duration(s.rng.Between(8, 30))*time.Second
	return func(ctx context.Context, d *incident.Desk) error {
		for range steps {
			_ = s.use(ask)(ctx, d) // the next one may come through
			if err := s.w.Sleep(ctx, pause); err != nil {
				return err
			}
		}
		return s.use(ask)(ctx, d)
	}
}

func (s *swarm) command(action incident.Action, whom string) doing {
	return func(ctx context.Context, d *incident.Desk) error {
		d.Refresh(ctx)
		_, err := d.Command(ctx, action, whom, "")
		return err
	}
}

// cosign adds a signature to whatever waits for one.
func (s *swarm) cosign(ctx context.Context, d *incident.Desk) error {
	d.Refresh(ctx)
	var failed []error
	for _, p := range d.Snapshot().Proposals {
		a, err := d.ReadProposal(ctx, p.Token)
		if err == nil {
			_, err = d.Cosign(ctx, a, true)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (s *swarm) push(backend string) doing {
	thinks := time.Duration(s.rng.Below(10)) * time.Second
	return func(ctx context.Context, d *incident.Desk) error {
		plan, err := d.PlanBreak(ctx, backend)
		if err != nil {
			return err
		}
		if err := s.w.Sleep(ctx, thinks); err != nil {
			return err
		}
		s.counts.pushes++
		_, err = d.Push(ctx, plan, true, nil)
		return err
	}
}

func (s *swarm) undo(ctx context.Context, d *incident.Desk) error {
	d.Refresh(ctx)
	var failed []error
	for _, o := range d.Snapshot().Overrides {
		_, err := d.UndoBreak(ctx, o.Operation, true, nil)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (s *swarm) reissue(ctx context.Context, d *incident.Desk) error {
	d.Refresh(ctx)
	_, err := d.Reissue(ctx)
	return err
}

// scheduleThief has somebody who can write to the flag service, and holds a stolen
// key or two, try what the policy does not permit.
func (s *swarm) scheduleThief() {
	for range s.rng.Below(4) {
		how := s.rng.Below(9)
		s.w.Kernel().At(s.at(), func() {
			token, id, err := s.forge(how)
			if err != nil {
				s.fail("the thief cannot forge: %v", err)
				return
			}
			_ = s.w.Put(id, token) // the flag service may be down
		})
	}
}

// forge makes a statement that no host may obey.
func (s *swarm) forge(how int64) (token, id string, err error) {
	now := s.w.Kernel().Now().Truncate(time.Second)
	d := s.bypassBy(now)
	by := []string{templates.Ines}
	switch how {
	case 0:
		d.Caps.Under.Minor = 500_00
	case 1:
		d.NotAfter = d.NotBefore.Add(24 * time.Hour)
	case 2:
		d.Control = accessCheck
	case 3:
		by = []string{templates.Fiona, templates.Ravi, templates.Priya} // nobody of the role
	case 4:
		d.Right, d.Caps.Under.Minor = "risk-bypass-medium-orders", 150_00 // its second signature is missing
	case 5:
		d = s.shedBy(now, 4) // so is this one's
	case 6:
		d = s.shedBy(now, 2)
		by = []string{templates.Priya}
	case 7:
		d = s.shedBy(now, 3)
		d.Right, by = "auto-shed", []string{templates.LadderController}
	default:
		d.Caps.HostCount, d.Caps.HostTotal.Minor = 1_000_000, 30_000_00
	}
	token, err = s.law.sign(d, by...)
	return token, d.ID, err
}

func (s *swarm) common(now time.Time) model.Directive {
	return model.Directive{
		ID: ulid.MustNew(ulid.Timestamp(now), s.rng).String(), Fleet: s.law.root.Fleet, Reason: "thief", Incident: "stolen",
		IssuedAt: now, NotBefore: now, Policy: s.law.bundle.Ref,
		Log: model.LogHead{Origin: s.law.root.Fleet + "/stolen/thief", Size: 1, Root: fmt.Sprintf("%064x", 1)},
	}
}

func (s *swarm) bypassBy(now time.Time) model.Directive {
	right, _ := s.law.right("risk-bypass-small-orders")
	d := s.common(now)
	d.Kind, d.Right, d.Scope, d.Control, d.NotAfter = model.Bypass, "risk-bypass-small-orders", shop.Checkout, templates.PaymentRisk, now.Add(time.Minute)
	d.Caps = model.Caps{Under: right.Bypass.Under, HostCount: right.Bypass.HostCount, HostTotal: right.Bypass.HostTotal, Total: right.Bypass.Total}
	return d
}

func (s *swarm) shedBy(now time.Time, tier int) model.Directive {
	d := s.common(now)
	d.Kind, d.Right, d.Scope, d.Tier = model.Shed, "shed", "*", tier
	return d
}
