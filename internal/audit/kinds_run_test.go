package audit

import (
	"strings"
	"testing"
)

// The bodies of a run as they stand in a log: frozen with the format.
func TestBodiesOfARunHaveOneSpelling(t *testing.T) {
	for _, c := range []struct {
		body Body
		want string
		line string
	}{
		{RunStart{Run: "0317-9f2c41a0", Runbook: "risk-down", Title: "Risk is down", Digest: "ab", Bytes: 7, Signature: "signed", Signers: []string{"ines"}, Steps: 3},
			`{"run":"0317-9f2c41a0","runbook":"risk-down","title":"Risk is down","digest":"ab","bytes":7,"signature":"signed","signers":["ines"],"steps":3}`,
			"run 0317-9f2c41a0 of runbook risk-down began (signed, 3 steps, sha256 ab)"},
		{RunSource{Digest: "ab", Offset: 4, Data: []byte("# x")}, `{"digest":"ab","offset":4,"data":"IyB4"}`, "text of runbook sha256 ab, 3 bytes from 4 on"},
		{RunResume{Run: "r", N: 4, Digest: "ab", Kept: true}, `{"run":"r","n":4,"digest":"ab","kept":true}`, "run r taken up under the text that it began with; the file has changed"},
		{RunStep{Run: "r", N: 1, Step: "shed", Does: "do", Key: "cd", ID: "01X", Params: "{}"},
			`{"run":"r","n":1,"step":"shed","kind":"do","key":"cd","id":"01X","params":"{}"}`, "run r: step shed begins: 01X"},
		{RunOutcome{Run: "r", N: 2, Step: "shed", Key: "cd", State: "done", ID: "01X", Value: "3 of 4 hosts report it", AgeS: 2, Done: 3, Total: 4, Next: "seen"},
			`{"run":"r","n":2,"step":"shed","key":"cd","state":"done","id":"01X","value":"3 of 4 hosts report it","age_s":2,"done":3,"total":4,"next":"seen"}`,
			"run r: step shed done, 3 of 4 hosts, 3 of 4 hosts report it (2 s old)"},
		{RunOutcome{Run: "r", N: 3, Step: "look", Key: "cd", State: "done", Seen: "p99 0.4 s", Choice: "grows", Undo: true},
			`{"run":"r","n":3,"step":"look","key":"cd","state":"done","age_s":0,"seen":"p99 0.4 s","choice":"grows","done":0,"total":0,"undo":true}`,
			"run r: undo of step look done: grows: p99 0.4 s"},
		{RunEnd{Run: "r", State: "aborted", Reason: "risk answers"}, `{"run":"r","state":"aborted","reason":"risk answers"}`, "run r aborted: risk answers"},
	} {
		raw, err := canonical(c.body)
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != c.want {
			t.Errorf("%s\n is %s\nnot %s", c.body.Kind(), raw, c.want)
		}
		if got := sentence(c.body); got != c.line {
			t.Errorf("%s reads %q, not %q", c.body.Kind(), got, c.line)
		}
		if back, err := readBody(c.body.Kind(), raw); err != nil || back.Kind() != c.body.Kind() {
			t.Errorf("%s does not read back: %v", c.body.Kind(), err)
		}
		if _, err := readBody(c.body.Kind(), []byte(strings.Replace(c.want, "{", `{"more":1,`, 1))); err == nil {
			t.Errorf("%s: a field that is not known was taken", c.body.Kind())
		}
	}
}

func TestALargestPartOfARunbookFitsIntoAnEntry(t *testing.T) {
	w := open(t, t.TempDir(), options(t, "laptop-1"))
	mustAppend(t, w, RunSource{Digest: strings.Repeat("a", 64), Offset: 1 << 30, Data: make([]byte, MaxRunSource)})
}

// A receipt of a run's entry counts as what it says, where it was chained.
func TestInOrderUnwrapsWhatWasLate(t *testing.T) {
	d, err := newDraft(newClock().Now(), person, RunEnd{Run: "r", State: "finished"})
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	w := open(t, state, options(t, "laptop-1"))
	mustAppend(t, w, Note{Text: "before"}, Late{Receipt: d.receipt(nil)})
	all := InOrder(mustRead(t, state))
	last := all[len(all)-1]
	if end, ok := last.Body.(RunEnd); !ok || end.State != "finished" || last.Actor != person {
		t.Errorf("the last is %+v", last)
	}
}
