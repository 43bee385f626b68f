package drill_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/sim"
	"github.com/degradedmode/ic/internal/model"
)

// folders are the state folders of the seats: one that all share, or one for each.
func (s *swarm) folders() []string {
	root := filepath.Join(s.dir, "desks")
	if _, err := os.Stat(filepath.Join(root, "incidents")); err == nil {
		return []string{root}
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, filepath.Join(root, e.Name()))
	}
	return out
}

// incidents are the log folders in all state folders.
func (s *swarm) incidents() []string {
	var out []string
	for _, state := range s.folders() {
		found, err := filepath.Glob(filepath.Join(state, "incidents", "*"))
		if err == nil {
			out = append(out, found...)
		}
	}
	return out
}

// sessions are everything that anybody has written down, by incident and machine.
func (s *swarm) sessions() [][]audit.Session {
	var out [][]audit.Session
	for _, folder := range s.incidents() {
		state := filepath.Dir(filepath.Dir(folder))
		sessions, err := audit.Read(filepath.Base(folder), state)
		if err != nil {
			s.fail("log: %v", err)
		}
		out = append(out, sessions)
	}
	return out
}

// fromLogs takes in what has not gone by the flag service: it came to hosts another
// way, or its console died with it and nobody knows.
func (t *truth) fromLogs(wanted func(*model.Issued) bool) {
	for _, sessions := range t.s.sessions() {
		state := audit.Fold(sessions)
		for i := range state.Issued {
			if is := &state.Issued[i]; is.Token != "" && t.byID[is.Directive.ID] == nil && wanted(is) {
				t.take(is.Token)
			}
		}
	}
}

// logs: they verify against the heads that hosts keep, every effect has its intent
// and its outcome or is shown UNKNOWN, and nothing was done twice.
func (t *truth) logs() {
	t.verify()
	f := t.fold()
	t.twice()
	t.s.counts.reconciled = f.reconciled
	if t.s.wrong != "" {
		return
	}
	for _, is := range t.all {
		if is.illegal != "" || t.s.truth.stolen(is) {
			continue
		}
		if !f.intended[is.ID] && !t.onlyReceipt(is) {
			t.s.fail("log: %s (%s by %v) has an effect and no intent", is.ID, is.Right, is.signers)
		}
		if f.signed[is.ID] && !f.over[is.ID] {
			if t.s.counts.unknown++; !f.unknown[is.ID] {
				t.s.fail("log: what became of %s (%s by %v) is in no log, and nothing says that it is UNKNOWN", is.ID, is.Right, is.signers)
			}
		}
	}
	if t.s.log.ours > len(f.operations) {
		t.s.fail("unknown: the pipeline was pushed %d times for %d operations", t.s.log.ours, len(f.operations))
	}
}

// stolen is what a thief has signed with somebody's key: no console knows of it.
func (t *truth) stolen(is *statement) bool { return strings.HasPrefix(is.Reason, "thief") }

// verify is what anybody can do with the files and the heads that hosts have kept.
func (t *truth) verify() {
	var heads []model.LogHead
	for _, h := range t.s.w.Inside() {
		if h.Engine != nil {
			heads = append(heads, h.Engine.Report(h.Clock.Now()).Heads...)
		}
	}
	for _, folder := range t.s.incidents() {
		if empty(folder) {
			continue
		}
		_, err := audit.Verify(audit.VerifyOptions{
			Realm: directive.Drill, Fleet: sim.Fleet, Heads: heads,
			Trusted: func(fp string) (string, bool) { name, ok := t.s.law.names[fp]; return name, ok },
		}, folder)
		if err != nil {
			t.s.fail("log: %v", err)
		}
	}
}

// empty: a console that died before its first entry leaves a folder.
func empty(folder string) bool {
	found := errors.New("found")
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".jsonl") {
			return found
		}
		return err
	})
	return err == nil
}

// folded is what all logs together say.
type folded struct {
	intended, signed, over map[string]bool
	unknown                map[string]bool // as a console shows them that reads this log
	operations             map[string]bool
	reconciled             int64
}

func (t *truth) fold() *folded {
	f := &folded{intended: map[string]bool{}, signed: map[string]bool{}, over: map[string]bool{}, unknown: map[string]bool{}, operations: map[string]bool{}}
	for _, sessions := range t.s.sessions() {
		for _, e := range audit.InOrder(sessions) {
			f.add(e.Body)
		}
		state := audit.Fold(sessions)
		for _, is := range state.Unknown() {
			f.unknown[is.Directive.ID] = true
		}
	}
	return f
}

func (f *folded) add(body audit.Body) {
	switch b := body.(type) {
	case audit.Intent:
		if d, err := directive.Parse([]byte(b.Payload)); err == nil {
			f.intended[d.ID] = true
		}
	case audit.Proposed:
		f.over[b.ID] = true
	case audit.Signed:
		f.signed[b.ID] = true
	case audit.Outcome:
		f.over[b.ID] = true
	case audit.Reconciled:
		f.over[b.ID] = true
		f.reconciled++
	case audit.PushIntent:
		f.operations[b.Operation] = true
	case audit.UndoIntent:
		f.operations["undo "+b.Operation] = true
	}
}

// twice: whatever was asked for once was done once, also by a console that did not
// know what had become of it.
func (t *truth) twice() {
	asked := map[string]string{}
	for _, is := range t.all {
		if is.illegal != "" || t.stolen(is) || !strings.HasPrefix(is.Reason, "act ") {
			continue
		}
		if other, done := asked[is.Reason]; done && other != is.ID {
			t.s.fail("unknown: %q was done twice, as %s and as %s", is.Reason, other, is.ID)
		}
		asked[is.Reason] = is.ID
	}
}

// onlyReceipt: of what neither opens nor recovers while the disk is full a person gets
// a receipt on the screen. It goes into the log later, unless the console dies before
// there is room.
func (t *truth) onlyReceipt(is *statement) bool {
	waits := is.Kind == model.Bypass || is.Kind == model.End && is.Ends != model.Bypass && is.Ends != model.Ping
	return !waits && t.s.noRoom(is.IssuedAt, is.begins())
}
