package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/sshsig"
)

// The variant of this package without its fsync (go test -overlay) turns this
// test red.
func TestAckedEntrySurvivesPowerLoss(t *testing.T) {
	disk := newCrashFS()
	o := options(t, "laptop")
	o.FS = disk
	w := open(t, "state", o)
	for i := range 5 {
		text := fmt.Sprintf("note %d", i)
		mustAppend(t, w, Note{Text: text})
		head := w.Head()

		after := filepath.Join(disk.losePower(t, nothing), "state")

		sessions := mustRead(t, after)
		if got := texts(sessions); !slices.Contains(got, text) {
			t.Fatalf("acknowledged %q, and after the power loss the log holds %q", text, got)
		}
		v := trusting(t)
		v.Heads = []model.LogHead{head}
		mustVerify(t, v, after)
	}
}

func TestPowerLossDuringAWriteLeavesATornTailAtMost(t *testing.T) {
	disk := newCrashFS()
	o := options(t, "laptop")
	o.FS = disk
	w := open(t, "state", o)
	mustAppend(t, w, Note{Text: "acknowledged"})
	head := w.Head()
	disk.failing(func(op, _ string, size int) (int, error) {
		if op == "sync" || op == "create" || op == "remove" {
			return 0, syscall.EIO
		}
		return size, nil
	})
	if err := w.Append(Note{Text: "never acknowledged"}); !errors.Is(err, ErrNotDurable) {
		t.Fatalf("append on a disk that cannot sync: %v", err)
	}
	size := 0
	disk.losePower(t, func(n int) int { size = max(size, n); return 0 })
	for keep := 0; keep <= size; keep = nextCut(keep, size) {
		after := filepath.Join(disk.losePower(t, func(n int) int { return min(n, keep) }), "state")
		v := trusting(t)
		v.Heads = []model.LogHead{head}
		r := mustVerify(t, v, after)
		whole, torn := keep == size, r.Files[0].Torn != nil
		if torn == (keep == 0 || whole) {
			t.Fatalf("kept %d of %d unsynced bytes: torn is %v", keep, size, torn)
		}
		if torn && r.Files[0].Torn.Bytes != int64(keep) {
			t.Fatalf("kept %d bytes, the torn tail is said to have %d", keep, r.Files[0].Torn.Bytes)
		}
	}
}

// nextCut steps through a record, byte by byte at both ends.
func nextCut(at, size int) int {
	if at < 20 || at > size-20 {
		return at + 1
	}
	return min(at+11, size-19)
}

func TestEachAppendIsOneWriteOfTwoLinesAndOneFsync(t *testing.T) {
	disk := newCrashFS()
	o := options(t, "laptop")
	o.FS = disk
	w := open(t, "state", o)
	path := filepath.Join(Folder("state", incident), "laptop.jsonl")
	for i := range 10 {
		writes, syncs, lines := disk.count("write", path), disk.count("sync", path), strings.Count(string(disk.files[path].data), "\n")
		mustAppend(t, w, Note{Text: fmt.Sprint(i)})
		if disk.count("write", path) != writes+1 || disk.count("sync", path) != syncs+1 {
			t.Fatalf("append %d made %d writes and %d fsyncs", i, disk.count("write", path)-writes, disk.count("sync", path)-syncs)
		}
		if got := strings.Count(string(disk.files[path].data), "\n"); got != lines+2 {
			t.Fatalf("append %d wrote %d lines", i, got-lines)
		}
	}
}

func TestFolderAndFileAreForTheOwnerOnly(t *testing.T) {
	state := filepath.Join(t.TempDir(), "not", "there", "yet")
	w := open(t, state, options(t, "laptop"))
	mustAppend(t, w, Note{Text: "x"})
	for path, want := range map[string]fs.FileMode{
		state:                   0o700,
		Folder(state, incident): 0o700,
		filepath.Join(Folder(state, incident), "laptop.jsonl"): 0o600,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
	}
}

func TestAFailedWriteIsNeverRetriedOnItsSegment(t *testing.T) {
	first := filepath.Join(Folder("state", incident), "laptop.jsonl")
	cases := map[string]fault{
		"write fails": func(op, path string, size int) (int, error) {
			if op == "write" && path == first {
				return 0, syscall.EIO
			}
			return size, nil
		},
		"disk full after some bytes": func(op, path string, size int) (int, error) {
			if op == "write" && path == first {
				return size / 3, syscall.ENOSPC
			}
			return size, nil
		},
		"short write without an error": func(op, path string, size int) (int, error) {
			if op == "write" && path == first {
				return size - 1, nil
			}
			return size, nil
		},
		"fsync fails": func(op, path string, size int) (int, error) {
			if op == "sync" && path == first {
				return 0, syscall.EIO
			}
			return size, nil
		},
	}
	for name, broken := range cases {
		t.Run(name, func(t *testing.T) {
			disk := newCrashFS()
			o := options(t, "laptop")
			o.FS = disk
			w := open(t, "state", o)
			mustAppend(t, w, Note{Text: "before"})
			before := w.Head()
			disk.failing(broken)
			mustAppend(t, w, Note{Text: "behind"}, Note{Text: "and on"})
			if n := disk.count("write", first); n != 3 {
				t.Errorf("%d writes to the first segment, want 3: the failed one must be the last", n)
			}
			if n := disk.count("sync", first); n > 3 {
				t.Errorf("%d fsyncs of the first segment: a failed one was tried again", n)
			}

			after := filepath.Join(disk.losePower(t, everything), "state")
			sessions := mustRead(t, after)
			if len(sessions) != 2 {
				t.Fatalf("%d segments, want 2", len(sessions))
			}
			sealed := sessions[1].Sealed
			if sealed == nil || sealed.Origin != before.Origin || sealed.Size != before.Size || sealed.Root != before.Root || sealed.Why == "" {
				t.Errorf("the second segment continues %+v, want %+v and a reason", sealed, before)
			}
			if got := w.Head().Origin; got != "shop-demo/inc-7/laptop.2" {
				t.Errorf("the head is of %s", got)
			}
			v := trusting(t)
			v.Heads = []model.LogHead{before, w.Head()}
			mustVerify(t, v, after)
		})
	}
}

func TestTheSecondFolderTakesOverWhenTheFirstCannot(t *testing.T) {
	disk := newCrashFS()
	o := options(t, "laptop")
	o.FS, o.Second = disk, "second"
	w := open(t, "state", o)
	mustAppend(t, w, Note{Text: "in the first"})
	disk.failing(func(op, path string, size int) (int, error) {
		if strings.HasPrefix(path, "state") && op != "remove" {
			return 0, syscall.ENOSPC
		}
		return size, nil
	})
	mustAppend(t, w, Note{Text: "in the second"}, Note{Text: "still"})

	after := disk.losePower(t, nothing)
	first, second := filepath.Join(after, "state"), filepath.Join(after, "second")
	if got := texts(mustRead(t, second)); !slices.Equal(got, []string{"in the second", "still"}) {
		t.Errorf("the second folder holds %q", got)
	}
	if got := texts(mustRead(t, first, second)); !slices.Contains(got, "in the first") {
		t.Errorf("both folders hold %q", got)
	}
	mustVerify(t, trusting(t), first, second)
}

func TestAHungDiskDoesNotHoldTheCaller(t *testing.T) {
	disk := newCrashFS()
	o := options(t, "laptop")
	o.FS, o.Second, o.Limit = disk, "second", 250*time.Millisecond
	w := open(t, "state", o)
	mustAppend(t, w, Note{Text: "before"})
	release := make(chan struct{})
	disk.failing(func(op, path string, size int) (int, error) {
		if strings.HasPrefix(path, "state") {
			<-release
		}
		return size, nil
	})
	for i := range 5 {
		mustAppend(t, w, Note{Text: fmt.Sprintf("in the second %d", i)})
		if n := disk.waiting(); n != 1 {
			t.Fatalf("%d calls hang in the first folder, want the one that was left behind", n)
		}
	}
	close(release)
	for w.places[0].busy() { // the job that was left behind ends by itself
		runtime.Gosched()
	}

	after := disk.losePower(t, everything)
	first, second := filepath.Join(after, "state"), filepath.Join(after, "second")
	mustVerify(t, trusting(t), first, second)
	if got := len(texts(mustRead(t, second))); got != 5 {
		t.Errorf("the second folder holds %d notes, want 5", got)
	}
}

func TestATighteningGoesOnWithoutAnyDisk(t *testing.T) {
	for name, broken := range map[string]func(release chan struct{}) fault{
		"full": func(chan struct{}) fault {
			return func(op, _ string, size int) (int, error) { return 0, syscall.ENOSPC }
		},
		"hung": func(release chan struct{}) fault {
			return func(_, _ string, size int) (int, error) { <-release; return size, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := newCrashFS()
			o := options(t, "laptop")
			o.FS, o.Second, o.Limit = disk, "second", 250*time.Millisecond
			w := open(t, "state", o)
			release := make(chan struct{})
			disk.failing(broken(release))

			r, err := w.AppendOrReceipt(Note{Text: "shed to 3"})
			if err != nil || r == nil {
				t.Fatalf("receipt %v, error %v", r, err)
			}
			for _, want := range []string{"RECEIPT 2026-11-30T12:00:0", "note by amara", "not on disk", r.Digest()} {
				if !strings.Contains(r.Text(), want) {
					t.Errorf("the screen says %q, which lacks %q", r.Text(), want)
				}
			}
			if err := w.Append(Note{Text: "a loosening"}); !errors.Is(err, ErrNotDurable) {
				t.Errorf("a durable append without a disk: %v", err)
			}
			if err := w.Ready(); !errors.Is(err, ErrNotDurable) {
				t.Errorf("ready without a disk: %v", err)
			}

			disk.failing(nil)
			close(release)
			for w.places[0].busy() || w.places[1].busy() {
				runtime.Gosched()
			}
			if err := w.Ready(); err != nil {
				t.Fatalf("the disk is back and the log is not ready: %v", err)
			}
			if left := w.Late(); len(left) != 0 {
				t.Errorf("%d receipts are still not chained", len(left))
			}
			after := disk.losePower(t, nothing)
			states := []string{filepath.Join(after, "state"), filepath.Join(after, "second")}
			mustVerify(t, trusting(t), states...)
			late := lates(mustRead(t, states...))
			if len(late) != 1 || late[0].Digest() != r.Digest() {
				t.Errorf("chained late: %+v, want the receipt on the screen", late)
			}
		})
	}
}

// lates are the receipts chained in sessions.
func lates(sessions []Session) []Receipt {
	var out []Receipt
	for _, s := range sessions {
		for _, e := range s.Entries {
			if l, ok := e.Body.(Late); ok {
				out = append(out, l.Receipt)
			}
		}
	}
	return out
}

func TestTheNextAppendThatSucceedsChainsWhatIsLate(t *testing.T) {
	disk := newCrashFS()
	o := options(t, "laptop")
	o.FS = disk
	disk.failing(func(string, string, int) (int, error) { return 0, syscall.EROFS })
	w := open(t, "state", o) // a console starts also when nothing can be written
	if h := w.Head(); h.Size != 0 || h.Origin != "shop-demo/inc-7/laptop" {
		t.Errorf("the head of a log that has no file is %+v", h)
	}
	for i := range 3 {
		if r, err := w.AppendOrReceipt(Note{Text: fmt.Sprint(i)}); r == nil || err != nil {
			t.Fatalf("receipt %v, error %v", r, err)
		}
	}
	disk.failing(nil)
	mustAppend(t, w, Note{Text: "the disk is back"})
	after := filepath.Join(disk.losePower(t, nothing), "state")
	mustVerify(t, trusting(t), after)
	if got := lates(mustRead(t, after)); len(got) != 3 || string(got[2].Body) != `{"text":"2"}` {
		t.Errorf("chained late: %+v", got)
	}
}

func TestAFileThatIsNoLongerOursIsLeft(t *testing.T) {
	cases := map[string]func(path string) error{
		"deleted": os.Remove,
		"rotated": func(path string) error { return os.Rename(path, path+".1") },
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".1"), os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		},
		"cut": func(path string) error { return os.Truncate(path, 10) },
		"written by others": func(path string) error {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("hello\n")
			return errors.Join(err, f.Close())
		},
	}
	for name, harm := range cases {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			w := open(t, state, options(t, "laptop"))
			mustAppend(t, w, Note{Text: "before"})
			path := filepath.Join(Folder(state, incident), "laptop.jsonl")
			if err := harm(path); err != nil {
				t.Fatal(err)
			}
			left, _ := os.ReadFile(path)
			mustAppend(t, w, Note{Text: "after"})
			if now, _ := os.ReadFile(path); string(now) != string(left) {
				t.Error("it wrote to a file that was no longer its own")
			}
			second := filepath.Join(Folder(state, incident), "laptop.2.jsonl")
			if r, err := Verify(trusting(t), second); err == nil || r.Files[0].Entries != 2 {
				t.Errorf("the new segment: %+v, %v; want it whole, and the one before it missed", r, err)
			}
		})
	}
}

func TestASessionsNameIsUsedOnce(t *testing.T) {
	state := t.TempDir()
	o := options(t, "laptop")
	o.Second = t.TempDir()
	w := open(t, state, o)
	mustAppend(t, w, Note{Text: "first"})
	if _, err := Open(state, o); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second writer of the same session: %v", err)
	}
	if got := texts(mustRead(t, state, o.Second)); !slices.Equal(got, []string{"first"}) {
		t.Errorf("the log holds %q", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	refusal := errors.New("no touch")
	cases := map[string]func(*Options){
		"a fleet that is no name":          func(o *Options) { o.Fleet = "Shop Demo" },
		"an incident that leaves its room": func(o *Options) { o.Incident = "../inc" },
		"a session with a segment number":  func(o *Options) { o.Session = "laptop.2" },
		"a session with a long name":       func(o *Options) { o.Session = strings.Repeat("a", 49) },
		"nobody":                           func(o *Options) { o.Actor = "" },
		"no clock":                         func(o *Options) { o.Clock = nil },
		"a key that does not sign":         func(o *Options) { o.Certify = func([]byte) ([]byte, error) { return nil, refusal } },
		"a certificate of something else": func(o *Options) {
			o.Certify = func([]byte) ([]byte, error) {
				sig, err := sshsig.Sign(sshKey(t, 0), random(2), []byte("x"), directive.Production.Namespace("session", fleet))
				return sig.Blob, err
			}
		},
		"a certificate from a drill": func(o *Options) {
			o.Certify = func(statement []byte) ([]byte, error) {
				sig, err := sshsig.Sign(sshKey(t, 0), random(2), statement, directive.Drill.Namespace("session", fleet))
				return sig.Blob, err
			}
		},
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			o := options(t, "laptop")
			spoil(&o)
			if _, err := Open(state, o); err == nil {
				t.Error("it opened")
			}
			if left, _ := os.ReadDir(state); len(left) != 0 {
				t.Errorf("it left %v behind", left)
			}
		})
	}
}

func TestASessionEndsWithItsCertificate(t *testing.T) {
	state := t.TempDir()
	o := options(t, "laptop")
	clock := newClock()
	o.Clock = clock
	w := open(t, state, o)
	clock.jump(100*time.Hour, true)
	mustAppend(t, w, Note{Text: "the wall clock was set: no reason to stop"})
	clock.jump(MaxSession-time.Minute, false)
	mustAppend(t, w, Note{Text: "last minute"})
	clock.jump(time.Minute, false)
	if err := w.Append(Note{Text: "too late"}); !errors.Is(err, ErrSessionOver) {
		t.Errorf("append after twelve hours: %v", err)
	}
	r, err := w.AppendOrReceipt(Note{Text: "a shed"})
	if r == nil || err != nil {
		t.Fatalf("a tightening after twelve hours: receipt %v, error %v", r, err)
	}
	if err := w.Close("shift over"); !errors.Is(err, ErrSessionOver) {
		t.Errorf("close after twelve hours: %v", err)
	}

	next := options(t, "laptop-b")
	next.Late = w.Late()
	mustAppend(t, open(t, state, next), Note{Text: "new shift"})
	mustVerify(t, trusting(t), state)
	if got := lates(mustRead(t, state)); len(got) != 1 || got[0].Digest() != r.Digest() {
		t.Errorf("the next session chained %+v", got)
	}
}

func TestCloseEndsTheLogInOrder(t *testing.T) {
	state := t.TempDir()
	w := open(t, state, options(t, "laptop"))
	if r := mustVerify(t, trusting(t), state); r.Files[0].Ended {
		t.Error("a running session is said to have ended")
	}
	path := filepath.Join(Folder(state, incident), "laptop.jsonl")
	if held, err := Held(path); err != nil || !held {
		t.Errorf("held while open: %v, %v", held, err)
	}
	if err := w.Close("quit"); err != nil {
		t.Fatal(err)
	}
	if held, err := Held(path); err != nil || held {
		t.Errorf("held after close: %v, %v", held, err)
	}
	if r := mustVerify(t, trusting(t), state); !r.Files[0].Ended || r.Entries != 2 {
		t.Errorf("after close: %+v", r.Files[0])
	}
	if err := w.Append(Note{Text: "x"}); !errors.Is(err, ErrSessionOver) {
		t.Errorf("append after close: %v", err)
	}
	if err := w.Close("again"); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

func TestHeadDoesNotWaitForADisk(t *testing.T) {
	disk := newCrashFS()
	o := options(t, "laptop")
	o.FS, o.Limit = disk, time.Minute
	w := open(t, "state", o)
	mustAppend(t, w, Note{Text: "x"})
	entered, release := make(chan struct{}, 8), make(chan struct{})
	disk.failing(func(op, _ string, size int) (int, error) {
		if op == "write" {
			entered <- struct{}{}
			<-release
		}
		return size, nil
	})
	done := make(chan error)
	go func() { done <- w.Append(Note{Text: "slow"}) }()
	<-entered
	if h := w.Head(); h.Size != 2 {
		t.Errorf("during the third write the head has size %d, want the 2 that were acknowledged", h.Size)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if h := w.Head(); h.Size != 3 {
		t.Errorf("after it the head has size %d", h.Size)
	}
}

func TestAnEntryThatTheFormatCannotHoldChangesNothing(t *testing.T) {
	state := t.TempDir()
	w := open(t, state, options(t, "laptop"))
	before := w.Head()
	for name, body := range map[string]Body{
		"too long":                    Note{Text: strings.Repeat("x", MaxBody)},
		"of a kind we do not know":    Foreign{Name: "novel", Raw: []byte(`{}`)},
		"that would not read back":    Denied{Reasons: []model.Reason{{Code: "dwell", Wait: model.Duration(time.Millisecond)}}},
		"a receipt of a receipt":      Late{Receipt: Receipt{At: "2026-11-30T03:00:00.000Z", Kind: KindLate, Body: []byte(`{}`)}},
		"a receipt without a time":    Late{Receipt: Receipt{Kind: KindNote, Body: []byte(`{"text":"x"}`)}},
		"a receipt of something else": Late{Receipt: Receipt{At: "2026-11-30T03:00:00.000Z", Kind: KindNote, Body: []byte(`{"txt":"x"}`)}},
	} {
		if err := w.Append(body); !errors.Is(err, ErrBody) {
			t.Errorf("%s: append says %v", name, err)
		}
		if r, err := w.AppendOrReceipt(body); !errors.Is(err, ErrBody) || r != nil {
			t.Errorf("%s: append or receipt says %v, %v", name, r, err)
		}
	}
	if w.Head() != before {
		t.Errorf("the log moved from %+v to %+v", before, w.Head())
	}
	mustAppend(t, w, Note{Text: strings.Repeat("x", MaxBody-len(`{"text":""}`))})
	mustVerify(t, trusting(t), state)
}

func TestTheLargestBodyFitsALateEntry(t *testing.T) {
	disk := newCrashFS()
	o := options(t, strings.Repeat("s", maxSessionName))
	o.FS, o.Actor = disk, strings.Repeat("a", maxActor)
	disk.failing(func(string, string, int) (int, error) {
		return 0, errors.New(strings.Repeat("\u202e", maxWhy))
	})
	w := open(t, "state", o)
	if r, err := w.AppendOrReceipt(Note{Text: strings.Repeat("x", MaxBody-len(`{"text":""}`))}); r == nil || err != nil {
		t.Fatalf("receipt %v, error %v", r != nil, err)
	}
	disk.failing(nil)
	if err := w.Ready(); err != nil {
		t.Errorf("the receipt cannot be chained: %v", err)
	}
}

func TestWritersAndGoroutinesMayAppendAtOnce(t *testing.T) {
	state := t.TempDir()
	var all sync.WaitGroup
	for _, session := range []string{"console", "command", "controller"} {
		w := open(t, state, options(t, session))
		for i := range 4 {
			all.Go(func() {
				for j := range 5 {
					if err := w.Append(Note{Text: fmt.Sprintf("%s %d %d", session, i, j)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if r := mustVerify(t, trusting(t), state); r.Entries != 3*(1+20) {
		t.Errorf("%d entries, want 63", r.Entries)
	}
}
