package sdk

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// Session is a backend under the rules of the protocol. Serve puts one behind
// gRPC; a host that cannot start a process uses one directly.
type Session struct {
	backend Backend
	turn    chan struct{} // holds one item while an operation runs

	mu      sync.Mutex
	stopped bool
	cancel  context.CancelFunc // of the operation that runs

	// Touched only by the holder of the turn.
	configured bool
	plans      map[string]PlanRequest
	order      []string // digests of plans, oldest first
}

// NewSession puts backend under the rules.
func NewSession(backend Backend) *Session {
	return &Session{backend: backend, turn: make(chan struct{}, 1), plans: map[string]PlanRequest{}}
}

// Describe says what the backend is.
func (s *Session) Describe(ctx context.Context) (out Description, err error) {
	err = s.do(ctx, func(context.Context) error {
		out = s.backend.Describe()
		return nil
	})
	return out, err
}

// Configure hands over settings and secrets. Plans made before are forgotten.
func (s *Session) Configure(ctx context.Context, config, secrets map[string]string) error {
	return s.do(ctx, func(ctx context.Context) error {
		s.configured = false
		s.plans, s.order = map[string]PlanRequest{}, nil
		if err := s.backend.Configure(ctx, config, secrets); err != nil {
			return err
		}
		s.configured = true
		return nil
	})
}

// Check asks the backend to prove itself.
func (s *Session) Check(ctx context.Context) (out []Finding, err error) {
	err = s.doConfigured(ctx, func(ctx context.Context) error {
		out, err = s.backend.Check(ctx)
		for i := range out {
			out[i].Name, out[i].Detail = shown(out[i].Name), shown(out[i].Detail)
		}
		return err
	})
	return out, err
}

// Plan says what carrying the tokens would change, and remembers it for Apply.
func (s *Session) Plan(ctx context.Context, request PlanRequest) (out Plan, err error) {
	if err := checkRequest(request); err != nil {
		return Plan{}, err
	}
	err = s.doConfigured(ctx, func(ctx context.Context) error {
		out, err = s.plan(ctx, request)
		if err == nil {
			s.remember(out.Digest, request)
		}
		return err
	})
	return out, err
}

// plan asks the backend and fills in what follows from its answer.
func (s *Session) plan(ctx context.Context, request PlanRequest) (Plan, error) {
	max := MaxCarrier
	if own := s.backend.Describe().MaxBytes; own > 0 {
		max = min(max, own)
	}
	value, leftOut := Fit(request.Tokens, max)
	if value == "" {
		return Plan{}, Refuse(CodeTooLarge, "token %s has %d bytes and the carrier takes %d: use another backend",
			request.Tokens[0].ID, len(request.Tokens[0].Text), max)
	}
	p, err := s.backend.Plan(ctx, value, request.Targets)
	if err != nil {
		return Plan{}, err
	}
	for i := range p.Changes {
		p.Changes[i].Before = shown(p.Changes[i].Before)
		p.Changes[i].Owner = shown(p.Changes[i].Owner)
	}
	p.LeftOut, p.Targets = leftOut, len(request.Targets)
	p.Restarts = restarts(p.Changes)
	if p.LastKnownGood == (LastKnownGood{}) {
		p.LastKnownGood.Unknown = p.Targets
	}
	p.Digest = PlanDigest(&p)
	return p, nil
}

// shown bounds what somebody else wrote, and makes it text: a message carries
// nothing else.
func shown(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), MaxCarrier)], "\uFFFD")
}

// restarts counts the hosts whose processes the changes would restart.
func restarts(changes []Change) int {
	hosts := map[string]bool{}
	for i := range changes {
		c := &changes[i]
		if !c.Restarts || c.Conflict || c.Before == c.After {
			continue
		}
		for _, h := range c.Hosts {
			hosts[h] = true
		}
	}
	return len(hosts)
}

func (s *Session) remember(digest string, request PlanRequest) {
	if _, known := s.plans[digest]; !known {
		s.order = append(s.order, digest)
	}
	s.plans[digest] = request
	if len(s.order) > maxPlans {
		delete(s.plans, s.order[0])
		s.order = s.order[1:]
	}
}

// Apply carries out a plan of this session. It makes the plan again first: what
// was confirmed is what is done, or nothing is. An operation that is there
// already is observed instead.
func (s *Session) Apply(ctx context.Context, digest, operation string, report Report) error {
	if err := checkOperation(operation); err != nil {
		return err
	}
	return s.doConfigured(ctx, func(ctx context.Context) error {
		request, known := s.plans[digest]
		if !known {
			return Refuse(CodePlanUnknown, "no plan %.12s was made here: observe operation %s, or plan again", digest, operation)
		}
		now, err := s.plan(ctx, request)
		if err != nil {
			return err
		}
		if now.Digest != digest {
			return s.observeOr(ctx, operation, report, Refuse(CodeChanged,
				"what would be overwritten has changed since the plan: nothing was written; plan again"))
		}
		if unchanged(&now) {
			return s.observeOr(ctx, operation, report, Refuse(CodeUnchanged,
				"every target holds this value already, written by %s: there is nothing to send", now.Changes[0].Owner))
		}
		if owner, all := conflicted(&now); all {
			return Refuse(CodeOwnerConflict, "everything the plan would write is owned by %s: nothing was written; use another backend", owner)
		}
		return s.backend.Apply(ctx, Application{Operation: operation, Plan: now}, serial(report))
	})
}

// observeOr tells apart who brought the world to where it is: this very
// operation, sent once before, or somebody else. Then it is refused.
func (s *Session) observeOr(ctx context.Context, operation string, report Report, refused error) error {
	err := s.backend.Observe(ctx, operation, serial(report))
	if CodeOf(err) == CodeOperationUnknown {
		return refused
	}
	return err
}

func unchanged(p *Plan) bool {
	for i := range p.Changes {
		if p.Changes[i].Before != p.Changes[i].After {
			return false
		}
	}
	return len(p.Changes) > 0
}

func conflicted(p *Plan) (owner string, all bool) {
	for i := range p.Changes {
		if !p.Changes[i].Conflict {
			return "", false
		}
		owner = p.Changes[i].Owner
	}
	return owner, len(p.Changes) > 0
}

// Observe says what is there of an operation.
func (s *Session) Observe(ctx context.Context, operation string, report Report) error {
	if err := checkOperation(operation); err != nil {
		return err
	}
	return s.doConfigured(ctx, func(ctx context.Context) error {
		return s.backend.Observe(ctx, operation, serial(report))
	})
}

// Undo takes an operation back where it still stands.
func (s *Session) Undo(ctx context.Context, operation string, report Report) error {
	if err := checkOperation(operation); err != nil {
		return err
	}
	return s.doConfigured(ctx, func(ctx context.Context) error {
		return s.backend.Undo(ctx, operation, serial(report))
	})
}

// Stop ends what runs, waits for it until ctx ends, and releases the backend.
func (s *Session) Stop(ctx context.Context) error {
	s.mu.Lock()
	again := s.stopped
	s.stopped = true
	if s.cancel != nil {
		s.cancel()
	}
	s.mu.Unlock()
	if again {
		return nil
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("stopping: the running operation does not end: %w", ctx.Err())
	}
	defer func() { <-s.turn }()
	return guard(func() error { return s.backend.Stop(ctx) })
}

func (s *Session) doConfigured(ctx context.Context, what func(context.Context) error) error {
	return s.do(ctx, func(ctx context.Context) error {
		if !s.configured {
			return Refuse(CodeNotConfigured, "the backend has not been configured")
		}
		return what(ctx)
	})
}

// do runs what when its turn comes, unless Stop came first.
func (s *Session) do(ctx context.Context, what func(context.Context) error) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return Refuse(CodeStopped, "the backend has been stopped")
	}
	s.cancel = cancel
	s.mu.Unlock()

	err := guard(func() error { return what(ctx) })

	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = nil
	if s.stopped && err != nil {
		return Refuse(CodeStopped, "stopped in the middle: observe the operation to see what it did")
	}
	return err
}

// serial lets a backend report from several goroutines: a stream takes one
// message at a time.
func serial(report Report) Report {
	var mu sync.Mutex
	return func(p Progress) error {
		mu.Lock()
		defer mu.Unlock()
		p.Target, p.RemoteID = shown(p.Target), shown(p.RemoteID)
		p.Owner, p.Message = shown(p.Owner), shown(p.Message)
		return report(p)
	}
}

// guard turns a panic into an error: a backend in the console's own process must
// not take the console down.
func guard(what func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Refuse(CodeFailed, "the backend panicked: %v", p)
		}
	}()
	return what()
}

func checkRequest(r PlanRequest) error {
	if len(r.Tokens) == 0 || len(r.Tokens) > MaxTokens {
		return Refuse(CodeBadRequest, "a plan carries 1 to %d tokens, this one has %d", MaxTokens, len(r.Tokens))
	}
	if len(r.Targets) == 0 || len(r.Targets) > MaxTargets {
		return Refuse(CodeBadRequest, "a plan has 1 to %d targets, this one has %d", MaxTargets, len(r.Targets))
	}
	for _, t := range r.Tokens {
		if !visible(t.Text) {
			return Refuse(CodeBadRequest, "token %q has a character that is not visible ASCII", t.ID)
		}
	}
	seen := make(map[string]bool, len(r.Targets))
	for _, t := range r.Targets {
		if !plainName(t, MaxTarget) {
			return Refuse(CodeBadRequest, "target %q is not a host's name", t)
		}
		if seen[t] {
			return Refuse(CodeBadRequest, "target %q is listed twice", t)
		}
		seen[t] = true
	}
	return nil
}

func checkOperation(id string) error {
	if !plainName(id, MaxOperation) {
		return Refuse(CodeBadRequest, "operation id %q is not 1 to %d letters, digits, '-', '.' or '_'", id, MaxOperation)
	}
	return nil
}

// visible reports whether s is non-empty and survives every carrier unquoted.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}

// plainName reports whether s is safe as one part of a path and as an argument:
// letters, digits, '-', '.' and '_', starting with a letter or digit.
func plainName(s string, max int) bool {
	if s == "" || len(s) > max {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '.' && c != '_') {
			return false
		}
	}
	return true
}
