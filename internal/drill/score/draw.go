package score

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/untrusted"
)

// The measures of the drawing, in its own units: a page is about 1,000 wide.
const (
	drawWidth  = 960
	drawLeft   = 150 // labels
	drawRight  = 20
	laneHeight = 56
	laneGap    = 14
	drawTop    = 44 // the numbers of the events
	drawBottom = 26 // the times
	maxLanes   = 12 // services; more would be another page
	maxTicks   = 12
	maxPins    = 60 // events with a line in the drawing
)

// drawing is the timeline: lanes above each other over one axis of time.
type drawing struct {
	Width, Height       int
	Left, Right, Bottom int
	Lanes               []lane
	Pins                []pin
	Ticks               []tick
	Text                string // the drawing in one sentence, for who does not see it
}

type lane struct {
	Y, Height, Mid int // Mid is where its label stands
	Name, Most     string
	Lines          []polyline
}

type polyline struct {
	Points, Class, Title string
}

type pin struct {
	X, N   int
	Number bool // there is room for its number
	Title  string
}

type tick struct {
	X    int
	Text string
}

// value is what a lane shows of a sample.
type value func(*Sample) int64

func draw(events []Event, samples, before []Sample, end int64, points int) drawing {
	for _, s := range samples {
		end = max(end, s.AtMS)
	}
	c := canvas{end: max(end, 1), points: points, samples: samples, before: before}
	d := drawing{Width: drawWidth, Left: drawLeft, Right: drawWidth - drawRight}
	impact := func(s *Sample) int64 { return s.ImpactPPM }
	d.Lanes = append(d.Lanes, c.lane("customer impact", func(n int64) string { return fmt.Sprintf("%d.%d %%", n/10_000, n/1_000%10) },
		10_000, series{impact, "run", "this run", samples}, series{impact, "base", "baseline", before}))
	for _, service := range c.services() {
		d.Lanes = append(d.Lanes, c.lane(untrusted.Text(service, 18)+" tier", func(n int64) string { return fmt.Sprint(n) }, 1,
			series{func(s *Sample) int64 { return int64(s.Oracle[service]) }, "oracle", "what the oracle would have chosen", samples},
			series{func(s *Sample) int64 { return int64(s.Tier[service]) }, "run", "this run", samples}))
	}
	open := func(s *Sample) int64 { return int64(s.BypassOpen) }
	d.Lanes = append(d.Lanes, c.lane("bypass open", func(n int64) string { return fmt.Sprintf("%d hosts", n) }, 1,
		series{open, "risk", "this run", samples}, series{open, "base", "baseline", before}))
	cents := func(s *Sample) int64 { return s.UnscoredCents }
	d.Lanes = append(d.Lanes, c.lane("unscored", func(n int64) string { return money(n, "") }, 1_00,
		series{cents, "risk", "this run", samples}, series{cents, "base", "baseline", before}))
	for i := range d.Lanes {
		l := &d.Lanes[i]
		l.Y, l.Height = drawTop+i*(laneHeight+laneGap), laneHeight
		l.Mid = l.Y + laneHeight/2
	}
	d.Bottom = drawTop + len(d.Lanes)*(laneHeight+laneGap)
	d.Height = d.Bottom + drawBottom
	d.Pins, d.Ticks = c.pins(events), c.ticks()
	d.Text = fmt.Sprintf("Timeline of %s with %d events; the table below lists them.", lasting(&c.end), len(events))
	return d
}

// canvas turns moments and values into places.
type canvas struct {
	end             int64
	points          int
	samples, before []Sample
}

// series is one line of a lane.
type series struct {
	of           value
	class, title string
	samples      []Sample
}

func (c *canvas) x(ms int64) int {
	return drawLeft + int(min(max(ms, 0), c.end)*(drawWidth-drawLeft-drawRight)/c.end)
}

func (c *canvas) services() []string {
	names := map[string]bool{}
	for i := range c.samples {
		for name := range c.samples[i].Tier {
			names[name] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	return sorted[:min(len(sorted), maxLanes)]
}

// lane scales its lines to the highest value of all of them, and to no less than
// least, so that noise does not fill it.
func (c *canvas) lane(name string, say func(int64) string, least int64, all ...series) lane {
	most := least
	for _, s := range all {
		for i := range s.samples {
			most = max(most, s.of(&s.samples[i]))
		}
	}
	l := lane{Name: name, Most: say(most)}
	for _, s := range all {
		if len(s.samples) > 0 {
			l.Lines = append(l.Lines, polyline{Points: c.steps(s, most), Class: s.class, Title: name + ", " + s.title})
		}
	}
	return l
}

// steps draws a value that stands until the next sample. Where there are more
// samples than points, the highest of a piece is drawn: a peak is never lost.
func (c *canvas) steps(s series, most int64) string {
	var out strings.Builder
	put := func(ms, v int64) {
		y := laneHeight - int(min(max(v, 0), most)*laneHeight/most)
		fmt.Fprintf(&out, "%d,%d ", c.x(ms), y)
	}
	piece := (len(s.samples) + c.points - 1) / c.points
	last := int64(-1)
	for part := range slices.Chunk(s.samples, piece) {
		peak := int64(0)
		for i := range part {
			peak = max(peak, s.of(&part[i]))
		}
		if peak == last {
			continue
		}
		if last >= 0 {
			put(part[0].AtMS, last)
		}
		put(part[0].AtMS, peak)
		last = peak
	}
	put(c.end, max(last, 0))
	return strings.TrimSuffix(out.String(), " ")
}

// pins marks events; a number is written where the one before leaves room.
func (c *canvas) pins(events []Event) []pin {
	const room = 18
	var out []pin
	free := 0
	for i := range events[:min(len(events), maxPins)] {
		e := &events[i]
		row := rowOf(i+1, e)
		p := pin{X: c.x(e.AtMS), N: i + 1, Title: fmt.Sprintf("%d, %s: %s %s", i+1, row.At, row.Kind, row.What)}
		if p.X >= free {
			p.Number, free = true, p.X+room
		}
		out = append(out, p)
	}
	return out
}

// ticks are whole minutes, at most maxTicks of them.
func (c *canvas) ticks() []tick {
	const minute = 60_000
	minutes := c.end / minute
	step := int64(1)
	for _, n := range []int64{1, 2, 5, 10, 15, 30, 60, 120, 360, 1440} {
		step = n
		if minutes/n <= maxTicks {
			break
		}
	}
	step = max(step, minutes/maxTicks)
	var out []tick
	for m := int64(0); m*minute <= c.end; m += step {
		out = append(out, tick{X: c.x(m * minute), Text: clock(m * minute)})
	}
	return out
}
