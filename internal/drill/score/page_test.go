package score

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func pageFor(t *testing.T, r, base *Record) string {
	t.Helper()
	s := Of(r, Options{Baseline: base})
	raw, err := Page(&s, r, base)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > MaxPage {
		t.Fatalf("the page has %d bytes, at most %d", len(raw), MaxPage)
	}
	return string(raw)
}

func TestThePageNeedsNothingElse(t *testing.T) {
	page := pageFor(t, outage(), outage())
	for _, bad := range []string{"<script", "http://", "https://", "@import", "url(", "<img", "<iframe"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"<title>REHEARSAL: risk-down", `role="img"`, `aria-labelledby="drawn drawntext"`, "prefers-color-scheme: dark", "@media print", "<title>checkout tier, this run</title>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestTheTimelineIsDrawnFromTheSamples(t *testing.T) {
	page := pageFor(t, outage(), nil)
	// The tier steps up after 4:30 and down at 31:00, of 40 minutes on 790 units.
	tier := regexp.MustCompile(`class="run" points="([^"]*)"><title>checkout tier`).FindStringSubmatch(page)
	if tier == nil || tier[1] != "150,56 238,56 238,0 762,0 762,56 940,56" {
		t.Errorf("the tier is drawn as %q", tier)
	}
	impact := regexp.MustCompile(`class="run" points="([^"]*)"><title>customer impact`).FindStringSubmatch(page)
	if impact == nil || !strings.Contains(impact[1], "189,56 189,0 248,0 248,56") {
		t.Errorf("the impact is drawn as %q", impact)
	}
}

func TestAPeakIsNotLostWhenSamplesAreThinned(t *testing.T) {
	r := outage()
	r.Samples = nil
	for at := int64(0); at < r.LastsMS; at += 100 {
		s := Sample{AtMS: at}
		if at == 1_000_100 {
			s.ImpactPPM = 900_000
		}
		r.Samples = append(r.Samples, s)
	}
	if page := pageFor(t, r, nil); !strings.Contains(page, "up to 90.0 %") || !regexp.MustCompile(`points="[0-9, ]*,0 [^"]*"><title>customer impact`).MatchString(page) {
		t.Error("one sample of 24,000 is the peak, and is not drawn")
	}
}

func TestHostileTextIsEscapedAndThePageStaysSmall(t *testing.T) {
	evil := `"><script>alert(1)</script><img src=x onerror=alert(1)>&'` + "\x1b\u202e"
	r := outage()
	r.Scenario, r.Title, r.Runbook, r.Mode, r.Currency, r.Aborted = evil, evil, evil, Mode(evil), evil, strings.Repeat(evil, 50)
	r.Evidence.Missing = []string{strings.Repeat("<", 10_000)}
	for i := range 5_000 {
		text := strings.Repeat(evil, 20)
		r.Events = append(r.Events, Event{AtMS: int64(i), Kind: EventKind(text), Who: text, What: text, Scope: text, Detail: text})
	}
	for i := range r.Samples {
		for n := range 40 {
			r.Samples[i].Tier[fmt.Sprint(evil, n)] = i % 5
		}
	}
	page := pageFor(t, r, r)
	if strings.Contains(page, "<script") || strings.Contains(page, "<img") || strings.ContainsAny(page, "\x1b\u202e") {
		t.Error("text of the record became part of the page")
	}
	if !strings.Contains(page, "later events are not listed") {
		t.Error("it is not said that events were left out")
	}
}

func TestAnEmptyRecordHasAPageToo(t *testing.T) {
	page := pageFor(t, &Record{}, nil)
	if !strings.Contains(page, "NOT-INJECTED") {
		t.Error("the verdict is missing")
	}
}
