package decisions

import (
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// TestTheHeadlineNamesTheMostSpecificRight of those that answer what is abnormal,
// and among equals the one of the first signal.
func TestTheHeadlineNamesTheMostSpecificRight(t *testing.T) {
	// shed answers two signals, the others one.
	b := &policy.Bundle{Root: &policy.Root{}, Signals: map[string]policy.Signal{}}
	for name, right := range map[string]string{
		"a-nobody": "", "b-shed": "shed", "c-bypass": "bypass", "d-shed": "shed", "e-off": "off", "f-nobody": "",
	} {
		b.Signals[name] = policy.Signal{Abnormal: &policy.Threshold{Above: new(float64)}, Right: right}
	}
	for _, c := range []struct {
		abnormal []string
		want     string // the right
		text     string // begins with the signal
	}{
		{[]string{"b-shed", "c-bypass"}, "bypass", "c-bypass"},
		{[]string{"c-bypass", "d-shed"}, "bypass", "c-bypass"},
		{[]string{"c-bypass", "e-off"}, "bypass", "c-bypass"},
		{[]string{"b-shed", "d-shed"}, "shed", "b-shed"},
		{[]string{"a-nobody", "b-shed"}, "shed", "b-shed"},
		{[]string{"b-shed", "f-nobody"}, "shed", "b-shed"},
		{[]string{"a-nobody", "f-nobody"}, "", "a-nobody"},
	} {
		w := calm()
		w.Readings = map[string]model.Reading{}
		for name := range b.Signals {
			w.Readings[name] = model.Reading{State: model.ReadingValue}
		}
		for _, name := range c.abnormal {
			w.Readings[name] = model.Reading{State: model.ReadingValue, Value: 1}
		}
		if h := HeadlineOf(b, w); h.Right != c.want || h.Text[:len(c.text)] != c.text || h.Calm {
			t.Errorf("%v: %+v", c.abnormal, h)
		}
	}

	// A right that was used and is over, and another one that is in force, do not
	// answer the signal.
	w := calm()
	w.Readings = map[string]model.Reading{"c-bypass": {State: model.ReadingValue, Value: 1}}
	over, other := day0.Add(-time.Minute), day0.Add(time.Hour)
	w.Issued = []model.Issued{
		{Directive: model.Directive{ID: id(1), Kind: model.Bypass, Right: "bypass", NotBefore: day0.Add(-time.Hour), NotAfter: over}},
		{Directive: model.Directive{ID: id(2), Kind: model.Bypass, Right: "another", NotBefore: day0.Add(-time.Hour), NotAfter: other}},
	}
	if h := HeadlineOf(b, w); h.Right != "bypass" {
		t.Errorf("%+v", h)
	}
	w.Issued[0].Directive.NotAfter = other
	if h := HeadlineOf(b, w); h.Right != "" || h.Handled != "bypass" || h.Text != "bypass is in force: watch the hosts and the end" {
		t.Errorf("%+v", h)
	}
	w.Readings["b-shed"] = model.Reading{State: model.ReadingValue, Value: 1}
	if h := HeadlineOf(b, w); h.Right != "shed" || h.Handled != "bypass" {
		t.Errorf("two abnormal, one of them answered: %+v", h)
	}
}
