package git

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/plugins/sdk"
)

const (
	version = "1"

	// maxPushes is how often we make the commit again on top of somebody else's.
	// Each round lost means that another push went through.
	maxPushes = 5

	// maxReceipts is how many lines of a pipeline one observation passes on.
	maxReceipts = 1000
)

// Backend pushes the carrier value to a branch.
type Backend struct {
	getenv   func(string) string
	settings settings
	git      *program // made at the first use after Configure
	depth    int      // of the history at hand
}

var _ sdk.Backend = (*Backend)(nil)

// New makes a backend that still has to be configured. Of the environment it
// reads PATH and SSH_AUTH_SOCK.
func New(getenv func(string) string) *Backend { return &Backend{getenv: getenv} }

// Describe implements sdk.Backend.
func (b *Backend) Describe() sdk.Description {
	out := sdk.Description{
		Name: "git", Version: version, Carrier: sdk.Env, Restarts: true, CanUndo: true, Dependencies: []string{"git"},
	}
	if host := b.settings.host(); host != "" {
		out.Dependencies = append(out.Dependencies, host)
	}
	return out
}

// Configure takes repo, branch, path, author and user, and the secrets token or
// ssh_key.
func (b *Backend) Configure(_ context.Context, config, secrets map[string]string) error {
	s, err := parseSettings(config, secrets)
	if err != nil {
		return err
	}
	if err := b.release(); err != nil {
		return err
	}
	b.settings = s
	return nil
}

// ready makes the private repository, once.
func (b *Backend) ready(ctx context.Context) error {
	if b.git != nil {
		return nil
	}
	p, err := open(ctx, b.settings, b.getenv)
	if err != nil {
		return err
	}
	b.git = p
	return nil
}

// now brings what is there now.
func (b *Backend) now(ctx context.Context) (head, error) {
	if err := b.ready(ctx); err != nil {
		return head{}, err
	}
	if err := b.fetch(ctx, firstDepth); err != nil {
		return head{}, err
	}
	return b.readHead(ctx)
}

// Check implements sdk.Backend. It pushes nothing: a dry run goes as far as the
// other side's answer who we are.
func (b *Backend) Check(ctx context.Context) ([]sdk.Finding, error) {
	if err := b.ready(ctx); err != nil {
		return []sdk.Finding{finding("program", err, "")}, ctx.Err()
	}
	version, err := b.git.version(ctx)
	out := []sdk.Finding{finding("program", err, version)}
	h, err := b.now(ctx)
	out = append(out, finding("reach", err, fmt.Sprintf("branch %s of %s can be read", b.settings.branch, b.settings.repo)))
	if err != nil {
		return out, ctx.Err()
	}
	_, err = b.git.dial(ctx, "push", "--quiet", "--dry-run", "--no-verify", "--", b.settings.repo, h.commit+":refs/heads/"+b.settings.branch)
	out = append(out, finding("permission", err, "the other side lets us push; whether a rule protects the branch shows at a real push only"))
	who, ours, err := b.owner(ctx, h)
	if err == nil && !ours {
		err = fmt.Errorf("%s", b.conflict(h, who))
	}
	return append(out, finding("drift", err, sdk.Name+" in "+b.settings.path+" is ours to write")), ctx.Err()
}

func finding(name string, err error, fine string) sdk.Finding {
	if err != nil {
		return sdk.Finding{Name: name, Detail: err.Error()}
	}
	return sdk.Finding{Name: name, OK: true, Detail: fine}
}

func (b *Backend) conflict(h head, who string) string {
	if h.odd != nil {
		return fmt.Sprintf("%s: %v in %s", who, h.odd, b.settings.path)
	}
	return who
}

// Plan implements sdk.Backend. All targets read the one file.
func (b *Backend) Plan(ctx context.Context, value string, targets []string) (sdk.Plan, error) {
	h, err := b.now(ctx)
	if err != nil {
		return sdk.Plan{}, err
	}
	who, ours, err := b.owner(ctx, h)
	if err != nil {
		return sdk.Plan{}, err
	}
	return sdk.Plan{Changes: []sdk.Change{{
		Target: b.settings.path, Hosts: targets, Before: h.line.value, After: value,
		Owner: b.conflict(h, who), Conflict: !ours, Restarts: true,
	}}}, nil
}

// Apply implements sdk.Backend.
func (b *Backend) Apply(ctx context.Context, a sdk.Application, report sdk.Report) error {
	if done, found, err := b.operation(ctx, a.Operation, false); err != nil {
		return err
	} else if found {
		return b.observe(ctx, done, report)
	}
	change := a.Plan.Changes[0]
	if err := report(sdk.Progress{Phase: sdk.Writing, Target: b.settings.path, Total: 1}); err != nil {
		return err
	}
	message := fmt.Sprintf("ic: break-glass operation %s\n\nIc-Operation: %s\nIc-Plan: %s\n", a.Operation, a.Operation, a.Plan.Digest)
	commit, err := b.forward(ctx, func(h head) ([]byte, string, error) {
		if h.odd != nil || h.line.value != change.Before {
			return nil, "", sdk.Refuse(sdk.CodeChanged, "%s in %s was changed on %s since the plan: nothing was written; plan again",
				sdk.Name, b.settings.path, b.settings.branch)
		}
		return set(h.text, h.line, change.After), message, nil
	})
	if err != nil {
		return b.orFound(ctx, a.Operation, err, report, func(sent) bool { return true })
	}
	return report(b.progress(sdk.Written, commit))
}

// forward makes a commit on the tip at hand and pushes it; when the branch has
// moved, again on the new tip. What the file becomes is asked anew each time.
func (b *Backend) forward(ctx context.Context, become func(head) (text []byte, message string, err error)) (string, error) {
	for range maxPushes {
		h, err := b.readHead(ctx)
		if err != nil {
			return "", err
		}
		text, message, err := become(h)
		if err != nil {
			return "", err
		}
		commit, err := b.write(ctx, h, text, message)
		if err != nil {
			return "", err
		}
		err = b.push(ctx, commit)
		if !errors.Is(err, errOvertaken) {
			return commit, err
		}
		if err := b.fetch(ctx, firstDepth); err != nil {
			return "", err
		}
	}
	return "", sdk.Refuse(sdk.CodeFailed, "git push lost against other pushes %d times in a row: nothing was written; try again", maxPushes)
}

// orFound looks whether what was wanted is there all the same: the push arrived
// before the connection broke, or another process was sent with it too.
func (b *Backend) orFound(ctx context.Context, operation string, failed error, report sdk.Report, wanted func(sent) bool) error {
	if err := b.fetch(ctx, firstDepth); err != nil {
		return failed
	}
	done, found, err := b.operation(ctx, operation, false)
	if err != nil || !found || !wanted(done) {
		return failed
	}
	return b.observe(ctx, done, report)
}

// find brings what is there now and looks for an operation in it.
func (b *Backend) find(ctx context.Context, operation string) (sent, error) {
	if _, err := b.now(ctx); err != nil {
		return sent{}, err
	}
	done, found, err := b.operation(ctx, operation, true)
	if err == nil && !found {
		err = sdk.Refuse(sdk.CodeOperationUnknown, "no commit among the last %d of %s carries operation %s", maxDepth, b.settings.branch, operation)
	}
	return done, err
}

// Observe implements sdk.Backend.
func (b *Backend) Observe(ctx context.Context, operation string, report sdk.Report) error {
	done, err := b.find(ctx, operation)
	if err != nil {
		return err
	}
	return b.observe(ctx, done, report)
}

// observe compares the tip at hand with what an operation wrote, and passes on
// what the pipeline says about itself.
func (b *Backend) observe(ctx context.Context, done sent, report sdk.Report) error {
	if done.undo != "" {
		return report(b.progress(sdk.Undone, done.undo))
	}
	h, stands, err := b.stands(ctx, done)
	if err != nil {
		return err
	}
	if !stands {
		return b.tellReplaced(ctx, sdk.Replaced, h, done, report)
	}
	if err := report(b.progress(sdk.Written, done.edit.commit)); err != nil {
		return err
	}
	lines, err := b.receipts(ctx, done.edit.commit)
	if err != nil {
		return err
	}
	for _, line := range lines[:min(maxReceipts, len(lines))] {
		if err := report(rolling(line, done.edit.commit)); err != nil {
			return err
		}
	}
	return nil
}

// stands reports whether the tip at hand still has what an operation wrote.
func (b *Backend) stands(ctx context.Context, done sent) (h head, yes bool, err error) {
	if h, err = b.readHead(ctx); err != nil {
		return head{}, false, err
	}
	then, err := b.readAt(ctx, done.edit.commit)
	return h, h.odd == nil && h.line.found && h.line.value == then.line.value, err
}

func (b *Backend) tellReplaced(ctx context.Context, phase sdk.Phase, h head, done sent, report sdk.Report) error {
	who, _, err := b.owner(ctx, h)
	if err != nil {
		return err
	}
	p := b.progress(phase, done.edit.commit)
	if p.Owner = b.conflict(h, who); p.Owner == "" {
		edits, err := b.log(ctx, "--max-count=1", headRef, "--", b.settings.path)
		if err != nil {
			return err
		}
		for _, e := range edits {
			p.Owner = e.author
		}
	}
	return report(p)
}

// Undo implements sdk.Backend: a new commit, never a step back of the branch.
func (b *Backend) Undo(ctx context.Context, operation string, report sdk.Report) error {
	done, err := b.find(ctx, operation)
	if err != nil {
		return err
	}
	if done.undo != "" {
		return report(b.progress(sdk.Undone, done.undo))
	}
	before := head{}
	if done.parent != "" {
		if before, err = b.readAt(ctx, done.parent); err != nil {
			return err
		}
	}
	after, err := b.readAt(ctx, done.edit.commit)
	if err != nil {
		return err
	}
	h, stands, err := b.stands(ctx, done)
	if err != nil {
		return err
	}
	if !stands {
		return b.tellReplaced(ctx, sdk.Kept, h, done, report)
	}
	commit, err := b.forward(ctx, func(h head) ([]byte, string, error) {
		if h.odd != nil || h.line.value != after.line.value {
			return nil, "", sdk.Refuse(sdk.CodeChanged, "%s in %s was changed while operation %s was being undone: it was left alone",
				sdk.Name, b.settings.path, operation)
		}
		return restore(before, after, h), fmt.Sprintf("ic: undo break-glass operation %s\n\nIc-Undo: %s\n", operation, operation), nil
	})
	if err != nil {
		return b.orFound(ctx, operation, err, report, func(done sent) bool { return done.undo != "" })
	}
	return report(b.progress(sdk.Undone, commit))
}

// restore puts back into now what stood in before. When nothing else has changed
// since, it is the very file of before; nil if there was none.
func restore(before, after, now head) []byte {
	switch {
	case string(now.text) == string(after.text):
		if before.mode == "" {
			return nil
		}
		return append([]byte{}, before.text...)
	case before.line.found:
		return set(now.text, now.line, before.line.value)
	default:
		return unset(now.text, now.line)
	}
}

func (b *Backend) progress(phase sdk.Phase, commit string) sdk.Progress {
	return sdk.Progress{Phase: phase, Target: b.settings.path, Done: 1, Total: 1, RemoteID: commit}
}

// rolling reads one line of a pipeline's receipt: "20/60 what it says", or just
// what it says.
func rolling(line, commit string) sdk.Progress {
	p := sdk.Progress{Phase: sdk.Rolling, RemoteID: commit, Message: line}
	count, rest, _ := strings.Cut(line, " ")
	done, total, ok := strings.Cut(count, "/")
	n, err := strconv.Atoi(done)
	m, err2 := strconv.Atoi(total)
	if ok && err == nil && err2 == nil && n >= 0 && m >= n {
		p.Done, p.Total, p.Message = n, m, rest
	}
	return p
}

// Stop implements sdk.Backend.
func (b *Backend) Stop(context.Context) error { return b.release() }

func (b *Backend) release() error {
	if b.git == nil {
		return nil
	}
	p := b.git
	b.git = nil
	return p.close()
}
