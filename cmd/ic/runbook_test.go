package main

import (
	"slices"
	"testing"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/runbooks"
)

func TestARunbookFitsWhileOneOfItsSignalsIsAbnormal(t *testing.T) {
	view := func(name string, state model.ReadingState, abnormal bool) incident.SignalView {
		return incident.SignalView{Name: name, Abnormal: abnormal, Reading: model.Reading{State: state}}
	}
	value, blind := model.ReadingValue, model.ReadingNoData
	b := &policy.Bundle{Signals: map[string]policy.Signal{"queue": {Runbook: "risk"}, "errors": {}, "latency": {Runbook: "other"}}}
	for name, c := range map[string]struct {
		names   []string
		signals []incident.SignalView
		fits    string
		because []string
	}{
		"its own signal":            {[]string{"errors"}, []incident.SignalView{view("errors", value, true), view("queue", value, false)}, "yes", []string{"errors"}},
		"a signal that names it":    {nil, []incident.SignalView{view("queue", value, true), view("latency", value, true)}, "yes", []string{"queue"}},
		"all is normal":             {[]string{"errors"}, []incident.SignalView{view("errors", value, false), view("queue", blind, false)}, "no", nil},
		"nobody can say":            {[]string{"errors"}, []incident.SignalView{view("errors", blind, false)}, "unknown", nil},
		"nothing is read":           {[]string{"errors"}, nil, "unknown", nil},
		"another runbook's signal":  {nil, []incident.SignalView{view("latency", value, true), view("queue", value, false)}, "no", nil},
		"blind, and one is not":     {[]string{"errors"}, []incident.SignalView{view("queue", blind, false), view("errors", value, true)}, "yes", []string{"errors"}},
		"abnormal although unnamed": {nil, []incident.SignalView{view("errors", value, true)}, "unknown", nil},
	} {
		l := listed{shelved: shelved{Runbook: &runbooks.Runbook{ID: "risk", Signals: c.names}}}
		l.fit(b, c.signals)
		if l.Fits != c.fits || !slices.Equal(l.Because, c.because) {
			t.Errorf("%s: %q %v, want %q %v", name, l.Fits, l.Because, c.fits, c.because)
		}
	}
	l := listed{shelved: shelved{Runbook: &runbooks.Runbook{ID: "lonely"}}}
	if l.fit(b, []incident.SignalView{view("errors", value, true)}); l.Fits != "" {
		t.Errorf("a runbook without signals fits: %q", l.Fits)
	}
}
