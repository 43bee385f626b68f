package host

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/degradedmode/ic/host/dimmer"
)

// State is what holds for the services of this host at one moment. It is the
// caller's own.
type State struct {
	Tiers    map[string]int           // of the services of this host
	Features map[string]Feature       // those that are not simply on
	Open     map[string]time.Time     // controls of which a bypass is open, and when the last of them ends at the latest
	Dimmers  map[string]dimmer.Bounds // of the services that have one
	Policy   string                   // as PolicyVersion
	Defaults bool                     // nothing could be read: the declared defaults count
}

// Feature is a feature that is not simply on.
type Feature struct {
	On  bool
	How string // the policy's words for its simpler form
}

// Change is what has changed between two states, as this host sees them.
type Change struct {
	At       time.Time // when it was seen
	Old, New State
}

// State is what holds now. It is put together of several answers: one that is made
// while something changes may have a part of before. Watch follows it up.
func (h *Host) State() State {
	s := State{Tiers: map[string]int{}, Features: map[string]Feature{}, Open: map[string]time.Time{}, Dimmers: map[string]dimmer.Bounds{}}
	for _, service := range h.settings.Services {
		s.Tiers[service] = h.Tier(service)
		if bounds, ok := h.Dimmer(service); ok {
			s.Dimmers[service] = bounds
		}
	}
	names := slices.Clone(h.defaults.Off)
	if r := h.run.Load(); r != nil {
		now := r.State()
		for name, f := range now.Features {
			if !f.On || f.How != "" {
				names = append(names, name)
			}
		}
		for _, b := range now.Bypasses {
			if b.Until.After(s.Open[b.Control]) {
				s.Open[b.Control] = b.Until
			}
		}
		s.Defaults = h.unread(r)
	} else {
		s.Defaults = true
	}
	for _, name := range names {
		if on, how := h.Feature(name); !on || how != "" {
			s.Features[name] = Feature{On: on, How: how}
		}
	}
	s.Policy = h.PolicyVersion()
	return s
}

// Watch tells of changes until ctx ends; then the channel is closed. The first one
// comes at once: from the zero State to what holds now. Whoever is slow gets fewer
// and larger changes, from the last that he has taken to what holds then, and
// never holds up the host. What has come and gone meanwhile is not told.
func (h *Host) Watch(ctx context.Context) <-chan Change {
	out := make(chan Change)
	go func() {
		defer close(out)
		var last State
		for {
			changed := h.changed() // before asking, so that nothing is missed
			now := h.State()
			var send chan<- Change // nil, and never ready, while there is nothing to tell
			if !reflect.DeepEqual(now, last) {
				send = out
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			case send <- Change{At: time.Now(), Old: last, New: now}:
				last = now
			}
		}
	}()
	return out
}

// changed is closed at the next change of anything that State tells.
func (h *Host) changed() <-chan struct{} {
	if r := h.run.Load(); r != nil {
		return r.Engine().Changed()
	}
	return h.started
}
