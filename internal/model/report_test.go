package model

import (
	"testing"
	"time"
)

// A host whose clock is behind says times that are too early by as much; from one that
// is ahead nothing is taken off.
func TestWhatAHostSaysOfTimeMakesNoWaitShorter(t *testing.T) {
	seen := time.Date(2026, 3, 3, 2, 10, 0, 0, time.UTC)
	had := seen.Add(-5 * time.Minute)
	for _, c := range []struct {
		name        string
		at, since   time.Time // as the host says
		want        time.Time
		never, none bool // not heard; no report
	}{
		{name: "right", at: seen, since: had, want: had},
		{name: "an answer that took a second", at: seen.Add(-time.Second), since: had, want: had},
		{name: "three minutes behind", at: seen.Add(-3 * time.Minute), since: had.Add(-3 * time.Minute), want: had},
		{name: "three minutes ahead", at: seen.Add(3 * time.Minute), since: had.Add(3 * time.Minute), want: had.Add(3 * time.Minute)},
		{name: "ahead now, and not when it took it", at: seen.Add(3 * time.Minute), since: had, want: had},
		{name: "behind, and not before the signed start", at: seen.Add(-30 * time.Minute), since: had, want: seen},
		{name: "ahead when it took it", at: seen, since: seen.Add(time.Minute), want: seen},
		{name: "a report without its time", since: had, want: had},
		{name: "never heard", never: true, at: seen.Add(-time.Hour), since: had, want: had},
		{name: "no report", none: true, since: had, want: had},
	} {
		h := HostView{SeenAt: seen, Report: &Report{At: c.at}}
		if c.never {
			h.SeenAt = time.Time{}
		}
		if c.none {
			h.Report = nil
		}
		if got := h.OnOurClock(c.since); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
