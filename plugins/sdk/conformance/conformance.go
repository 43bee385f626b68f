package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/plugins/sdk"
)

// limit bounds one statement of the suite: a backend that hangs fails it, a
// machine that is busy with other things does not.
const limit = 2 * time.Minute

// Subject is a world with a backend in it. Every function works on the world
// itself and fails the test when it cannot.
type Subject struct {
	// Open gives the backend, configured, as a process would that has just
	// started: it has no memory of what an earlier one did.
	Open func(t *testing.T) sdk.Conn

	// Targets are three hosts or more.
	Targets []string

	// Many are hosts enough for a plan of more than 4 MiB.
	Many []string

	// Read gives the carrier value that a host would see; empty if there is none.
	Read func(t *testing.T, host string) string

	// Disturb writes a value in our place for the given host, as somebody else would.
	Disturb func(t *testing.T, host, value string)

	// Touch changes something near by that is not ours, and gives a function that
	// fails the test when it is no longer as it was left.
	Touch func(t *testing.T) (untouched func(t *testing.T))

	// Snapshot is a fingerprint of the whole world: it differs after any write,
	// even one that writes the same again.
	Snapshot func(t *testing.T) string
}

// Run proves that a backend keeps the protocol.
func Run(t *testing.T, subject func(t *testing.T) Subject) {
	for _, s := range []struct {
		statement string
		prove     func(context.Context, *testing.T, Subject)
	}{
		{"it describes itself", describes},
		{"it does nothing before it is checked, and Check changes nothing", checks},
		{"a plan changes nothing and comes out the same twice", planIsReadOnly},
		{"a digest binds what would be done", digestBinds},
		{"apply does what the plan said and leaves the rest alone", applies},
		{"apply again has no second effect", appliesOnce},
		{"apply refuses a plan that is unknown or void", refusesChanged},
		{"it never writes over somebody else", reportsConflict},
		{"an operation is observed by a fresh process", observes},
		{"an observer sees that somebody has replaced what was written", observesReplaced},
		{"undo restores what was there, once", undoes},
		{"undo leaves alone what somebody has changed since", undoesOwnOnly},
		{"operations on top of each other are undone in turn", undoesStack},
		{"what does not fit is named, least important first", namesLeftOut},
		{"messages over 4 MiB pass", passesLargeMessages},
		{"a stop in the middle leaves nothing half written", stops},
	} {
		t.Run(s.statement, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			s.prove(ctx, t, subject(t))
		})
	}
}

// tokens makes n of them; they look like directives and are none.
func tokens(from string, n, size int) []sdk.Token {
	out := make([]sdk.Token, n)
	for i := range out {
		id := fmt.Sprintf("%s%02d", from, i)
		text := "ic1." + id + "."
		out[i] = sdk.Token{ID: id, Text: text + strings.Repeat("x", max(0, size-len(text)))}
	}
	return out
}

func valueOf(tokens []sdk.Token) string {
	value, _ := sdk.Fit(tokens, sdk.MaxCarrier)
	return value
}

// listener keeps what a backend reports.
type listener struct{ seen []sdk.Progress }

func (l *listener) report(p sdk.Progress) error {
	l.seen = append(l.seen, p)
	return nil
}

// has counts the events of a phase; an event that stands for several targets
// without naming one counts them all.
func (l *listener) has(phase sdk.Phase) int {
	n := 0
	for _, p := range l.seen {
		switch {
		case p.Phase != phase:
		case p.Target == "":
			n += p.Done
		default:
			n++
		}
	}
	return n
}

func (l *listener) owners(phase sdk.Phase) []string {
	var out []string
	for _, p := range l.seen {
		if p.Phase == phase && !slices.Contains(out, p.Owner) {
			out = append(out, p.Owner)
		}
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, codes ...sdk.Code) {
	t.Helper()
	if !slices.Contains(codes, sdk.CodeOf(err)) {
		t.Fatalf("got %q (%v), want one of %q", sdk.CodeOf(err), err, codes)
	}
}

func (s *Subject) wantValues(t *testing.T, want string) {
	t.Helper()
	for _, host := range s.Targets {
		if got := s.Read(t, host); got != want {
			t.Fatalf("host %s has %.60q (%d bytes), want %.60q (%d bytes)", host, got, len(got), want, len(want))
		}
	}
}

func (s *Subject) wantUnchanged(t *testing.T, since string) {
	t.Helper()
	if now := s.Snapshot(t); now != since {
		t.Fatalf("the world has changed:\nwas %s\nis  %s", since, now)
	}
}

// plan makes a plan for every target and checks it against the world.
func (s *Subject) plan(ctx context.Context, t *testing.T, conn sdk.Conn, tokens []sdk.Token) sdk.Plan {
	t.Helper()
	p, err := conn.Plan(ctx, sdk.PlanRequest{Tokens: tokens, Targets: s.Targets})
	must(t, err)
	if p.Digest == "" || p.Digest != sdk.PlanDigest(&p) {
		t.Fatalf("plan_digest %q is not the digest of the plan, %q", p.Digest, sdk.PlanDigest(&p))
	}
	if p.Targets != len(s.Targets) {
		t.Fatalf("the plan is for %d targets, want %d", p.Targets, len(s.Targets))
	}
	if k := p.LastKnownGood; k.Yes+k.No+k.Unknown != p.Targets {
		t.Fatalf("last-known-good %+v does not add up to %d targets", k, p.Targets)
	}
	return p
}

// send plans and applies, and expects that it works.
func (s *Subject) send(ctx context.Context, t *testing.T, conn sdk.Conn, tokens []sdk.Token, operation string) *listener {
	t.Helper()
	p := s.plan(ctx, t, conn, tokens)
	var l listener
	must(t, conn.Apply(ctx, p.Digest, operation, l.report))
	if l.has(sdk.Written) != len(p.Changes) {
		t.Fatalf("%d of %d changes were reported as written: %+v", l.has(sdk.Written), len(p.Changes), l.seen)
	}
	return &l
}
