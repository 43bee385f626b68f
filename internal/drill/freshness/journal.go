package freshness

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/google/renameio/v2"
)

const (
	// Folder holds the runs, below the state folder.
	Folder = "rehearsals"
	// MaxRuns is how many are kept: twenty scenarios a day for three weeks, and the
	// last of each for good. A console reads all of them when it starts.
	MaxRuns = 400
	// maxFiles is how many are read: a folder with more is not ours.
	maxFiles = 2 * MaxRuns
	// maxFile bounds one file in bytes: a score and a few words about it.
	maxFile = score.MaxScore + 4<<10
	// version is that of a file.
	version = 1

	extension = ".json"
	stamp     = "20060102T150405Z"
)

// Run is one rehearsal as it is kept.
type Run struct {
	V     int         `json:"v"`
	At    time.Time   `json:"at"` // real time at its end, UTC, whole seconds
	By    string      `json:"by"` // the person at the console; "" for nobody's
	Score score.Score `json:"score"`
}

// kin is what two runs have to share to be compared with each other.
type kin struct {
	scenario string
	mode     score.Mode
	runbook  string
	script   string
	seat     string
	seed     uint64
}

func (r *Run) kin() kin {
	s := &r.Score
	return kin{s.Scenario, s.Mode, s.Runbook, s.Script, s.Played.Seat(), s.Seed}
}

// Write keeps a run and returns its file, which appears whole or not at all. Where
// there are more than MaxRuns, the oldest go, but never the last of its kind.
func Write(state string, r Run, random io.Reader) (path string, err error) {
	r.V, r.At = version, r.At.UTC().Truncate(time.Second)
	r.Score.Against = []score.Other{} // they have files of their own
	raw, err := encode(&r)
	if err != nil {
		return "", err
	}
	var tail [4]byte
	if _, err := io.ReadFull(random, tail[:]); err != nil {
		return "", fmt.Errorf("keep a rehearsal: no random name: %w", err)
	}
	dir := filepath.Join(state, Folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("keep a rehearsal: %w", err)
	}
	name := r.At.Format(stamp) + "-" + hex.EncodeToString(tail[:]) + extension
	path = filepath.Join(dir, name)
	if err := renameio.WriteFile(path, raw, 0o600); err != nil {
		return "", fmt.Errorf("keep a rehearsal: %w", err)
	}
	return path, prune(dir)
}

func encode(r *Run) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, fmt.Errorf("keep a rehearsal: %w", err)
	}
	if out.Len() > maxFile {
		return nil, fmt.Errorf("keep a rehearsal: %d bytes, at most %d", out.Len(), maxFile)
	}
	return out.Bytes(), nil
}

// Read returns the runs, oldest first. A file that cannot be read is named in the
// error, which joins one for each of them; the others are returned all the same.
func Read(state string) ([]Run, error) {
	dir := filepath.Join(state, Folder)
	names, err := list(dir)
	if err != nil {
		return nil, err
	}
	var out []Run
	var failed []error
	for _, name := range names {
		r, err := readRun(filepath.Join(dir, name))
		if err != nil {
			failed = append(failed, err)
			continue
		}
		out = append(out, *r)
	}
	slices.SortStableFunc(out, func(a, b Run) int { return a.At.Compare(b.At) })
	return out, errors.Join(failed...)
}

// list names the files, oldest first: their names begin with the time.
func list(dir string) ([]string, error) {
	found, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the rehearsals: %w", err)
	}
	var names []string
	for _, f := range found {
		if f.Type().IsRegular() && strings.HasSuffix(f.Name(), extension) && !strings.HasPrefix(f.Name(), ".") {
			names = append(names, f.Name())
		}
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("read the rehearsals: %d files in %s, at most %d are read", len(names), dir, maxFiles)
	}
	slices.Sort(names)
	return names, nil
}

func readRun(path string) (*Run, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read a rehearsal: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read a rehearsal: %w", err)
	}
	if len(raw) > maxFile {
		return nil, fmt.Errorf("read a rehearsal: %s has over %d bytes", path, maxFile)
	}
	var r Run
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return nil, fmt.Errorf("read a rehearsal: %s: %w", path, err)
	}
	if r.V != version || r.Score.V != score.Version {
		return nil, fmt.Errorf("read a rehearsal: %s: version %d of a score of version %d, this program reads %d of %d", path, r.V, r.Score.V, version, score.Version)
	}
	again, err := encode(&r)
	if err != nil || !bytes.Equal(again, raw) {
		return nil, fmt.Errorf("read a rehearsal: %s is not in the form in which runs are written", path)
	}
	return &r, nil
}

// prune removes the oldest runs over MaxRuns, but not the last of its kind and
// not what it cannot read.
func prune(dir string) error {
	names, err := list(dir)
	if err != nil || len(names) <= MaxRuns {
		return err
	}
	over, last := len(names)-MaxRuns, map[kin]bool{}
	var gone []string
	for _, name := range slices.Backward(names) {
		r, err := readRun(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if !last[r.kin()] {
			last[r.kin()] = true
			continue
		}
		gone = append(gone, name)
	}
	slices.Reverse(gone)
	for _, name := range gone[:min(over, len(gone))] {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove an old rehearsal: %w", err)
		}
	}
	return nil
}

// Last is the latest run of the same scenario, mode, runbook, script and seed as s
// that was played by the same kind of player in the same seat, or nil. One in which
// nobody did anything is nothing to be better or worse than.
func Last(runs []Run, s *score.Score) *Run {
	wanted := (&Run{Score: *s}).kin()
	var found *Run
	for i := range runs {
		if runs[i].kin() == wanted && runs[i].Score.Played.Idle() == "" && (found == nil || cmp.Compare(runs[i].At.Unix(), found.At.Unix()) >= 0) {
			found = &runs[i]
		}
	}
	return found
}

// LastOther is the latest run of the same scenario and mode as s, however it was
// played, or nil: what s is not compared with where Last finds nothing.
func LastOther(runs []Run, s *score.Score) *Run {
	var found *Run
	for i := range runs {
		one := &runs[i].Score
		if one.Scenario == s.Scenario && one.Mode == s.Mode && one.Played.Idle() == "" && (found == nil || !runs[i].At.Before(found.At)) {
			found = &runs[i]
		}
	}
	return found
}
