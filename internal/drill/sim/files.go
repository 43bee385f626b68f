package sim

import (
	"context"
	"time"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/plugins/sdk"
)

// fileMost is how long it takes at most until a host has noticed that its watched
// file was written.
const fileMost = time.Second

// watchedFiles are the files that hosts watch, one on each.
type watchedFiles struct {
	w          *World
	operations map[string]*filePush
}

// filePush is one operation: what stood in each file before and after.
type filePush struct {
	targets []string
	of      map[string]*push
}

// write puts a value on one host. Nothing restarts.
func (f *watchedFiles) write(h *host, value string) {
	h.file = value
	f.w.k.After(f.w.jitter("files", 0, fileMost), h.readFile)
}

// fileBackend is the watched files as break-glass sees them.
type fileBackend struct {
	files *watchedFiles
	disk  *disk // of the console that has opened it
	plan  sdk.Plan
}

var _ incident.OpenBackend = (*fileBackend)(nil)

// Describe implements incident.OpenBackend.
func (b *fileBackend) Describe(context.Context) (sdk.Description, error) {
	return sdk.Description{Name: "hostfile", Version: "sim", Carrier: sdk.File, CanUndo: true, Dependencies: []string{"ssh-access"}}, nil
}

// Check implements incident.OpenBackend.
func (b *fileBackend) Check(ctx context.Context) ([]sdk.Finding, error) {
	defer b.files.w.enter(ctx)()
	f := sdk.Finding{Name: "reach", OK: true, Detail: "every host can be reached"}
	for _, h := range b.files.w.hosts {
		if h.paused {
			f.OK, f.Detail = false, h.spec.Name+" cannot be reached"
			break
		}
	}
	return []sdk.Finding{f}, nil
}

// Plan implements incident.OpenBackend.
func (b *fileBackend) Plan(ctx context.Context, r sdk.PlanRequest) (sdk.Plan, error) {
	defer b.files.w.enter(ctx)()
	value, leftOut := sdk.Fit(r.Tokens, sdk.MaxCarrier)
	b.plan = sdk.Plan{Targets: len(r.Targets), LeftOut: leftOut}
	for _, name := range r.Targets {
		h := b.files.w.byName[name]
		if h == nil || h.file == value {
			continue
		}
		b.plan.Changes = append(b.plan.Changes, sdk.Change{Target: name, Hosts: []string{name}, Before: h.file, After: value})
	}
	if len(b.plan.Changes) == 0 {
		return sdk.Plan{}, sdk.Refuse(sdk.CodeUnchanged, "every host's file holds the value already")
	}
	b.plan.Digest = sdk.PlanDigest(&b.plan)
	return b.plan, nil
}

// Apply implements incident.OpenBackend. A host that cannot be reached is an error
// after all others have been written.
func (b *fileBackend) Apply(ctx context.Context, digest, operation string, report sdk.Report) error {
	defer b.files.w.enter(ctx)()
	if b.disk.dead.Load() {
		return errDead
	}
	if digest == "" || digest != b.plan.Digest {
		return sdk.Refuse(sdk.CodePlanUnknown, "apply: this plan was not made here")
	}
	op := b.files.operations[operation]
	if op == nil {
		op = &filePush{of: map[string]*push{}}
		b.files.operations[operation] = op
	}
	unreachable := ""
	for i, c := range b.plan.Changes {
		h := b.files.w.byName[c.Target]
		if h.paused {
			unreachable = c.Target
			continue
		}
		if op.of[c.Target] == nil {
			op.targets = append(op.targets, c.Target)
			op.of[c.Target] = &push{before: c.Before, after: c.After}
			b.files.write(h, c.After)
		}
		if err := report(sdk.Progress{Phase: sdk.Written, Target: c.Target, Done: i + 1, Total: len(b.plan.Changes)}); err != nil {
			return err
		}
	}
	if unreachable != "" {
		return sdk.Refuse(sdk.CodeUnreachable, "write the file of %s: the host does not answer; the others have theirs", unreachable)
	}
	return nil
}

// Observe implements incident.OpenBackend.
func (b *fileBackend) Observe(ctx context.Context, operation string, report sdk.Report) error {
	defer b.files.w.enter(ctx)()
	op := b.files.operations[operation]
	if op == nil {
		return sdk.Refuse(sdk.CodeOperationUnknown, "there is no trace of the operation %s", operation)
	}
	for _, target := range op.targets {
		if err := report(progressOf(target, b.files.w.byName[target].file, "", op.of[target])); err != nil {
			return err
		}
	}
	return nil
}

// Undo implements incident.OpenBackend.
func (b *fileBackend) Undo(ctx context.Context, operation string, report sdk.Report) error {
	defer b.files.w.enter(ctx)()
	if b.disk.dead.Load() {
		return errDead
	}
	op := b.files.operations[operation]
	if op == nil {
		return sdk.Refuse(sdk.CodeOperationUnknown, "there is no trace of the operation %s", operation)
	}
	for i, target := range op.targets {
		h, one := b.files.w.byName[target], op.of[target]
		p := sdk.Progress{Phase: sdk.Undone, Target: target, Done: i + 1, Total: len(op.targets)}
		switch {
		case h.paused:
			return sdk.Refuse(sdk.CodeUnreachable, "restore the file of %s: the host does not answer", target)
		case one.undone:
		case h.file != one.after:
			p.Phase = sdk.Kept
		default:
			one.undone = true
			b.files.write(h, one.before)
		}
		if err := report(p); err != nil {
			return err
		}
	}
	return nil
}

// Close implements incident.OpenBackend.
func (b *fileBackend) Close() error { return nil }
