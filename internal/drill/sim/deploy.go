package sim

import (
	"context"
	"time"

	"github.com/degradedmode/ic/internal/drill/kernel"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/plugins/sdk"
)

// How a rollout goes: somebody's push is built, then hosts are restarted batch by
// batch, in the order of their names.
const (
	buildTime      = 20 * time.Second
	batchLeast     = 10 // hosts, and a twentieth of a larger fleet
	batchShare     = 20
	batchPause     = 5 * time.Second
	stuckLook      = 5 * time.Second // a stuck pipeline looks again
	reconcileEvery = time.Minute     // a GitOps controller compares what is with what was declared
)

// envFile is the one file that the pipeline deploys, and its name in a plan.
const envFile = "fleet/ic.env"

// Names of who wrote what stands in a place.
const (
	ownerIC        = "ic"
	ownerReconcile = "gitops-controller"
)

// deploy is the deploy pipeline: a value that hosts get into their environment when
// it restarts them. It carries statements of ic, and the plain flags of a world
// without.
type deploy struct {
	w          *World
	value      string // of IC_DIRECTIVES
	plain      map[string]string
	owner      string
	stuck      bool
	denied     bool // the credential has expired
	reverting  bool // the GitOps controller takes back what it has not declared
	operations map[string]*push
	done       int // hosts of the present rollout
	rollout    int // number of it
}

// push is an operation as its traces tell it.
type push struct {
	before, after string
	undone        bool
}

func newDeploy(w *World) *deploy {
	return &deploy{w: w, plain: map[string]string{}, operations: map[string]*push{}}
}

// write puts a value into the file and rolls it out.
func (d *deploy) write(value, owner string) {
	d.value, d.owner = value, owner
	d.roll()
}

// roll begins a rollout; it takes the place of one that is under way.
func (d *deploy) roll() {
	d.rollout++
	d.done = 0
	n := d.rollout
	d.w.k.Log("pipeline", "push", kernel.Word("owner", d.owner), kernel.Int("bytes", int64(len(d.value))))
	d.w.k.After(buildTime, func() { d.batch(n) })
}

// batch restarts the next hosts with what stands in the file now.
func (d *deploy) batch(n int) {
	hosts := d.w.hosts
	switch {
	case n != d.rollout:
		return
	case d.stuck:
		d.w.k.After(stuckLook, func() { d.batch(n) })
		return
	}
	next := hosts[d.done:min(d.done+max(batchLeast, len(hosts)/batchShare), len(hosts))]
	d.done += len(next)
	for _, h := range next {
		h.env = d.value
		h.plain.env = clone(d.plain)
		h.restart()
	}
	d.w.k.Log("pipeline", "batch", kernel.Int("done", int64(d.done)), kernel.Int("of", int64(len(hosts))))
	if d.done < len(hosts) {
		d.w.k.After(batchPause, func() { d.batch(n) })
	}
}

// reconcile is what a GitOps controller does every minute.
func (d *deploy) reconcile() {
	if !d.reverting || d.owner == "" || d.owner == ownerReconcile {
		return
	}
	d.plain = map[string]string{}
	d.write("", ownerReconcile)
}

// gitBackend is the pipeline as break-glass sees it.
type gitBackend struct {
	d    *deploy
	disk *disk // of the console that has opened it
	plan sdk.Plan
}

var _ incident.OpenBackend = (*gitBackend)(nil)

// Describe implements incident.OpenBackend.
func (b *gitBackend) Describe(context.Context) (sdk.Description, error) {
	return sdk.Description{Name: "git", Version: "sim", Carrier: sdk.Env, Restarts: true, CanUndo: true, Dependencies: []string{"git-host", "deploy-pipeline"}}, nil
}

// Check implements incident.OpenBackend.
func (b *gitBackend) Check(ctx context.Context) ([]sdk.Finding, error) {
	defer b.d.w.enter(ctx)()
	credentials := sdk.Finding{Name: "credentials", OK: true, Detail: "the token is valid"}
	if b.d.denied {
		credentials = sdk.Finding{Name: "credentials", Detail: "the token has expired: make a new one (ic login git)"}
	}
	drift := sdk.Finding{Name: "drift", OK: true, Detail: "nobody else writes " + envFile}
	if b.d.owner == ownerReconcile {
		drift = sdk.Finding{Name: "drift", Detail: ownerReconcile + " takes back what is written to " + envFile}
	}
	return []sdk.Finding{credentials, {Name: "reach", OK: true, Detail: "the branch can be read"}, drift}, nil
}

func (b *gitBackend) allowed() error {
	if b.d.denied {
		return sdk.Refuse(sdk.CodeDenied, "push to %s: the token has expired; make a new one (ic login git)", envFile)
	}
	return nil
}

// Plan implements incident.OpenBackend. All hosts read the one file.
func (b *gitBackend) Plan(ctx context.Context, r sdk.PlanRequest) (sdk.Plan, error) {
	defer b.d.w.enter(ctx)()
	if err := b.allowed(); err != nil {
		return sdk.Plan{}, err
	}
	value, leftOut := sdk.Fit(r.Tokens, sdk.MaxCarrier)
	if value == b.d.value {
		return sdk.Plan{}, sdk.Refuse(sdk.CodeUnchanged, "%s holds the value already", envFile)
	}
	b.plan = sdk.Plan{
		Changes:  []sdk.Change{{Target: envFile, Hosts: r.Targets, Before: b.d.value, After: value, Owner: b.d.owner, Restarts: true}},
		Restarts: len(r.Targets), Targets: len(r.Targets), LeftOut: leftOut,
	}
	b.plan.Digest = sdk.PlanDigest(&b.plan)
	return b.plan, nil
}

// Apply implements incident.OpenBackend. A pipeline says that it took a push; what
// hosts hold is for them to say.
func (b *gitBackend) Apply(ctx context.Context, digest, operation string, report sdk.Report) error {
	defer b.d.w.enter(ctx)()
	if b.disk.dead.Load() {
		return errDead
	}
	if err := b.allowed(); err != nil {
		return err
	}
	if digest == "" || digest != b.plan.Digest {
		return sdk.Refuse(sdk.CodePlanUnknown, "apply: this plan was not made here")
	}
	change := b.plan.Changes[0]
	if b.d.value != change.Before {
		return sdk.Refuse(sdk.CodeChanged, "apply: %s has changed since it was planned", envFile)
	}
	if b.d.operations[operation] != nil {
		return report(sdk.Progress{Phase: sdk.Written, Target: envFile, Done: 1, Total: 1})
	}
	b.d.operations[operation] = &push{before: change.Before, after: change.After}
	b.d.write(change.After, ownerIC)
	return report(sdk.Progress{Phase: sdk.Written, Target: envFile, Done: 1, Total: 1})
}

// Observe implements incident.OpenBackend.
func (b *gitBackend) Observe(ctx context.Context, operation string, report sdk.Report) error {
	defer b.d.w.enter(ctx)()
	op := b.d.operations[operation]
	if op == nil {
		return sdk.Refuse(sdk.CodeOperationUnknown, "there is no trace of the operation %s", operation)
	}
	return report(progressOf(envFile, b.d.value, b.d.owner, op))
}

func progressOf(target, value, owner string, op *push) sdk.Progress {
	p := sdk.Progress{Phase: sdk.Written, Target: target, Done: 1, Total: 1}
	switch {
	case op.undone:
		p.Phase = sdk.Undone
	case value != op.after:
		p.Phase, p.Owner = sdk.Replaced, owner
	}
	return p
}

// Undo implements incident.OpenBackend. It touches only what it still finds as it
// was written.
func (b *gitBackend) Undo(ctx context.Context, operation string, report sdk.Report) error {
	defer b.d.w.enter(ctx)()
	if b.disk.dead.Load() {
		return errDead
	}
	if err := b.allowed(); err != nil {
		return err
	}
	op := b.d.operations[operation]
	switch {
	case op == nil:
		return sdk.Refuse(sdk.CodeOperationUnknown, "there is no trace of the operation %s", operation)
	case op.undone:
	case b.d.value != op.after:
		return report(sdk.Progress{Phase: sdk.Kept, Target: envFile, Done: 1, Total: 1, Owner: b.d.owner})
	default:
		op.undone = true
		b.d.write(op.before, ownerIC)
	}
	return report(sdk.Progress{Phase: sdk.Undone, Target: envFile, Done: 1, Total: 1})
}

// Close implements incident.OpenBackend.
func (b *gitBackend) Close() error { return nil }

// backends are those that the policy names, over the simulated pipeline and the
// simulated folders of the hosts.
func (w *World) backends(of *disk) []incident.Backend {
	var out []incident.Backend
	for _, name := range sortedKeys(w.bundle.Backends) {
		b := incident.Backend{Name: name, Config: w.bundle.Backends[name]}
		b.Open = func(context.Context) (incident.OpenBackend, error) {
			if name == "hostfile" {
				return &fileBackend{files: w.files, disk: of}, nil
			}
			return &gitBackend{d: w.deploy, disk: of}, nil
		}
		out = append(out, b)
	}
	return out
}

func clone(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
