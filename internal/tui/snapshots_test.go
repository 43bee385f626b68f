package tui

import (
	"fmt"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

func usd(minor int64) model.Money { return model.Money{Minor: minor, Currency: "USD"} }

func bypassDirective() model.Directive {
	return model.Directive{
		ID: bypassID, Fleet: "shop-demo", Incident: "inc-1", Reason: "risk scoring is down", Scope: model.AnyScope,
		Kind: model.Bypass, Control: "payment-risk", Right: "risk-bypass-small-orders",
		Caps:     model.Caps{Under: usd(5000), HostCount: 40, HostTotal: usd(7200), Total: usd(500000)},
		IssuedAt: night.Add(-2 * time.Minute), NotBefore: night.Add(-2 * time.Minute), NotAfter: night.Add(13 * time.Minute),
		Policy: model.PolicyRef{Version: 7, Digest: policyDigest}, Log: model.LogHead{Origin: "shop-demo/inc-1/s1", Size: 3, Root: policyDigest},
	}
}

func shedDirective() model.Directive {
	return model.Directive{
		ID: shedID, Fleet: "shop-demo", Incident: "inc-1", Scope: "checkout", Kind: model.Shed, Tier: 3, Right: "shed",
		IssuedAt: night.Add(-4 * time.Minute), NotBefore: night.Add(-4 * time.Minute), Policy: model.PolicyRef{Version: 7, Digest: policyDigest},
		Log: model.LogHead{Origin: "shop-demo/inc-1/s1", Size: 2, Root: policyDigest},
	}
}

func exposure() *decisions.Exposure {
	return &decisions.Exposure{
		Under: usd(5000), PerHost: usd(7200), Hosts: 60, Replacements: 2, WorstCase: usd(446400), Total: usd(500000),
		Lasts: 15 * time.Minute, Ends: night.Add(13 * time.Minute),
	}
}

// previewOf permits what it is asked, with a text to type unless it tightens.
func previewOf(ask decisions.Ask) incident.Preview {
	switch ask.Right {
	case "shed":
		d := shedDirective()
		d.ID, d.Scope, d.Tier, d.Reason, d.NotBefore = "", ask.Scope, max(ask.Tier, 1), ask.Reason, night
		if d.Scope == "" {
			d.Scope = model.AnyScope
		}
		return incident.Preview{
			Request: model.Request{Directive: d, Actor: ask.Actor}, Title: incident.TitleOf(&d), Who: "commander", Cosign: "nobody else",
			Verdict:   model.Verdict{Outcome: model.Permitted, Direction: model.Tighten, Assurance: model.HostHeld},
			Rehearsed: model.Rehearsal{Simulated: night.Add(-72 * time.Hour), Live: night.Add(-26 * time.Hour)},
			UserText:  "no recommendations, no order history; checkout works", Journeys: []string{"reorder from history"},
		}
	case "recover":
		d := model.Directive{Fleet: "shop-demo", Scope: "checkout", Kind: model.End, Ends: model.Shed, IDs: []string{shedID},
			From: 3, To: 2, Ramp: shedID, Percent: 10, Right: "recover", NotBefore: night, Reason: ask.Reason}
		return incident.Preview{
			Request: model.Request{Directive: d}, Title: incident.TitleOf(&d), Who: "commander", Cosign: "nobody else", Typed: "tier 2",
			Verdict: model.Verdict{Outcome: model.Permitted, Direction: model.Recover, Assurance: model.HostHeld},
		}
	default:
		d := bypassDirective()
		d.ID, d.Reason, d.NotBefore, d.NotAfter = "", ask.Reason, night, night.Add(15*time.Minute)
		p := incident.Preview{
			Request: model.Request{Directive: d, Actor: ask.Actor}, Title: incident.TitleOf(&d), Who: "commander", Cosign: "nobody else",
			Exposure: exposure(), Typed: "skip payment-risk",
			Verdict:   model.Verdict{Outcome: model.Permitted, Direction: model.Loosen, Assurance: model.HostHeld},
			Rehearsed: model.Rehearsal{Simulated: night.Add(-72 * time.Hour)},
		}
		if ask.Reason == "" {
			p.Verdict.Outcome, p.Verdict.Reasons = model.Needs, []model.Reason{{Code: decisions.NoReason}}
		}
		return p
	}
}

func samplePlan(backend string) incident.BreakPlan {
	return incident.BreakPlan{
		Backend: backend, Operation: "01JDWE00000000000000PSH001", Carrier: "file", Digest: "9c1f33d2e0", IDs: []string{bypassID, shedID},
		Changes:  []incident.BreakChange{{Target: "checkout/ic.env", Before: "", After: "IC_DIRECTIVES=2 orders, 2412 bytes"}},
		Restarts: 12, Targets: 60, LastKnownGood: "partly", Conflicts: []string{"payments-config is owned by argocd"},
		Verdict: model.Verdict{Outcome: model.Permitted, Direction: model.Tighten}, At: night,
	}
}

func matrix() []decisions.Row {
	row := func(name, text, who string, dir model.Direction, v model.Outcome, reasons ...model.Reason) decisions.Row {
		return decisions.Row{Name: name, Text: text, Who: who, Domain: policy.Rights,
			Verdict:   model.Verdict{Outcome: v, Direction: dir, Assurance: model.HostHeld, Reasons: reasons},
			Rehearsed: model.Rehearsal{Simulated: night.Add(-72 * time.Hour), Live: night.Add(-26 * time.Hour)}}
	}
	end := row("end-bypass", "end every bypass at once", "operator", model.Tighten, model.Permitted)
	end.Request.Directive = model.Directive{Scope: model.AnyScope, Kind: model.End, Ends: model.Bypass, IDs: []string{bypassID}}
	off := row("feature-off", "switch one feature off", "operator", model.Tighten, model.Permitted)
	off.Request.Directive = model.Directive{Scope: model.AnyScope, Kind: model.Off, Feature: "recommendations"}
	shedRow := row("shed", "shed one tier or more", "operator", model.Tighten, model.Permitted)
	shedRow.Request.Directive = model.Directive{Scope: model.AnyScope, Kind: model.Shed, Tier: 1}
	rec := row("recover", "one tier at a time, 10, 50, 100 % of hosts", "commander", model.Recover, model.Needs,
		model.Reason{Code: decisions.Dwell, Wait: model.Duration(3*time.Minute + 12*time.Second), N: 3},
		model.Reason{Code: decisions.SignalNotGood, Name: "checkout-p95", Wait: model.Duration(5 * time.Minute)})
	rec.Request.Directive = model.Directive{Scope: "checkout", Kind: model.End, Ends: model.Shed, IDs: []string{shedID}, From: 3, To: 2, Percent: 10}
	small := row("risk-bypass-small-orders", "orders under 50.00 USD skip risk scoring for 15 minutes", "commander", model.Loosen, model.Permitted)
	small.Request.Directive, small.Exposure, small.Domain = bypassDirective(), exposure(), "payments"
	large := row("risk-bypass-large-orders", "orders under 500.00 USD skip risk scoring for 10 minutes", "commander", model.Loosen, model.Needs,
		model.Reason{Code: model.CodeQuorum, N: 1, Other: "finance"})
	large.Cosign, large.Request.Directive, large.Exposure, large.Domain = policy.Cosign{Count: 1, Of: "finance"}, bypassDirective(), exposure(), "payments"
	large.Rehearsed = model.Rehearsal{}
	return []decisions.Row{end, off, shedRow, rec, large, small}
}

// hosts of the demo's fleet: five are cut off, one is ahead, one unreachable,
// one old.
func sampleHosts() []model.HostView {
	var out []model.HostView
	for _, group := range []struct {
		service string
		n       int
	}{{"catalog", 15}, {"checkout", 15}, {"edge", 15}, {"payment-risk", 15}} {
		for i := 1; i <= group.n; i++ {
			h := model.HostView{
				Host: fmt.Sprintf("%s-%02d", group.service, i), Services: []string{group.service}, Reachable: true,
				SeenAt: night.Add(-4 * time.Second), Via: "direct",
				Report: &model.Report{
					Host: fmt.Sprintf("%s-%02d", group.service, i), At: night.Add(-5 * time.Second), State: "ok", Posture: "c0ffee11",
					Live:     []model.ReportLive{{ID: bypassID, Source: "etcd", Since: night.Add(-2 * time.Minute)}},
					Sources:  []model.ReportSource{{Name: "etcd", PresentIDs: []string{bypassID, shedID}, AgeS: 2}, {Name: "file", AgeS: -1}},
					Clock:    model.ReportClock{State: model.ClockOK},
					Policy:   model.PolicyRef{Version: 7, Digest: policyDigest},
					Versions: model.ReportVersions{IC: "0.1.0", Engine: 1},
				},
			}
			if group.service == "checkout" && i <= 2 {
				h.Lacks = []string{shedID}
				h.Report.Sources[0] = model.ReportSource{Name: "etcd", AgeS: 190, Error: "context deadline exceeded"}
			}
			if h.Host == "edge-07" {
				h.Reachable, h.Detail, h.SeenAt = false, "connection refused", night.Add(-9*time.Minute)
			}
			if h.Host == "edge-11" {
				h.SeenAt, h.Report.At = night.Add(-3*time.Minute), night.Add(-3*time.Minute)
			}
			if h.Host == "payment-risk-04" {
				h.Report.Clock.State = model.ClockBehind
			}
			out = append(out, h)
		}
	}
	return out
}

// trouble is the night of the story: a bypass and a shed in force, the flag
// service gone for some hosts, signals abnormal, stale and unknown.
func trouble() incident.Snapshot {
	shedIssued := model.Issued{Directive: shedDirective(), Signers: []string{"alice"}, Outcome: "effective"}
	bypassIssued := model.Issued{Directive: bypassDirective(), Signers: []string{"alice"}, Outcome: "effective"}
	return incident.Snapshot{
		At: night, Fleet: "shop-demo", Mode: model.Live, Person: "alice", Session: "s1",
		World: model.World{
			Now: night, Fleet: "shop-demo", Mode: model.Live, Policy: model.PolicyRef{Version: 7, Digest: policyDigest},
			Incident: model.Incident{ID: "inc-1", OpenedAt: night.Add(-12 * time.Minute), Title: "payment-risk down",
				Lease: model.Lease{Holder: "alice", From: night.Add(-12 * time.Minute), Until: night.Add(2*time.Hour + 48*time.Minute), Confirmed: true}},
			Issued: []model.Issued{shedIssued, bypassIssued}, Hosts: sampleHosts(),
			Inventory: model.Inventory{Source: "policy", At: night.Add(-time.Minute), MaxAge: model.Duration(time.Minute * 2), Hosts: 60},
		},
		Matrix:   matrix(),
		Headline: decisions.Headline{Text: "payment-risk-up is 0, below 1", Right: "risk-bypass-small-orders", Runbook: "payment-risk-down"},
		Services: []incident.ServiceTier{
			{Service: "catalog", Last: 3, Hosts: 15, At: map[int]int{0: 15}},
			{Service: "checkout", Issued: 3, Last: 4, Hosts: 15, At: map[int]int{0: 2, 3: 13}, Since: night.Add(-4 * time.Minute), By: "alice"},
			{Service: "edge", Last: 2, Hosts: 15, At: map[int]int{0: 13}, Unknown: 2},
			{Service: "payment-risk", Last: 2, Hosts: 15, At: map[int]int{0: 15}},
		},
		Signals: []incident.SignalView{
			{Name: "catalog-p95", Text: "?", Limit: "above 0.5 s", Reading: model.Reading{State: model.ReadingNoData}},
			{Name: "checkout-p95", Text: "0.31 s", Limit: "above 0.5 s", Reading: model.Reading{State: model.ReadingValue, Value: .31, At: night.Add(-12 * time.Second)}},
			{Name: "error-rate", Text: "0.4 %", Limit: "above 2 %", Reading: model.Reading{State: model.ReadingStale, At: night.Add(-47 * time.Second)}},
			{Name: "orders-per-minute", Text: "412", Limit: "below 200", Reading: model.Reading{State: model.ReadingValue, At: night.Add(-12 * time.Second)}},
			{Name: "payment-risk-up", Text: "0", Limit: "below 1", Abnormal: true, Reading: model.Reading{State: model.ReadingValue, At: night.Add(-9 * time.Second)}},
		},
		Skew: incident.SkewView{Hosts: 60, Effective: 55, Lacking: 2, Unreachable: 1, Stale: 1, At: night.Add(-4 * time.Second), InventoryAt: night.Add(-time.Minute)},
		Live: []incident.LiveView{
			{Issued: bypassIssued, Title: "skip payment-risk under 50.00 USD at all services until 03:27:07Z", Done: 58, Total: 60, State: "partial",
				Direction: model.Loosen, Exposure: exposure(), Used: map[string]incident.UsedView{"USD": {Count: 9, Total: usd(41250), Unknown: 2}}},
			{Issued: shedIssued, Title: "shed checkout to tier 3", Done: 13, Total: 15, State: "partial", Direction: model.Tighten},
		},
		Overrides: []model.Override{{Operation: "01JDWE00000000000000PSH001", Backend: "git", IDs: []string{bypassID}, Since: night.Add(-time.Minute), State: "partial"}},
		Backends: []incident.BackendView{
			{Name: "host-file", Carrier: "file", Rehearsed: model.Rehearsal{Simulated: night.Add(-26 * time.Hour), Live: night.Add(-26 * time.Hour)}},
			{Name: "git", Carrier: "env", Restarts: true, Dependencies: []string{"git server"}, Rehearsed: model.Rehearsal{Simulated: night.Add(-72 * time.Hour)}},
			{Name: "helm", Overlap: []string{"catalog"}, Detail: "not asked yet"},
		},
		Carriers:  []incident.CarrierView{{Name: "etcd", Connected: true, ReadAt: night.Add(-2 * time.Second)}},
		PolicyEnd: night.Add(51*24*time.Hour + time.Hour),
		Head:      model.LogHead{Origin: "shop-demo/inc-1/s1", Size: 128, Root: "9f3ab2c17d2e44aa9f3ab2c17d2e44aa"},
		Log: []incident.LogLine{
			{At: night.Add(-12 * time.Minute), Actor: "alice", Kind: "opened", Text: "incident inc-1: payment-risk down"},
			{At: night.Add(-4 * time.Minute), Actor: "alice", Kind: "intent", Text: "shed checkout to tier 3"},
			{At: night.Add(-4*time.Minute + time.Second), Actor: "alice", Kind: "outcome", Text: "shed checkout to tier 3: partial, 13 of 15 hosts"},
			{At: night.Add(-2 * time.Minute), Actor: "alice", Kind: "signed", Text: "skip payment-risk under 50.00 USD at all services until 03:27:07Z"},
		},
		Blockers: []string{"a bypass is in force until 03:27:07Z", "1 override is on hosts: remove it (ic break undo)"},
	}
}

// calm is a quiet fleet with no incident.
func calm() incident.Snapshot {
	s := trouble()
	s.World.Incident, s.World.Issued = model.Incident{}, nil
	s.Live, s.Overrides, s.Blockers, s.Log, s.Head = nil, nil, nil, nil, model.LogHead{}
	s.Headline = decisions.Headline{Text: "every signal is within its bounds", Calm: true}
	for i := range s.Services {
		s.Services[i].Issued, s.Services[i].At, s.Services[i].Unknown = 0, map[int]int{0: 15}, 0
	}
	for i := range s.Signals {
		s.Signals[i].Abnormal = false
		s.Signals[i].Text = "1"
		s.Signals[i].Reading = model.Reading{State: model.ReadingValue, At: night.Add(-12 * time.Second)}
	}
	for i := range s.Matrix {
		s.Matrix[i].Verdict.Reasons = nil
	}
	for i := range s.World.Hosts {
		h := &s.World.Hosts[i]
		h.Reachable, h.Lacks, h.SeenAt, h.Report.At, h.Report.Clock.State = true, nil, night, night, model.ClockOK
		h.Report.Live = nil
	}
	s.Skew = incident.SkewView{Hosts: 60, Effective: 60, At: night.Add(-4 * time.Second), InventoryAt: night.Add(-time.Minute)}
	return s
}

// drill is a rehearsal with faults.
func drill() incident.Snapshot {
	s := trouble()
	s.Rehearsal, s.Mode, s.World.Mode = true, model.Rehearsing, model.Rehearsing
	s.Faults = []incident.FaultView{{Name: "flags-down", Text: "the flag service answers nobody", Active: true}, {Name: "payment-risk-down", Text: "risk scoring is gone"}}
	return s
}

// few is a snapshot with a handful of hosts, for tests that press many keys.
func few(s incident.Snapshot) incident.Snapshot {
	s.World.Hosts = append(slices.Clone(s.World.Hosts[:2]), s.World.Hosts[14:20]...)
	return s
}

func as(s incident.Snapshot, mode model.Mode) incident.Snapshot {
	s.Mode, s.World.Mode = mode, mode
	return s
}
