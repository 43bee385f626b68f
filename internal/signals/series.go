package signals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/degradedmode/ic/internal/untrusted"
	prom "github.com/prometheus/common/model"
)

// Series asks an instant query that is no signal, for all its series: the hosts
// of an inventory. It is held to what holds for a signal: an answer in part is an
// error, since whoever counts series would count too few. asked is our time of
// the question.
func (s *Source) Series(ctx context.Context, query string) (series prom.Vector, asked time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	asked = s.opts.Now()
	value, _, err := s.ask(ctx, query)
	if err != nil {
		return nil, asked, errors.New(untrusted.Text(explain(err), maxDetail))
	}
	series, ok := value.(prom.Vector)
	switch {
	case !ok && value != nil:
		return nil, asked, fmt.Errorf("the query gives a %s and has to give one series for each host", value.Type())
	case len(series) > MaxSeries:
		return nil, asked, fmt.Errorf("the query gives %d series, at most %d are taken", len(series), MaxSeries)
	}
	return series, asked, nil
}
