package metrics

import (
	"context"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

var _ storage.Queryable = (*Store)(nil)

// Querier reads the samples of [mint, maxt], both in milliseconds.
func (s *Store) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{store: s, mint: mint, maxt: maxt}, nil
}

type querier struct {
	store      *Store
	mint, maxt int64
}

// Select returns what the store holds at the moment of the call.
func (q *querier) Select(_ context.Context, sorted bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := q.matching(matchers)
	if sorted {
		slices.SortFunc(found, func(a, b window) int { return labels.Compare(a.labels, b.labels) })
	}
	return &seriesSet{found: found, at: -1}
}

// matching collects the series that fulfil every matcher and have a sample in
// the querier's range.
func (q *querier) matching(matchers []*labels.Matcher) []window {
	q.store.mu.RLock()
	defer q.store.mu.RUnlock()
	candidates := q.store.all
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			candidates = q.store.byName[m.Value]
		}
	}
	var found []window
	for _, one := range candidates {
		if !fulfils(one.labels, matchers) {
			continue
		}
		low, high := after(one.samples, q.mint-1), after(one.samples, q.maxt)
		if low < high {
			found = append(found, window{one.labels, one.samples[low:high]})
		}
	}
	return found
}

func fulfils(set labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(set.Get(m.Name)) {
			return false
		}
	}
	return true
}

// LabelValues lists the values of one label, sorted.
func (q *querier) LabelValues(_ context.Context, name string, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	var out []string
	for _, w := range q.matching(matchers) {
		if v := w.labels.Get(name); v != "" {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil, nil
}

// LabelNames lists the names of all labels, sorted.
func (q *querier) LabelNames(_ context.Context, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	var out []string
	for _, w := range q.matching(matchers) {
		w.labels.Range(func(l labels.Label) { out = append(out, l.Name) })
	}
	slices.Sort(out)
	return slices.Compact(out), nil, nil
}

// Close implements storage.Querier; there is nothing to release.
func (q *querier) Close() error { return nil }

// window is a part of one series that nobody changes any more.
type window struct {
	labels  labels.Labels
	samples []sample
}

var _ storage.Series = window{}

// Labels implements storage.Series.
func (w window) Labels() labels.Labels { return w.labels }

// Iterator implements storage.Series.
func (w window) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return storage.NewListSeriesIterator(floats(w.samples))
}

// floats is samples as storage's own iterator reads them.
type floats []sample

func (f floats) Len() int                { return len(f) }
func (f floats) Get(i int) chunks.Sample { return &f[i] }

var _ chunks.Sample = (*sample)(nil)

// The store holds floats only, without start times.
func (s *sample) T() int64                      { return s.ms }
func (s *sample) ST() int64                     { return 0 }
func (s *sample) F() float64                    { return s.v }
func (s *sample) H() *histogram.Histogram       { return nil }
func (s *sample) FH() *histogram.FloatHistogram { return nil }
func (s *sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s *sample) Copy() chunks.Sample           { c := *s; return &c }

type seriesSet struct {
	found []window
	at    int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.found) }
func (s *seriesSet) At() storage.Series                { return s.found[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
