package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/model"
	"github.com/google/go-cmp/cmp"
)

func shed(scope string) model.Issued {
	return model.Issued{Directive: model.Directive{ID: shedID, Kind: model.Shed, Scope: scope, Tier: 2, IssuedAt: t0, NotBefore: t0}}
}

func bypass(until time.Time) model.Issued {
	return model.Issued{Directive: model.Directive{
		ID: bypassID, Kind: model.Bypass, Scope: "checkout", IssuedAt: t0, NotBefore: t0.Add(time.Minute), NotAfter: until,
	}}
}

func seen(host string, at time.Time, ids ...string) model.HostView {
	r := report(host, ids...)
	return model.HostView{Host: host, Services: []string{"checkout"}, Reachable: true, SeenAt: at, Via: fleet.ViaDirect, Report: &r}
}

func TestSkewOfOneHost(t *testing.T) {
	now := t0.Add(10 * time.Minute)
	open := bypass(now.Add(time.Minute))
	ended := open
	ended.EndedBy = endID
	end := model.Issued{Directive: model.Directive{ID: endID, Kind: model.End, Ends: model.Bypass, Scope: "checkout", IDs: []string{bypassID}, IssuedAt: t0.Add(5 * time.Minute), NotBefore: t0.Add(5 * time.Minute)}}
	recovery := model.Issued{Directive: model.Directive{ID: endID, Kind: model.End, Ends: model.Shed, Scope: "checkout", IDs: []string{shedID}, From: 2, To: 1, Percent: 10, IssuedAt: t0, NotBefore: t0}}
	endedShed := shed("checkout")
	endedShed.EndedBy = endID

	for _, c := range []struct {
		what   string
		issued []model.Issued
		host   model.HostView
		want   fleet.HostSkew // without what every one has
	}{
		{"nothing issued, nothing held", nil, seen("a", now), fleet.HostSkew{State: fleet.HostEffective}},
		{"all that was issued", []model.Issued{shed("checkout"), open}, seen("a", now, shedID, bypassID), fleet.HostSkew{State: fleet.HostEffective}},
		{"a shed of the whole fleet is missing", []model.Issued{shed("*")}, seen("a", now), fleet.HostSkew{State: fleet.HostLacking, Lacks: []string{shedID}, Since: t0}},
		{"two are missing", []model.Issued{open, shed("checkout")}, seen("a", now), fleet.HostSkew{State: fleet.HostLacking, Lacks: []string{bypassID, shedID}, Since: t0}},
		{"a bypass is missing since it could begin", []model.Issued{open}, seen("a", now), fleet.HostSkew{State: fleet.HostLacking, Lacks: []string{bypassID}, Since: t0.Add(time.Minute)}},
		{"a shed of another service is no lack", []model.Issued{shed("edge")}, seen("a", now), fleet.HostSkew{State: fleet.HostEffective}},
		{"and holding it is not too much", []model.Issued{shed("edge")}, seen("a", now, shedID), fleet.HostSkew{State: fleet.HostEffective}},
		{"a bypass that was ended is too much", []model.Issued{ended, end}, seen("a", now, bypassID), fleet.HostSkew{State: fleet.HostLacking, Extra: []string{bypassID}, Since: t0.Add(5 * time.Minute)}},
		{"its ending leaves no line", []model.Issued{ended, end}, seen("a", now), fleet.HostSkew{State: fleet.HostEffective}},
		{"a bypass that has run out is too much", []model.Issued{bypass(t0.Add(2 * time.Minute))}, seen("a", now, bypassID), fleet.HostSkew{State: fleet.HostLacking, Extra: []string{bypassID}, Since: t0.Add(2 * time.Minute)}},
		{"a step of a recovery has a line", []model.Issued{endedShed, recovery}, seen("a", now, shedID), fleet.HostSkew{State: fleet.HostLacking, Lacks: []string{endID}, Extra: []string{shedID}, Since: t0}},
		{"an id nobody here knows", nil, seen("a", now, shedID), fleet.HostSkew{State: fleet.HostLacking, Extra: []string{shedID}}},
	} {
		got := fleet.Skew(c.issued, []model.HostView{c.host}, 0, now).Hosts[0]
		c.want.Host, c.want.SeenAt, c.want.Via, c.want.Source, c.want.SourceAgeS = "a", now, fleet.ViaDirect, "etcd", 2
		if !cmp.Equal(got, c.want) {
			t.Errorf("%s:\n%s", c.what, cmp.Diff(c.want, got))
		}
	}
}

func TestSilentAndOldHostsAreNeverEffective(t *testing.T) {
	now := t0.Add(10 * time.Minute)
	gone := model.HostView{Host: "gone", Detail: "connection refused"}
	wrong := model.HostView{Host: "wrong", Reachable: true, SeenAt: now, Detail: "it reports for fleet"}
	old := seen("old", now.Add(-91*time.Second))
	young := seen("young", now.Add(-90*time.Second))
	lacking := seen("lacking", now)
	hosts := []model.HostView{gone, wrong, old, young, lacking}
	hosts[2].Report.Live = []model.ReportLive{{ID: shedID}}
	hosts[3].Report.Live = []model.ReportLive{{ID: shedID}}
	got := fleet.Skew([]model.Issued{shed("checkout")}, hosts, model.Duration(90*time.Second), now)
	states := []fleet.HostState{}
	for _, h := range got.Hosts {
		states = append(states, h.State)
	}
	want := []fleet.HostState{fleet.HostUnreachable, fleet.HostUnknown, fleet.HostStale, fleet.HostEffective, fleet.HostLacking}
	if !cmp.Equal(states, want) {
		t.Errorf("states are %v, want %v", states, want)
	}
	if got.Total != 5 || got.Effective != 1 || got.Lacking != 1 || got.Unreachable != 1 || got.Stale != 1 || got.Unknown != 1 || got.Share != 0.2 {
		t.Errorf("counts are %+v", got)
	}
	if got.Hosts[0].Detail != "connection refused" {
		t.Errorf("the reason is lost: %+v", got.Hosts[0])
	}
	if !cmp.Equal(hosts[4].Lacks, []string{shedID}) {
		t.Errorf("the view lacks %v", hosts[4].Lacks)
	}
}

func TestTheAlarmIsAtFivePercentThatHaveHadTimeToSettle(t *testing.T) {
	for _, c := range []struct {
		total, lacking int
		after          time.Duration
		want           bool
	}{
		{100, 4, time.Minute, false},
		{100, 5, time.Minute, true},
		{100, 100, fleet.Settle, false},
		{100, 100, fleet.Settle + time.Second, true},
		{0, 0, time.Minute, false},
	} {
		now := t0.Add(c.after)
		var hosts []model.HostView
		for i := range c.total {
			ids := []string{shedID}
			if i < c.lacking {
				ids = nil
			}
			hosts = append(hosts, seen(fmt.Sprint(i), now, ids...))
		}
		if got := fleet.Skew([]model.Issued{shed("*")}, hosts, 0, now); got.Alarm != c.want || got.Lacking != c.lacking {
			t.Errorf("%d of %d after %s: alarm %v, lacking %d", c.lacking, c.total, c.after, got.Alarm, got.Lacking)
		}
	}
}

func TestTheSourceShownIsTheOneReadLongestAgo(t *testing.T) {
	for _, c := range []struct {
		sources []model.ReportSource
		name    string
		age     int64
	}{
		{nil, "", 0},
		{[]model.ReportSource{{Name: "file", AgeS: 1}, {Name: "etcd", AgeS: 312}}, "etcd", 312},
		{[]model.ReportSource{{Name: "file", AgeS: -1}, {Name: "etcd", AgeS: 312}}, "file", -1},
	} {
		h := seen("a", t0)
		h.Report.Sources = c.sources
		if got := fleet.Skew(nil, []model.HostView{h}, 0, t0).Hosts[0]; got.Source != c.name || got.SourceAgeS != c.age {
			t.Errorf("%v: %q, %d", c.sources, got.Source, got.SourceAgeS)
		}
	}
}
