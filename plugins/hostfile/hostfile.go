package hostfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/degradedmode/ic/plugins/sdk"
)

const (
	fileName    = "ic.directives"
	placeholder = "{host}"
	version     = "1"

	// writers is how many hosts are written at once: enough to hide the latency of
	// fsync, few enough for a network filesystem.
	writers = 16

	// maxErrors is how many failed hosts one sentence names.
	maxErrors = 3
)

// Backend writes watched files.
type Backend struct {
	template string // absolute path with placeholder
}

var _ sdk.Backend = (*Backend)(nil)

// New makes a backend that still has to be configured.
func New() *Backend { return &Backend{} }

// Describe implements sdk.Backend.
func (b *Backend) Describe() sdk.Description {
	return sdk.Description{Name: "hostfile", Version: version, Carrier: sdk.File, CanUndo: true, Dependencies: []string{"filesystem"}}
}

// Configure takes either dir or path.
func (b *Backend) Configure(_ context.Context, config, secrets map[string]string) error {
	for key := range config {
		if key != "dir" && key != "path" {
			return sdk.Refuse(sdk.CodeBadConfig, "hostfile has no setting %q: it takes dir, or path with %s in it", key, placeholder)
		}
	}
	if len(secrets) > 0 {
		return sdk.Refuse(sdk.CodeBadConfig, "hostfile takes no secrets")
	}
	dir, template := config["dir"], config["path"]
	switch {
	case (dir == "") == (template == ""):
		return sdk.Refuse(sdk.CodeBadConfig, "hostfile takes either dir, or path with %s in it", placeholder)
	case dir != "":
		template = filepath.Join(dir, placeholder, fileName)
	}
	if !filepath.IsAbs(template) || !strings.Contains(template, placeholder) {
		return sdk.Refuse(sdk.CodeBadConfig, "hostfile path %q is not absolute or has no %s", template, placeholder)
	}
	b.template = filepath.Clean(template)
	return nil
}

// root is the folder that has to exist before any host's own.
func (b *Backend) root() string {
	before, _, _ := strings.Cut(b.template, placeholder)
	return filepath.Dir(before + "x")
}

func (b *Backend) file(host string) watched {
	return watched{host: host, path: strings.ReplaceAll(b.template, placeholder, host)}
}

// all finds the files of every host whose folder is there.
func (b *Backend) all() ([]string, error) {
	parent := filepath.Dir(b.template)
	return filepath.Glob(strings.ReplaceAll(escapeGlob(parent), placeholder, "*"))
}

// Check implements sdk.Backend.
func (b *Backend) Check(context.Context) ([]sdk.Finding, error) {
	root := b.root()
	info, err := os.Stat(root)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	if err != nil {
		return []sdk.Finding{{Name: "reach", Detail: fmt.Sprintf("folder %s: %v", root, err)}}, nil
	}
	folders, err := b.all()
	if err != nil {
		return nil, sdk.Refuse(sdk.CodeFailed, "listing host folders under %s: %v", root, err)
	}
	const writable = 2 // W_OK
	closed := 0
	for _, folder := range folders {
		if syscall.Access(folder, writable) != nil {
			closed++
		}
	}
	if len(folders) == 0 && syscall.Access(root, writable) != nil {
		closed++
	}
	foreign, err := b.foreign()
	if err != nil {
		return nil, err
	}
	return []sdk.Finding{
		{Name: "reach", OK: true, Detail: fmt.Sprintf("%s has folders of %d hosts", root, len(folders))},
		{Name: "permission", OK: closed == 0, Detail: fmt.Sprintf("%d of %d host folders cannot be written", closed, len(folders))},
		{Name: "drift", OK: len(foreign) == 0, Detail: fmt.Sprintf("%d files hold what ic did not write", len(foreign))},
	}, nil
}

// foreign lists the files that somebody else has written.
func (b *Backend) foreign() ([]string, error) {
	paths, err := filepath.Glob(strings.ReplaceAll(escapeGlob(b.template), placeholder, "*"))
	if err != nil {
		return nil, sdk.Refuse(sdk.CodeFailed, "listing the files of hosts: %v", err)
	}
	var out []string
	for _, path := range paths {
		w := watched{path: path}
		now, err := w.read()
		if err != nil {
			return nil, failure(err, path)
		}
		if _, ours, err := w.owner(now); err != nil {
			return nil, failure(err, path)
		} else if !ours {
			out = append(out, path)
		}
	}
	return out, nil
}

// Plan implements sdk.Backend.
func (b *Backend) Plan(ctx context.Context, value string, targets []string) (sdk.Plan, error) {
	if _, err := os.Stat(b.root()); err != nil {
		return sdk.Plan{}, failure(err, b.root())
	}
	out := sdk.Plan{Changes: make([]sdk.Change, 0, len(targets))}
	for _, host := range targets {
		if err := ctx.Err(); err != nil {
			return sdk.Plan{}, err
		}
		w := b.file(host)
		now, err := w.read()
		if err != nil {
			return sdk.Plan{}, failure(err, w.path)
		}
		owner, ours, err := w.owner(now)
		if err != nil {
			return sdk.Plan{}, failure(err, w.path)
		}
		out.Changes = append(out.Changes, sdk.Change{
			Target: host, Hosts: []string{host}, Before: now.value(), After: value, Owner: owner, Conflict: !ours,
		})
	}
	return out, nil
}

// Apply implements sdk.Backend. A host that fails does not hold up the others.
func (b *Backend) Apply(ctx context.Context, a sdk.Application, report sdk.Report) error {
	count := counter{total: len(a.Plan.Changes)}
	return eachOf(ctx, a.Plan.Changes, func(ctx context.Context, c sdk.Change) error {
		w := b.file(c.Target)
		if c.Conflict {
			return report(count.next(sdk.Progress{Phase: sdk.Blocked, Target: c.Target, Owner: c.Owner}))
		}
		if err := report(sdk.Progress{Phase: sdk.Writing, Target: c.Target, Total: count.total}); err != nil {
			return err
		}
		p, err := w.apply(ctx, receipt{
			V: 1, Operation: a.Operation, Plan: a.Plan.Digest, Host: c.Target, Total: count.total, After: c.After,
		}, c.Before)
		if err != nil {
			return failure(err, w.path)
		}
		return report(count.next(p))
	})
}

// Observe implements sdk.Backend.
func (b *Backend) Observe(ctx context.Context, operation string, report sdk.Report) error {
	return b.overReceipts(ctx, operation, report, func(_ context.Context, w watched, r receipt) (sdk.Progress, error) {
		return w.observe(r)
	})
}

// Undo implements sdk.Backend.
func (b *Backend) Undo(ctx context.Context, operation string, report sdk.Report) error {
	return b.overReceipts(ctx, operation, report, func(ctx context.Context, w watched, r receipt) (sdk.Progress, error) {
		return w.undo(ctx, r)
	})
}

// overReceipts runs what for each host that has a receipt of operation, and then
// says how many the operation never came to.
func (b *Backend) overReceipts(ctx context.Context, operation string, report sdk.Report,
	what func(context.Context, watched, receipt) (sdk.Progress, error),
) error {
	receipts, err := b.receipts(operation)
	if err != nil {
		return err
	}
	if len(receipts) == 0 {
		return sdk.Refuse(sdk.CodeOperationUnknown, "no host under %s has a receipt of operation %s", b.root(), operation)
	}
	count := counter{total: receipts[0].Total}
	err = eachOf(ctx, receipts, func(ctx context.Context, r receipt) error {
		w := b.file(r.Host)
		p, err := what(ctx, w, r)
		if err != nil {
			return failure(err, w.path)
		}
		return report(count.next(p))
	})
	if missing := count.total - len(receipts); err == nil && missing > 0 {
		err = report(sdk.Progress{Phase: sdk.Missing, Done: missing, Total: count.total,
			Message: fmt.Sprintf("%d of %d hosts have no receipt: they were never written", missing, count.total)})
	}
	return err
}

// Stop implements sdk.Backend; there is nothing to release.
func (b *Backend) Stop(context.Context) error { return nil }

// counter numbers progress by phase.
type counter struct {
	total int
	mu    sync.Mutex
	done  map[sdk.Phase]int
}

func (c *counter) next(p sdk.Progress) sdk.Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = map[sdk.Phase]int{}
	}
	c.done[p.Phase]++
	p.Done, p.Total = c.done[p.Phase], c.total
	return p
}

// eachOf runs what for every item, some at a time, and joins the failures into
// one sentence. Only the end of ctx stops it early.
func eachOf[T any](ctx context.Context, items []T, what func(context.Context, T) error) error {
	work := make(chan T)
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed []error
	)
	for range min(writers, len(items)) {
		wg.Go(func() {
			for item := range work {
				err := ctx.Err()
				if err == nil {
					err = what(ctx, item)
				}
				if err != nil {
					mu.Lock()
					failed = append(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, item := range items {
		work <- item
	}
	close(work)
	wg.Wait()
	return joined(failed, len(items))
}

func joined(failed []error, total int) error {
	if len(failed) == 0 {
		return nil
	}
	if total == 1 {
		return failed[0]
	}
	var texts []string
	for _, err := range failed[:min(maxErrors, len(failed))] {
		texts = append(texts, err.Error())
	}
	return sdk.Refuse(sdk.CodeOf(failed[0]), "%d of %d hosts failed, the others are done: %s", len(failed), total, strings.Join(texts, "; "))
}

// failure gives a filesystem's error its code and says where it happened.
func failure(err error, path string) error {
	var f *sdk.Failure
	if errors.As(err, &f) {
		return err
	}
	code := sdk.CodeFailed
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		code = sdk.CodeDenied
	case errors.Is(err, fs.ErrNotExist):
		code = sdk.CodeUnreachable
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return sdk.Refuse(code, "hostfile %s: %v", path, err)
}

// escapeGlob makes a path stand for itself in a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
