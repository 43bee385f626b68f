package breakglass

import (
	"fmt"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
	"github.com/degradedmode/ic/plugins/sdk"
)

// Word is how far a delivery has come.
type Word string

// The words. Only hosts' reports make a delivery partial or effective.
const (
	Planned     Word = "planned"
	Sent        Word = "sent"        // the backend took it, hosts may still say so
	Unconfirmed Word = "unconfirmed" // they should have by now, and none has
	Partial     Word = "partial"
	Effective   Word = "effective"
	Blocked     Word = "blocked"  // somebody owns the place, or hosts refuse the tokens
	Reverted    Word = "reverted" // somebody has written over it
	Dropped     Word = "dropped"  // hosts had it, none has it any more, and nobody knows why
)

// Delivery is an operation as its log entries tell it.
type Delivery struct {
	Operation string
	Backend   string
	IDs       []string      // carried, and still meant to stand: one that has run out is no loss
	Targets   []string      // hosts
	SentAt    time.Time     // zero: only planned
	Patience  time.Duration // from SentAt until silence means unconfirmed
	Held      []string      // hosts that have reported it at some time

	// What the backend says; it can only make the state worse.
	BlockedBy  string // owner of the place, from a conflict
	RevertedBy string // owner of what stands there now, from Observe
}

// State is how far a delivery has come, and with which hosts.
type State struct {
	Word        Word              `json:"word"`
	N           int               `json:"n"` // targets that hold every id
	M           int               `json:"m"` // targets
	Who         string            `json:"who,omitempty"`
	Holding     []string          `json:"holding"`     // to be kept as Held
	Lacking     []string          `json:"lacking"`     // reachable, without some id
	Unreachable []string          `json:"unreachable"` // or not in the inventory
	Refusing    map[string]string `json:"refusing"`    // host: the code of its refusal
}

// String prints "partial 41/60", "reverted-by-ada", "effective".
func (s State) String() string {
	switch {
	case s.Word == Partial:
		return fmt.Sprintf("%s %d/%d", s.Word, s.N, s.M)
	case s.Word == Reverted:
		return string(s.Word) + "-by-" + s.Who
	case s.Word == Blocked && s.Who != "":
		return string(s.Word) + "-by-" + s.Who
	default:
		return string(s.Word)
	}
}

// StateOf reads a delivery's state from what hosts say about themselves.
func StateOf(d Delivery, hosts []model.HostView, now time.Time) State {
	out := State{M: len(d.Targets), Refusing: map[string]string{}}
	views := make(map[string]*model.HostView, len(hosts))
	for i := range hosts {
		views[hosts[i].Host] = &hosts[i]
	}
	for _, target := range d.Targets {
		view := views[target]
		if view == nil || !view.Reachable || view.Report == nil {
			out.Unreachable = append(out.Unreachable, target)
			continue
		}
		if holds(view.Report, d.IDs) {
			out.Holding = append(out.Holding, target)
			continue
		}
		out.Lacking = append(out.Lacking, target)
		if code := refusal(view.Report, d.IDs); code != "" {
			out.Refusing[target] = code
		}
	}
	out.N = len(out.Holding)
	out.Word, out.Who = word(d, &out, now)
	return out
}

func word(d Delivery, s *State, now time.Time) (Word, string) {
	switch {
	case d.SentAt.IsZero() && d.BlockedBy == "":
		return Planned, ""
	case d.RevertedBy != "":
		return Reverted, untrusted.Text(d.RevertedBy, maxName)
	case s.N == s.M && s.M > 0:
		return Effective, ""
	case s.N > 0:
		return Partial, ""
	case d.BlockedBy != "":
		return Blocked, untrusted.Text(d.BlockedBy, maxName)
	case lost(d.Held, s.Lacking):
		return Dropped, ""
	case len(s.Refusing) > 0 && len(s.Refusing) == len(s.Lacking):
		return Blocked, someCode(s.Refusing)
	case now.Sub(d.SentAt) < d.Patience:
		return Sent, ""
	default:
		return Unconfirmed, ""
	}
}

// lost reports whether a host that had it says now that it has not.
func lost(held, lacking []string) bool {
	return slices.ContainsFunc(held, func(h string) bool { return slices.Contains(lacking, h) })
}

// someCode is the one code of all refusals, or the first in order if they differ.
func someCode(refusing map[string]string) string {
	codes := make([]string, 0, len(refusing))
	for _, code := range refusing {
		codes = append(codes, code)
	}
	return slices.Min(codes)
}

// holds reports whether a host has every id: in force, or, like an ending, taken
// from a source without a refusal.
func holds(r *model.Report, ids []string) bool {
	have := map[string]bool{}
	for _, source := range r.Sources {
		for _, id := range source.PresentIDs {
			have[id] = true
		}
	}
	for _, refused := range r.Refused {
		delete(have, refused.ID)
	}
	for _, live := range r.Live {
		have[live.ID] = true
	}
	return !slices.ContainsFunc(ids, func(id string) bool { return !have[id] })
}

func refusal(r *model.Report, ids []string) string {
	for _, refused := range r.Refused {
		if slices.Contains(ids, refused.ID) {
			return untrusted.Text(refused.Code, maxWord)
		}
	}
	return ""
}

// KnownGood counts targets by whether they would come back from a restart with
// what they know, by their own reports. A backend can seldom tell.
func KnownGood(hosts []model.HostView, targets []string) sdk.LastKnownGood {
	states := make(map[string]string, len(hosts))
	for i := range hosts {
		if hosts[i].Reachable && hosts[i].Report != nil {
			states[hosts[i].Host] = hosts[i].Report.State
		}
	}
	var out sdk.LastKnownGood
	for _, target := range targets {
		switch states[target] {
		case "ok", "recovered":
			out.Yes++
		case "volatile", "unpersisted", "safe-defaults":
			out.No++
		default:
			out.Unknown++
		}
	}
	return out
}
