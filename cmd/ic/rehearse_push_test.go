package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/drill/scenario"
)

const halfDrill = `scenario  half-cut
title     Half of the fleet cannot reach the flag service
source    a test
why       an order that reaches half of the hosts is pushed to the others

fleet     shop 12
lasts     2h
people    ines commander reacts 10s acts 5s
people    dev platform reacts 10s

at 0s     inject flags-partition
at 0s     inject load-surge
at 110m   clear load-surge
at 110m   clear flags-partition

baseline
  at 1m     ines flag tier 1

with runbook flag-service-down
  on 1m ines do shed tier 1 scope *
  on skew ines follow

expect    ic bypass-open = 0
`

// A person follows the runbook with a push as it ships, on a real engine, real desks
// and the simulated carriers: pushes, leaves the run for another one, takes it up
// again, ends it in the middle and takes the push back.
func TestAPersonPushesResumesAndUndoesInARehearsal(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "half-cut.scenario"), []byte(halfDrill), 0o600); err != nil {
		t.Fatal(err)
	}
	e := watch(t, dir, "rehearse", "half-cut.scenario", "--speed", "10")
	e.sees("you are ines (commander): 2h at 10 x real time; follow flag-service-down (4)", "policy v1")
	e.types("s\r")
	e.sees("TIGHTEN", "shed all services to tier 1")
	e.types("y")
	e.sees("partial: 6 of 12 hosts report it")
	e.types("\r")
	e.types("4")
	e.sees("to be followed: The flag service is down")
	e.types("\r\r")
	e.sees("start a run of flag-service-down")
	e.types("y")
	e.sees("* current look")
	e.types("\r")
	e.types("shed 1 is missing on 6 of 12\r")
	e.sees("* current ordered")
	e.types("\r")
	e.types("1")
	e.sees("* current file")
	e.types("\r")
	e.sees("BREAK-GLASS", "flag-service-down, step file", "carries 1 order as file", "type push hostfile")
	e.types("push hostfile\r")
	e.sees("+ done file", "the override is effective", "* current reached")

	e.types("\x1b")
	e.sees("you follow flag-service-down, step reached")
	e.types("/commander-hand\r\r\r")
	e.sees("start a run of commander-handover")
	e.types("y")
	e.sees("run", "of commander-handover is followed here")
	e.types("\x1b")
	e.types("/\x15flag-service\r\r\r")
	e.sees("take up run", "repeats nothing")
	e.types("y")
	e.sees("of flag-service-down is followed here", "+ done file", "* current reached")
	e.types("\r")
	e.sees("+ done reached", "* current back")

	e.types("X")
	e.sees("why does it end here?")
	e.types("the partition lasts longer than we stay\r")
	e.sees("aborted", "to undo file: remove the override of hostfile (enter asks)")
	e.types("\r")
	e.sees("undo what the run did")
	e.types("\r")
	e.sees("BREAK-GLASS", "type undo hostfile")
	e.types("undo hostfile\r")
	e.sees("file: undone", "taken back file: undone")
	e.types("3")
	e.sees("no override")
	e.types("q")
	e.sees("leaving the rehearsal")
	e.types("y")
	code, said := e.ends()
	if code != 1 || !strings.Contains(said, "ABORTED") || !strings.Contains(said, "runbook flag-service-down") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if decide := regexp.MustCompile(`decide +[0-9]`); !decide.MatchString(said) {
		t.Errorf("the time from the first dialog to the order is not measured:\n%s", said)
	}
	// look, ordered, file, reached and the undo; each once, although the run was taken up.
	if !strings.Contains(said, "acts done") || !strings.Contains(strings.Join(strings.Fields(said), " "), "acts done 6 ") {
		t.Errorf("the acts are counted otherwise:\n%s", said)
	}
	if got := keptIn(t, dir); !strings.Contains(got, `{"what":"backend/hostfile"`) || !strings.Contains(got, `"due":2,"runbook":"flag-service-down","begun":true}`) {
		t.Errorf("kept %s", got)
	}
}

// Without --as the console is the seat of who follows the scenario's runbook, else of
// the first who is there; a role and a name mean a seat, and nobody else does.
func TestTheSeatAtTheConsole(t *testing.T) {
	handover := strings.Replace(halfDrill, "on skew ines follow", "on skew dev follow", 1)
	for _, c := range []struct{ text, as, want string }{
		{halfDrill, "", "ines"}, {handover, "", "dev"}, {handover, "commander", "ines"}, {shortDrill, "", "ines"}, {shortDrill, "finance", "fiona"}, {shortDrill, "pilot", ""},
	} {
		s, err := scenario.Parse("half-cut.scenario", []byte(c.text), scenario.Shop())
		if err != nil {
			t.Fatal(err)
		}
		person, err := seatOf(s, c.as)
		if person.Name != c.want || (err != nil) != (c.want == "") {
			t.Errorf("--as %q sits as %q, want %q: %v", c.as, person.Name, c.want, err)
		}
	}
}
