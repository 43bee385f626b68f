package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

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
