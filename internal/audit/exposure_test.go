package audit

import (
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/google/go-cmp/cmp"
)

func usd(minor int64) model.Money { return model.Money{Minor: minor, Currency: "USD"} }

// grant is a bypass of checkout from noon for 15 minutes with a budget per host.
func grant(id string, count, total int64, scope string) model.Issued {
	d := bypass(id, model.LogHead{})
	d.Caps.HostCount, d.Caps.HostTotal, d.Scope = count, usd(total), scope
	return model.Issued{Directive: d}
}

// host reported after so many minutes what it had used; fewer than zero: never.
func host(name, service string, minutes int, budgets ...model.ReportBudget) model.HostView {
	h := model.HostView{Host: name, Services: []string{service}}
	if minutes >= 0 {
		h.Report = &model.Report{Host: name, At: noon.Add(time.Duration(minutes) * time.Minute), Budgets: budgets}
	}
	return h
}

func used(count int64, total model.Money) model.ReportBudget {
	return model.ReportBudget{Right: "bypass-small", Control: "payment-risk", Period: "2026-11-30", Count: count, Total: total}
}

func TestExposureCountsTheUnknownAtTheirWholeBudget(t *testing.T) {
	got := Exposures(
		[]model.Issued{grant(ulid(1), 10, 20000, "checkout"), {Directive: shed(ulid(2), 3)}},
		[]model.HostView{
			host("c1", "checkout", 20, used(4, usd(9000))),
			host("c2", "checkout", 20),
			host("c3", "checkout", -1),
			host("c4", "checkout", 5, used(1, usd(100))),
			host("c5", "checkout", 20, used(1, model.Money{Minor: 100, Currency: "EUR"})),
			host("c6", "checkout", 20, used(11, usd(21000))),
			host("e1", "edge", -1),
		}, 1)
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	want := []Exposure{{
		Right: "bypass-small", Control: "payment-risk", Day: "2026-11-30",
		HostCount: 10, HostTotal: usd(20000),
		PermittedCount: 70, PermittedTotal: usd(140000), // six hosts of checkout and one replacement
		UsedCount: 4 + 0 + 1 + 11, UsedTotal: usd(9000 + 0 + 100 + 21000),
		AtMostCount: 4 + 0 + 10 + 11 + 3*10, AtMostTotal: usd(9000 + 0 + 20000 + 21000 + 3*20000),
		Hosts:   []HostExposure{{"c1", 4, usd(9000), at(20)}, {"c2", 0, usd(0), at(20)}, {"c4", 1, usd(100), at(5)}, {"c6", 11, usd(21000), at(20)}},
		Unknown: []string{"c3", "c5"}, Open: []string{"c4"}, Over: []string{"c6"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOverlappingGrantsShareOneBudget(t *testing.T) {
	next := grant(ulid(3), 10, 20000, "checkout")
	next.Directive.NotBefore, next.Directive.NotAfter = noon.Add(24*time.Hour), noon.Add(25*time.Hour)
	got := Exposures([]model.Issued{grant(ulid(1), 10, 20000, "checkout"), grant(ulid(2), 5, 30000, "*"), next},
		[]model.HostView{host("c1", "checkout", 20), host("e1", "edge", 20)}, 0)
	if len(got) != 2 || got[0].Day != "2026-11-30" || got[1].Day != "2026-12-01" {
		t.Fatalf("%d exposures: %+v", len(got), got)
	}
	if e := got[0]; e.PermittedCount != 2*10 || e.PermittedTotal != usd(2*30000) {
		t.Errorf("two grants of one day permit %d, %s; want the wider of each bound on both hosts", e.PermittedCount, e.PermittedTotal)
	}
	if e := got[1]; e.PermittedCount != 10 || len(e.Open) != 1 {
		t.Errorf("the next day's grant permits %d on %v", e.PermittedCount, e.Open)
	}
}

func TestNoBypassNoExposure(t *testing.T) {
	if got := Exposures([]model.Issued{{Directive: shed(ulid(1), 3)}}, []model.HostView{host("c1", "checkout", -1)}, 3); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
