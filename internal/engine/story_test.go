package engine_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
)

// budgetItems is how many items of a day the policy of the tests lets through.
const budgetItems = 40

// story is what a host of the sweeps lives through: sheds, a feature off, bypasses
// and their budget, endings, a recovery, restarts, a file that has grown. It says
// after each step what has happened, as a host says it to whoever asks. The same
// story gives the same bytes.
type story struct {
	*host
	dir    string
	say    func(line string)
	ids    map[string]string // by name
	tokens map[string]string
}

// newStory begins one in a folder on disk.
func newStory(t testing.TB, dir string, say func(line string)) *story {
	h := &host{t: t, name: "checkout-01", clock: newClock(), shop: newShop(), ids: &ids{}}
	return &story{host: h, dir: dir, say: say, ids: map[string]string{}, tokens: map[string]string{}}
}

func (s *story) open() {
	dir, err := engine.OpenDir(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	s.folder = dir
	s.start()
	s.tell("started", string(s.opened.Condition))
}

// restart stops in order and starts again, which begins a new generation.
func (s *story) restart() {
	if err := s.Close(s.clock.Now()); err != nil {
		s.t.Fatal(err)
	}
	s.clock.pass(time.Second)
	s.open()
}

func (s *story) tell(what, name string) {
	s.say(fmt.Sprintf("%d %s %s", s.clock.now.Boot/time.Second, what, name))
}

// takes offers a directive under a name and says so once it is on disk.
func (s *story) takes(name string, d model.Directive) {
	s.ids[name], s.tokens[name] = s.make(d)
	if r := s.offer(s.tokens[name]); r.Code != "" || s.Condition() == engine.StateUnpersisted {
		s.t.Fatalf("%s: %+v, %s, %v", name, r, s.Condition(), s.StoreError())
	}
}

func (s *story) take(name string, d model.Directive) {
	s.takes(name, d)
	s.tell("took", name)
}

// end takes what ends others, and says what is ended.
func (s *story) end(names []string, d model.Directive) {
	s.takes("the end of "+names[0], d)
	s.tell("ended", strings.Join(names, ","))
}

func (s *story) items(most int) {
	for range most {
		if ok, _ := s.allow(100); !ok {
			return
		}
		s.tell("passed", "100")
	}
}

// first is the part of the story that leaves a small folder with one of everything.
func (s *story) first() {
	s.open()
	s.take("shed to 3", shed(3))
	s.take("off", model.Directive{Kind: model.Off, Feature: "reviews", Right: "off"})
	s.take("bypass 1", open(10*time.Minute, start))
	s.items(3)
	s.clock.pass(15 * time.Second)
	s.Advance(s.clock.Now())
	s.tell("waited", "15s")
	s.take("shed to 4", shed(4))
	s.end([]string{"off"}, end(model.Off, "on", s.ids["off"]))
	s.end([]string{"shed to 3", "shed to 4"}, step(4, 100, s.ids["shed to 3"], s.ids["shed to 4"]))
	s.restart()
	s.items(3)
	closing := end(model.Bypass, "close", s.ids["bypass 1"])
	closing.Scope = "checkout"
	s.end([]string{"bypass 1"}, closing)
	s.take("bypass 2", open(12*time.Minute, start))
	s.items(7)
	s.clock.pass(15 * time.Second)
	s.Advance(s.clock.Now())
	s.tell("waited", "15s")
}

// rest makes the file grow beyond what is written anew, and uses up the budget.
func (s *story) rest() {
	s.restart()
	var pings []string
	for range 110 {
		_, token := s.make(model.Directive{Kind: model.Ping, Right: "ping", NotAfter: start.Add(time.Hour), Reason: strings.Repeat("long ", 40)})
		pings = append(pings, token)
	}
	s.Seen("test", pings, nil, s.clock.Now())
	s.tell("took", "pings") // which have no effect to look at
	before := s.newest()
	s.items(budgetItems)
	if s.newest() == before {
		s.t.Fatal("a file that has grown was not written anew")
	}
	closing := end(model.Bypass, "close", s.ids["bypass 2"])
	closing.Scope = "checkout"
	s.end([]string{"bypass 2"}, closing)
	s.take("shed to 1", shed(1))
	s.restart()
}

// newest is the name of the generation in use.
func (s *story) newest() string {
	names, err := s.folder.Names()
	if err != nil || len(names) == 0 {
		s.t.Fatal(names, err)
	}
	return slices.Max(names)
}

// said is one line of a story.
type said struct {
	boot       time.Duration
	what, name string
}

func heard(t testing.TB, line string) said {
	t.Helper()
	parts := strings.SplitN(line, " ", 3)
	seconds, err := strconv.Atoi(parts[0])
	if err != nil || len(parts) != 3 {
		t.Fatalf("a host says %q", line)
	}
	return said{time.Duration(seconds) * time.Second, parts[1], parts[2]}
}

// told is what follows from what a host has said: what it may never forget.
type told struct {
	took, ended []string
	passed      int
	boot        time.Duration
}

func tellsOf(lines []said) (out told) {
	out.boot = time.Hour
	for _, l := range lines {
		out.boot = l.boot
		switch l.what {
		case "took":
			out.took = append(out.took, l.name)
		case "ended":
			out.ended = append(out.ended, strings.Split(l.name, ",")...)
		case "passed":
			out.passed++
		}
	}
	return out
}

// holdsTo starts a host on what is left of its folder and compares it with what it
// said: before is certain; of what comes after in the story, anything may have
// happened or not.
func (s *story) holdsTo(t testing.TB, folder engine.Folder, before told, after []said, want ...engine.Condition) {
	t.Helper()
	const away = 20 * time.Second // longer than the story ever lets pass at once
	h := &host{t: t, name: s.name, clock: newClock(), folder: folder, shop: s.shop, ids: &ids{n: 1000}}
	h.clock.pass(before.boot + away - time.Hour)
	h.start()
	if c := h.opened.Condition; !slices.Contains(want, c) {
		t.Errorf("the folder is %s, want one of %v: %v", c, want, h.opened.Notes)
	}
	open := tellsOf(after).ended // perhaps ended already
	live := h.live()
	for _, name := range before.took {
		id, gone := s.ids[name], slices.Contains(before.ended, name)
		switch is := slices.Contains(live, id); {
		case gone && is:
			t.Errorf("%s is in force, and was ended", name)
		case !gone && !is && id != "" && !slices.Contains(open, name):
			t.Errorf("%s was taken and is gone", name)
		}
	}
	for _, name := range before.ended {
		if h.offer(s.tokens[name]); slices.Contains(h.live(), s.ids[name]) {
			t.Errorf("%s was ended and can be brought back", name)
		}
	}
	h.take(open10(h))
	if more := drain(h); before.passed+more > budgetItems || more == 0 && h.opened.Condition == engine.StateOK && before.passed < budgetItems/2 {
		t.Errorf("%d items passed, then %d more, of %d", before.passed, more, budgetItems)
	}
	h.clock.set(-time.Hour)
	h.clock.pass(12 * time.Minute)
	if h.IsOpen("risk", "checkout", h.clock.Now()) {
		t.Error("a bypass is open past its end")
	}
	if err := h.Close(h.clock.Now()); err != nil {
		t.Error(err)
	}
}

// open10 is a bypass from now on.
func open10(h *host) model.Directive { return open(10*time.Minute, h.clock.Now().Wall) }

// swept says which of the places of a sweep are tried: by IC_SWEEP all, or every
// nth from the kth ("K/N", for a night in parts), and without it one in a stride.
func swept(t testing.TB, stride int) (first, step int) {
	t.Helper()
	switch part := os.Getenv("IC_SWEEP"); part {
	case "":
		return 0, stride * thinned
	case "all":
		return 0, 1
	default:
		if n, err := fmt.Sscanf(part, "%d/%d", &first, &step); n != 2 || err != nil || first < 0 || step <= first {
			t.Fatalf("IC_SWEEP is %q; write all, or 0/8 to 7/8", part)
		}
		return first, step
	}
}
