package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/ladder"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

const (
	// DefaultTick is the longest time between two looks. It is shorter when a
	// condition is about to have held for its whole window.
	DefaultTick = 10 * time.Second
	// DefaultStale is how old a view may be when a move is signed: one look and
	// every deadline in it.
	DefaultStale = 20 * time.Second
	// soon is how long a look waits that follows a move: services that are shed one
	// by one must not wait ten seconds each.
	soon = time.Second
	// jumpAllowed is how far wall and boot clock may drift apart between two looks;
	// more is a step of the wall clock.
	jumpAllowed = 5 * time.Second
)

// Limits of one look, in real time.
const (
	actLimit  = 30 * time.Second // sign, carry and count the hosts of one move
	restLimit = 5 * time.Second  // what is written or handed over besides
)

// Options of a controller. Desk, Bundle, Machine, Clock and Sleep are required.
type Options struct {
	Desk    *incident.Desk
	Bundle  *policy.Bundle
	Machine string // whose desk it is
	Clock   model.Clock
	Sleep   func(ctx context.Context, d time.Duration) error // waits for d of the fleet's clock
	Tick    time.Duration                                    // of the fleet's clock; 0: DefaultTick
	Stale   time.Duration                                    // of the fleet's clock; 0: DefaultStale
	// Leads says whether this one is to act, of several; nil: it always is. An error
	// means that nobody can say: then it acts. Two that act are harmless.
	Leads func(context.Context) (bool, error)
	Emit  func(Line)           // after each look; nil: nobody listens
	Alarm func([]ladder.Alarm) // what people have to be told now; never waits; nil: nobody
	Rest  func()               // another one leads, and tells people; nil: nobody listens
}

// Controller runs the ladder of one fleet.
type Controller struct {
	o      Options
	blind  map[string]time.Time // signal -> since when nothing but a value was read
	looked model.Instant        // when the last look ended; zero: never
	raised map[string]ladder.Alarm
	health health
}

// New makes a controller. It does nothing yet.
func New(o Options) (*Controller, error) {
	if o.Desk == nil || o.Bundle == nil || o.Clock == nil || o.Machine == "" || o.Sleep == nil {
		return nil, errors.New("a controller needs a desk, a policy, a clock, a way to wait and the name of its machine")
	}
	if _, machine := o.Bundle.Root.Machines[o.Machine]; !machine {
		return nil, fmt.Errorf("%s is no machine of the trust root: the ladder moves by the key of a machine", o.Machine)
	}
	if o.Tick == 0 {
		o.Tick = DefaultTick
	}
	if o.Stale == 0 {
		o.Stale = DefaultStale
	}
	return &Controller{o: o, blind: map[string]time.Time{}, raised: map[string]ladder.Alarm{}, health: newHealth()}, nil
}

// Run looks until to wait fails, which it does when ctx ends, and gives that
// error back.
func (c *Controller) Run(ctx context.Context) error {
	for {
		line := c.Look(ctx)
		if err := c.o.Sleep(ctx, c.pause(&line)); err != nil {
			return err
		}
	}
}

// pause is until the next look: a tick, or less when time alone may change
// something before.
func (c *Controller) pause(line *Line) time.Duration {
	wait := c.o.Tick
	switch {
	case line.Move != nil && line.Move.Error == "", line.Stale:
		wait = min(wait, soon)
	case !line.Again.IsZero():
		wait = min(wait, max(line.Again.Sub(c.o.Clock.Now().Wall), soon))
	}
	return wait
}

// Look is one look at the fleet, and what follows from it.
func (c *Controller) Look(ctx context.Context) Line {
	began := c.o.Clock.Now()
	line := Line{At: began.Wall.UTC(), Machine: c.o.Machine, Gap: c.woke(began), Leads: true, Why: []string{}, Alarms: []ladder.Alarm{}}
	if line.Gap != "" {
		clear(c.blind) // nobody has looked meanwhile
	}
	if c.o.Leads != nil {
		limited, cancel := context.WithTimeout(ctx, restLimit)
		leads, err := c.o.Leads(limited)
		cancel()
		if err != nil {
			line.problem(err)
		}
		line.Leads = leads || err != nil
	}
	if line.Leads {
		c.lead(ctx, began, &line)
	} else {
		c.rest()
	}
	c.looked = c.o.Clock.Now()
	line.TookMS = (c.looked.Boot - began.Boot).Milliseconds()
	c.health.take(&line)
	if c.o.Emit != nil && (ctx.Err() == nil || line.Move != nil) {
		c.o.Emit(line)
	}
	return line
}

// rest forgets what belongs to whoever leads.
func (c *Controller) rest() {
	clear(c.blind)
	clear(c.raised)
	if c.o.Rest != nil {
		c.o.Rest()
	}
}

// lead reads everything afresh, asks the ladder, and does what it says.
func (c *Controller) lead(ctx context.Context, began model.Instant, line *Line) {
	c.o.Desk.Refresh(ctx)
	if ctx.Err() != nil {
		return // what was cut off is no view
	}
	scene := c.o.Desk.Scene()
	w := &scene.World
	c.watch(w)
	out := ladder.Next(ladder.Input{
		Bundle: c.o.Bundle, World: w, Moves: ladder.MovesOf(c.o.Bundle, c.o.Desk.Known(), w.Now), Machine: c.o.Machine, Blind: c.blind,
	})
	line.see(c.o.Bundle, w, &out)
	if out.Move != nil {
		c.act(ctx, began, &out, line)
	}
	limited, cancel := context.WithTimeout(ctx, restLimit)
	defer cancel()
	if n, err := c.o.Desk.Redeliver(limited); err != nil {
		line.problem(err)
	} else {
		line.Redelivered = n
	}
	c.tell(limited, out.Alarms, line)
}

// woke says why what was known before must not be relied on; "" when nothing has
// happened since the last look. A process that was stopped does not notice it but
// by its clocks.
func (c *Controller) woke(now model.Instant) string {
	if c.looked == (model.Instant{}) {
		return ""
	}
	if now.BootID != c.looked.BootID {
		return "the machine was started again: everything is read afresh"
	}
	passed := now.Boot - c.looked.Boot
	if passed > c.o.Tick+c.o.Stale {
		return fmt.Sprintf("nobody has looked for %s: everything is read afresh", passed.Round(time.Second))
	}
	if step := now.Wall.Round(0).Sub(c.looked.Wall.Round(0)) - passed; step.Abs() > jumpAllowed {
		return fmt.Sprintf("the wall clock was set by %s: everything is read afresh", step.Round(time.Second))
	}
	return ""
}

// watch notes since when signals are missing.
func (c *Controller) watch(w *model.World) {
	for name := range c.o.Bundle.Signals {
		r, read := w.Readings[name]
		_, missing := c.blind[name]
		switch {
		case read && r.State == model.ReadingValue:
			delete(c.blind, name)
		case !missing:
			c.blind[name] = w.Now
		}
	}
}

// act has a move carried out, unless its view has grown old: between reading and
// signing this process may have been stopped for minutes.
func (c *Controller) act(ctx context.Context, began model.Instant, out *ladder.Outcome, line *Line) {
	p := out.Move
	move := moveOf(p)
	line.Move = &move
	if now := c.o.Clock.Now(); now.BootID != began.BootID || now.Boot-began.Boot > c.o.Stale {
		line.Stale = true
		move.Error = fmt.Sprintf("what it would act on is %s old: everything is read again first", (now.Boot - began.Boot).Round(time.Second))
		return
	}
	// Whoever is ended now finishes what he has begun: it is signed, carried and
	// written down, or nothing of it is.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), actLimit)
	defer cancel()
	result, err := c.o.Desk.Execute(limited, incident.Act{Request: p.Request})
	move.ID, move.Incident, move.State, move.Done, move.Total = result.ID, result.Incident, result.State, result.Done, result.Total
	move.Carriers, move.Receipt = result.Carriers, result.Receipt
	if err != nil {
		move.Error = err.Error()
	}
}

// tell hands alarms on, and writes into the log which of them have begun and which
// are over.
func (c *Controller) tell(ctx context.Context, alarms []ladder.Alarm, line *Line) {
	if c.o.Alarm != nil {
		c.o.Alarm(alarms)
	}
	now := make(map[string]ladder.Alarm, len(alarms))
	for _, a := range alarms {
		now[a.Key()] = a
		if _, known := c.raised[a.Key()]; !known {
			c.note(ctx, alarmNote(&a)+a.Text, line)
		}
	}
	for key, a := range c.raised {
		if _, lasts := now[key]; !lasts {
			c.note(ctx, overNote(&a), line)
		}
	}
	c.raised = now
}

// alarmMark begins the notes about alarms in the log. They are what is left for a
// pager that was down while an alarm came and went.
const alarmMark = "alarm "

func alarmNote(a *ladder.Alarm) string { return fmt.Sprintf("%s%s %s: ", alarmMark, a.Kind, a.About) }

func overNote(a *ladder.Alarm) string {
	return fmt.Sprintf("%s%s %s is over", alarmMark, a.Kind, a.About)
}

func (c *Controller) note(ctx context.Context, text string, line *Line) {
	if err := c.o.Desk.Note(ctx, text); err != nil && !errors.Is(err, incident.ErrNoIncident) {
		line.problem(err)
	}
}
