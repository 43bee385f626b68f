package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/promrules"
	"github.com/degradedmode/ic/internal/signals"
)

// prometheus is whoever answers for signals, and for the list of hosts where the
// policy asks for it; nil when nobody was named.
func (a *app) prometheus(c config, s *seat) (*signals.Source, error) {
	if c.Prometheus == "" {
		return nil, nil
	}
	// The keyring is asked once, at the first query, and not before the first frame.
	token := sync.OnceValues(func() (string, error) {
		t, err := a.token(context.Background(), c, "prometheus")
		if errors.Is(err, keys.ErrNoToken) {
			return "", nil // most Prometheus servers want none
		}
		return t.Value, err
	})
	switch {
	case s.info != nil:
		token = nil // a drill's Prometheus is its own
	case c.Tokens != "":
		_, _ = token() // an age file asks for a passphrase: now, and not from below a frame; a failure is kept and read as one
	}
	source, err := signals.New(signals.Options{URL: c.Prometheus, Token: token, Now: func() time.Time { return s.clock.Now().Wall }})
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	return source, nil
}

// readings asks for every signal of the policy, as far back as the longest window
// that leaves a tier on it.
func readings(b *policy.Bundle, s *seat, source *signals.Source) func(context.Context) map[string]model.Reading {
	if source == nil {
		return func(context.Context) map[string]model.Reading { return unread(b) }
	}
	flaws := queryFlaws(b)
	var specs []signals.Spec
	for _, name := range slices.Sorted(maps.Keys(b.Signals)) {
		signal := b.Signals[name]
		specs = append(specs, signals.Spec{
			Name: name, Query: signal.Query, Flaw: flaws[name], Unit: signal.Unit, MaxAge: signal.MaxAge * model.Duration(s.speed()),
			Step: signal.Step, Window: decisions.WindowOf(b, name),
		})
	}
	return func(ctx context.Context) map[string]model.Reading { return source.Read(ctx, specs) }
}

// queryFlaws looks at the query of each signal, as lint does, and says what is
// wrong with those of which something is. A policy may have been signed unseen.
func queryFlaws(b *policy.Bundle) map[string]string {
	flaws := map[string]string{}
	for name, signal := range b.Signals {
		if err := promrules.OneSeries(signal.Query); err != nil {
			flaws[name] = fmt.Sprintf("the policy's query was found wanting when it was loaded: %v", err)
		}
	}
	return flaws
}

// unread are the signals of a policy when nobody was named who could be asked.
func unread(b *policy.Bundle) map[string]model.Reading {
	out := make(map[string]model.Reading, len(b.Signals))
	for name := range b.Signals {
		out[name] = model.Reading{Signal: name, State: model.ReadingNoData, Detail: "no prometheus is configured"}
	}
	return out
}

func clockView(c signals.ServerClock) incident.ClockView {
	v := incident.ClockView{State: incident.ClocksAgree, AheadS: int64(c.Ahead.Round(time.Second) / time.Second), At: c.At}
	switch {
	case c.At.IsZero():
		v.State = incident.ClocksUnknown
	case c.Off():
		v.State = incident.ClocksDiffer
	}
	return v
}
