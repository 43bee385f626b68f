package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
)

func TestPersistedBeforeObeyed(t *testing.T) {
	h := newHost(t)
	first := h.take(shed(3))
	h.take(open(10*time.Minute, start))
	second := h.take(step(3, 100, first))
	h.wantTier("checkout", 2)
	h.wantOpen(true)
	h.crash() // the moment after: all of it was on disk
	h.wantTier("checkout", 2)
	h.wantOpen(true)
	h.wantState(engine.StateOK)

	disk := h.folder.(*engine.Memory)
	disk.Fail(errors.New("no space left on device"))
	id, loosening := h.make(open(5*time.Minute, start))
	if r := h.offer(loosening); r.Code != engine.CodeNotDurable || r.New {
		t.Errorf("a bypass that cannot be written: %+v", r)
	}
	if got := h.refused(id); got != engine.CodeNotDurable {
		t.Errorf("the report says %q", got)
	}
	_, recovery := h.make(step(2, 100, first, second))
	if r := h.offer(recovery); r.Code != engine.CodeNotDurable {
		t.Errorf("a recovery that cannot be written: %+v", r)
	}
	h.wantTier("checkout", 2)
	h.take(shed(4)) // tightening goes through with a full disk
	h.wantTier("checkout", 4)
	h.wantState(engine.StateUnpersisted)
	if h.StoreError() == nil {
		t.Error("nothing says why")
	}

	disk.Fail(nil)
	h.clock.pass(10 * time.Second)
	h.Advance(h.clock.Now())
	h.wantState(engine.StateOK)
	if n := len(h.live()); n != 4 { // two bypasses, the shed to 4, the second step
		t.Errorf("%d are live after the disk is back: %v", n, h.live())
	}
	h.crash()
	h.wantTier("checkout", 4)
	if n := len(h.live()); n != 4 {
		t.Errorf("%d are live after a crash: %v", n, h.live())
	}
}

// failing is a folder whose changes fail from the nth on, as after a kill.
type failing struct {
	*engine.Memory
	left int
}

var errKilled = errors.New("killed")

func (f *failing) spend() error {
	if f.left--; f.left < 0 {
		return errKilled
	}
	return nil
}

func (f *failing) Create(name string) (engine.File, error) {
	if err := f.spend(); err != nil {
		return nil, err
	}
	file, err := f.Memory.Create(name)
	return &failingFile{file, f}, err
}

func (f *failing) Rename(from, to string) error {
	return errors.Join(f.spend(), f.do(func() error { return f.Memory.Rename(from, to) }))
}
func (f *failing) Remove(name string) error {
	return errors.Join(f.spend(), f.do(func() error { return f.Memory.Remove(name) }))
}
func (f *failing) Sync() error { return errors.Join(f.spend(), f.do(f.Memory.Sync)) }

func (f *failing) do(op func() error) error {
	if f.left < 0 {
		return nil
	}
	return op()
}

type failingFile struct {
	engine.File
	folder *failing
}

// Write leaves half of its bytes behind when it is the one that fails.
func (f *failingFile) Write(p []byte) (int, error) {
	if err := f.folder.spend(); err != nil {
		if f.folder.left == -1 {
			_, _ = f.File.Write(p[:len(p)/2])
			_ = f.File.Sync()
		}
		return 0, err
	}
	return f.File.Write(p)
}

func (f *failingFile) Sync() error {
	if err := f.folder.spend(); err != nil {
		return err
	}
	return f.File.Sync()
}

func TestAKillAtEveryChangeOfTheFolderLosesNothingObeyed(t *testing.T) {
	for kill := 0; ; kill++ {
		h := newHost(t)
		disk := &failing{engine.NewMemory(), kill}
		h.folder = disk
		h.start()
		seen := map[string]bool{} // what cannot be undone without having been written
		note := func(what string, happened bool) {
			if happened && disk.left >= 0 {
				seen[what] = true
			}
		}
		_, opening := h.make(open(10*time.Minute, start))
		id, shedding := h.make(shed(3))
		_, recovery := h.make(step(3, 100, id))
		note("bypass", h.offer(opening).New)
		note("shed", h.offer(shedding).New)
		let := 0
		for range 5 {
			if ok, _ := h.allow(100); ok {
				let++
			}
		}
		note("recovery", h.offer(recovery).New)
		h.clock.pass(15 * time.Second)
		h.Advance(h.clock.Now())
		obeyed := h.Tier("checkout", h.clock.Now())
		finished := disk.left >= 0

		h.folder = disk.Memory.Crash()
		h.start()
		if seen["bypass"] {
			h.wantOpen(true)
		}
		if seen["shed"] && h.Tier("checkout", h.clock.Now()) < 2 {
			t.Errorf("kill %d: a shed that was written is gone", kill)
		}
		if (seen["recovery"] || obeyed == 2) && h.Tier("checkout", h.clock.Now()) != 2 {
			t.Errorf("kill %d: a recovery was obeyed and is gone", kill)
		}
		if more := drain(h); let+more > 40 {
			t.Errorf("kill %d: %d items passed, the budget is 40", kill, let+more)
		}
		if finished {
			if kill < 12 {
				t.Errorf("only %d changes were made, that is not the whole story", kill)
			}
			return
		}
	}
}

// hanging is a folder whose writes do not return until they are let go.
type hanging struct {
	*engine.Memory
	hangs   atomic.Bool
	reached chan struct{}
	letGo   chan struct{}
}

func (f *hanging) Create(name string) (engine.File, error) {
	file, err := f.Memory.Create(name)
	return &hangingFile{file, f}, err
}

type hangingFile struct {
	engine.File
	folder *hanging
}

func (f *hangingFile) Sync() error {
	if f.folder.hangs.Load() {
		f.folder.reached <- struct{}{}
		<-f.folder.letGo
	}
	return f.File.Sync()
}

func TestADiskThatHangsHoldsUpNobodyWhoAsks(t *testing.T) {
	h := newHost(t)
	disk := &hanging{Memory: engine.NewMemory(), reached: make(chan struct{}), letGo: make(chan struct{})}
	h.folder = disk
	h.start()
	h.take(open(10*time.Minute, start))
	h.wantOpen(true)
	_, shedding := h.make(shed(3))
	_, recovery := h.make(step(3, 100, h.live()[0]))

	disk.hangs.Store(true)
	done := make(chan engine.Result, 2)
	now := h.clock.Now()
	go func() { done <- h.Offer("test", shedding, now) }()
	<-disk.reached
	go func() { done <- h.Offer("test", recovery, now) }()

	h.wantTier("checkout", 3) // tightening is in force while it is being written
	h.wantState(engine.StateUnpersisted)
	if h.Off("reviews", "checkout", h.clock.Now()) || !h.IsOpen("risk", "checkout", h.clock.Now()) {
		t.Error("an answer is wrong while the disk hangs")
	}
	h.clock.pass(10 * time.Minute)
	h.wantOpen(false) // and what ends, ends

	disk.hangs.Store(false)
	close(disk.letGo)
	for range 2 {
		if r := <-done; r.Code != "" || !r.New {
			t.Errorf("after the disk is back: %+v", r)
		}
	}
	h.wantState(engine.StateOK)
}

// stored is a folder with one of everything, and the names of its newest file.
func stored(t *testing.T) (h *host, newest string) {
	h = newHost(t)
	id := h.take(shed(4))
	h.take(step(4, 100, id))
	opened := h.take(open(10*time.Minute, start))
	scoped := end(model.Bypass, "close", opened)
	scoped.Scope = "checkout"
	h.take(scoped)
	h.take(open(12*time.Minute, start))
	for range 7 {
		if ok, code := h.allow(100); !ok {
			t.Fatal(code)
		}
	}
	h.clock.pass(time.Minute)
	h.Advance(h.clock.Now())
	names, err := h.folder.Names()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return h, names[len(names)-1]
}

// put writes a folder that holds exactly these files.
func put(t *testing.T, files map[string][]byte) *engine.Memory {
	t.Helper()
	m := engine.NewMemory()
	for name, data := range files {
		f, err := m.Create(name)
		if err == nil {
			_, err = f.Write(data)
		}
		if err = errors.Join(err, f.Sync()); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Sync(); err != nil {
		t.Fatal(err)
	}
	return m
}

func drain(h *host) (n int) {
	for {
		if ok, _ := h.allow(100); !ok {
			return n
		}
		n++
	}
}

func TestAForgedFileMintsNothing(t *testing.T) {
	h := newHost(t)
	h.take(shed(1))
	before := h.live()
	_, byEve := h.make(shed(4), "eve")
	_, genuine := h.make(shed(3))
	broken := genuine[:len(genuine)-40] + strings.Repeat("A", 40)
	lonely := open(10*time.Minute, start)
	lonely.Right = "open-by-two"
	_, noQuorum := h.make(lonely)
	_, toEnd := h.make(step(1, 100, before[0]), "eve")

	// A file with the right form and sums, written by somebody else.
	for _, token := range []string{byEve, broken, noQuorum, toEnd} {
		h.folder = forge(t, h, token, start)
		h.start()
		h.wantTier("checkout", 1)
		h.wantOpen(false)
	}

	// A genuine recovery does not begin before its time, whatever the file says.
	later := step(1, 100, before[0])
	later.NotBefore = start.Add(5 * time.Minute)
	_, early := h.make(later)
	h.folder = forge(t, h, early, start.Add(time.Hour))
	h.start()
	h.wantTier("checkout", 1)
	h.clock.pass(5 * time.Minute)
	h.wantTier("checkout", 0)
}

// forge adds a token to the newest file of a host as if the host had taken it.
func forge(t *testing.T, h *host, token string, at time.Time) engine.Folder {
	t.Helper()
	disk := h.folder.(*engine.Memory).Crash()
	names, err := disk.Names()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		if files[name], err = disk.Read(name); err != nil {
			t.Fatal(err)
		}
	}
	newest := names[len(names)-1]
	n := strings.Count(string(files[newest]), "\n")/2 + 1
	files[newest] = append(files[newest], stateLine(fmt.Sprintf(
		`{"n":%d,"t":"held","token":%q,"source":"etcd","at":%q,"boot":"boot-1","mono_ns":3600000000000}`, n, token, at.Format(time.RFC3339)))...)
	return put(t, files)
}

func TestAFolderThatCannotBeUsedStartsWithSafeDefaultsAndSaysSo(t *testing.T) {
	h, newest := stored(t)
	good, err := h.folder.Read(newest)
	if err != nil {
		t.Fatal(err)
	}
	foreign := []byte(stateLine(fmt.Sprintf(
		`{"n":1,"t":"folder","v":1,"fleet":%q,"host":"another","folder":"01JDZ8K3V5Q2M7N9P4R6S8T0W1"}`, fleet)))
	for name, c := range map[string]struct {
		files map[string][]byte
		want  engine.Condition
		tier  int
	}{
		"empty":                  {map[string][]byte{"state.000007": nil}, engine.StateSafeDefaults, 0},
		"noise":                  {map[string][]byte{"state.000007": []byte("\x00\xffnoise\n\n{}")}, engine.StateSafeDefaults, 0},
		"of another host":        {map[string][]byte{"state.000007": foreign}, engine.StateForeign, 0},
		"noise over a good one":  {map[string][]byte{"state.000006": good, "state.000007": []byte("noise")}, engine.StateRecovered, 3},
		"another's over its own": {map[string][]byte{"state.000006": good, "state.000007": foreign}, engine.StateRecovered, 3},
		"noise under a good one": {map[string][]byte{"state.000006": []byte("noise"), "state.000007": good}, engine.StateOK, 3},
		"nothing":                {nil, engine.StateOK, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h.t, h.folder = t, put(t, c.files)
			h.start()
			h.wantState(c.want)
			h.wantTier("checkout", c.tier)
			if c.want != engine.StateOK {
				if len(h.opened.Notes) == 0 {
					t.Error("nothing says what was wrong")
				}
				if ok, _ := h.allow(1); ok {
					t.Error("an item passes after a loss")
				}
			}
			// It works on, but what is left of today's budgets is forfeit.
			h.take(shed(4))
			h.take(open(10*time.Minute, start))
			ok, code := h.allow(1)
			if ok != (c.want == engine.StateOK) || !ok && code != engine.CodeSpent {
				t.Errorf("allow says %v %s", ok, code)
			}
			h.crash()
			h.wantState(engine.StateOK)
			h.wantTier("checkout", 4)
			if again, _ := h.allow(1); again != ok {
				t.Errorf("after a restart allow says %v", again)
			}
		})
	}
}

func TestAStateFolderIsLockedAndKeepsTwoGenerations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "state")
	h := newHost(t)
	var ids []string
	for range 4 {
		dir, err := engine.OpenDir(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := engine.OpenDir(path); !errors.Is(err, engine.ErrInUse) {
			t.Errorf("a second process gets %v", err)
		}
		h.folder = dir
		h.start()
		h.wantState(engine.StateOK)
		if live := h.live(); !slices.Equal(live, append([]string{}, ids...)) {
			t.Errorf("live are %v, want %v", live, ids)
		}
		ids = append(ids, h.take(shed(1)))
		if err := h.Close(h.clock.Now()); err != nil {
			t.Fatal(err)
		}
		if r := h.offer(sign(t, draft(h.ids.next(), shed(1), start), "ada")); r.New && h.Report(h.clock.Now()).State == string(engine.StateOK) {
			t.Error("a closed host says that it has kept something")
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v %v", e.Name(), info.Mode(), err)
		}
	}
	if want := []string{"lock", "state.000003", "state.000004"}; !slices.Equal(names, want) {
		t.Errorf("the folder holds %v, want %v", names, want)
	}
}

func TestAGrownFileIsWrittenAnew(t *testing.T) {
	h := newHost(t)
	id := h.take(shed(2))
	for range 120 {
		h.take(model.Directive{
			Kind: model.Ping, Right: "ping", IssuedAt: h.clock.Now().Wall, NotAfter: h.clock.Now().Wall.Add(time.Minute),
			Reason: strings.Repeat("long ", 40)[:200],
		})
		h.clock.pass(time.Hour)
	}
	total := 0
	names, err := h.folder.Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := h.folder.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		total += len(data)
	}
	if len(names) != 2 || total > 1<<20 {
		t.Errorf("%d bytes in %v", total, names)
	}
	h.crash()
	if h.opened.Held > 60 {
		t.Errorf("%d statements are held, most of them ended days ago", h.opened.Held)
	}
	if live := h.live(); !slices.Equal(live, []string{id}) {
		t.Errorf("live are %v, want the shed", live)
	}
}
