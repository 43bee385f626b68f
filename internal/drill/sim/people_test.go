package sim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/policy/templates"
)

// A console that dies in the middle leaves at most one statement behind, and the
// next one finds out what became of it.
func TestAConsoleThatIsKilledNeverRepeatsAnAct(t *testing.T) {
	for writes := 1; writes <= 8; writes++ {
		w := newWorld(t, Options{Seed: uint64(writes)})
		if err := w.Kill(templates.Ines, writes); err != nil {
			t.Fatal(err)
		}
		w.use(t, time.Minute, templates.Ines, shed(1), nil)
		w.use(t, 2*time.Minute, templates.Ines, shed(2), nil)
		w.use(t, 3*time.Minute, templates.Ines, shed(3), nil)
		w.Advance(w.at(4 * time.Minute))
		byTier := map[int]int{}
		for _, d := range w.Facts().Live {
			byTier[d.Tier]++
		}
		if byTier[1] > 1 || byTier[2] > 1 || byTier[3] != 1 {
			t.Errorf("killed after %d writes: statements by tier %v", writes, byTier)
		}
		d, err := w.Desk(templates.Ines)
		if err != nil {
			t.Fatal(err)
		}
		for _, is := range d.Known() {
			if is.Outcome == "" {
				t.Errorf("killed after %d writes: what became of %s is UNKNOWN", writes, is.Directive.ID)
			}
		}
		if w.seats[templates.Ines].starts != 2 {
			t.Errorf("killed after %d writes: it was started %d times", writes, w.seats[templates.Ines].starts)
		}
	}
}

func TestAConsoleCanBeKilledWhileItWaitsForHosts(t *testing.T) {
	w := newWorld(t, Options{Seed: 1})
	ended := false
	w.inject(t, 0, faults.FlagsPartition) // so that it waits
	err := w.As(templates.Ines, "shed", w.at(time.Minute), func(ctx context.Context, d *incident.Desk) error {
		_, err := do(ctx, d, shed(1))
		ended = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.k.At(w.at(time.Minute+time.Second), func() {
		if err := w.Kill(templates.Ines, 0); err != nil {
			t.Error(err)
		}
	})
	w.use(t, 2*time.Minute, templates.Ines, shed(2), nil)
	w.Advance(w.at(3 * time.Minute))
	if !ended || obey(w.Facts(), 2) == 0 {
		t.Errorf("the act ended: %v; %d hosts obey what came after it", ended, obey(w.Facts(), 2))
	}
}

func TestAPersonDoesOneThingAtATime(t *testing.T) {
	w := newWorld(t, Options{Seed: 1})
	var order []string
	act := func(name string, lasts time.Duration) {
		err := w.As(templates.Ines, name, w.at(time.Minute), func(ctx context.Context, _ *incident.Desk) error {
			order = append(order, name+" begins")
			err := w.Sleep(ctx, lasts)
			order = append(order, name+" ends")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	act("first", time.Minute)
	act("second", time.Second)
	w.Advance(w.at(3 * time.Minute))
	if got := strings.Join(order, ", "); got != "first begins, first ends, second begins, second ends" {
		t.Error(got)
	}
}

func TestTheWorldCanEndInTheMiddleOfAnAct(t *testing.T) {
	w, err := New(Options{Seed: 1, State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var came error
	err = w.As(templates.Ines, "sleep", w.at(0), func(ctx context.Context, _ *incident.Desk) error {
		came = w.Sleep(ctx, time.Hour)
		return came
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Advance(w.at(time.Minute))
	if err := w.Close(); err != nil || !errors.Is(came, errOver) {
		t.Errorf("the act got %v, the world ended with %v", came, err)
	}
}

func TestDesksCanStandApart(t *testing.T) {
	state := t.TempDir()
	w := newWorld(t, Options{Seed: 1, State: state, Apart: true})
	w.use(t, time.Minute, templates.Ines, shed(1), nil)
	w.use(t, 2*time.Minute, templates.Dev, shed(2), nil)
	w.Advance(w.at(3 * time.Minute))
	for _, person := range []string{templates.Ines, templates.Dev} {
		if _, err := os.Stat(filepath.Join(state, "desks", person, "incidents")); err != nil {
			t.Error(err)
		}
	}
	if n := w.Facts().Service("edge").Tiers[2]; n != 10 {
		t.Errorf("%d of 10 edge hosts obey the higher of two people's sheds", n)
	}
}

// Somebody looks at a console while another goroutine lets time pass, here as fast as
// it can: how many hosts have reported when the console's patience ends is up to the
// machine, but all of them obey.
func TestAPacedWorldTakesDesksFromOtherGoroutines(t *testing.T) {
	w := newWorld(t, Options{Seed: 1, Paced: true, Controller: true})
	d, err := w.Desk(templates.Ines)
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				w.Advance(w.Kernel().Now().Add(100 * time.Millisecond))
			}
		}
	}()
	got, err := do(context.Background(), d, shed(1))
	close(stop)
	<-stopped
	if err != nil {
		t.Errorf("the shed is %s: %v", got.State, err)
	}
	w.Advance(w.Kernel().Now().Add(time.Minute))
	if n := w.Facts().Service("edge").Tiers[1]; n != 10 {
		t.Errorf("%d of 10 edge hosts obey", n)
	}
}

func TestOnlyPeopleOfThePolicyHaveASeat(t *testing.T) {
	w := newWorld(t, Options{Seed: 1, People: []string{templates.Ines}})
	for _, name := range []string{"mallory", templates.Dev, ""} {
		if _, err := w.Desk(name); err == nil {
			t.Errorf("%q has a seat", name)
		}
	}
	if _, err := New(Options{Seed: 1, State: t.TempDir(), Hosts: 5}); err == nil {
		t.Error("a fleet of five was built")
	}
	if _, err := New(Options{Seed: 1}); err == nil {
		t.Error("a world without a folder was built")
	}
}
