package model

import "time"

// Report is what one host says about itself, served over HTTP, as metrics and
// as a file. Unknown fields are errors.
type Report struct {
	V        int             `json:"v"`
	Fleet    string          `json:"fleet"`
	Host     string          `json:"host"`
	Services []string        `json:"services"`
	At       time.Time       `json:"at"`
	Boot     string          `json:"boot"`
	State    string          `json:"state"` // ok, volatile, unpersisted, recovered, safe-defaults
	Posture  string          `json:"posture"`
	Live     []ReportLive    `json:"live"`
	Sources  []ReportSource  `json:"sources"`
	Refused  []ReportRefused `json:"refused"`
	Clock    ReportClock     `json:"clock"`
	Budgets  []ReportBudget  `json:"budgets"`
	Heads    []LogHead       `json:"heads"`
	Policy   PolicyRef       `json:"policy"`
	Versions ReportVersions  `json:"versions"`
}

// ReportLive is one directive in force on a host.
type ReportLive struct {
	ID     string    `json:"id"`
	Source string    `json:"source"`
	Since  time.Time `json:"since"`
}

// ReportSource is the state of one carrier as a host sees it. AgeS is seconds
// since the source was last read in full; -1 means never.
type ReportSource struct {
	Name       string   `json:"name"`
	PresentIDs []string `json:"present_ids"`
	AgeS       int64    `json:"age_s"`
	Error      string   `json:"error,omitempty"`
}

// ReportRefused is one token that a host did not take, by stable code.
type ReportRefused struct {
	ID   string `json:"id"`
	Code string `json:"code"`
}

// ReportClock is the host's trust in its own clock and the time floor: the
// highest time that verified statements prove to have passed.
type ReportClock struct {
	State ClockState `json:"state"`
	Floor time.Time  `json:"floor"`
}

// ReportBudget is what one host has let through in one period, per (control,
// right, UTC day).
type ReportBudget struct {
	Right   string `json:"right"`
	Control string `json:"control"`
	Period  string `json:"period"` // 2026-11-30
	Count   int64  `json:"count"`
	Total   Money  `json:"total"`
}

// ReportVersions names the software that made the report.
type ReportVersions struct {
	IC     string `json:"ic"`
	Engine int    `json:"engine"`
}

// HostView is what the console knows about one host of the inventory.
type HostView struct {
	Host      string    `json:"host"`
	Services  []string  `json:"services"`
	Reachable bool      `json:"reachable"`
	Detail    string    `json:"detail,omitempty"` // why it is not reachable
	SeenAt    time.Time `json:"seen_at"`          // when the report was fetched; zero: never
	Via       string    `json:"via,omitempty"`    // direct, prometheus, or a backend's name
	Report    *Report   `json:"report,omitempty"`
	Lacks     []string  `json:"lacks,omitempty"` // issued and live, not on the host
	Extra     []string  `json:"extra,omitempty"` // on the host, ended or unknown to us
}

// answerTime is how long a report may have been under way without its host's clock
// being taken for wrong.
const answerTime = 2 * time.Second

// OnOurClock is since when the host has something, by our clock and as its report tells.
// It is put right by what the host's clock was behind when it reported, and is not after
// we heard of it. A clock that is ahead is left: it may have been set since, and what
// waits for the time waits longer.
func (h *HostView) OnOurClock(since time.Time) time.Time {
	if h.Report == nil || h.Report.At.IsZero() || h.SeenAt.IsZero() {
		return since
	}
	if behind := h.SeenAt.Sub(h.Report.At); behind > answerTime {
		since = since.Add(behind)
	}
	if since.After(h.SeenAt) {
		return h.SeenAt
	}
	return since
}
