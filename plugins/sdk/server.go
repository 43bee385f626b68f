package sdk

import (
	"context"

	"github.com/degradedmode/ic/plugins/sdk/backendv1"
)

// server answers the protocol with a session.
type server struct {
	backendv1.UnimplementedBackendServer
	session *Session
}

func (s *server) Describe(ctx context.Context, _ *backendv1.DescribeRequest) (*backendv1.DescribeResponse, error) {
	d, err := s.session.Describe(ctx)
	if err != nil {
		return nil, failureToWire(err)
	}
	return describeToWire(d), nil
}

func (s *server) Configure(ctx context.Context, r *backendv1.ConfigureRequest) (*backendv1.ConfigureResponse, error) {
	if err := s.session.Configure(ctx, r.GetConfig(), r.GetSecrets()); err != nil {
		return nil, failureToWire(err)
	}
	return &backendv1.ConfigureResponse{}, nil
}

func (s *server) Check(ctx context.Context, _ *backendv1.CheckRequest) (*backendv1.CheckResponse, error) {
	findings, err := s.session.Check(ctx)
	if err != nil {
		return nil, failureToWire(err)
	}
	out := &backendv1.CheckResponse{}
	for _, f := range findings {
		out.Findings = append(out.Findings, &backendv1.Finding{Name: f.Name, Ok: f.OK, Detail: f.Detail})
	}
	return out, nil
}

func (s *server) Plan(ctx context.Context, r *backendv1.PlanRequest) (*backendv1.PlanResponse, error) {
	p, err := s.session.Plan(ctx, requestFromWire(r))
	if err != nil {
		return nil, failureToWire(err)
	}
	return planToWire(p), nil
}

func (s *server) Apply(r *backendv1.ApplyRequest, stream backendv1.Backend_ApplyServer) error {
	return failureToWire(s.session.Apply(stream.Context(), r.GetPlanDigest(), r.GetOperationId(), sender(stream)))
}

func (s *server) Observe(r *backendv1.ObserveRequest, stream backendv1.Backend_ObserveServer) error {
	return failureToWire(s.session.Observe(stream.Context(), r.GetOperationId(), sender(stream)))
}

func (s *server) Undo(r *backendv1.UndoRequest, stream backendv1.Backend_UndoServer) error {
	return failureToWire(s.session.Undo(stream.Context(), r.GetOperationId(), sender(stream)))
}

func (s *server) Stop(ctx context.Context, _ *backendv1.StopRequest) (*backendv1.StopResponse, error) {
	if err := s.session.Stop(ctx); err != nil {
		return nil, failureToWire(err)
	}
	return &backendv1.StopResponse{}, nil
}

// sender makes a Report of a stream.
func sender(stream interface {
	Send(*backendv1.Progress) error
}) Report {
	return func(p Progress) error { return stream.Send(progressToWire(p)) }
}
