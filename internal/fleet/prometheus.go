package fleet

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
	promapi "github.com/prometheus/client_golang/api/prometheus/v1"
	prom "github.com/prometheus/common/model"
)

// FromPrometheus makes the views from what Prometheus has scraped of the hosts,
// for when they cannot be pulled. It returns one view per host of the
// inventory, in its order. SeenAt is the time of the scrape, on our clock: the
// age is taken between two times of Prometheus, so that a difference between
// its clock and ours is no age.
//
// An error says that Prometheus could not be asked, or answered in part. The
// views are good all the same: what is in a report was checked against its
// posture, and a host without one says why.
func FromPrometheus(ctx context.Context, api promapi.API, inv Inventory, o Options) ([]model.HostView, error) {
	o = o.withDefaults()
	s := scrapes{api: api, o: o, hosts: make(map[string]*scraped, len(inv.Hosts))}
	for _, h := range inv.Hosts {
		s.hosts[h.Name] = &scraped{report: model.Report{V: 1, Fleet: o.Fleet, Host: h.Name, Services: h.Services}}
	}
	err := s.read(ctx)
	silent := "Prometheus has no fresh sample of it"
	switch {
	case err != nil:
		silent = err.Error()
	case s.part != "":
		err = fmt.Errorf("Prometheus answers in part: %s", untrusted.Text(s.part, maxDetail))
		silent = err.Error()
	}
	views := make([]model.HostView, len(inv.Hosts))
	for i, h := range inv.Hosts {
		views[i] = s.hosts[h.Name].view(h, silent)
	}
	return views, err
}

type scrapes struct {
	api   promapi.API
	o     Options
	hosts map[string]*scraped
	at    time.Time // the server's time at which all queries are evaluated
	now   time.Time // ours at the same moment
	part  string    // the first warning: data is missing
}

// scraped is what Prometheus holds of one host.
type scraped struct {
	seen   time.Time // our time of the scrape; zero: no sample
	report model.Report
}

// read asks for the scrape times first: the moment at which that query was
// evaluated is used for all others, so that they show the same scrapes.
func (s *scrapes) read(ctx context.Context) error {
	steps := []struct {
		query string
		take  func(h *scraped, m prom.Metric, v float64)
	}{
		{"timestamp(" + s.selector(MetricReport) + ")", func(h *scraped, _ prom.Metric, v float64) {
			h.seen = s.now.Add(-s.at.Sub(unix(v)))
		}},
		{s.selector(MetricReport), func(h *scraped, _ prom.Metric, v float64) { h.report.At = unix(v) }},
		{s.selector(MetricPosture), func(h *scraped, m prom.Metric, _ float64) { h.report.Posture = string(m["posture"]) }},
		{s.selector(MetricState), func(h *scraped, m prom.Metric, _ float64) { h.report.State = string(m["state"]) }},
		{s.selector(MetricLive), func(h *scraped, m prom.Metric, v float64) {
			h.report.Live = append(h.report.Live, model.ReportLive{ID: string(m["id"]), Source: string(m["source"]), Since: unix(v)})
		}},
		{s.selector(MetricSourceAge), func(h *scraped, m prom.Metric, v float64) {
			h.report.Sources = append(h.report.Sources, model.ReportSource{Name: string(m["source"]), AgeS: int64(v)})
		}},
	}
	for _, step := range steps {
		if err := s.query(ctx, step.query, step.take); err != nil {
			return fmt.Errorf("ask Prometheus for %s: %s", step.query, untrusted.Text(err.Error(), maxDetail))
		}
	}
	return nil
}

func (s *scrapes) selector(metric string) string {
	return metric + "{fleet=" + strconv.Quote(s.o.Fleet) + "}"
}

func (s *scrapes) query(ctx context.Context, query string, take func(*scraped, prom.Metric, float64)) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	value, warnings, _, err := s.api.Query(ctx, query, s.at)
	if err != nil {
		return err
	}
	vector, ok := value.(prom.Vector)
	if !ok && value != nil {
		return fmt.Errorf("it answers a %s instead of a vector", value.Type())
	}
	if s.at.IsZero() && len(vector) > 0 {
		s.at, s.now = vector[0].Timestamp.Time(), s.o.Now()
	}
	for _, sample := range vector {
		if h := s.hosts[string(sample.Metric["host"])]; h != nil && sample.Histogram == nil {
			take(h, sample.Metric, float64(sample.Value))
		}
	}
	if len(warnings) > 0 && s.part == "" {
		s.part = warnings[0]
	}
	return nil
}

func (h *scraped) view(host Host, silent string) model.HostView {
	view := model.HostView{Host: host.Name, Services: host.Services, Via: ViaPrometheus, SeenAt: h.seen}
	if h.seen.IsZero() {
		view.Detail = silent
		return view
	}
	view.Reachable = true
	clean(&h.report)
	if err := checkLive(&h.report); err != nil {
		view.Detail = err.Error()
		return view
	}
	view.Report = &h.report
	return view
}

func unix(seconds float64) time.Time {
	return time.UnixMilli(int64(seconds * 1000)).UTC()
}
