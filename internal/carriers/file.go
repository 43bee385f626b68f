package carriers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/untrusted"
)

// FileReadLimit is how long a file may take to read before the status says so.
// A network file system that hangs must not look like a file without changes.
const FileReadLimit = 2 * time.Second

// maxDetail bounds the sentence about a failed read, in bytes.
const maxDetail = 300

// errTorn means that the file changed under the reader.
var errTorn = errors.New("it is being written; it will be read again")

// ReadFile reads a carrier value, tokens separated by space, from path. A file
// that does not exist in a folder that does is an empty value: nothing was ever
// delivered there. A value over directive.MaxCarrier bytes is refused whole.
func ReadFile(path string) ([]string, error) {
	value, err := readValue(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, dirErr := os.Stat(filepath.Dir(path)); dirErr == nil {
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read carrier file: %w", err)
	}
	return directive.SplitCarrier(value), nil
}

// readValue compares size and time before and after, since a writer that does
// not rename shows half a value for a moment. The open does not wait for the
// other end of a pipe.
func readValue(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !before.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	value, err := io.ReadAll(io.LimitReader(f, directive.MaxCarrier+1))
	if err != nil {
		return "", err
	}
	if len(value) > directive.MaxCarrier {
		return "", fmt.Errorf("%s is longer than %d bytes, which is more than any carrier value", path, directive.MaxCarrier)
	}
	after, err := f.Stat()
	if err != nil {
		return "", err
	}
	if after.Size() != int64(len(value)) || !after.ModTime().Equal(before.ModTime()) {
		return "", fmt.Errorf("%s: %w", path, errTorn)
	}
	return string(value), nil
}

// File is a watched carrier file.
type File struct {
	Path  string
	Ticks <-chan time.Time // when to look again
	Now   func() time.Time
}

// Watch reads the file at once and at every tick, until ctx ends. sink gets all
// tokens of the file at the first read and whenever they have changed; status
// follows every read. Both are called from this goroutine, one at a time.
//
// The content itself is compared, never just size and time: at 16 KiB a read is
// cheap, and some file systems keep the time for two seconds or hide a rename
// from notification. A read that fails delivers nothing and takes nothing back.
func (f File) Watch(ctx context.Context, sink func(tokens []string), status func(Status)) {
	w := fileWatch{File: f, sink: sink, status: status, read: ReadFile, limit: FileReadLimit}
	for {
		if !w.once(ctx) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-f.Ticks:
		}
	}
}

type fileWatch struct {
	File
	sink   func([]string)
	status func(Status)
	read   func(path string) ([]string, error)
	limit  time.Duration
	last   []string
	state  Status
}

type fileResult struct {
	tokens []string
	err    error
}

// once reads in a goroutine of its own, since a file system that hangs answers
// no deadline; there is never a second read while one hangs. It reports whether
// to go on.
func (w *fileWatch) once(ctx context.Context) bool {
	done := make(chan fileResult, 1)
	go func() {
		tokens, err := w.read(w.Path)
		done <- fileResult{tokens, err}
	}()
	limit := time.NewTimer(w.limit)
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-limit.C:
			w.fail(fmt.Errorf("reading %s takes longer than %s: its file system hangs", w.Path, w.limit))
		case r := <-done:
			w.take(r)
			return true
		}
	}
}

func (w *fileWatch) take(r fileResult) {
	if r.err != nil {
		w.fail(r.err)
		return
	}
	first := w.state.LastFullRead.IsZero()
	w.state = Status{Connected: true, LastFullRead: w.Now()}
	if first || !slices.Equal(r.tokens, w.last) {
		w.last = r.tokens
		w.sink(r.tokens)
	}
	w.status(w.state)
}

func (w *fileWatch) fail(err error) {
	w.state.Connected, w.state.Err = false, untrusted.Text(err.Error(), maxDetail)
	w.status(w.state)
}
