package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// aboutAnIntent is a body of the size of a real one.
func aboutAnIntent() Body {
	return Intent{
		Payload: strings.Repeat("x", 700),
		Request: Ask{Actor: person, Right: "risk-bypass-small-orders", Kind: model.Bypass, Scope: "checkout", Reason: "payment-risk is down"},
		Verdict: model.Verdict{Outcome: model.Permitted, Direction: model.Loosen, Assurance: model.HostHeld, Reasons: []model.Reason{}},
		Asked:   true,
	}
}

// benchDir is on the disk that holds the package, not on a memory file system.
func benchDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp(".", "bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// bareFile is what an append is compared with: a file, one write, one fsync.
type bareFile struct {
	*os.File
	block []byte
}

func newBareFile(b *testing.B, size int) bareFile {
	b.Helper()
	f, err := os.OpenFile(filepath.Join(benchDir(b), "bare"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, fileMode)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	return bareFile{f, []byte(strings.Repeat("x", size))}
}

func (f bareFile) append(b *testing.B) {
	b.Helper()
	if _, err := f.Write(f.block); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
}

// appendSize is how many bytes one append of aboutAnIntent writes.
func appendSize(b *testing.B, w *Writer) int {
	b.Helper()
	before := w.segment.length
	mustAppend(b, w, aboutAnIntent())
	return int(w.segment.length - before)
}

func BenchmarkAppendDurable(b *testing.B) {
	w := open(b, benchDir(b), options(b, "laptop"))
	b.SetBytes(int64(appendSize(b, w)))
	for b.Loop() {
		mustAppend(b, w, aboutAnIntent())
	}
}

func BenchmarkBareWriteFsync(b *testing.B) {
	f := newBareFile(b, appendSize(b, open(b, benchDir(b), options(b, "laptop"))))
	b.SetBytes(int64(len(f.block)))
	for b.Loop() {
		f.append(b)
	}
}

// BenchmarkAppendRatio takes turns, so that both see the same disk, and reports
// the ratio of the medians. Target: at most 2.
func BenchmarkAppendRatio(b *testing.B) {
	w := open(b, benchDir(b), options(b, "laptop"))
	f := newBareFile(b, appendSize(b, w))
	var ours, bare []time.Duration
	for b.Loop() {
		start := time.Now()
		mustAppend(b, w, aboutAnIntent())
		between := time.Now()
		f.append(b)
		ours, bare = append(ours, between.Sub(start)), append(bare, time.Since(between))
	}
	slices.Sort(ours)
	slices.Sort(bare)
	a, c := ours[len(ours)/2], bare[len(bare)/2]
	b.ReportMetric(float64(a.Microseconds()), "append-us")
	b.ReportMetric(float64(c.Microseconds()), "bare-us")
	b.ReportMetric(float64(a)/float64(c), "ratio")
}

func BenchmarkVerify200(b *testing.B) {
	state := b.TempDir()
	w := open(b, state, options(b, "laptop"))
	for i := range 199 {
		mustAppend(b, w, Note{Text: fmt.Sprint(i)})
	}
	v := trusting(b)
	for b.Loop() {
		if r, err := Verify(v, Folder(state, incident)); err != nil || r.Entries != 200 {
			b.Fatal(r.Entries, err)
		}
	}
}

func BenchmarkFold200(b *testing.B) {
	var entries []at
	for i := range 100 {
		d := shed(ulid(i), 1+i%4)
		entries = append(entries, at{i, signedBy(b, d, person)}, at{i, Outcome{d.ID, "etcd", StateCarried, ""}})
	}
	sessions := []Session{session("laptop", entries...)}
	for b.Loop() {
		if s := Fold(sessions); len(s.Issued) != 100 {
			b.Fatal(len(s.Issued))
		}
	}
}
