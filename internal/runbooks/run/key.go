package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/oklog/ulid/v2"
)

// Key is the idempotency key of a step: the same for every attempt at it, and of
// no other run, step or parameters.
func Key(digest, run, step, params string) string {
	sum := sha256.Sum256([]byte(digest + "\n" + run + "\n" + step + "\n" + params))
	return hex.EncodeToString(sum[:])
}

// effectID is the id of the directive or push of a step: its time is that of the
// attempt, its random part is the key's. So the log, a carrier or a host that
// holds it says whose it is, without anybody's memory.
func effectID(key string, now time.Time) (string, error) {
	raw, err := hex.DecodeString(key)
	if err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	id, err := ulid.New(ulid.Timestamp(now), bytes.NewReader(raw))
	if err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	return id.String(), nil
}

// idTime is how many characters of an id are its time.
const idTime = 10

// sameEffect: two ids are of one key, and so of one step of one run.
func sameEffect(a, b string) bool {
	return len(a) == ulid.EncodedSize && len(b) == len(a) && strings.EqualFold(a[idTime:], b[idTime:])
}

// undoOf is the name under which the undo of a step stands in its key.
func undoOf(step string) string { return step + "/undo" }

// paramsOf is what a step would do, in one spelling.
func paramsOf(s *runbooks.Step) (string, error) {
	var body any
	switch s.Kind {
	case runbooks.KindDo:
		body = s.Do
	case runbooks.KindRecover:
		body = s.Recover
	case runbooks.KindPush:
		body = s.Push
	case runbooks.KindCheck:
		body = s.Check
	case runbooks.KindWait:
		body = s.Wait
	case runbooks.KindDecide:
		body = s.Decide
	default:
		body = s.Note
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return "", fmt.Errorf("step %s: %w", s.ID, err)
	}
	return string(raw), nil
}

// newRunID is readable at night and unique enough for one fleet: the minute and
// eight random hex digits.
func newRunID(now time.Time, rand io.Reader, taken []State) (string, error) {
	var tail [4]byte
	if _, err := io.ReadFull(rand, tail[:]); err != nil {
		return "", fmt.Errorf("name the run: %w", err)
	}
	id := now.Format("1504-") + hex.EncodeToString(tail[:])
	if slices.ContainsFunc(taken, func(s State) bool { return s.Run == id }) {
		return "", fmt.Errorf("name the run: %s is taken: try again", id)
	}
	return id, nil
}

// Find picks the run that is meant: by its name, by the end of it, or the only one
// that goes on.
func Find(all []State, name string) (*State, error) {
	var found []*State
	for i := range all {
		s := &all[i]
		if name == "" && s.End == "" || name != "" && (s.Run == name || len(name) >= 4 && strings.HasSuffix(s.Run, name) || s.End == "" && s.Runbook == name) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if name == "" {
			return nil, fmt.Errorf("%w: no run goes on in the open incident", ErrNoRun)
		}
		return nil, fmt.Errorf("%w: %q", ErrNoRun, clean(name, maxReason))
	}
	var names []string
	for _, s := range found {
		names = append(names, fmt.Sprintf("%s (%s, %s)", s.Run, s.Runbook, s.By))
	}
	return nil, fmt.Errorf("%w: %d runs fit, name one of them: %s", incident.ErrNeeds, len(names), strings.Join(names, ", "))
}
