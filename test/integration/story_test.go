//go:build integration && linux

package integration

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/world"
	"github.com/degradedmode/ic/internal/drill/worldclock"
	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// everyFrame is what the console says in every frame: where an act would land,
// before which fleet, and when.
func everyFrame() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`REHEARSAL`),
		regexp.MustCompile(`\bshop-demo\b`),
		regexp.MustCompile(`\b\d\d:\d\d UTC\b`),
	}
}

// story is a night with the demo: what a person sees and types in a terminal, a
// second terminal for commands, and the hosts as they themselves report.
type story struct {
	*screen
	by   *seat
	info *world.Info
	inv  fleet.Inventory
}

func TestTheStoryInTmux(t *testing.T) {
	t.Parallel() // it mostly waits
	need(t, "tmux", "git")
	program := build(t, "ic")
	home, state := t.TempDir(), filepath.Join(t.TempDir(), "demo")
	t.Cleanup(func() { endAll(t, program, state) }) // after the terminal has gone
	s := &story{
		screen: newScreen(t, 100, 34, environment(home)),
		by:     &seat{t: t, program: program, state: state, env: environment(home)},
	}
	chapters(t, []chapter{
		{"the demo starts", s.starts},
		{"the terminal is given back", s.givesTheTerminalBack},
		{"1 payment-risk dies", s.somethingBreaks},
		{"2 a right is used", s.usesARight},
		{"3 half of the fleet is cut off", s.losesHalfOfTheFleet},
		{"4 glass is broken", s.breaksGlass},
		{"5 it sheds, and goes back slowly", s.goesBackSlowly},
		{"6 the bypass ends by itself", s.endsByItself},
		{"6 the demo is attached to again", s.attachesAgain},
		{"7 what is left is tidied up", s.tidiesUp},
		{"8 the log proves it", s.provesIt},
		{"the demo ends", s.ends},
	})
	t.Logf("%d frames said REHEARSAL, the fleet and the time", s.frames)
}

// starts opens the demo, and learns how to reach its parts.
func (s *story) starts() {
	s.enter(s.by.program + " demo --state " + s.by.state + " --fast-policy")
	s.until("the console", func(f frame) bool { return f.has("Overview") })
	s.says = everyFrame()
	s.shows("every signal is within its bounds", "60/60 hosts follow", "no incident", "etcd connected")
	var err error
	if s.info, err = world.ReadInfo(s.by.state); err != nil || s.info == nil {
		s.t.Fatalf("how to reach the world: %v, %v", s.info, err)
	}
	pin := frame{readFile(s.t, filepath.Join(s.by.state, world.ConfigFile))}.part(`(?m)^root_sha256: (\w+)$`)
	b, _, err := policy.LoadDir(filepath.Join(s.by.state, "policy"), policy.LoadOptions{
		Fleet: world.Fleet, RootSHA256: pin, Realm: directive.Drill, Now: time.Now(),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range b.Inventory.Hosts {
		s.inv.Hosts = append(s.inv.Hosts, fleet.Host{Name: h.Host, Services: h.Services, ReportURL: h.ReportURL})
	}
	if len(s.inv.Hosts) != 60 {
		s.t.Fatalf("the inventory has %d hosts", len(s.inv.Hosts))
	}
}

// givesTheTerminalBack suspends the console and brings it back, and makes the
// window small: two things that people do to every program.
func (s *story) givesTheTerminalBack() {
	for _, size := range [][2]int{{80, 24}, {40, 10}, {100, 34}} {
		s.resize(size[0], size[1])
		s.whole()
		for _, view := range []string{"2", "3", "4", "5", "6", "?", "Escape", "1"} {
			before := s.look().text
			s.press(view)
			s.until("another view", func(f frame) bool { return f.text != before })
			s.whole()
		}
	}
	s.says = nil
	s.press("C-z")
	s.until("the shell, with the console suspended", func(f frame) bool { return f.has("Stopped") && s.ask("alternate_on") == "0" })
	s.enter("stty -a | grep -o ' icanon\\| echo '; echo suspended")
	s.until("a terminal in its usual mode", func(f frame) bool { return f.matches(`(?m)^ icanon\n echo\s*\nsuspended$`) })
	s.enter("fg")
	s.until("the console", func(f frame) bool { return s.ask("alternate_on") == "1" && f.has("Overview") })
	s.says = everyFrame()
	s.whole()
}

// somethingBreaks begins the fault by key; the one line names the right that fits.
func (s *story) somethingBreaks() {
	s.view("1 Overview")
	s.fault("payment-risk-down")
	s.until("the right that fits", func(f frame) bool {
		return f.matches(`(?m)^.!? ?.*payment-risk-up is 0 %`) && f.has("-> enter: risk-bypass-small-orders")
	})
}

// fault begins or clears a fault by key.
func (s *story) fault(name string) {
	s.t.Helper()
	const early = "nothing has been read yet" // says a console that has just been opened
	for range tries {
		s.press("f")
		f := s.until("the faults of the drill", func(f frame) bool { return f.has("faults of this drill") || f.has(early) })
		if !f.has(early) {
			break
		}
		s.press("Escape")
		s.until("another word", func(f frame) bool { return !f.has(early) })
	}
	s.choose(name)
	s.until("the view again", func(f frame) bool { return !f.has("faults of this drill") })
}

// inForce is the one directive of a kind that is in force.
func (s *story) inForce(kind model.Kind) model.Directive {
	s.t.Helper()
	var found []model.Directive
	snap := s.status()
	for i := range snap.Live {
		if d := snap.Live[i].Issued.Directive; d.EndedAs() == kind {
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		s.t.Fatalf("%d orders of kind %s are in force, want 1: %+v", len(found), kind, found)
	}
	return found[0]
}

// status is what another console knows.
func (s *story) status() incident.Snapshot {
	s.t.Helper()
	var snap incident.Snapshot
	s.by.must(done, words("status", "--json")).read(s.t, &snap)
	return snap
}

// usesARight opens the bypass that the one line names: the confirmation says what
// it may cost and when it ends, and wants a text typed.
func (s *story) usesARight() {
	s.press("Enter")
	s.shows("skip payment-risk under 50.00 USD at checkout", "why? it is written into the order and the log")
	s.enter("payment-risk answers nobody")
	f := s.shows("LOOSEN", "decides incident-commander", "worst case 29986.00 USD: 25 hosts + 4 that may join, 1034.00 USD each",
		"on every host by itself", "reason payment-risk answers nobody", "type skip payment-risk")
	if !f.matches(`ends +\d\d:\d\d:\d\dZ, in \d+s, on every host`) {
		s.t.Fatalf("the confirmation does not say when it ends:\n%s", f.text)
	}
	s.typed("skip payment-risk")
	s.shows("effective: 25 of 25 hosts report it", "etcd: carried", "[ Close ]")
	s.press("Enter")
	s.shows("ines (you) commands", "skip payment-risk under 50.00 USD at checkout 25/25 effective", "at worst 29986.00 USD")
}

// losesHalfOfTheFleet cuts half of the fleet off, and sheds: the half that is cut
// off lacks the order, and the screen names those hosts as they are.
func (s *story) losesHalfOfTheFleet() {
	s.fault("flags-partition")
	s.sheds(2, "partial: 30 of 60 hosts report it")
	id := s.inForce(model.Shed).ID
	lacking := lackers(reports(s.t, s.inv), id)
	if len(lacking) != 30 {
		s.t.Fatalf("%d hosts lack the order: %v", len(lacking), lacking)
	}
	s.view("5 Fleet")
	s.press("g") // to the first line: what is selected stays selected when it moves
	row := regexp.MustCompile(`(?m)^.[> ]. (\S+) +\S+ +lacks 1 order +` + id[len(id)-6:] + ` +\d+s +direct`)
	s.until(fmt.Sprintf("of the hosts that lack it, %v, those that have room", lacking), func(f frame) bool {
		var shown []string
		for _, m := range row.FindAllStringSubmatch(f.text, -1) {
			shown = append(shown, m[1])
		}
		return f.has("30/60 hosts follow, 30 behind") && len(shown) > 20 && slices.Equal(shown, lacking[:len(shown)])
	})
	s.press("Enter")
	s.shows("lacks shed all services to tier 2", "sources", "etcd,")
	s.press("Enter")
	s.view("1 Overview")
}

// view goes to one of the six.
func (s *story) view(name string) {
	s.t.Helper()
	s.press(name[:1])
	s.until("the view "+name, func(f frame) bool { return f.has("[" + name + "]") })
}

// sheds gives the order by key. It asks for one key and no typed text: shedding
// is easy.
func (s *story) sheds(tier int, outcome string) {
	s.t.Helper()
	s.press("s")
	s.choose("all services to tier " + strconv.Itoa(tier))
	s.shows("TIGHTEN", "shed all services to tier "+strconv.Itoa(tier))
	s.yes()
	s.shows(outcome, "[ Close ]")
	s.press("Enter")
}

// breaksGlass carries what half of the fleet lacks through the deploy pipeline.
func (s *story) breaksGlass() {
	s.view("3 Break-glass")
	s.press("Enter")
	s.shows("plan by git", "restarts 60 of 60 hosts", "on disk last-known-good: yes, on every host",
		"fleet/ic.env", "before (empty)", "after", "shed all services to tier 2")
	s.press("Enter")
	s.shows("BREAK-GLASS", "push by git", "type push git")
	s.typed("push git")
	s.until("progress", func(f frame) bool {
		return f.matches(`hosts say +(3[1-9]|[45]\d) of 60 hold it: shed all services to tier 2`)
	})
	s.shows("result effective: 60 of 60 hosts hold all of it", "60 of 60 hold it: shed all services to tier 2", "to be removed (u)")
	s.until("the mode of an override", func(f frame) bool { return f.matches(`^# # BREAK-GLASS # .*REHEARSAL`) })
	id := s.inForce(model.Shed).ID
	until(s.t, "what the screen says is so: every host was restarted with the order and holds it", func() bool {
		return all(s.t, s.inv, func(v *model.HostView) bool { return holds(v, id) && carried(v, id) })
	})
	s.view("1 Overview")
}

// goesBackSlowly sheds further, and recovers: never by a jump, one tier at a time,
// 10, 50, 100 % of hosts.
func (s *story) goesBackSlowly() {
	s.fault("flags-partition")
	s.fault("payment-risk-down")
	connected(s.t, s.inv)
	s.sheds(3, "effective: 60 of 60 hosts report it")
	jump := s.by.must(denied, words("recover", "--to", "0", "--yes"), "from tier 3 to tier 0 is a jump: recovery goes one tier at a time")
	if !regexp.MustCompile(`tier 2 is possible in \d+s`).MatchString(jump.both()) {
		s.t.Errorf("a jump is denied without the time to wait:\n%s", jump.both())
	}
	s.leaves(3)
}

// leaves goes back by one tier.
func (s *story) leaves(tier int) {
	s.t.Helper()
	for _, percent := range []int{10, 50, 100} {
		s.recovers(tier, percent)
	}
}

// recovers takes one step by key, as soon as dwell, ramp and signals allow it. A
// signal that was good while the text was typed may be bad, or not answer in time,
// when the order is given: then it is refused, and a person tries again.
func (s *story) recovers(tier, percent int) {
	s.t.Helper()
	for range tries {
		s.press("r")
		s.choose("all services by recover")
		s.shows("RECOVER", fmt.Sprintf("from tier %d to %d on %d %% of hosts", tier, tier-1, percent))
		s.typed(fmt.Sprintf("tier %d", tier-1))
		f := s.shows("[ Close ]")
		s.press("Enter")
		s.until("the view again", func(f frame) bool { return !f.has("[ Close ]") })
		if f.has("effective: 60 of 60 hosts report it") {
			return
		}
		if !f.matches(`needs something first: signal \S+ (has not been good|is (error|stale|partial):)`) {
			s.t.Fatalf("a step of recovery fails:\n%s", f.text)
		}
	}
	s.t.Fatalf("tier %d cannot be left in %d tries: the signals are never good for long enough", tier, tries)
}

// clock is the time of the demo's world.
func (s *story) clock() time.Time {
	s.t.Helper()
	clock, err := worldclock.Fetch(s.t.Context(), http.DefaultClient, s.info.Control, time.Now)
	if err != nil {
		s.t.Fatal(err)
	}
	return clock.Now().Wall
}

// endsByItself opens another bypass from the second terminal, takes flag service
// and console away, and asks every host when it ended.
func (s *story) endsByItself() {
	s.fault("payment-risk-down")
	s.shows("payment-risk-up is 0 %")
	s.by.must(done, words("do", "risk-bypass-small-orders", "--for", "25s", "--reason", "payment-risk is down again", "--yes"), "25 of 25 hosts report it")
	s.shows("skip payment-risk under 50.00 USD at checkout 25/25 effective")
	bypass := s.inForce(model.Bypass)
	s.fault("flags-partition")
	s.fault("flags-down")
	if err := syscall.Kill(s.inFront(), syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	left := bypass.NotAfter.Sub(s.clock())
	s.renew()
	if left < 5*time.Second {
		s.t.Fatalf("the console was killed %s before the end: too late to prove anything", left)
	}
	s.t.Logf("the console was killed %s before the end of the bypass", left.Round(time.Second))
	until(s.t, "no backend outlives the console that was killed", func() bool {
		for _, line := range processesOf(s.by.program, s.by.state) {
			if strings.Contains(line, " backend ") {
				return false
			}
		}
		return true
	})
	endsEverywhere(s.t, s.inv, bypass.ID, bypass.NotAfter)
}

// attachesAgain starts the demo's console once more: the world has gone on.
func (s *story) attachesAgain() {
	s.enter(s.by.program + " demo --state " + s.by.state)
	s.until("the console", func(f frame) bool { return f.has("Overview") })
	s.says = everyFrame()
	s.shows("ines (you) commands", "recover all services from tier 3 to 2")
	if again, err := world.ReadInfo(s.by.state); err != nil || again == nil || *again != *s.info {
		s.t.Fatalf("the world behind the console is %+v (%v), it was %+v", again, err, s.info)
	}
	for _, name := range []string{"flags-down", "flags-partition", "payment-risk-down"} {
		s.fault(name)
	}
	connected(s.t, s.inv)
	s.shows("etcd connected", "60/60 hosts follow", "every signal is within its bounds")
}

// tidiesUp goes back to normal, and closes: not before the override is gone.
func (s *story) tidiesUp() {
	s.leaves(2)
	s.leaves(1)
	s.by.must(needs, words("incident", "close", "--yes"), "an override of git is still on hosts")
	s.press("i")
	s.choose("close the incident")
	s.shows("cannot be given now: an override of git is still on hosts")
	s.press("Escape")
	s.until("the view again", func(f frame) bool { return !f.has("cannot be given now") })
	s.press("u")
	s.shows("BREAK-GLASS", "undo", "type undo git")
	s.typed("undo git")
	s.until("the mode without an override", func(f frame) bool { return f.matches(`^: - REHEARSAL - `) && f.has("no override is on any host") })
	until(s.t, "no environment of a host carries an order", func() bool {
		return all(s.t, s.inv, func(v *model.HostView) bool { return len(sourceOf(v, hostrun.FromEnv).PresentIDs) == 0 })
	})
	s.view("1 Overview")
	s.press("i")
	s.choose("close the incident")
	s.yes()
	s.until("that it is closed", func(f frame) bool { return f.has("[ Close ]") && !f.has("failed") && !f.has("needs") })
	s.press("Enter")
	s.shows("no incident is open")
}

// provesIt verifies the log, changes one byte of a copy, and verifies again.
func (s *story) provesIt() {
	s.by.must(done, words("audit", "verify"), "the log is whole", "heads from hosts were held against it")
	logs, err := filepath.Glob(filepath.Join(s.by.state, "incidents", "*", "*.jsonl"))
	if err != nil || len(logs) == 0 {
		s.t.Fatalf("logs: %v, %v", logs, err)
	}
	for _, log := range logs {
		whole := readFile(s.t, log)
		at := len(whole) / 2
		changed := []byte(whole)
		changed[at] ^= 1
		writeFile(s.t, log, string(changed))
		a := s.by.must(integrity, words("audit", "verify"), "FAILED "+log)
		line := strings.LastIndex(whole[:at], "\n") + 1
		said := frame{a.out}.part(`: byte (\d+), line \d+: `)
		if said != strconv.Itoa(line) {
			s.t.Errorf("byte %d was changed, in the line at %d, and the offset is %q:\n%s", at, line, said, a.both())
		}
		writeFile(s.t, log, whole)
	}
	s.by.must(done, words("audit", "verify"), "the log is whole")
}

// ends leaves the console and ends the world with it; nothing stays behind but
// the state folder.
func (s *story) ends() {
	s.press("q")
	s.says = nil
	s.until("the question", func(f frame) bool { return f.has("End it too? [Y/n]") && s.ask("alternate_on") == "0" })
	s.shows("attached to the demo that is running")
	s.enter("y")
	s.until("the shell", func(f frame) bool { return f.matches(`(?m)^` + prompt + `$`) })
	s.enter("stty -a | grep -o ' icanon\\| echo '; echo over")
	s.until("a terminal in its usual mode", func(f frame) bool { return f.matches(`(?m)^ icanon\n echo\s*\nover$`) })
	if s.ask("cursor_flag") != "1" || s.ask("mouse_any_flag") != "0" {
		s.t.Errorf("the terminal was left with cursor %s and mouse %s", s.ask("cursor_flag"), s.ask("mouse_any_flag"))
	}
	until(s.t, "the world ends", func() bool {
		info, err := world.ReadInfo(s.by.state)
		return err == nil && info == nil
	})
	until(s.t, "no process is left behind", func() bool { return len(processesOf(s.by.program, s.by.state)) == 0 })
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
