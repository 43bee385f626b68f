package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
