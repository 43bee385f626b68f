package score

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/untrusted"
)

const (
	// MaxPage bounds the page in bytes, so that it can be attached to a ticket.
	MaxPage = 100 << 10
	// maxPoints is how many points a line of the drawing has: two pixels each.
	maxPoints = 300
	// maxEvents is how many events are listed; the JSON has all of them.
	maxEvents = 200
	// maxCell is the longest text of a cell of the page, in bytes.
	maxCell = 120
	// leastShown ends the halving: below it a page says nothing, and its fixed part
	// is far below MaxPage.
	leastShown = 2
)

//go:embed page.html.tmpl
var pageText string

// pageData is what the template shows. Every text in it is one line and safe to
// print; the template escapes it for HTML.
type pageData struct {
	Score    *Score
	Heading  string
	Run      string
	Verdict  string
	Mark     Mark
	Why      []string
	Rows     []Row
	Drawing  drawing
	Events   []eventRow
	Unlisted int
	Missing  []string
}

type eventRow struct {
	N    int
	At   string
	Kind string
	Who  string
	What string
}

// Page is the score with its timeline drawn, as one HTML page that needs nothing
// else: no script, no font, no picture, no network. Base may be nil.
func Page(s *Score, r, base *Record) ([]byte, error) {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("draw a rehearsal: %w", err)
	}
	// Texts of a record may be long and full of what has to be escaped: less is
	// shown until the page fits.
	for points, events := maxPoints, maxEvents; points >= leastShown; points, events = points/2, events/2 {
		var out bytes.Buffer
		if err := t.Execute(&out, pageOf(s, r, base, points, events)); err != nil {
			return nil, fmt.Errorf("draw a rehearsal: %w", err)
		}
		if out.Len() <= MaxPage {
			return out.Bytes(), nil
		}
	}
	return nil, fmt.Errorf("draw a rehearsal: the page has over %d bytes whatever is left out", MaxPage)
}

func pageOf(s *Score, r, base *Record, points, events int) *pageData {
	d := &pageData{Score: s, Heading: s.Heading(), Run: s.Run(), Verdict: strings.ToUpper(string(s.Verdict)), Mark: VerdictMark(s.Verdict), Rows: s.Rows()}
	for _, why := range s.Why[:min(len(s.Why), maxEvents)] {
		d.Why = append(d.Why, untrusted.Text(why, maxCell))
	}
	if s.Axes.Evidence != nil {
		for _, missing := range s.Axes.Evidence.Missing {
			d.Missing = append(d.Missing, untrusted.Text(missing, maxCell))
		}
	}
	all, samples := ordered(r)
	d.Unlisted = max(len(all)-events, 0)
	all = all[:len(all)-d.Unlisted]
	for i := range all {
		d.Events = append(d.Events, rowOf(i+1, &all[i]))
	}
	var before []Sample
	if base != nil {
		_, before = ordered(base)
	}
	d.Drawing = draw(all, samples, before, r.LastsMS, points)
	return d
}

func rowOf(n int, e *Event) eventRow {
	counted := ""
	switch {
	case e.Kind == Moved:
		counted = fmt.Sprintf("tier %d -> %d", e.Done, e.Total)
	case e.Total > 0:
		counted = fmt.Sprintf("%d of %d hosts", e.Done, e.Total)
	}
	id := "" // a directive's says nothing to the eye, a step's is its name
	if e.Kind == Step || e.Kind == Skipped {
		id = e.ID
	}
	what := slices.DeleteFunc([]string{id, e.What, e.Scope, counted, e.Right, e.Code, e.Detail}, func(s string) bool { return s == "" })
	return eventRow{N: n, At: clock(e.AtMS), Kind: untrusted.Text(string(e.Kind), maxCell), Who: untrusted.Text(e.Who, maxCell),
		What: untrusted.Text(strings.Join(what, "; "), maxCell)}
}

// clock is a moment of the run: minutes and seconds since its start.
func clock(ms int64) string {
	return fmt.Sprintf("%d:%02d", ms/60_000, ms/1_000%60)
}
