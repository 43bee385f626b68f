package run

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/runbooks"
)

// sourceEntries are the exact bytes of a runbook, cut to what an entry holds. They
// are in the log and not beside it: so a pack carries them, and the log's own
// signatures cover them.
func sourceEntries(rb *runbooks.Runbook) []audit.Body {
	var out []audit.Body
	for at := 0; at < len(rb.Source); at += audit.MaxRunSource {
		part := rb.Source[at:min(at+audit.MaxRunSource, len(rb.Source))]
		out = append(out, audit.RunSource{Digest: rb.Digest, Offset: int64(at), Data: part})
	}
	return out
}

// keptSource puts the text of a runbook together again. It is what its digest says
// or nothing.
func keptSource(sessions []audit.Session, digest string, size int) ([]byte, error) {
	parts := map[int64][]byte{}
	for _, e := range audit.InOrder(sessions) {
		if b, ok := e.Body.(audit.RunSource); ok && b.Digest == digest {
			parts[b.Offset] = b.Data
		}
	}
	var out []byte
	for len(out) < size {
		part := parts[int64(len(out))]
		if len(part) == 0 {
			return nil, fmt.Errorf("the log holds %d of the runbook's %d bytes", len(out), size)
		}
		out = append(out, part...)
	}
	if sum := sha256.Sum256(out); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("the copy of the runbook in the log is not what its digest %.12s says", digest)
	}
	return out, nil
}

func hasSource(sessions []audit.Session, digest string, size int) bool {
	_, err := keptSource(sessions, digest, size)
	return err == nil
}

// Difference is a step that is not what it was when the run began.
type Difference struct {
	Step string
	What string // changed, added, gone
}

// differences compares the runbook that a run began with and the file as it is
// now. Prose counts: people act on it.
func differences(began, now *runbooks.Runbook) []Difference {
	var out []Difference
	for i := range began.Steps {
		old := &began.Steps[i]
		fresh := now.Step(old.ID)
		switch {
		case fresh == nil:
			out = append(out, Difference{old.ID, "gone"})
		case !sameStep(old, fresh):
			out = append(out, Difference{old.ID, "changed"})
		}
	}
	for i := range now.Steps {
		if began.Step(now.Steps[i].ID) == nil {
			out = append(out, Difference{now.Steps[i].ID, "added"})
		}
	}
	return out
}

// sameStep: all but where it stands in the file.
func sameStep(a, b *runbooks.Step) bool {
	pa, errA := paramsOf(a)
	pb, errB := paramsOf(b)
	rest := func(s *runbooks.Step) []string {
		probe, _ := paramsOf(&runbooks.Step{Kind: runbooks.KindCheck, Check: s.Probe})
		undo := ""
		if s.Undo != nil {
			undo, _ = paramsOf(undoStep(s))
		}
		return []string{string(s.Kind), s.Title, s.Prose, s.Role, s.Timeout.String(), s.OnTimeout, s.Irreversible, s.Then, probe, undo}
	}
	return errA == nil && errB == nil && pa == pb && slices.Equal(rest(a), rest(b))
}

// undoStep is the undo of a step as a step of its own: it is proved by what its
// own effect reports.
func undoStep(s *runbooks.Step) *runbooks.Step {
	u := &runbooks.Step{ID: s.ID, Title: "undo of " + s.Title, Role: s.Role, Line: s.Line, Column: s.Column}
	switch {
	case s.Undo == nil:
	case s.Undo.Do != nil:
		u.Kind, u.Do = runbooks.KindDo, s.Undo.Do
	case s.Undo.Recover != nil:
		u.Kind, u.Recover = runbooks.KindRecover, s.Undo.Recover
	case s.Undo.Push != nil:
		u.Kind, u.Push = runbooks.KindPush, s.Undo.Push
	}
	return u
}
