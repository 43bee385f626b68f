package promrules_test

import (
	"math"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/promrules"
	"pgregory.net/rapid"
)

func TestWhatAQueryCanNeverBeIsKnown(t *testing.T) {
	least, most := math.Inf(-1), math.Inf(1)
	for query, want := range map[string][2]float64{
		"1":                            {1, 1},
		"-(2)":                         {-2, -2},
		"100 * count(up)":              {100, most},
		"1 + 1":                        {2, 2},
		"count(up)":                    {1, most},
		"count(up) - 1":                {0, most},
		"count(up) or vector(0)":       {0, most},
		"count by (job) (up) unless x": {1, most},
		"max(count by (job) (up))":     {1, most},
		"sum(abs(x))":                  {0, most},
		"sum(x)":                       {least, most},
		"group(up)":                    {1, 1},
		"absent(up)":                   {1, 1},
		"max(x > bool 3)":              {0, 1},
		"max(x)":                       {least, most},
		"max(x) / max(x)":              {least, most},
		"max(x) > 3":                   {least, most},
		"-count(up)":                   {least, -1},
		"count(up) / 4":                {0.25, most},
		"vector(NaN)":                  {least, most},
		"not promql (":                 {least, most},
	} {
		if low, high := promrules.Bounds(query); low != want[0] || high != want[1] {
			t.Errorf("%s: %v to %v, want %v to %v", query, low, high, want[0], want[1])
		}
	}
}

// Whatever the engine of Prometheus itself answers lies within the bounds.
func TestTheRealEngineNeverAnswersBeyondTheBounds(tb *testing.T) {
	series := []string{"x a 1 b 1", "x a 1 b 2", "x a 2", "x", "y a 1 b 1", "y a 2 b 2", "y b 2", "y"}
	bounded := 0
	rapid.Check(tb, func(t *rapid.T) {
		query := vector(t, 3)
		low, high := promrules.Bounds(query)
		if math.IsInf(low, -1) && math.IsInf(high, 1) {
			return
		}
		o := newOracle()
		o.fill(tb, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }, -1, series)
		for m := range minutes {
			found, err := o.ask(query, begins.Add(time.Duration(m)*time.Minute))
			if err != nil {
				continue
			}
			for _, s := range found {
				if s.F < low || s.F > high {
					t.Fatalf("%s yields %v, which is not between %v and %v", query, s.F, low, high)
				}
				bounded++
			}
		}
	})
	if bounded == 0 {
		tb.Error("no query had bounds and a value: the test proves nothing")
	}
}
