//go:build integration && linux

package integration

import (
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/policytest"
)

// pull asks all hosts, by HTTP and not by way of any console. The demo and the
// example policy have the same fleet name.
func pull(t *testing.T, inv fleet.Inventory) []model.HostView {
	return fleet.Pull(t.Context(), inv, fleet.Options{Fleet: policytest.Fleet, Now: time.Now, Timeout: patience})
}

// reports are those of all hosts, which have to answer.
func reports(t *testing.T, inv fleet.Inventory) []model.HostView {
	t.Helper()
	views := pull(t, inv)
	for _, v := range views {
		if v.Report == nil {
			t.Fatalf("%s does not report: %s", v.Host, v.Detail)
		}
	}
	return views
}

func holds(v *model.HostView, id string) bool {
	return slices.ContainsFunc(v.Report.Live, func(l model.ReportLive) bool { return l.ID == id })
}

// sourceOf is what a host says about one of its sources.
func sourceOf(v *model.HostView, name string) model.ReportSource {
	for _, s := range v.Report.Sources {
		if s.Name == name {
			return s
		}
	}
	return model.ReportSource{Error: "it is not named"}
}

// all reports whether something is true of every host. A host that is just being
// restarted does not answer, and then it is not.
func all(t *testing.T, inv fleet.Inventory, is func(*model.HostView) bool) bool {
	return !slices.ContainsFunc(pull(t, inv), func(v model.HostView) bool { return v.Report == nil || !is(&v) })
}

// connected waits until every host reads the flag service again: each tries at
// longer and longer distances.
func connected(t *testing.T, inv fleet.Inventory) {
	t.Helper()
	until(t, "every host reads the flag service", func() bool {
		return all(t, inv, func(v *model.HostView) bool { return sourceOf(v, hostrun.FromEtcd).Error == "" })
	})
}

// carried reports whether the environment of a host carries a directive.
func carried(v *model.HostView, id string) bool {
	return slices.Contains(sourceOf(v, hostrun.FromEnv).PresentIDs, id)
}

// lackers names the hosts that do not hold a directive.
func lackers(views []model.HostView, id string) []string {
	var names []string
	for i := range views {
		if !holds(&views[i], id) {
			names = append(names, views[i].Host)
		}
	}
	slices.Sort(names)
	return names
}

// endsEverywhere follows the reports of all hosts until none holds the bypass:
// nobody may hold it after its signed end, and nobody may have lost it before.
func endsEverywhere(t *testing.T, inv fleet.Inventory, id string, ends time.Time) {
	t.Helper()
	last := map[string]time.Time{} // by host: when it last said that it holds it
	deadline, tick := time.After(time.Until(ends)+patience), time.NewTicker(4*poll)
	defer tick.Stop()
	for over := 0; over < len(inv.Hosts); {
		over = 0
		for _, v := range reports(t, inv) {
			switch at := v.Report.At; {
			case holds(&v, id) && !at.Before(ends):
				t.Fatalf("%s holds the bypass at %s, %s after its end", v.Host, at, at.Sub(ends))
			case holds(&v, id):
				last[v.Host] = at
			case at.Before(ends):
				t.Fatalf("%s has lost the bypass at %s, %s before its end", v.Host, at, ends.Sub(at))
			default:
				over++
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d of %d hosts have ended the bypass", over, len(inv.Hosts))
		}
	}
	for _, h := range inv.Hosts {
		if ends.Sub(last[h.Name]) > 5*time.Second {
			t.Errorf("%s was last seen with the bypass at %s: that it is without it after %s proves nothing", h.Name, last[h.Name], ends)
		}
	}
}
