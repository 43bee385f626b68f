package incident

import (
	"context"
	"slices"

	"github.com/degradedmode/ic/internal/breakglass"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/plugins/sdk"
)

// Backend is a deploy pipeline that the policy names. Open starts it and gives
// it its settings and secrets.
type Backend struct {
	Name   string
	Config policy.Backend
	Open   func(context.Context) (OpenBackend, error)
}

// OpenBackend is a backend that is running and configured. Nothing it says is
// proof of anything on a host.
type OpenBackend interface {
	Describe(ctx context.Context) (sdk.Description, error)
	Check(ctx context.Context) ([]sdk.Finding, error)
	Plan(ctx context.Context, request sdk.PlanRequest) (sdk.Plan, error)
	Apply(ctx context.Context, digest, operation string, report sdk.Report) error
	Observe(ctx context.Context, operation string, report sdk.Report) error
	Undo(ctx context.Context, operation string, report sdk.Report) error
	Close() error
}

// backendsOf lists the backends, the one that shares least with what is failing
// first.
func (d *Desk) backendsOf(w *model.World) []BackendView {
	candidates := make([]breakglass.Candidate, len(d.o.Backends))
	live := make(map[string]breakglass.LiveRun)
	for i, b := range d.o.Backends {
		candidates[i] = breakglass.Candidate{Name: b.Name, Dependencies: b.Config.Dependencies}
		if at := w.Rehearsals["backend/"+b.Name].Live; !at.IsZero() {
			live[b.Name] = breakglass.LiveRun{At: at}
		}
	}
	out := make([]BackendView, len(candidates))
	for i, s := range breakglass.Rank(candidates, d.failing(), live) {
		out[i] = BackendView{Name: s.Name, Dependencies: s.Dependencies, Overlap: s.Shared, Rehearsed: w.Rehearsals["backend/"+s.Name]}
		if known, ok := d.described.Load(s.Name); ok {
			described := known.(sdk.Description)
			out[i].Carrier, out[i].Restarts = string(described.Carrier), described.Restarts
		}
	}
	return out
}

// failing names what this console sees as down now, in the words that backends
// use for their dependencies.
func (d *Desk) failing() []string {
	h := d.seen.copy()
	var out []string
	for i, c := range h.carriers {
		if c.err != nil {
			out = append(out, d.o.Carriers[i].Name())
		}
	}
	return out
}

func (d *Desk) backend(name string) (Backend, bool) {
	at := slices.IndexFunc(d.o.Backends, func(b Backend) bool { return b.Name == name })
	if at < 0 {
		return Backend{}, false
	}
	return d.o.Backends[at], true
}

// Rights lists the rows of the policy in force whose role we hold, sorted by
// name. What they allow now is for Preview to say.
func (d *Desk) Rights() []NamedRight {
	var out []NamedRight
	for _, name := range d.o.Bundle.RightNames() {
		right, domain, _ := d.o.Bundle.Right(name)
		if d.o.Bundle.Root.HasRole(right.Who, policy.Signer{Name: d.o.Person}) {
			out = append(out, NamedRight{Right: right, Name: name, Domain: domain})
		}
	}
	return out
}

// NamedRight is a row with its name and the domain that grants it.
type NamedRight struct {
	policy.Right
	Name   string
	Domain policy.Domain
}
