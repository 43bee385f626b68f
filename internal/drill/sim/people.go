package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/controller"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/kernel"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/templates"
	"golang.org/x/crypto/ssh"
)

// seat is a person, or the machine, before a desk. He does one thing at a time.
type seat struct {
	person string
	desk   *incident.Desk
	disk   *disk
	clock  *kernel.HostClock // of his machine
	starts int               // of his console
	busy   *process
	absent bool // does nothing until he comes back; then everything that waits
	tasks  []task
}

type task struct {
	what string
	do   func(context.Context, *incident.Desk) error
}

// Desk is a person's seat: the same one at every call, until his console is killed.
func (w *World) Desk(person string) (*incident.Desk, error) {
	s, err := w.seat(person)
	if err != nil {
		return nil, err
	}
	return s.desk, nil
}

func (w *World) seat(person string) (*seat, error) {
	if s := w.seats[person]; s != nil {
		return s, nil
	}
	if !w.sits(person) {
		return nil, fmt.Errorf("%q has no seat in this simulation", person)
	}
	s := &seat{person: person, clock: w.k.HostClock("desk/" + person)}
	if err := w.sitDown(s); err != nil {
		return nil, err
	}
	w.seats[person] = s
	return s, nil
}

// sitDown starts a console for a seat.
func (w *World) sitDown(s *seat) error {
	s.starts++
	s.disk = &disk{full: &w.diskFull}
	carrier := &wire{flagService: w.flags, disk: s.disk}
	d, err := incident.New(incident.Options{
		Realm: directive.Drill, Fleet: Fleet, Person: s.person, State: w.stateOf(s.person), Session: fmt.Sprintf("%s-%d", s.person, s.starts),
		Bundle: w.bundle, Clock: s.clock, Rand: w.k.Stream("desk/" + s.person), FS: s.disk,
		Signer:   func(context.Context) (ssh.Signer, error) { return w.signers[s.person], nil },
		Carriers: []incident.Carrier{carrier}, Board: carrier, Readings: w.read, Hosts: w.views, Inventory: w.listing,
		Backends: w.backends(s.disk), Wait: w.wait, Faults: w.faultViews, Fault: w.setFault,
	})
	if err != nil {
		return fmt.Errorf("seat %s: %w", s.person, err)
	}
	s.desk = d
	return nil
}

// wire is what leads from one console to the flag service. It is cut when the
// console dies.
type wire struct {
	*flagService
	disk *disk
}

// Put implements incident.Carrier.
func (c *wire) Put(ctx context.Context, id, token string) error {
	if c.disk.dead.Load() {
		return errDead
	}
	return c.flagService.Put(ctx, id, token)
}

// Kill ends a person's console as SIGKILL does, in whatever it was doing, and starts
// another one on the same folder, which reads reality before anything else. writes
// is how many more writes to its log it survives; 0 is now.
func (w *World) Kill(person string, writes int) error {
	s, err := w.seat(person)
	if err != nil {
		return err
	}
	w.k.Log(person, "killed", kernel.Int("writes", int64(writes)))
	if writes > 0 {
		s.disk.left.Store(int64(writes))
		return nil
	}
	return w.bury(s)
}

// bury takes a dead console away and starts the next one.
func (w *World) bury(s *seat) error {
	s.disk.kill()
	p := s.busy
	s.busy, s.desk = nil, nil
	if p != nil {
		w.end(p)
	}
	if err := w.sitDown(s); err != nil {
		return err
	}
	first := task{"reconcile", func(ctx context.Context, d *incident.Desk) error {
		d.Refresh(ctx)
		return d.Reconcile(ctx)
	}}
	s.tasks = slices.Insert(s.tasks, 0, first)
	w.k.At(w.k.Now(), func() { w.next(s) })
	return nil
}

func (w *World) sits(person string) bool {
	if person == templates.LadderController {
		return true
	}
	for _, p := range w.o.People {
		if p == person && w.signers[p] != nil {
			return true
		}
	}
	return false
}

// As has a person do something at a virtual time, or as soon as he has finished
// what he is doing then. In act time passes whenever the desk waits for hosts, and
// by Sleep. One desk must not be used by two acts at once: give everything that a
// person does to As. What the act returns stands in the event log.
func (w *World) As(person, what string, at time.Time, act func(context.Context, *incident.Desk) error) error {
	s, err := w.seat(person)
	if err != nil {
		return err
	}
	w.k.At(at, func() {
		s.tasks = append(s.tasks, task{what, act})
		w.next(s)
	})
	return nil
}

// next begins what a person has to do next, if he is there and free.
func (w *World) next(s *seat) {
	if s.busy != nil || s.absent || len(s.tasks) == 0 {
		return
	}
	t := s.tasks[0]
	s.tasks = s.tasks[1:]
	w.k.Log(s.person, "begins", kernel.Word("what", t.what))
	p := w.process(func(ctx context.Context) {
		desk, disk := s.desk, s.disk
		err := t.do(ctx, desk)
		if desk != s.desk {
			return // he has another console by now
		}
		outcome := "done"
		if err != nil {
			outcome = err.Error()
		}
		w.k.Log(s.person, "ends", kernel.Word("what", t.what), kernel.Word("outcome", outcome))
		s.busy = nil
		if disk.dead.Load() {
			if err := w.bury(s); err != nil {
				w.fail(err)
			}
			return
		}
		w.k.At(w.k.Now(), func() { w.next(s) })
	})
	s.busy = p
	w.resume(p)
}

// setAbsent sends people away or calls them back.
func (w *World) setAbsent(absent bool, people ...string) error {
	for _, person := range people {
		if !w.sits(person) {
			continue
		}
		s, err := w.seat(person)
		if err != nil {
			return err
		}
		s.absent = absent
		w.next(s)
	}
	return nil
}

// lookEvery is the least time between two looks at all hosts: a large fleet is not
// asked seven times a second.
func (w *World) lookEvery() time.Duration {
	if w.o.Look > 0 {
		return w.o.Look
	}
	return time.Duration(len(w.hosts)/perHostUpTo) * 100 * time.Millisecond
}

// views is what every host says about itself now.
func (w *World) views(ctx context.Context) []model.HostView {
	defer w.enter(ctx)()
	now := w.k.Now()
	out := make([]model.HostView, len(w.hosts))
	for i, h := range w.hosts {
		v := model.HostView{Host: h.spec.Name, Services: []string{h.spec.Service}, Via: "sim"}
		if h.awake() {
			report := h.engine.Report(h.clock.Now())
			v.Reachable, v.SeenAt, v.Report = true, now, &report
		} else {
			v.Detail = "connection refused"
		}
		out[i] = v
	}
	return out
}

// listing is the inventory, before anybody was asked. A desk writes into the views,
// so each gets its own.
func (w *World) listing() incident.Listing {
	return incident.Listing{
		Inventory: model.Inventory{Source: "policy", At: w.k.Now(), MaxAge: w.bundle.Inventory.MaxAge, Hosts: len(w.hosts)},
		Hosts:     slices.Clone(w.expected),
	}
}

// startController seats the machine that runs the ladder.
func (w *World) startController() error {
	s, err := w.seat(templates.LadderController)
	if err != nil {
		return err
	}
	c, err := controller.New(controller.Options{
		Desk: s.desk, Bundle: w.bundle, Machine: templates.LadderController, Clock: w.k.HostClock("controller"), Sleep: w.Sleep,
		Emit: w.heardController,
	})
	if err != nil {
		return err
	}
	w.k.After(controller.DefaultTick, func() {
		w.resume(w.process(func(ctx context.Context) { _ = c.Run(ctx) })) // it ends with the world, and says only that
	})
	return nil
}

// heardController writes down what the ladder has moved.
func (w *World) heardController(l controller.Line) {
	if l.Move == nil {
		return
	}
	w.k.Log(templates.LadderController, "move", kernel.Word("what", string(l.Move.Purpose)), kernel.Word("id", l.Move.ID),
		kernel.Word("title", l.Move.Title), kernel.Word("error", l.Move.Error))
}
