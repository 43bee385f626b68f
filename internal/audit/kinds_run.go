package audit

import "fmt"

// The kinds of a run: a runbook that is being followed. The run is these entries
// and nothing else.
const (
	KindRun        Kind = "run"
	KindRunSource  Kind = "run-source"
	KindRunResume  Kind = "run-resume"
	KindRunStep    Kind = "run-step"
	KindRunOutcome Kind = "run-outcome"
	KindRunEnd     Kind = "run-end"
)

// MaxRunSource is how many bytes of a runbook one entry holds: in base64 they fit
// into a body with room to spare.
const MaxRunSource = 40 << 10

// RunStart begins a run. Signature is what was known about the runbook's
// signatures; who follows it is the entry's actor.
type RunStart struct {
	Run       string   `json:"run"`
	Runbook   string   `json:"runbook"`
	Title     string   `json:"title"`
	Digest    string   `json:"digest"` // SHA-256 of the runbook's exact bytes, in hex
	Bytes     int64    `json:"bytes"`
	Signature string   `json:"signature"`
	Signers   []string `json:"signers"`
	Steps     int      `json:"steps"`
}

// RunSource holds bytes of a runbook, from Offset on: a run goes on under the
// text that it began with, also on a machine that has never seen the file.
type RunSource struct {
	Digest string `json:"digest"`
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
}

// RunResume says that somebody took a run up again, under which text. N numbers
// what happens in a run, as far as its writer knew: clocks of two machines do not
// agree, and whoever takes a run up has read what came before.
type RunResume struct {
	Run    string `json:"run"`
	N      int    `json:"n"`
	Digest string `json:"digest"`
	Kept   bool   `json:"kept"` // the file has changed since, and the kept copy is followed
}

// RunStep is what a step is about to do. Without an outcome behind it, what
// became of it is UNKNOWN.
type RunStep struct {
	Run    string `json:"run"`
	N      int    `json:"n"`
	Step   string `json:"step"`
	Does   string `json:"kind"`         // kind of the step
	Key    string `json:"key"`          // idempotency key, hex
	ID     string `json:"id,omitempty"` // of the directive or operation that the effect will have
	Params string `json:"params"`       // canonical
	Undo   bool   `json:"undo,omitempty"`
}

// RunOutcome is how far a step has come and on what evidence. AgeS is how old the
// value was, in seconds. Next is the step that follows; "" while the step is not
// over.
type RunOutcome struct {
	Run    string `json:"run"`
	N      int    `json:"n"`
	Step   string `json:"step"`
	Key    string `json:"key"`
	State  string `json:"state"`
	ID     string `json:"id,omitempty"`
	Value  string `json:"value,omitempty"`
	AgeS   int64  `json:"age_s"`
	Seen   string `json:"seen,omitempty"`   // what a person saw, or why he skips
	Choice string `json:"choice,omitempty"` // of a decision
	Done   int    `json:"done"`             // hosts that report it
	Total  int    `json:"total"`
	Detail string `json:"detail,omitempty"`
	Next   string `json:"next,omitempty"`
	Undo   bool   `json:"undo,omitempty"`
}

// States of a run that is over.
const (
	RunFinished = "finished"
	RunAborted  = "aborted"
)

// RunEnd ends a run.
type RunEnd struct {
	Run    string `json:"run"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// Kind implements Body.
func (RunStart) Kind() Kind   { return KindRun }
func (RunSource) Kind() Kind  { return KindRunSource }
func (RunResume) Kind() Kind  { return KindRunResume }
func (RunStep) Kind() Kind    { return KindRunStep }
func (RunOutcome) Kind() Kind { return KindRunOutcome }
func (RunEnd) Kind() Kind     { return KindRunEnd }

// decodeRunBody reads the body of a kind of a run, and is the last that knows one.
func decodeRunBody(kind Kind, raw []byte) (Body, error) {
	switch kind {
	case KindRun:
		return bodyOf[RunStart](raw)
	case KindRunSource:
		return bodyOf[RunSource](raw)
	case KindRunResume:
		return bodyOf[RunResume](raw)
	case KindRunStep:
		return bodyOf[RunStep](raw)
	case KindRunOutcome:
		return bodyOf[RunOutcome](raw)
	case KindRunEnd:
		return bodyOf[RunEnd](raw)
	default:
		return foreignBody(kind, raw)
	}
}

func runSentence(body Body) string {
	switch b := body.(type) {
	case RunStart:
		return fmt.Sprintf("run %s of runbook %s began (%s, %d steps, sha256 %.12s)", b.Run, b.Runbook, b.Signature, b.Steps, b.Digest)
	case RunSource:
		return fmt.Sprintf("text of runbook sha256 %.12s, %d bytes from %d on", b.Digest, len(b.Data), b.Offset)
	case RunResume:
		under := ""
		if b.Kept {
			under = " under the text that it began with; the file has changed"
		}
		return fmt.Sprintf("run %s taken up%s", b.Run, under)
	case RunStep:
		return fmt.Sprintf("run %s: %s %s begins%s", b.Run, undoing(b.Undo), b.Step, because(b.ID))
	case RunOutcome:
		return outcomeSentence(b)
	case RunEnd:
		return fmt.Sprintf("run %s %s%s", b.Run, b.State, because(b.Reason))
	default:
		return "an entry of a kind that this version does not know"
	}
}

func outcomeSentence(b RunOutcome) string {
	text := fmt.Sprintf("run %s: %s %s %s", b.Run, undoing(b.Undo), b.Step, b.State)
	if b.Total > 0 {
		text += fmt.Sprintf(", %d of %d hosts", b.Done, b.Total)
	}
	if b.Value != "" {
		text += fmt.Sprintf(", %s (%d s old)", b.Value, b.AgeS)
	}
	for _, said := range []string{b.Choice, b.Seen, b.Detail} {
		text += because(said)
	}
	return text
}

func undoing(undo bool) string {
	if undo {
		return "undo of step"
	}
	return "step"
}
