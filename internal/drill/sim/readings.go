package sim

import (
	"context"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/signals"
)

// queryLimit is longer than a query can take on a machine that works at all: a
// deadline of real time must not decide what a simulation sees.
const queryLimit = time.Minute

// reader reads the policy's signals from the world's Prometheus, by the product's
// own reader and the real query engine.
type reader struct {
	source *signals.Source
	specs  []signals.Spec
}

func (w *World) startReadings() error {
	// The address goes nowhere: the answers come from the same process.
	source, err := signals.New(signals.Options{URL: "http://prometheus.invalid", RoundTripper: w.prom, Now: w.k.Now, Timeout: queryLimit})
	if err != nil {
		return err
	}
	w.readings.source = source
	for _, name := range sortedKeys(w.bundle.Signals) {
		s := w.bundle.Signals[name]
		w.readings.specs = append(w.readings.specs, signals.Spec{
			Name: name, Query: s.Query, Unit: s.Unit, MaxAge: s.MaxAge, Step: s.Step, Window: decisions.WindowOf(w.bundle, name),
		})
	}
	return nil
}

// read asks for every signal, whatever the patience of whoever asks.
func (w *World) read(ctx context.Context) map[string]model.Reading {
	if w.o.Readings != nil {
		return w.o.Readings(w.k.Now())
	}
	return w.readings.source.Read(context.WithoutCancel(ctx), w.readings.specs)
}
