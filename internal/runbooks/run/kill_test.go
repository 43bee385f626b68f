package run_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/runbooks/run"
)

// mortal is the real file system of a process that dies at one of its calls:
// before it, in the middle of a write, or after it. The kernel then lets go of its
// locks, as it does for a process that was killed.
type mortal struct {
	audit.OS
	dieAt  int // 0: never
	dead   *atomic.Bool
	killed chan struct{}

	mu    sync.Mutex
	full  bool // the disk takes nothing, and nobody dies
	calls int
	files []audit.File
}

var errDead = errors.New("the process is dead")

// moment is one place to die at. It reports whether the process lives on.
func (m *mortal) moment() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead.Load() || m.full {
		return false
	}
	if m.calls++; m.calls != m.dieAt {
		return true
	}
	m.dead.Store(true)
	for _, f := range m.files {
		_ = f.Close()
	}
	close(m.killed)
	return false
}

// around is a call with a moment before and one behind it.
func (m *mortal) around(call func() error) error {
	if !m.moment() {
		return errDead
	}
	err := call()
	if !m.moment() {
		return errDead
	}
	return err
}

func (m *mortal) Mkdir(folder string) (made bool, err error) {
	err = m.around(func() error { made, err = m.OS.Mkdir(folder); return err })
	return made, err
}

func (m *mortal) SyncDir(folder string) error {
	return m.around(func() error { return m.OS.SyncDir(folder) })
}

func (m *mortal) Create(path string) (audit.File, error) {
	var f audit.File
	err := m.around(func() (err error) {
		if f, err = m.OS.Create(path); err == nil {
			m.mu.Lock()
			m.files = append(m.files, f)
			m.mu.Unlock()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &mortalFile{f, m}, nil
}

type mortalFile struct {
	audit.File
	of *mortal
}

func (f *mortalFile) Write(p []byte) (int, error) {
	if !f.of.moment() {
		return 0, errDead
	}
	half := len(p) / 2
	if _, err := f.File.Write(p[:half]); err != nil {
		return 0, err
	}
	if !f.of.moment() {
		return half, errDead
	}
	if _, err := f.File.Write(p[half:]); err != nil {
		return half, err
	}
	if !f.of.moment() {
		return len(p), errDead
	}
	return len(p), nil
}

func (f *mortalFile) Sync() error { return f.of.around(f.File.Sync) }

// live follows the runbook in a process that dies at a call, and returns how many
// calls it made.
func live(s *shop, rb *runbooks.Runbook, dieAt int) int {
	m := &mortal{dieAt: dieAt, killed: make(chan struct{})}
	d := s.desk("ines", func(o *incident.Options) {
		o.FS, o.Wait = m, func(ctx context.Context, d time.Duration) error {
			if m.dead.Load() {
				return errDead
			}
			return s.wait(ctx, d)
		}
		m.dead = new(atomic.Bool)
	})
	m.dead = d.dead
	done := make(chan struct{})
	go func() {
		defer close(done)
		o := s.options(d, rb)
		o.Wait = func(ctx context.Context, pause time.Duration) error {
			if d.dead.Load() {
				return errDead
			}
			return s.wait(ctx, pause)
		}
		r, err := run.Start(context.Background(), o)
		for err == nil && !d.dead.Load() && !r.View().Finished {
			q, qerr := r.Question(context.Background())
			if err = qerr; err == nil {
				_, err = r.Next(context.Background(), say(q))
			}
		}
		if err != nil && !d.dead.Load() {
			s.t.Errorf("before the kill: %v", err)
		}
	}()
	select {
	case <-m.killed:
	case <-done:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

func TestKilledAtEveryCallTheRunGoesOnAndRepeatsNothing(t *testing.T) {
	_, bundle, keys := policytest.Shop(t)
	rb := book(t, "risk-down", lookStep, shedStep, openStep, seenStep)
	whole := newShopOf(t, bundle, keys)
	calls := live(whole, rb, 0)
	if whole.issued(model.Shed) != 1 || whole.issued(model.Bypass) != 1 || calls < 100 {
		t.Fatalf("without a kill: %d calls, %d sheds", calls, whole.issued(model.Shed))
	}
	unknown := 0
	for at := 1; at <= calls; at++ {
		t.Run(fmt.Sprintf("call %d", at), func(t *testing.T) {
			s := newShopOf(t, bundle, keys)
			live(s, rb, at)
			s.pass(time.Second)
			before := s.puts
			d := s.desk("ines")
			r, err := run.Resume(context.Background(), s.options(d, rb))
			if all, _ := run.Runs(d); errors.Is(err, run.ErrNoRun) && len(all) == 1 && all[0].End == run.Finished {
				return // it died behind its end
			}
			if errors.Is(err, run.ErrNoRun) || errors.Is(err, incident.ErrNoIncident) {
				if before > 0 {
					t.Fatalf("%d tokens went out before the run was written down", before)
				}
				r, err = run.Start(context.Background(), s.options(d, rb))
			}
			if err != nil {
				t.Fatal(err)
			}
			if d.Snapshot().World.Incident.Lease.Holder == "" {
				if _, err := d.Command(context.Background(), incident.Take, "", ""); err != nil {
					t.Fatal(err)
				}
			}
			for _, v := range r.View().Steps {
				if v.State == run.Unknown {
					unknown++
				}
			}
			v := s.follow(r)
			if got, want := states(v), "look=done shed=done open=done seen=done"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if s.issued(model.Shed) != 1 || s.issued(model.Bypass) != 1 {
				t.Errorf("%d sheds and %d bypasses: an effect was repeated", s.issued(model.Shed), s.issued(model.Bypass))
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if err := verified(s, d); err != nil {
				t.Error(err)
			}
		})
	}
	t.Logf("%d calls; %d steps had to be asked about", calls, unknown)
}
