package sdk

import (
	"context"
	"errors"
	"io"

	"github.com/degradedmode/ic/plugins/sdk/backendv1"
)

// remote is a backend in another process, as its host sees it.
type remote struct{ client backendv1.BackendClient }

func (r *remote) Describe(ctx context.Context) (Description, error) {
	d, err := r.client.Describe(ctx, &backendv1.DescribeRequest{})
	if err != nil {
		return Description{}, failureFromWire(err)
	}
	return describeFromWire(d), nil
}

func (r *remote) Configure(ctx context.Context, config, secrets map[string]string) error {
	_, err := r.client.Configure(ctx, &backendv1.ConfigureRequest{Config: config, Secrets: secrets})
	return failureFromWire(err)
}

func (r *remote) Check(ctx context.Context) ([]Finding, error) {
	c, err := r.client.Check(ctx, &backendv1.CheckRequest{})
	if err != nil {
		return nil, failureFromWire(err)
	}
	var out []Finding
	for _, f := range c.GetFindings() {
		out = append(out, Finding{Name: f.GetName(), OK: f.GetOk(), Detail: f.GetDetail()})
	}
	return out, nil
}

func (r *remote) Plan(ctx context.Context, request PlanRequest) (Plan, error) {
	p, err := r.client.Plan(ctx, requestToWire(request))
	if err != nil {
		return Plan{}, failureFromWire(err)
	}
	return planFromWire(p), nil
}

func (r *remote) Apply(ctx context.Context, digest, operation string, report Report) error {
	return receive(ctx, report, func(ctx context.Context) (progressStream, error) {
		return r.client.Apply(ctx, &backendv1.ApplyRequest{PlanDigest: digest, OperationId: operation})
	})
}

func (r *remote) Observe(ctx context.Context, operation string, report Report) error {
	return receive(ctx, report, func(ctx context.Context) (progressStream, error) {
		return r.client.Observe(ctx, &backendv1.ObserveRequest{OperationId: operation})
	})
}

func (r *remote) Undo(ctx context.Context, operation string, report Report) error {
	return receive(ctx, report, func(ctx context.Context) (progressStream, error) {
		return r.client.Undo(ctx, &backendv1.UndoRequest{OperationId: operation})
	})
}

func (r *remote) Stop(ctx context.Context) error {
	_, err := r.client.Stop(ctx, &backendv1.StopRequest{})
	return failureFromWire(err)
}

type progressStream interface {
	Recv() (*backendv1.Progress, error)
}

// receive passes a stream on until it ends. When report fails, the stream is
// given up, which the backend sees.
func receive(ctx context.Context, report Report, open func(context.Context) (progressStream, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := open(ctx)
	if err != nil {
		return failureFromWire(err)
	}
	for {
		p, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failureFromWire(err)
		}
		if err := report(progressFromWire(p)); err != nil {
			return err
		}
	}
}
