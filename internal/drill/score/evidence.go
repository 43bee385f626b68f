package score

import (
	"fmt"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/directive"
)

// MaxMissing is how many gaps of the evidence are written out: the first ones
// say where to look.
const MaxMissing = 20

// EvidenceOf joins what audit.Verify said about the logs of a run with what they
// record: every effect has an intent before it and an outcome behind it.
func EvidenceOf(result *audit.Result, failed error, sessions []audit.Session) *Evidence {
	e := &Evidence{Whole: failed == nil && result.Entries > 0, Entries: result.Entries, Missing: []string{}}
	if failed != nil {
		e.miss("the chain does not verify: %v", failed)
	} else if result.Entries == 0 {
		e.miss("there is no log")
	}
	l := ledger{intents: map[string]bool{}, outcomes: map[string]bool{}, seen: map[string]bool{}}
	for _, entry := range audit.InOrder(sessions) {
		l.add(entry.Body)
	}
	for _, id := range l.effects {
		e.Effects++
		if !l.intents[id] {
			e.miss("%s has no intent", id)
		}
		if !l.outcomes[id] {
			e.miss("%s has no outcome: what became of it is UNKNOWN", id)
		}
	}
	return e
}

func (e *Evidence) miss(format string, args ...any) {
	if len(e.Missing) < MaxMissing {
		e.Missing = append(e.Missing, fmt.Sprintf(format, args...))
	}
}

// Complete reports whether the log proves every effect.
func (e *Evidence) Complete() bool { return e.Whole && len(e.Missing) == 0 }

// ledger collects effects, their intents and their outcomes. A push begins with
// its intent, which is durable before anything leaves: it is intent and effect.
type ledger struct {
	effects           []string // in the order of the logs
	seen              map[string]bool
	intents, outcomes map[string]bool
}

func (l *ledger) add(body audit.Body) {
	switch b := body.(type) {
	case audit.Intent:
		if d, err := directive.Parse([]byte(b.Payload)); err == nil {
			l.intents[d.ID] = true
		}
	case audit.Proposed:
		l.intents[b.ID] = true
	case audit.Signed:
		l.effect(b.ID)
	case audit.Outcome:
		l.outcomes[b.ID] = true
	case audit.Reconciled:
		l.outcomes[b.ID] = true
	case audit.PushIntent:
		l.effect("push " + b.Operation)
		l.intents["push "+b.Operation] = true
	case audit.PushOutcome:
		l.outcomes["push "+b.Operation] = true
	case audit.UndoIntent:
		l.effect("undo " + b.Operation)
		l.intents["undo "+b.Operation] = true
	case audit.UndoOutcome:
		l.outcomes["undo "+b.Operation] = true
	}
}

func (l *ledger) effect(id string) {
	if !l.seen[id] {
		l.seen[id] = true
		l.effects = append(l.effects, id)
	}
}
