package signals

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
	promapi "github.com/prometheus/client_golang/api/prometheus/v1"
	prom "github.com/prometheus/common/model"
)

// Bounds of what is said of a reading, in bytes: the sentence, and one remark of
// the server in it.
const (
	maxDetail = 300
	maxRemark = 200
)

// query is one reading in the making.
type query struct {
	*Source
	spec    Spec
	reading model.Reading
	asked   time.Time // by the server's clock: when the instant query was evaluated
	remarks []string  // what the server says besides, of an answer that is whole
}

// finding is why a query gave no number.
type finding struct {
	state  model.ReadingState
	detail string
}

func (f *finding) Error() string { return f.detail }

func found(state model.ReadingState, format string, args ...any) error {
	return &finding{state, fmt.Sprintf(format, args...)}
}

func (q *query) settle(state model.ReadingState, detail string) {
	q.reading.State, q.reading.Detail = state, untrusted.Text(detail, maxDetail)
}

func (q *query) fail(err error) {
	var f *finding
	if errors.As(err, &f) {
		q.settle(f.state, f.detail)
		return
	}
	q.settle(model.ReadingError, explain(err))
}

// run asks for the value, for its age and for its history, in this order: what
// is no value needs no history.
func (q *query) run(ctx context.Context) {
	if err := q.spec.check(); err != nil {
		q.fail(err)
		return
	}
	sample, err := q.instant(ctx)
	if err == nil {
		err = q.date(ctx, sample)
	}
	if err != nil {
		q.fail(err)
		return
	}
	q.settle(model.ReadingValue, "")
	q.reading.Value = float64(sample.Value)
	if len(q.remarks) > 0 {
		q.settle(model.ReadingValue, "the server remarks: "+first(q.remarks))
	}
	if q.spec.Window > 0 {
		// Without a history the value still stands: it can call for a shed, and it
		// cannot carry a recovery.
		if q.reading.History, err = q.history(ctx, sample.Metric); err != nil {
			q.settle(model.ReadingValue, "no history: "+explain(err))
		}
	}
}

func (s Spec) check() error {
	if s.Window == 0 {
		return nil
	}
	if s.Step <= 0 || s.Window < 0 || s.Window/s.Step > MaxHistory {
		return found(model.ReadingError, "a window of %s in steps of %s is not 1 to %d samples; change the policy", s.Window, s.Step, MaxHistory)
	}
	return nil
}

// young makes Prometheus leave out samples older than MaxAge, inside any
// expression. A server that does not know the parameter ignores it.
func (q *query) young() []promapi.Option {
	if q.spec.MaxAge == 0 {
		return nil
	}
	return []promapi.Option{promapi.WithLookbackDelta(q.spec.MaxAge.Std())}
}

func (q *query) instant(ctx context.Context) (*prom.Sample, error) {
	sample, err := q.one(ctx, q.spec.Query, q.young()...)
	var f *finding
	if q.spec.MaxAge == 0 || !errors.As(err, &f) || f.state != model.ReadingNoData {
		return sample, err
	}
	old, oldErr := q.one(ctx, q.spec.Query)
	if oldErr != nil {
		return nil, err
	}
	// Older than it may be; how old, only a plain selector tells.
	if err := q.date(ctx, old); err != nil {
		return nil, err
	}
	q.reading.At = time.Time{}
	return nil, found(model.ReadingStale, "its newest data is older than %s", q.spec.MaxAge)
}

// date finds out when the value was collected. The time on the answer of an
// instant query is that of the question. Only a plain selector can be asked for
// the time of its sample; for any other expression Prometheus was told what is
// too old, and the time of the question is the best that is known.
func (q *query) date(ctx context.Context, sample *prom.Sample) error {
	q.asked = sample.Timestamp.Time().UTC()
	q.reading.At = q.asked
	if plainSelector(q.spec.Query) {
		at, err := q.one(ctx, "timestamp("+q.spec.Query+")")
		if err != nil {
			return err
		}
		q.reading.At = time.UnixMilli(int64(float64(at.Value) * 1000)).UTC()
	}
	if ahead := q.reading.At.Sub(q.asked); ahead > maxFuture {
		return found(model.ReadingError, "its newest sample is dated %s ahead of the question: a clock that writes it is wrong", ahead.Round(time.Second))
	}
	maxAge := q.spec.MaxAge.Std()
	if maxAge == 0 {
		return nil
	}
	if age := q.asked.Sub(q.reading.At); age > maxAge {
		return found(model.ReadingStale, "its newest sample is %s old, at most %s", age.Round(time.Second), q.spec.MaxAge)
	}
	if off := q.opts.Now().Sub(q.asked); off.Abs() > maxAge {
		return found(model.ReadingStale, "Prometheus answers for %s, which is %s off by our clock: one of the clocks is wrong, or the answer comes from a cache",
			q.asked.Format(time.RFC3339), off.Abs().Round(time.Second))
	}
	return nil
}

// one asks an instant query that has to give exactly one finite number.
func (q *query) one(ctx context.Context, text string, opts ...promapi.Option) (*prom.Sample, error) {
	value, remarks, err := q.ask(ctx, text, opts...)
	if err != nil {
		return nil, err
	}
	sample, err := single(value)
	if err != nil {
		return nil, err
	}
	if len(q.remarks) == 0 {
		q.remarks = remarks
	}
	if v := float64(sample.Value); math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, found(model.ReadingError, "the query gives %v, which is no measurement (a division by zero?)", v)
	}
	return sample, nil
}

// ask asks an instant query and returns an answer that is whole, with what the
// server remarks on it.
func (s *Source) ask(ctx context.Context, text string, opts ...promapi.Option) (prom.Value, []string, error) {
	ctx, seen := withSniff(ctx)
	sent := s.opts.Now()
	value, warnings, infos, err := s.api.Query(ctx, text, time.Time{}, opts...)
	if err != nil {
		return nil, nil, err
	}
	if err := seen.whole(warnings); err != nil {
		return nil, nil, err
	}
	if at, ok := evaluatedAt(value); ok {
		s.guard.readEvaluation(at, sent, s.opts.Now())
	}
	return value, infos, nil
}

// evaluatedAt is the server's time of an instant query: every sample of the
// answer carries it, and an answer without one does not tell.
func evaluatedAt(value prom.Value) (time.Time, bool) {
	switch v := value.(type) {
	case *prom.Scalar:
		return v.Timestamp.Time(), true
	case prom.Vector:
		if len(v) > 0 {
			return v[0].Timestamp.Time(), true
		}
	}
	return time.Time{}, false
}

// single wants one float, and no answer is never zero.
func single(value prom.Value) (*prom.Sample, error) {
	switch v := value.(type) {
	case nil:
		return nil, found(model.ReadingNoData, "the answer holds no data")
	case *prom.Scalar:
		return &prom.Sample{Value: v.Value, Timestamp: v.Timestamp}, nil
	case prom.Vector:
		switch {
		case len(v) == 0:
			return nil, found(model.ReadingNoData, "the query gives no series")
		case len(v) > 1:
			return nil, found(model.ReadingError, "the query gives %d series and has to give one; aggregate it in the policy", len(v))
		case v[0].Histogram != nil:
			return nil, found(model.ReadingError, "the query gives a histogram and has to give one number; use histogram_quantile in the policy")
		}
		return v[0], nil
	default:
		return nil, found(model.ReadingError, "the query gives a %s and has to give one number; change it in the policy", value.Type())
	}
}

// history is the window up to the moment of the value. A sample that is missing,
// not finite or a histogram is a gap, and so is every series but the value's
// own. Samples that are not in order of time, or not of the window, are no
// evidence at all: one of them could stand before another and hide it. A server
// that aligns the window to its step may be a step off.
func (q *query) history(ctx context.Context, own prom.Metric) ([]model.Sample, error) {
	ctx, seen := withSniff(ctx)
	step := q.spec.Step.Std()
	steps := (q.spec.Window.Std() + step - 1) / step // whole ones, so that the last sample is that of the value
	start := q.asked.Add(-steps * step)
	value, warnings, _, err := q.api.QueryRange(ctx, q.spec.Query,
		promapi.Range{Start: start, End: q.asked, Step: step}, q.young()...)
	if err != nil {
		return nil, err
	}
	if err := seen.whole(warnings); err != nil {
		return nil, err
	}
	matrix, ok := value.(prom.Matrix)
	if !ok && value != nil {
		return nil, found(model.ReadingError, "a range query gives a %s", value.Type())
	}
	var out []model.Sample
	last := start.Add(-step - time.Millisecond)
	for _, stream := range matrix {
		if !stream.Metric.Equal(own) {
			continue
		}
		for _, p := range stream.Values {
			at := p.Timestamp.Time().UTC()
			if !at.After(last) || at.After(q.asked.Add(step)) {
				return nil, found(model.ReadingError, "its samples are not in order, or not of the window that was asked for")
			}
			last = at
			if v := float64(p.Value); !at.After(q.asked) && !math.IsNaN(v) && !math.IsInf(v, 0) {
				out = append(out, model.Sample{At: at, Value: v})
			}
		}
	}
	return out, nil
}

// selector is a metric name, label matchers, or both, and nothing else.
var selector = regexp.MustCompile("^(?:[a-zA-Z_:][a-zA-Z0-9_:]*)?\\s*(?:\\{(?:[^{}\"'`]|\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`)*\\})?$")

func plainSelector(text string) bool {
	text = strings.TrimSpace(text)
	switch strings.ToLower(text) {
	case "", "nan", "inf": // the last two are numbers
		return false
	}
	return selector.MatchString(text)
}
