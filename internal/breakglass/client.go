package breakglass

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/degradedmode/ic/internal/untrusted"
	"github.com/degradedmode/ic/plugins/sdk"
	"github.com/hashicorp/go-plugin"
)

// Client is an open backend. Everything it gives back is bounded and clean, and
// is what was asked for.
type Client struct {
	name      string
	conn      sdk.Conn
	limits    Limits
	words     *output
	inProcess error // why there is no process; nil if there is one

	process *process
	plugin  *plugin.Client
	folder  *folder
}

var _ sdk.Conn = (*Client)(nil)

// Name is the policy's name for the backend.
func (c *Client) Name() string { return c.name }

// InProcess says why the backend runs without a process of its own; nil if it
// has one.
func (c *Client) InProcess() error { return c.inProcess }

// Output is the last of what the backend has printed, line by line, with its name
// in front.
func (c *Client) Output() []string { return c.words.lines("backend " + c.name) }

// ask makes one call within its limit and explains its failure.
func (c *Client) ask(ctx context.Context, about call, what func(context.Context) error) error {
	about.backend = c.name
	limited, cancel := context.WithTimeout(ctx, about.limit)
	defer cancel()
	return about.explain(ctx, what(limited))
}

// stream makes one call that reports progress: within its limit, and never
// silent for longer than the idle limit.
func (c *Client) stream(ctx context.Context, about call, report sdk.Report, what func(context.Context, sdk.Report) error) error {
	about.backend = c.name
	limited, cancel := context.WithTimeout(ctx, about.limit)
	defer cancel()
	idle := time.AfterFunc(c.limits.Idle, cancel)
	defer idle.Stop()

	var listener error
	err := what(limited, func(p sdk.Progress) error {
		idle.Reset(c.limits.Idle)
		if p.Phase == "" {
			return nil // a later version's word
		}
		err := report(cleanProgress(p))
		listener = errors.Join(listener, err)
		return err
	})
	if listener != nil {
		return fmt.Errorf("%s with backend %s: its progress could not be taken, %s: %w", about.doing, c.name, about.aftermath(), listener)
	}
	if !errors.Is(limited.Err(), context.DeadlineExceeded) {
		about.limit = c.limits.Idle // then it was that one, if any
	}
	return about.explain(ctx, err)
}

// Describe implements sdk.Conn.
func (c *Client) Describe(ctx context.Context) (out sdk.Description, err error) {
	about := call{backend: c.name, doing: "describing itself", limit: c.limits.Ask}
	err = c.ask(ctx, about, func(ctx context.Context) error {
		out, err = c.conn.Describe(ctx)
		return err
	})
	if err != nil {
		return sdk.Description{}, err
	}
	if out.Carrier != sdk.File && out.Carrier != sdk.Env || out.MaxBytes < 0 || len(out.Dependencies) > maxDepends {
		return sdk.Description{}, problem(c.name, Broken, nil, "describes itself without a carrier, or beyond the protocol's limits; nothing was changed")
	}
	out.Name, out.Version = untrusted.Text(out.Name, maxWord), untrusted.Text(out.Version, maxWord)
	for i, d := range out.Dependencies {
		out.Dependencies[i] = untrusted.Text(d, maxName)
	}
	return out, nil
}

// Configure implements sdk.Conn; Open has called it.
func (c *Client) Configure(ctx context.Context, config, secrets map[string]string) error {
	return c.ask(ctx, call{doing: "being configured", limit: c.limits.Ask}, func(ctx context.Context) error {
		return c.conn.Configure(ctx, config, secrets)
	})
}

// Check implements sdk.Conn.
func (c *Client) Check(ctx context.Context) (out []sdk.Finding, err error) {
	err = c.ask(ctx, call{doing: "checking", limit: c.limits.Check}, func(ctx context.Context) error {
		out, err = c.conn.Check(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	out = out[:min(len(out), maxFindings)]
	for i := range out {
		out[i].Name, out[i].Detail = untrusted.Text(out[i].Name, maxWord), untrusted.Text(out[i].Detail, maxSentence)
	}
	return out, nil
}

// Plan implements sdk.Conn. A plan that is not for what was asked, or whose
// digest does not bind it, is refused: a person would confirm something else
// than what is done.
func (c *Client) Plan(ctx context.Context, request sdk.PlanRequest) (out sdk.Plan, err error) {
	err = c.ask(ctx, call{doing: "planning", limit: c.limits.Plan}, func(ctx context.Context) error {
		out, err = c.conn.Plan(ctx, request)
		return err
	})
	if err != nil {
		return sdk.Plan{}, err
	}
	if wrong := faultOf(&out, request); wrong != "" {
		return sdk.Plan{}, problem(c.name, Broken, nil, "made a plan that is not what was asked: %s; nothing was changed", wrong)
	}
	for i := range out.Changes {
		p := &out.Changes[i]
		p.Target, p.Owner = untrusted.Text(p.Target, maxName), untrusted.Text(p.Owner, maxName)
		p.Before = untrusted.Text(p.Before, sdk.MaxCarrier)
	}
	return out, nil
}

// faultOf says what is wrong with a plan; empty if nothing is.
func faultOf(p *sdk.Plan, request sdk.PlanRequest) string {
	kept := len(request.Tokens) - len(p.LeftOut)
	if kept < 1 {
		return "it carries nothing"
	}
	for i, id := range p.LeftOut {
		if request.Tokens[kept+i].ID != id {
			return "it leaves out another token than the last ones"
		}
	}
	value, _ := sdk.Fit(request.Tokens[:kept], sdk.MaxCarrier)
	asked := make(map[string]bool, len(request.Targets))
	for _, t := range request.Targets {
		asked[t] = true
	}
	for i := range p.Changes {
		if p.Changes[i].After != value {
			return "a target would hold something else than the tokens"
		}
		for _, h := range p.Changes[i].Hosts {
			if !asked[h] {
				return "it reaches a host twice, or one that was not asked for"
			}
			delete(asked, h)
		}
	}
	switch {
	case len(asked) > 0:
		return fmt.Sprintf("it does not reach %d of the hosts", len(asked))
	case p.Targets != len(request.Targets) || p.Restarts < 0 || p.Restarts > p.Targets:
		return "its counts are wrong"
	case p.Digest != sdk.PlanDigest(p):
		return "its digest does not bind it"
	}
	return ""
}

// Apply implements sdk.Conn. When it fails with a Kind, what it did is unknown.
func (c *Client) Apply(ctx context.Context, digest, operation string, report sdk.Report) error {
	about := call{doing: "applying operation " + operation, effect: true, limit: c.limits.Act}
	return c.stream(ctx, about, report, func(ctx context.Context, report sdk.Report) error {
		return c.conn.Apply(ctx, digest, operation, report)
	})
}

// Observe implements sdk.Conn.
func (c *Client) Observe(ctx context.Context, operation string, report sdk.Report) error {
	about := call{doing: "observing operation " + operation, limit: c.limits.Observe}
	return c.stream(ctx, about, report, func(ctx context.Context, report sdk.Report) error {
		return c.conn.Observe(ctx, operation, report)
	})
}

// Undo implements sdk.Conn. When it fails with a Kind, what it did is unknown.
func (c *Client) Undo(ctx context.Context, operation string, report sdk.Report) error {
	about := call{doing: "undoing operation " + operation, effect: true, limit: c.limits.Act}
	return c.stream(ctx, about, report, func(ctx context.Context, report sdk.Report) error {
		return c.conn.Undo(ctx, operation, report)
	})
}

// Stop implements sdk.Conn. Close calls it.
func (c *Client) Stop(ctx context.Context) error {
	return c.ask(ctx, call{doing: "stopping", limit: c.limits.Stop}, c.conn.Stop)
}

func cleanProgress(p sdk.Progress) sdk.Progress {
	p.Target, p.RemoteID = untrusted.Text(p.Target, maxName), untrusted.Text(p.RemoteID, maxName)
	p.Owner, p.Message = untrusted.Text(p.Owner, maxName), untrusted.Text(p.Message, maxSentence)
	p.Done = max(0, p.Done)
	p.Total = max(p.Done, p.Total)
	return p
}
