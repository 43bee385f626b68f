package breakglass

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/plugins/sdk"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func holding(host string, ids ...string) model.HostView {
	r := &model.Report{State: "ok"}
	for _, id := range ids {
		r.Live = append(r.Live, model.ReportLive{ID: id})
	}
	return model.HostView{Host: host, Reachable: true, Report: r}
}

func refusing(host, id, code string) model.HostView {
	v := holding(host)
	v.Report.Sources = []model.ReportSource{{Name: "env", PresentIDs: []string{id}}}
	v.Report.Refused = []model.ReportRefused{{ID: id, Code: code}}
	return v
}

func away(host string) model.HostView { return model.HostView{Host: host} }

func TestOnlyHostsMakeADeliveryEffective(t *testing.T) {
	sent := Delivery{IDs: []string{"A", "B"}, Targets: []string{"h1", "h2", "h3"}, SentAt: noon, Patience: time.Minute}
	with := func(change func(*Delivery)) Delivery {
		d := sent
		change(&d)
		return d
	}
	all := []model.HostView{holding("h1", "A", "B"), holding("h2", "A", "B", "C"), holding("h3", "B", "A")}
	none := []model.HostView{holding("h1"), holding("h2", "A"), away("h3")}
	some := []model.HostView{holding("h1", "A", "B"), holding("h2", "A"), away("h3")}
	for _, c := range []struct {
		what     string
		delivery Delivery
		hosts    []model.HostView
		after    time.Duration
		want     string
	}{
		{"nothing was sent", with(func(d *Delivery) { d.SentAt = time.Time{} }), all, 0, "planned"},
		{"hosts may still say so", sent, none, time.Second, "sent"},
		{"they should have by now", sent, none, time.Minute, "unconfirmed"},
		{"nobody reports at all", sent, nil, time.Hour, "unconfirmed"},
		{"one has everything, one half of it", sent, some, time.Hour, "partial 1/3"},
		{"all have everything", sent, all, time.Second, "effective"},
		{"a host that is no target does not count", sent, append([]model.HostView{holding("h4", "A", "B")}, none...), time.Hour, "unconfirmed"},
		{"the place is owned", with(func(d *Delivery) { d.BlockedBy = "argo" }), none, time.Second, "blocked-by-argo"},
		{"a conflict stopped it before it was sent", with(func(d *Delivery) { d.BlockedBy = "argo"; d.SentAt = time.Time{} }), none, 0, "blocked-by-argo"},
		{"every reachable host refuses", sent, []model.HostView{refusing("h1", "A", "expired"), refusing("h2", "B", "expired"), away("h3")}, time.Second, "blocked-by-expired"},
		{"one of two refuses", sent, []model.HostView{refusing("h1", "A", "expired"), holding("h2"), away("h3")}, time.Second, "sent"},
		{"they had it and have it no more", with(func(d *Delivery) { d.Held = []string{"h1"} }), none, time.Second, "dropped"},
		{"the one that had it cannot be asked", with(func(d *Delivery) { d.Held = []string{"h3"} }), none, time.Second, "sent"},
		{"somebody wrote over it", with(func(d *Delivery) { d.RevertedBy = "ada" }), some, time.Second, "reverted-by-ada"},
		{"somebody's name is made safe", with(func(d *Delivery) { d.RevertedBy = "a\x1b[2J" }), some, 0, `reverted-by-a\x1b[2J`},
		{"no targets are not a success", with(func(d *Delivery) { d.Targets = nil }), all, time.Hour, "unconfirmed"},
	} {
		if got := StateOf(c.delivery, c.hosts, noon.Add(c.after)); got.String() != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

func TestAStateNamesTheHosts(t *testing.T) {
	d := Delivery{IDs: []string{"A"}, Targets: []string{"h1", "h2", "h3", "h4"}, SentAt: noon, Patience: time.Minute}
	s := StateOf(d, []model.HostView{holding("h1", "A"), holding("h2"), refusing("h3", "A", "clock-unfit"), away("h4")}, noon)
	got := fmt.Sprint(s.Holding, s.Lacking, s.Unreachable, s.Refusing)
	if want := "[h1] [h2 h3] [h4] map[h3:clock-unfit]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAnEndingCountsWhereASourceBroughtItAndNobodyRefused(t *testing.T) {
	d := Delivery{IDs: []string{"E"}, Targets: []string{"h1"}, SentAt: noon, Patience: time.Minute}
	v := holding("h1")
	v.Report.Sources = []model.ReportSource{{Name: "file", PresentIDs: []string{"E"}}}
	if s := StateOf(d, []model.HostView{v}, noon); s.Word != Effective {
		t.Errorf("an ending that was taken: %s", s)
	}
	if s := StateOf(d, []model.HostView{refusing("h1", "E", "quorum")}, noon); s.Word == Effective {
		t.Errorf("an ending that was refused: %s", s)
	}
}

func TestLastKnownGoodIsWhatHostsSay(t *testing.T) {
	var hosts []model.HostView
	var targets []string
	for i, state := range []string{"ok", "recovered", "volatile", "unpersisted", "safe-defaults", "a word of tomorrow"} {
		v := holding(fmt.Sprintf("h%d", i))
		v.Report.State = state
		hosts, targets = append(hosts, v), append(targets, v.Host)
	}
	hosts = append(hosts, away("gone"))
	got := KnownGood(hosts, slices.Concat(targets, []string{"gone", "unheard-of"}))
	if want := (sdk.LastKnownGood{Yes: 2, No: 3, Unknown: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
