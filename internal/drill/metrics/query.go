package metrics

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

type queryData struct {
	ResultType parser.ValueType `json:"resultType"`
	Result     parser.Value     `json:"result"`
}

func (a *API) query(r *http.Request) (*body, error) {
	at, err := timeParam(r, "time", a.now())
	if err != nil {
		return nil, err
	}
	ctx, cancel, err := deadline(r)
	if err != nil {
		return nil, err
	}
	defer cancel()
	q, err := a.engine.NewInstantQuery(ctx, a.visible(), nil, r.Form.Get("query"), at)
	if err != nil {
		return nil, badData("invalid parameter %q: %w", "query", err)
	}
	return run(ctx, q)
}

func (a *API) queryRange(r *http.Request) (*body, error) {
	start, err := timeParam(r, "start", time.Time{})
	if err != nil {
		return nil, err
	}
	end, err := timeParam(r, "end", time.Time{})
	if err != nil {
		return nil, err
	}
	step, err := duration(r.Form.Get("step"))
	switch {
	case err != nil:
		return nil, badData("invalid parameter %q: %w", "step", err)
	case step <= 0:
		return nil, badData("invalid parameter %q: a step is longer than zero", "step")
	case start.IsZero() || end.IsZero() || end.Before(start):
		return nil, badData("invalid parameter %q: a range needs a start and an end that is not before it", "end")
	case end.Sub(start)/step > maxPoints:
		return nil, badData("a range has at most %d points per series: take a longer step", maxPoints)
	}
	ctx, cancel, err := deadline(r)
	if err != nil {
		return nil, err
	}
	defer cancel()
	q, err := a.engine.NewRangeQuery(ctx, a.visible(), nil, r.Form.Get("query"), start, end, step)
	if err != nil {
		return nil, badData("invalid parameter %q: %w", "query", err)
	}
	return run(ctx, q)
}

// run executes q and takes its value out of the engine's pools, which have the
// memory back when q is closed.
func run(ctx context.Context, q promql.Query) (*body, error) {
	defer q.Close()
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, executed(res.Err)
	}
	out := res.Value
	switch v := out.(type) {
	case promql.Vector: // an empty result is [], never null
		out = append(promql.Vector{}, v...)
	case promql.Matrix:
		out = copied(v)
	}
	warnings, infos := res.Warnings.AsStrings(q.String(), 10, 10)
	return &body{Data: queryData{out.Type(), out}, Warnings: warnings, Infos: infos}, nil
}

// copied is a matrix of our own; the store holds no histograms.
func copied(m promql.Matrix) promql.Matrix {
	out := make(promql.Matrix, 0, len(m))
	for _, s := range m {
		out = append(out, promql.Series{Metric: s.Metric, Floats: append([]promql.FPoint(nil), s.Floats...)})
	}
	return out
}

// visible is the store, or an empty one.
func (a *API) visible() *Store {
	if Sight(a.sight.Load()) == Hollow {
		return NewStore(0)
	}
	return a.store
}

func (a *API) labelNames(r *http.Request) (*body, error) {
	names := []string{}
	err := a.eachMatch(r, false, func(q *querier, m []*labels.Matcher) {
		found, _, _ := q.LabelNames(r.Context(), nil, m...)
		names = union(names, found)
	})
	return &body{Data: names}, err
}

func (a *API) labelValues(r *http.Request) (*body, error) {
	name := r.PathValue("name")
	values := []string{}
	err := a.eachMatch(r, false, func(q *querier, m []*labels.Matcher) {
		found, _, _ := q.LabelValues(r.Context(), name, nil, m...)
		values = union(values, found)
	})
	return &body{Data: values}, err
}

func (a *API) series(r *http.Request) (*body, error) {
	seen := make(map[string]bool)
	found := []labels.Labels{}
	err := a.eachMatch(r, true, func(q *querier, m []*labels.Matcher) {
		for _, w := range q.matching(m) {
			if id := w.labels.String(); !seen[id] {
				seen[id] = true
				found = append(found, w.labels)
			}
		}
	})
	return &body{Data: found}, err
}

// eachMatch calls do for every match[] of the request; without one, once with
// no matcher, or not at all if one is needed.
func (a *API) eachMatch(r *http.Request, needed bool, do func(*querier, []*labels.Matcher)) error {
	start, err := timeParam(r, "start", time.UnixMilli(0))
	if err != nil {
		return err
	}
	end, err := timeParam(r, "end", a.now())
	if err != nil {
		return err
	}
	sets, err := a.parser.ParseMetricSelectors(r.Form["match[]"])
	if err != nil {
		return badData("invalid parameter %q: %w", "match[]", err)
	}
	if len(sets) == 0 {
		if needed {
			return badData("no match[] parameter provided")
		}
		sets = [][]*labels.Matcher{nil}
	}
	q := &querier{store: a.visible(), mint: start.UnixMilli(), maxt: end.UnixMilli()}
	for _, m := range sets {
		do(q, m)
	}
	return nil
}

// deadline is the query's limit: the request's own, if it names a shorter one.
func deadline(r *http.Request) (context.Context, context.CancelFunc, error) {
	limit := queryLimit
	if text := r.Form.Get("timeout"); text != "" {
		asked, err := duration(text)
		if err != nil || asked <= 0 {
			return nil, nil, badData("invalid parameter %q: %q is not a duration longer than zero", "timeout", text)
		}
		limit = min(limit, asked)
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	return ctx, cancel, nil
}

// timeParam reads seconds since 1970 with a fraction, or RFC 3339.
func timeParam(r *http.Request, name string, absent time.Time) (time.Time, error) {
	text := r.Form.Get(name)
	if text == "" {
		return absent, nil
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(s) < math.MaxInt64/1e9 {
		return time.UnixMilli(int64(math.Round(s * 1000))).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, badData("invalid parameter %q: %q is not a time", name, text)
	}
	return t, nil
}

// duration reads seconds with a fraction, or Prometheus' own form such as 5m.
func duration(text string) (time.Duration, error) {
	if s, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(s) < math.MaxInt64/1e9 {
		return time.Duration(s * float64(time.Second)), nil
	}
	d, err := model.ParseDuration(text)
	return time.Duration(d), err
}
