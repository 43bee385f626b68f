package hostfile

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/degradedmode/ic/plugins/sdk"
)

const (
	maxRead   = 4 * sdk.MaxCarrier // bytes read of a file: ours is never longer than a carrier value
	fileMode  = 0o644              // agents of other users read it
	dirMode   = 0o755
	lockLimit = 2 * time.Second       // another operation holds a host for milliseconds
	lockPoll  = 10 * time.Millisecond // flock has no wait with a limit

	// tempPrefix starts the name of a file that is being written. Only the holder
	// of the folder's lock has any.
	tempPrefix = ".ic-tmp-"
)

// watched is the one file of one host.
type watched struct{ host, path string }

// content is what stands in the file.
type content struct {
	exists bool
	text   string
	uid    int
}

// value is the text without the newline that we write after it.
func (c content) value() string {
	if n := len(c.text); n > 0 && c.text[n-1] == '\n' {
		return c.text[:n-1]
	}
	return c.text
}

func (w watched) read() (content, error) {
	f, err := os.OpenFile(w.path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe in its place must not hold us
	if os.IsNotExist(err) {
		return content{}, nil
	}
	if err != nil {
		return content{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return content{}, err
	}
	if !info.Mode().IsRegular() {
		return content{}, fmt.Errorf("it is not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxRead))
	if err != nil {
		return content{}, err
	}
	out := content{exists: true, text: string(text)}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		out.uid = int(stat.Uid)
	}
	return out, nil
}

// owner says who wrote what stands there. An empty file is a place kept free for
// us. Ours is what a receipt says we wrote.
func (w watched) owner(now content) (who string, ours bool, err error) {
	if now.value() == "" {
		return "", true, nil
	}
	receipts, err := w.receipts()
	if err != nil {
		return "", false, err
	}
	for _, r := range receipts {
		if r.After == now.value() {
			return "ic/" + r.Operation, true, nil
		}
	}
	return stranger(now), false, nil
}

func stranger(now content) string {
	if !now.exists {
		return "somebody who removed it"
	}
	return fmt.Sprintf("uid %d", now.uid)
}

// apply writes one host, unless the operation has been there before.
func (w watched) apply(ctx context.Context, r receipt, before string) (sdk.Progress, error) {
	if err := os.MkdirAll(filepath.Dir(w.path), dirMode); err != nil {
		return sdk.Progress{}, err
	}
	unlock, err := w.lock(ctx)
	if err != nil {
		return sdk.Progress{}, err
	}
	defer unlock()
	now, err := w.read()
	if err != nil {
		return sdk.Progress{}, err
	}
	if old, found, err := w.receipt(r.Operation); err != nil {
		return sdk.Progress{}, err
	} else if found && (old.State != writing || now.value() == old.After) {
		return w.finish(old, r.After)
	}
	if now.value() != before {
		return sdk.Progress{}, sdk.Refuse(sdk.CodeChanged, "%s has changed since the plan: it was left alone; plan again", w.path)
	}
	r.Existed, r.Before, r.State = now.exists, []byte(now.text), writing
	if err := w.keep(r); err != nil {
		return sdk.Progress{}, err
	}
	if err := replace(w.path, []byte(r.After+"\n")); err != nil {
		return sdk.Progress{}, err
	}
	r.State = written
	if err := w.keep(r); err != nil {
		return sdk.Progress{}, err
	}
	return sdk.Progress{Phase: sdk.Written, Target: w.host, RemoteID: w.path}, w.prune()
}

// finish answers for an operation that has been at this host before. If it was
// killed after it wrote, its receipt catches up; Before stays what it was.
func (w watched) finish(old receipt, after string) (sdk.Progress, error) {
	if old.After != after {
		return sdk.Progress{}, sdk.Refuse(sdk.CodeBadRequest, "operation %s has written another value to %s: give the new plan a new operation", old.Operation, w.path)
	}
	if old.State == writing {
		old.State = written
		if err := w.keep(old); err != nil {
			return sdk.Progress{}, err
		}
	}
	return w.observe(old)
}

// observe compares what stands there with what the receipt says.
func (w watched) observe(r receipt) (sdk.Progress, error) {
	now, err := w.read()
	if err != nil {
		return sdk.Progress{}, err
	}
	p := sdk.Progress{Target: w.host, RemoteID: w.path}
	switch {
	case r.State == undone:
		p.Phase = sdk.Undone
	case now.value() == r.After:
		p.Phase = sdk.Written
	case r.State == writing && r.restored(now):
		p.Phase = sdk.Missing
		p.Message = "the operation ended before it wrote this host"
	default:
		p.Phase = sdk.Replaced
		p.Owner, err = w.replacedBy(now)
	}
	return p, err
}

// replacedBy names who wrote over us: a later operation, or a stranger.
func (w watched) replacedBy(now content) (string, error) {
	who, _, err := w.owner(now)
	if who == "" {
		who = stranger(now)
	}
	return who, err
}

// undo is a three-way merge of one value: only what we wrote goes back to what
// was there.
func (w watched) undo(ctx context.Context, r receipt) (sdk.Progress, error) {
	unlock, err := w.lock(ctx)
	if err != nil {
		return sdk.Progress{}, err
	}
	defer unlock()
	p := sdk.Progress{Phase: sdk.Undone, Target: w.host, RemoteID: w.path}
	if r, found, err := w.receipt(r.Operation); err != nil {
		return p, err
	} else if found && r.State == undone {
		return p, nil
	}
	now, err := w.read()
	if err != nil {
		return p, err
	}
	switch {
	case r.restored(now):
	case now.value() == r.After:
		if err := w.restore(r); err != nil {
			return p, err
		}
	default:
		p.Phase = sdk.Kept
		p.Owner, err = w.replacedBy(now)
		return p, err
	}
	r.State = undone
	return p, w.keep(r)
}

func (w watched) restore(r receipt) error {
	if r.Existed {
		return replace(w.path, r.Before)
	}
	if err := os.Remove(w.path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return syncDir(filepath.Dir(w.path))
}

// lock keeps other operations off this host. It is taken on the folder, so that
// it leaves nothing behind.
func (w watched) lock(ctx context.Context) (unlock func(), err error) {
	dir, err := os.Open(filepath.Dir(w.path))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { dir.Close() }, nil
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			break
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
			err = fmt.Errorf("another operation holds this host: %w", ctx.Err())
		}
		break
	}
	dir.Close()
	return nil, err
}

// replace writes a file so that a reader sees the old text or the new one, and a
// power cut leaves one of them.
func replace(path string, text []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it has been renamed
	_, err = f.Write(text)
	if err == nil {
		err = f.Chmod(fileMode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
