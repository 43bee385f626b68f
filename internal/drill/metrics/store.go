package metrics

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
)

const (
	// MaxSeries bounds the series of one store: 200 hosts with 20 series each
	// and the histograms of the services are below 5,000.
	MaxSeries = 20000
	// trimEvery is how many expired samples of a series make it worth copying
	// the rest: 64 samples are a kilobyte.
	trimEvery = 64
)

// ErrOutOfOrder is wrapped by the error of Append for a sample that is not later
// than the one before it.
var ErrOutOfOrder = errors.New("not later than the sample before it")

// Store keeps the samples of one window of virtual time. It is safe for
// concurrent use: one writer and any number of queries.
type Store struct {
	window int64 // ms

	mu     sync.RWMutex
	all    []*series
	byName map[string][]*series
	byKey  map[string]*series // by name and labels in the caller's order
	byID   map[string]*series // by name and labels in canonical order
}

type series struct {
	labels  labels.Labels
	samples []sample // ascending; never changed in place, so that a query may go on reading
}

type sample struct {
	ms int64
	v  float64
}

// NewStore makes a store that keeps samples for window.
func NewStore(window time.Duration) *Store {
	return &Store{
		window: window.Milliseconds(),
		byName: make(map[string][]*series), byKey: make(map[string]*series), byID: make(map[string]*series),
	}
}

// Append adds one sample at the virtual time at. Labels come in pairs of name
// and value. A sample that is not later than the last one of its series is an
// error, and the store is unchanged.
func (s *Store) Append(at time.Time, name string, v float64, pairs ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := name + "\xff" + strings.Join(pairs, "\xff")
	one := s.byKey[key]
	if one == nil {
		var err error
		if one, err = s.find(name, pairs); err != nil {
			return err
		}
		s.byKey[key] = one
	}
	return s.add(one, at.UnixMilli(), v)
}

// MarkStale ends every series that has the label name=v, as Prometheus does
// when a target is gone: a query does not go on seeing the last value.
func (s *Store) MarkStale(at time.Time, name, v string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := at.UnixMilli()
	for _, one := range s.all {
		if one.labels.Get(name) != v || len(one.samples) == 0 {
			continue
		}
		last := one.samples[len(one.samples)-1]
		if last.ms < ms && !value.IsStaleNaN(last.v) {
			one.samples = append(one.samples, sample{ms, math.Float64frombits(value.StaleNaN)})
		}
	}
}

// find returns the series of name and pairs, made if it is new. mu is held.
func (s *Store) find(name string, pairs []string) (*series, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("append to %s: %d strings are not pairs of label and value", name, len(pairs))
	}
	set := labels.FromStrings(append([]string{model.MetricNameLabel, name}, pairs...)...)
	if repeated, ok := set.HasDuplicateLabelNames(); ok {
		return nil, fmt.Errorf("append to %s: label %s is given twice", name, repeated)
	}
	id := set.String()
	if one := s.byID[id]; one != nil {
		return one, nil
	}
	if len(s.all) >= MaxSeries {
		return nil, fmt.Errorf("append to %s: the store holds %d series, the most it takes", name, MaxSeries)
	}
	one := &series{labels: set}
	s.all = append(s.all, one)
	s.byName[name] = append(s.byName[name], one)
	s.byID[id] = one
	return one, nil
}

// add appends and drops what has left the window. mu is held.
func (s *Store) add(one *series, ms int64, v float64) error {
	if n := len(one.samples); n > 0 && one.samples[n-1].ms >= ms {
		return fmt.Errorf("append to %s at %d ms: %w, at %d ms", one.labels, ms, ErrOutOfOrder, one.samples[n-1].ms)
	}
	one.samples = append(one.samples, sample{ms, v})
	expired := after(one.samples, ms-s.window-1)
	if expired >= trimEvery {
		one.samples = slices.Clone(one.samples[expired:])
	}
	return nil
}

// after is the index of the first sample later than ms.
func after(samples []sample, ms int64) int {
	i, _ := slices.BinarySearchFunc(samples, ms+1, func(s sample, t int64) int {
		return int(s.ms - t)
	})
	return i
}
