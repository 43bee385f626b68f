package scenario

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/untrusted"
	prom "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	promqlparser "github.com/prometheus/prometheus/promql/parser"
)

// MaxLabels bounds the labels of a recorded series.
const MaxLabels = 32

// minEvery is the shortest distance of two samples: the model's own second.
const minEvery = time.Second

// times finds the repetitions of a series, which the parser would write out
// before anybody could say no.
func times() *regexp.Regexp { return regexp.MustCompile(`x(\d+)`) }

// series: series every TIME NAME{LABELS} VALUES
func (p *parser) series(l *line) {
	if l.word(1) != "every" {
		p.at(l, 1, `a recorded series is written "series every 30s NAME{label=\"value\"} VALUES"`)
		return
	}
	n := len(p.errs)
	one := Series{Line: l.n, Every: p.span(l, 2, MaxLasts), Text: l.rest(3)}
	if len(p.errs) > n {
		return
	}
	if one.Every < minEvery {
		p.at(l, 2, "samples are at least %s apart", minEvery)
		return
	}
	if why := tooMany(one.Text); why != "" {
		p.at(l, 3, "%s", why)
		return
	}
	set, values, err := promqlparser.NewParser(promqlparser.Options{}).ParseSeriesDesc(one.Text)
	if err != nil {
		p.at(l, 3, "the series cannot be read: %s", untrusted.Text(err.Error(), 200))
		return
	}
	one.Name = set.Get(prom.MetricNameLabel)
	if one.Name == "" || set.Len() > MaxLabels {
		p.at(l, 3, "a series has a name and at most %d labels", MaxLabels)
		return
	}
	if !p.once(l, 3, "the series "+untrusted.Text(set.String(), 120)) {
		return
	}
	set.Range(func(label labels.Label) {
		if label.Name != prom.MetricNameLabel {
			one.Labels = append(one.Labels, label.Name, label.Value)
		}
	})
	for _, v := range values {
		if v.Histogram != nil {
			p.at(l, 3, "a series is numbers; this one has a histogram")
			return
		}
		if !v.Omitted && math.IsNaN(v.Value) {
			p.at(l, 3, "a recorded value is a number; write _ for a scrape that brought nothing")
			return
		}
		one.Points = append(one.Points, Point{Value: v.Value, Gap: v.Omitted})
	}
	if len(one.Points) == 0 {
		p.at(l, 3, "the series has no values")
		return
	}
	if last := one.Every * time.Duration(len(one.Points)-1); p.s.Lasts > 0 && last > p.s.Lasts {
		p.at(l, 3, "the last of %d values is at %s, after the end: the scenario lasts %s", len(one.Points), last, p.s.Lasts)
		return
	}
	p.s.Series = append(p.s.Series, one)
}

// tooMany says why a series is longer than anything that is played in.
func tooMany(text string) string {
	if strings.Contains(text, "{{") {
		return "a series is numbers; this one has a histogram"
	}
	values := text
	if end := strings.LastIndexByte(text, '}'); end >= 0 {
		values = text[end+1:]
	} else if _, after, ok := strings.Cut(text, " "); ok {
		values = after
	}
	total := len(strings.Fields(values))
	for _, m := range times().FindAllStringSubmatch(values, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil || n > MaxPoints {
			total = MaxPoints
		} else {
			total += n
		}
		if total >= MaxPoints {
			return "the series has more values than a day has seconds"
		}
	}
	return ""
}
