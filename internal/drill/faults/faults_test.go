package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// record is a world that only writes down what is pulled.
type record struct {
	pulled []string
	fail   error
}

func (r *record) set(t *testing.T) *Set {
	t.Helper()
	pull := func(what string) func(context.Context) error {
		return func(context.Context) error {
			if r.fail == nil {
				r.pulled = append(r.pulled, what)
			}
			return r.fail
		}
	}
	levers := make(map[string]Lever)
	for _, d := range descriptions {
		levers[d.name] = Lever{Inject: pull("+" + d.name), Clear: pull("-" + d.name)}
	}
	levers[AutoHeal] = Lever{Inject: pull("+" + AutoHeal)}
	s, err := New(levers)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func active(s *Set) string {
	var names []string
	for _, f := range s.List() {
		if f.Active {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestAFaultIsInjectedOnceAndClearedOnce(t *testing.T) {
	r := &record{}
	s := r.set(t)
	for _, err := range []error{
		s.Clear(t.Context(), FlagsDown), // not active: nothing to do
		s.Inject(t.Context(), FlagsDown), s.Inject(t.Context(), FlagsDown),
		s.Inject(t.Context(), ClockAhead),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := active(s); got != "flags-down clock-ahead" {
		t.Errorf("active: %s", got)
	}
	for range 2 {
		if err := s.Clear(t.Context(), FlagsDown); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(r.pulled); got != "[+flags-down +clock-ahead -flags-down]" || active(s) != "clock-ahead" {
		t.Errorf("pulled %s, active %s", got, active(s))
	}
}

func TestAMomentaryFaultCanHappenAgain(t *testing.T) {
	r := &record{}
	s := r.set(t)
	for range 2 {
		if err := s.Inject(t.Context(), AutoHeal); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.pulled) != 2 || active(s) != "" {
		t.Errorf("pulled %v, active %q", r.pulled, active(s))
	}
	for _, f := range s.List() {
		if f.Momentary != (f.Name == AutoHeal) {
			t.Errorf("%s: momentary %v", f.Name, f.Momentary)
		}
	}
}

func TestAFaultThatFailedIsNotActive(t *testing.T) {
	r := &record{fail: errors.New("port taken")}
	s := r.set(t)
	err := s.Inject(t.Context(), FlagsPartition)
	if err == nil || !strings.Contains(err.Error(), "inject flags-partition: port taken") || active(s) != "" {
		t.Errorf("%v, active %q", err, active(s))
	}
	r.fail = nil
	if err := s.Inject(t.Context(), FlagsPartition); err != nil {
		t.Fatal(err)
	}
	r.fail = errors.New("port taken")
	if err := s.Clear(t.Context(), FlagsPartition); err == nil || active(s) != FlagsPartition {
		t.Errorf("a failed clearing: %v, active %q; want it to stay active", err, active(s))
	}
}

func TestAnUnknownNameSaysWhichThereAre(t *testing.T) {
	s := (&record{}).set(t)
	for _, do := range []func(context.Context, string) error{s.Inject, s.Clear} {
		err := do(t.Context(), "flags-dwon")
		if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), FlagsDown) {
			t.Errorf("an unknown name: %v", err)
		}
	}
}

func TestALeverWithoutANameOrAWayInIsRefused(t *testing.T) {
	ok := func(context.Context) error { return nil }
	for name, levers := range map[string]map[string]Lever{
		"unknown name": {"meteor": {Inject: ok}},
		"no way in":    {FlagsDown: {Clear: ok}},
	} {
		if _, err := New(levers); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
