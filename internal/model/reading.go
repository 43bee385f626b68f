package model

import "time"

// ReadingState says whether a reading may be used as a number.
type ReadingState string

// Anything but ReadingValue never satisfies an exit and never reads as zero.
const (
	ReadingValue   ReadingState = "value"
	ReadingNoData  ReadingState = "no-data"
	ReadingStale   ReadingState = "stale"
	ReadingPartial ReadingState = "partial"
	ReadingError   ReadingState = "error"
)

// Sample is one value of a signal at its source time.
type Sample struct {
	At    time.Time `json:"at"`
	Value float64   `json:"value"`
}

// Reading is what was learned about one signal. Value is meaningful only in
// ReadingValue. History is oldest first and ends at or before At; a gap in it
// is a gap in the evidence, never a zero.
type Reading struct {
	Signal  string       `json:"signal"`
	State   ReadingState `json:"state"`
	Value   float64      `json:"value"`
	At      time.Time    `json:"at"` // source time of the value, not of the fetch
	Unit    string       `json:"unit,omitempty"`
	Detail  string       `json:"detail,omitempty"` // one sentence when the state is not value
	Step    Duration     `json:"step,omitempty"`   // distance of two samples of History
	History []Sample     `json:"history,omitempty"`
}
