package conformance

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/degradedmode/ic/plugins/sdk"
)

func describes(ctx context.Context, t *testing.T, s Subject) {
	d, err := s.Open(t).Describe(ctx)
	must(t, err)
	if d.Name == "" || d.Version == "" || d.Carrier != sdk.File && d.Carrier != sdk.Env || !d.CanUndo {
		t.Fatalf("%+v lacks a name, a version or a carrier, or cannot undo", d)
	}
}

func checks(ctx context.Context, t *testing.T, s Subject) {
	conn := s.Open(t)
	before := s.Snapshot(t)
	findings, err := conn.Check(ctx)
	must(t, err)
	if len(findings) == 0 {
		t.Fatal("Check found nothing to say")
	}
	for _, f := range findings {
		if !f.OK || f.Name == "" || f.Detail == "" {
			t.Errorf("in a sound world Check says %+v", f)
		}
	}
	s.wantUnchanged(t, before)

	s.Disturb(t, s.Targets[0], "somebody-elses")
	findings, err = s.Open(t).Check(ctx)
	must(t, err)
	if !slices.ContainsFunc(findings, func(f sdk.Finding) bool { return !f.OK }) {
		t.Errorf("somebody else has written in our place, and Check says all is well: %+v", findings)
	}
}

func planIsReadOnly(ctx context.Context, t *testing.T, s Subject) {
	conn := s.Open(t)
	before := s.Snapshot(t)
	one := tokens("A", 2, 900)
	p := s.plan(ctx, t, conn, one)
	if again := s.plan(ctx, t, conn, one); again.Digest != p.Digest {
		t.Errorf("the same plan twice has two digests")
	}
	if fresh := s.plan(ctx, t, s.Open(t), one); fresh.Digest != p.Digest {
		t.Errorf("the same plan in a fresh process has another digest")
	}
	s.wantUnchanged(t, before)

	var hosts []string
	for _, c := range p.Changes {
		hosts = append(hosts, c.Hosts...)
		if c.After != valueOf(one) || c.Before != "" || c.Conflict {
			t.Errorf("change %+v: want nothing before, the carrier value after, no conflict", c)
		}
	}
	slices.Sort(hosts)
	want := slices.Sorted(slices.Values(s.Targets))
	if !slices.Equal(hosts, want) {
		t.Errorf("the changes reach %v, want each of %v once", hosts, want)
	}
	d, err := conn.Describe(ctx)
	must(t, err)
	if wantRestarts := map[bool]int{true: p.Targets}[d.Restarts]; p.Restarts != wantRestarts {
		t.Errorf("the plan restarts %d of %d, want %d", p.Restarts, p.Targets, wantRestarts)
	}
}

func digestBinds(ctx context.Context, t *testing.T, s Subject) {
	conn := s.Open(t)
	seen := map[string]string{}
	note := func(what string, p sdk.Plan) {
		t.Helper()
		if other, taken := seen[p.Digest]; taken {
			t.Errorf("the digest is the same for %q and %q", other, what)
		}
		seen[p.Digest] = what
	}
	note("A", s.plan(ctx, t, conn, tokens("A", 1, 900)))
	note("B", s.plan(ctx, t, conn, tokens("B", 1, 900)))
	note("A twice", s.plan(ctx, t, conn, tokens("A", 2, 900)))
	fewer, err := conn.Plan(ctx, sdk.PlanRequest{Tokens: tokens("A", 1, 900), Targets: s.Targets[1:]})
	must(t, err)
	note("A to fewer", fewer)
	s.Disturb(t, s.Targets[0], "somebody-elses")
	note("A over something", s.plan(ctx, t, conn, tokens("A", 1, 900)))
}

func applies(ctx context.Context, t *testing.T, s Subject) {
	conn := s.Open(t)
	untouched := s.Touch(t)
	s.send(ctx, t, conn, tokens("A", 2, 900), "OP1")
	s.wantValues(t, valueOf(tokens("A", 2, 900)))
	untouched(t)

	p := s.plan(ctx, t, conn, tokens("B", 1, 900))
	for _, c := range p.Changes {
		if c.Before != valueOf(tokens("A", 2, 900)) || c.Conflict || c.Owner != "ic/OP1" {
			t.Errorf("over our own value the plan says before %.40q, owner %q, conflict %v", c.Before, c.Owner, c.Conflict)
		}
	}
}

func appliesOnce(ctx context.Context, t *testing.T, s Subject) {
	conn := s.Open(t)
	one := tokens("A", 1, 900)
	p := s.plan(ctx, t, conn, one)
	must(t, conn.Apply(ctx, p.Digest, "OP1", new(listener).report))
	after := s.Snapshot(t)

	var again listener
	must(t, conn.Apply(ctx, p.Digest, "OP1", again.report))
	if again.has(sdk.Written) != len(p.Changes) {
		t.Errorf("the second time it reports %+v", again.seen)
	}
	fresh := s.Open(t)
	replanned := s.plan(ctx, t, fresh, one)
	must(t, fresh.Apply(ctx, replanned.Digest, "OP1", again.report))
	s.wantUnchanged(t, after)

	wantCode(t, fresh.Apply(ctx, replanned.Digest, "OP2", again.report), sdk.CodeUnchanged)
	s.wantUnchanged(t, after)
}

func refusesChanged(ctx context.Context, t *testing.T, s Subject) {
	conn := s.Open(t)
	p := s.plan(ctx, t, conn, tokens("A", 1, 900))
	s.Disturb(t, s.Targets[0], "somebody-elses")
	before := s.Snapshot(t)
	var l listener
	wantCode(t, conn.Apply(ctx, p.Digest, "OP1", l.report), sdk.CodeChanged)
	wantCode(t, s.Open(t).Apply(ctx, p.Digest, "OP1", l.report), sdk.CodePlanUnknown)
	wantCode(t, conn.Apply(ctx, strings.Repeat("0", 64), "OP1", l.report), sdk.CodePlanUnknown)
	wantCode(t, conn.Apply(ctx, p.Digest, "../OP1", l.report), sdk.CodeBadRequest)
	_, err := conn.Plan(ctx, sdk.PlanRequest{Tokens: tokens("A", 1, 900), Targets: []string{"../" + s.Targets[0]}})
	wantCode(t, err, sdk.CodeBadRequest)
	_, err = conn.Plan(ctx, sdk.PlanRequest{Tokens: []sdk.Token{{ID: "A", Text: "two words"}}, Targets: s.Targets})
	wantCode(t, err, sdk.CodeBadRequest)
	s.wantUnchanged(t, before)
}

func reportsConflict(ctx context.Context, t *testing.T, s Subject) {
	for _, host := range s.Targets {
		s.Disturb(t, host, "somebody-elses")
	}
	conn := s.Open(t)
	before := s.Snapshot(t)
	p := s.plan(ctx, t, conn, tokens("A", 1, 900))
	for _, c := range p.Changes {
		if !c.Conflict || c.Owner == "" || c.Before != "somebody-elses" {
			t.Errorf("somebody else's value is planned over: %+v", c)
		}
	}
	wantCode(t, conn.Apply(ctx, p.Digest, "OP1", new(listener).report), sdk.CodeOwnerConflict)
	s.wantUnchanged(t, before)
}

func observes(ctx context.Context, t *testing.T, s Subject) {
	wantCode(t, s.Open(t).Observe(ctx, "OP1", new(listener).report), sdk.CodeOperationUnknown)
	sent := s.send(ctx, t, s.Open(t), tokens("A", 1, 900), "OP1")
	after := s.Snapshot(t)
	var seen listener
	must(t, s.Open(t).Observe(ctx, "OP1", seen.report))
	if seen.has(sdk.Written) != sent.has(sdk.Written) || seen.has(sdk.Missing)+seen.has(sdk.Replaced)+seen.has(sdk.Undone) != 0 {
		t.Errorf("a fresh process sees %+v", seen.seen)
	}
	for _, p := range seen.seen {
		if p.Phase == sdk.Written && p.RemoteID == "" {
			t.Errorf("%+v does not say where it can be looked up", p)
		}
	}
	wantCode(t, s.Open(t).Observe(ctx, "OP", seen.report), sdk.CodeOperationUnknown)
	s.wantUnchanged(t, after)
}

func observesReplaced(ctx context.Context, t *testing.T, s Subject) {
	s.send(ctx, t, s.Open(t), tokens("A", 1, 900), "OP1")
	s.Disturb(t, s.Targets[0], "somebody-elses")
	var seen listener
	must(t, s.Open(t).Observe(ctx, "OP1", seen.report))
	owners := seen.owners(sdk.Replaced)
	if seen.has(sdk.Replaced) != 1 || owners[0] == "" || strings.HasPrefix(owners[0], "ic/") {
		t.Errorf("one target was written over, and the observer sees %+v", seen.seen)
	}
}

func undoes(ctx context.Context, t *testing.T, s Subject) {
	untouched := s.Touch(t)
	sent := s.send(ctx, t, s.Open(t), tokens("A", 1, 900), "OP1")
	conn := s.Open(t)
	var l listener
	must(t, conn.Undo(ctx, "OP1", l.report))
	if l.has(sdk.Undone) != sent.has(sdk.Written) {
		t.Errorf("undo reports %+v", l.seen)
	}
	s.wantValues(t, "")
	untouched(t)
	after := s.Snapshot(t)

	must(t, conn.Undo(ctx, "OP1", new(listener).report))
	must(t, s.Open(t).Undo(ctx, "OP1", new(listener).report))
	wantCode(t, conn.Undo(ctx, "OP2", l.report), sdk.CodeOperationUnknown)
	s.wantUnchanged(t, after)

	var seen listener
	must(t, s.Open(t).Observe(ctx, "OP1", seen.report))
	if seen.has(sdk.Undone) != sent.has(sdk.Written) {
		t.Errorf("after undo a fresh process sees %+v", seen.seen)
	}
}

func undoesOwnOnly(ctx context.Context, t *testing.T, s Subject) {
	sent := s.send(ctx, t, s.Open(t), tokens("A", 1, 900), "OP1")
	s.Disturb(t, s.Targets[0], "somebody-elses")
	var l listener
	must(t, s.Open(t).Undo(ctx, "OP1", l.report))
	if l.has(sdk.Kept) != 1 || l.has(sdk.Undone) != sent.has(sdk.Written)-1 || l.owners(sdk.Kept)[0] == "" {
		t.Errorf("one target was written over, and undo reports %+v", l.seen)
	}
	if got := s.Read(t, s.Targets[0]); got != "somebody-elses" {
		t.Errorf("undo took away what somebody else wrote: %q", got)
	}
}

func undoesStack(ctx context.Context, t *testing.T, s Subject) {
	conn := s.Open(t)
	first, second := tokens("A", 1, 900), tokens("B", 2, 900)
	s.send(ctx, t, conn, first, "OP1")
	s.send(ctx, t, conn, second, "OP2")
	s.wantValues(t, valueOf(second))

	var l listener
	must(t, conn.Undo(ctx, "OP1", l.report))
	if l.has(sdk.Undone) != 0 || l.has(sdk.Kept) == 0 || l.owners(sdk.Kept)[0] != "ic/OP2" {
		t.Errorf("undo of an operation below another reports %+v", l.seen)
	}
	s.wantValues(t, valueOf(second))
	must(t, conn.Undo(ctx, "OP2", l.report))
	s.wantValues(t, valueOf(first))
	must(t, conn.Undo(ctx, "OP1", l.report))
	s.wantValues(t, "")
}

func namesLeftOut(ctx context.Context, t *testing.T, s Subject) {
	conn := s.Open(t)
	d, err := conn.Describe(ctx)
	must(t, err)
	room := sdk.MaxCarrier
	if d.MaxBytes > 0 {
		room = min(room, d.MaxBytes)
	}
	all := append(tokens("A", room/1001, 1000), tokens("B", 2, 1000)...)
	p := s.plan(ctx, t, conn, all)
	if len(p.LeftOut) == 0 || !slices.Equal(p.LeftOut, ids(all[len(all)-len(p.LeftOut):])) {
		t.Errorf("left out are %v, want the last ones of %v", p.LeftOut, ids(all))
	}
	must(t, conn.Apply(ctx, p.Digest, "OP1", new(listener).report))
	s.wantValues(t, valueOf(all[:len(all)-len(p.LeftOut)]))

	_, err = conn.Plan(ctx, sdk.PlanRequest{Tokens: tokens("C", 1, sdk.MaxCarrier+1), Targets: s.Targets})
	wantCode(t, err, sdk.CodeTooLarge)
}

func ids(tokens []sdk.Token) []string {
	var out []string
	for _, t := range tokens {
		out = append(out, t.ID)
	}
	return out
}

func passesLargeMessages(ctx context.Context, t *testing.T, s Subject) {
	p, err := s.Open(t).Plan(ctx, sdk.PlanRequest{Tokens: tokens("A", 4, 4000), Targets: s.Many})
	must(t, err)
	size := 0
	for _, c := range p.Changes {
		size += len(c.Before) + len(c.After)
		for _, h := range c.Hosts {
			size += len(h)
		}
	}
	if size < 4<<20 || p.Digest != sdk.PlanDigest(&p) {
		t.Errorf("a plan of %d bytes came through, want more than 4 MiB, and whole", size)
	}
}

func stops(ctx context.Context, t *testing.T, s Subject) {
	conn := s.Open(t)
	one := tokens("A", 2, 900)
	p := s.plan(ctx, t, conn, one)
	begun, stopped := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		<-begun
		stopped <- conn.Stop(ctx)
	}()
	err := conn.Apply(ctx, p.Digest, "OP1", func(sdk.Progress) error {
		select {
		case begun <- struct{}{}:
		default:
		}
		return nil
	})
	must(t, <-stopped)
	if err != nil {
		wantCode(t, err, sdk.CodeStopped)
	}
	wantCode(t, conn.Observe(ctx, "OP1", new(listener).report), sdk.CodeStopped)

	for _, host := range s.Targets {
		if got := s.Read(t, host); got != "" && got != valueOf(one) {
			t.Errorf("host %s has neither the old value nor the new: %.60q", host, got)
		}
	}
	// What was begun is completed under the same operation, by a fresh process.
	fresh := s.Open(t)
	again := s.plan(ctx, t, fresh, one)
	must(t, fresh.Apply(ctx, again.Digest, "OP1", new(listener).report))
	s.wantValues(t, valueOf(one))
	must(t, fresh.Undo(ctx, "OP1", new(listener).report))
	s.wantValues(t, "")
}
