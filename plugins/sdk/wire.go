package sdk

import (
	"errors"

	"github.com/degradedmode/ic/plugins/sdk/backendv1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var carriers = map[Carrier]backendv1.Carrier{
	File: backendv1.Carrier_CARRIER_FILE,
	Env:  backendv1.Carrier_CARRIER_ENV,
}

var phases = map[Phase]backendv1.Phase{
	Writing:  backendv1.Phase_PHASE_WRITING,
	Written:  backendv1.Phase_PHASE_WRITTEN,
	Rolling:  backendv1.Phase_PHASE_ROLLING,
	Blocked:  backendv1.Phase_PHASE_BLOCKED,
	Undone:   backendv1.Phase_PHASE_UNDONE,
	Kept:     backendv1.Phase_PHASE_KEPT,
	Replaced: backendv1.Phase_PHASE_REPLACED,
	Missing:  backendv1.Phase_PHASE_MISSING,
}

// word is the key of table whose value is number; empty if there is none, which
// is how a later version's word reads.
func word[W ~string, N comparable](table map[W]N, number N) W {
	for w, n := range table {
		if n == number {
			return w
		}
	}
	return ""
}

func describeToWire(d Description) *backendv1.DescribeResponse {
	return &backendv1.DescribeResponse{
		Name: d.Name, Version: d.Version, Carrier: carriers[d.Carrier], Restarts: d.Restarts, CanUndo: d.CanUndo,
		Limits: &backendv1.Limits{MaxBytes: int64(d.MaxBytes)}, Dependencies: d.Dependencies,
	}
}

func describeFromWire(d *backendv1.DescribeResponse) Description {
	return Description{
		Name: d.GetName(), Version: d.GetVersion(), Carrier: word(carriers, d.GetCarrier()), Restarts: d.GetRestarts(),
		CanUndo: d.GetCanUndo(), MaxBytes: int(d.GetLimits().GetMaxBytes()), Dependencies: d.GetDependencies(),
	}
}

func requestToWire(r PlanRequest) *backendv1.PlanRequest {
	out := &backendv1.PlanRequest{Targets: r.Targets}
	for _, t := range r.Tokens {
		out.Tokens = append(out.Tokens, &backendv1.Token{Id: t.ID, Text: t.Text})
	}
	return out
}

func requestFromWire(r *backendv1.PlanRequest) PlanRequest {
	out := PlanRequest{Targets: r.GetTargets()}
	for _, t := range r.GetTokens() {
		out.Tokens = append(out.Tokens, Token{ID: t.GetId(), Text: t.GetText()})
	}
	return out
}

func planToWire(p Plan) *backendv1.PlanResponse {
	out := &backendv1.PlanResponse{
		Restarts: int64(p.Restarts), Targets: int64(p.Targets), LeftOut: p.LeftOut, PlanDigest: p.Digest,
		LastKnownGood: &backendv1.LastKnownGood{
			Yes: int64(p.LastKnownGood.Yes), No: int64(p.LastKnownGood.No), Unknown: int64(p.LastKnownGood.Unknown),
		},
	}
	for _, c := range p.Changes {
		out.Changes = append(out.Changes, &backendv1.Change{
			Target: c.Target, Hosts: c.Hosts, Before: c.Before, After: c.After,
			Owner: c.Owner, Conflict: c.Conflict, Restarts: c.Restarts,
		})
	}
	return out
}

func planFromWire(p *backendv1.PlanResponse) Plan {
	good := p.GetLastKnownGood()
	out := Plan{
		Restarts: int(p.GetRestarts()), Targets: int(p.GetTargets()), LeftOut: p.GetLeftOut(), Digest: p.GetPlanDigest(),
		LastKnownGood: LastKnownGood{Yes: int(good.GetYes()), No: int(good.GetNo()), Unknown: int(good.GetUnknown())},
	}
	for _, c := range p.GetChanges() {
		out.Changes = append(out.Changes, Change{
			Target: c.GetTarget(), Hosts: c.GetHosts(), Before: c.GetBefore(), After: c.GetAfter(),
			Owner: c.GetOwner(), Conflict: c.GetConflict(), Restarts: c.GetRestarts(),
		})
	}
	return out
}

func progressToWire(p Progress) *backendv1.Progress {
	return &backendv1.Progress{
		Phase: phases[p.Phase], Target: p.Target, Done: int64(p.Done), Total: int64(p.Total),
		RemoteId: p.RemoteID, Owner: p.Owner, Message: p.Message,
	}
}

func progressFromWire(p *backendv1.Progress) Progress {
	return Progress{
		Phase: word(phases, p.GetPhase()), Target: p.GetTarget(), Done: int(p.GetDone()), Total: int(p.GetTotal()),
		RemoteID: p.GetRemoteId(), Owner: p.GetOwner(), Message: p.GetMessage(),
	}
}

// failureToWire carries a refusal's code across. An error of the context keeps
// its own gRPC code, so that the host can tell it from a refusal.
func failureToWire(err error) error {
	if err == nil {
		return nil
	}
	var f *Failure
	if !errors.As(err, &f) {
		if s := status.FromContextError(err); s.Code() != codes.Unknown {
			return s.Err()
		}
	}
	s, detailErr := status.New(codes.FailedPrecondition, shown(err.Error())).WithDetails(&backendv1.Failure{Code: string(CodeOf(err))})
	if detailErr != nil {
		return status.Error(codes.Internal, shown(err.Error()))
	}
	return s.Err()
}

// failureFromWire gives back a Failure where one was sent, and the gRPC error
// as it is otherwise: what failed then is the connection, not the backend's
// judgement.
func failureFromWire(err error) error {
	for _, detail := range status.Convert(err).Details() {
		if f, ok := detail.(*backendv1.Failure); ok {
			return &Failure{Code: Code(f.GetCode()), Text: status.Convert(err).Message()}
		}
	}
	return err
}
