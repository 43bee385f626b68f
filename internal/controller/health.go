package controller

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/degradedmode/ic/internal/model"
)

// stuckTicks is how many ticks may pass without a look before the process counts
// as stuck. Starting it again is harmless: it remembers nothing.
const stuckTicks = 6

// health is what others may know of the loop.
type health struct {
	mu       sync.Mutex
	last     Line
	counters map[string]int64 // by series
}

func newHealth() health { return health{counters: map[string]int64{}} }

func (h *health) take(l *Line) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = *l
	h.counters["ic_controller_looks_total"]++
	if l.Gap != "" {
		h.counters["ic_controller_gaps_total"]++
	}
	if m := l.Move; m != nil {
		result := "done"
		if m.Error != "" {
			result = "failed"
		}
		h.counters[fmt.Sprintf(`ic_controller_moves_total{purpose="%s",result="%s"}`, m.Purpose, result)]++
	}
	h.counters["ic_controller_redelivered_total"] += int64(l.Redelivered)
}

// Handler serves the loop's metrics and health:
//
//	GET /metrics  for Prometheus; pages adds the pager's, nil: none
//	GET /healthz  503 when the loop has not looked for six ticks
func (c *Controller) Handler(pages func(io.Writer)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		var out bytes.Buffer
		c.health.write(&out)
		if pages != nil {
			pages(&out)
		}
		_, _ = w.Write(out.Bytes()) // an error here is an asker that has gone
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		c.health.mu.Lock()
		last := c.health.last
		c.health.mu.Unlock()
		if age := c.o.Clock.Now().Wall.Sub(last.At); last.At.IsZero() || age > stuckTicks*c.o.Tick+c.o.Stale {
			http.Error(w, "the loop does not look", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	return mux
}

// metric is one name with its help; value fills its series in.
type metric struct {
	name, help string
	series     map[string]float64 // by labels, "" for none
}

func (h *health) write(out io.Writer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range gauges(&h.last) {
		fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", m.name, m.help, m.name)
		for _, labels := range slices.Sorted(maps.Keys(m.series)) {
			fmt.Fprintf(out, "%s%s %g\n", m.name, labels, m.series[labels])
		}
	}
	named := ""
	for _, series := range slices.Sorted(maps.Keys(h.counters)) {
		name, _, _ := strings.Cut(series, "{")
		if name != named {
			named = name
			fmt.Fprintf(out, "# TYPE %s counter\n", name)
		}
		fmt.Fprintf(out, "%s %d\n", series, h.counters[series])
	}
}

// gauges are the last look in numbers. A reading that is no value has no number:
// it never reads as zero.
func gauges(l *Line) []metric {
	one := func(v float64) map[string]float64 { return map[string]float64{"": v} }
	flag := func(b bool) map[string]float64 {
		if b {
			return one(1)
		}
		return one(0)
	}
	tiers, values, states, alarms := map[string]float64{`{scope="*"}`: 0}, map[string]float64{}, map[string]float64{}, map[string]float64{}
	for scope, tier := range l.Tiers {
		tiers[label("scope", scope)] = float64(tier)
	}
	for name, s := range l.Signals {
		states[label("signal", name, "state", string(s.State))] = 1
		if s.State == model.ReadingValue {
			values[label("signal", name)] = s.Value
		}
	}
	for _, a := range l.Alarms {
		alarms[label("kind", string(a.Kind), "about", a.About)] = 1
	}
	return []metric{
		{name: "ic_controller_last_look_timestamp_seconds", help: "When the loop looked last, by the fleet's clock.", series: one(float64(l.At.Unix()))},
		{name: "ic_controller_leads", help: "Of several controllers, this one acts.", series: flag(l.Leads)},
		{name: "ic_controller_tier", help: "Tier in force by scope, by what was issued.", series: tiers},
		{name: "ic_controller_target_tier", help: "Highest tier that signals call for.", series: one(float64(l.Target))},
		{name: "ic_controller_signal", help: "Value of a signal, in its unit; absent when it is no value.", series: values},
		{name: "ic_controller_signal_state", help: "State of the reading of a signal.", series: states},
		{name: "ic_controller_latched", help: "The ladder has flapped and moves no more by itself.", series: flag(!l.Latch.IsZero())},
		{name: "ic_controller_frozen", help: "A freeze stands in the way of a move.", series: flag(l.Frozen)},
		{name: "ic_controller_turns", help: "Automatic turns within the window of the flap guard.", series: one(float64(l.Turns))},
		{name: "ic_controller_high_tier_seconds", help: "Seconds at tier 2 and above in this UTC month.", series: one(float64(l.Spent))},
		{name: "ic_controller_alarm", help: "Alarms that last, by kind and what they are about.", series: alarms},
	}
}

// label writes names and values in turn.
func label(pairs ...string) string {
	parts := make([]string, 0, len(pairs)/2)
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	for i := 0; i+1 < len(pairs); i += 2 {
		parts = append(parts, fmt.Sprintf(`%s="%s"`, pairs[i], escape.Replace(pairs[i+1])))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
