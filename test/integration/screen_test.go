//go:build integration && linux

package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// screen is a terminal of a person: a tmux server of its own with one window.
type screen struct {
	t             *testing.T
	socket        string
	env           []string
	width, height int

	// says is what every frame has to say while the console is in front; nil: a
	// shell is.
	says   []*regexp.Regexp
	frames int       // captured while the console was in front
	wrong  time.Time // since when a frame has not said it
}

// settle is how long a frame may lack what it has to say: tmux shows what it has
// read so far, also in the middle of a redraw.
const settle = time.Second

// newScreen starts a shell in a terminal that ends with the test.
func newScreen(t *testing.T, width, height int, env []string) *screen {
	t.Helper()
	s := &screen{t: t, socket: filepath.Join(t.TempDir(), "tmux"), env: env, width: width, height: height}
	t.Cleanup(func() { _, _ = s.try("kill-server") }) // it may have ended with its shell
	s.tmux("-f", os.DevNull, "new-session", "-d", "-s", "person", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), shell)
	s.until("a prompt of the shell", func(f frame) bool { return f.has(prompt) })
	return s
}

const (
	prompt = "shell>"
	shell  = "exec env PS1='" + prompt + " ' ENV= sh -i"
)

// tmux runs one command of tmux.
func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := s.try(args...)
	if err != nil {
		s.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (s *screen) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-S", s.socket}, args...)...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// ask is one value that tmux knows about the window.
func (s *screen) ask(format string) string {
	return strings.TrimSpace(s.tmux("display-message", "-p", "-t", "person", "#{"+format+"}"))
}

// frame is what stands on the screen.
type frame struct{ text string }

func (f frame) has(text string) bool { return strings.Contains(f.text, text) }

func (f frame) matches(pattern string) bool { return regexp.MustCompile(pattern).MatchString(f.text) }

// part is what a pattern's first group holds, "" if it is not there.
func (f frame) part(pattern string) string {
	if m := regexp.MustCompile(pattern).FindStringSubmatch(f.text); m != nil {
		return m[1]
	}
	return ""
}

func (f frame) lines() []string { return strings.Split(strings.TrimRight(f.text, "\n"), "\n") }

// words is the text of a frame as one line, without what the console draws
// around it.
func (f frame) words() string {
	var all []string
	for _, l := range f.lines() {
		all = append(all, strings.Fields(strings.Trim(l, ":# "))...)
	}
	return strings.Join(all, " ")
}

// look captures the screen, and holds it against what every frame has to say.
func (s *screen) look() frame {
	s.t.Helper()
	f := frame{s.tmux("capture-pane", "-p", "-t", "person")}
	if s.says == nil {
		return f
	}
	s.frames++
	flaw := s.flaw(f)
	switch {
	case flaw == "":
		s.wrong = time.Time{}
	case s.wrong.IsZero():
		s.wrong = time.Now()
	case time.Since(s.wrong) > settle:
		s.t.Fatalf("for more than %s the screen %s:\n%s", settle, flaw, f.text)
	}
	return f
}

// flaw is what is wrong with a frame of the console: something that every frame
// has to say is missing, a line leaves the window, or there is garbage on it.
func (s *screen) flaw(f frame) string {
	for _, p := range s.says {
		if !p.MatchString(f.text) {
			return fmt.Sprintf("has not shown %q", p)
		}
	}
	lines := f.lines()
	if len(lines) != s.height {
		return fmt.Sprintf("had %d lines in a window of %d", len(lines), s.height)
	}
	for i, l := range lines {
		switch {
		case utf8.RuneCountInString(l) != s.width || l[0] != lines[0][0] || l[len(l)-1] != lines[0][len(lines[0])-1]:
			return fmt.Sprintf("had no edge around line %d", i+1)
		case strings.ContainsFunc(l, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }):
			return fmt.Sprintf("had garbage in line %d", i+1)
		}
	}
	return ""
}

// until looks until something is seen.
func (s *screen) until(what string, seen func(frame) bool) frame {
	s.t.Helper()
	return s.within(patience, what, seen)
}

func (s *screen) within(limit time.Duration, what string, seen func(frame) bool) frame {
	s.t.Helper()
	deadline, tick := time.Now().Add(limit), time.NewTicker(poll)
	defer tick.Stop()
	for {
		f := s.look()
		if seen(f) {
			return f
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("within %s the screen did not show %s:\n%s", limit, what, f.text)
		}
		<-tick.C
	}
}

// shows waits until all of some texts stand on the screen, wherever its lines are
// broken.
func (s *screen) shows(texts ...string) frame {
	s.t.Helper()
	return s.until(strings.Join(texts, " and "), func(f frame) bool {
		words := f.words()
		for _, text := range texts {
			if !strings.Contains(words, text) {
				return false
			}
		}
		return true
	})
}

// press sends keys by their names.
func (s *screen) press(keys ...string) {
	s.t.Helper()
	s.tmux(append([]string{"send-keys", "-t", "person"}, keys...)...)
}

// enter sends a line to a prompt.
func (s *screen) enter(line string) {
	s.t.Helper()
	s.tmux("send-keys", "-t", "person", "-l", "--", line)
	s.press("Enter")
}

// tries is how often a person answers a dialog whose verdict changes under their
// fingers.
const tries = 5

// typed types into a confirmation as fingers do: one character after the other,
// each seen before the next. What comes faster is taken for a paste.
func (s *screen) typed(text string) {
	s.t.Helper()
	for range tries {
		s.until("a dialog that takes keys", func(f frame) bool {
			return f.has("to give the order") && !f.has("after a moment of quiet")
		})
		if s.keyed(text) {
			s.press("Enter")
			return
		}
	}
	s.t.Fatalf("%q could not be typed in %d tries:\n%s", text, tries, s.look().text)
}

// keyed types a text. It is false when the order has become impossible meanwhile:
// once it is possible again, the dialog asks anew.
func (s *screen) keyed(text string) bool {
	s.t.Helper()
	for i := range text {
		s.tmux("send-keys", "-t", "person", "-l", "--", text[i:i+1])
		so, impossible := "> "+strings.TrimRight(text[:i+1], " "), false
		s.until("what was typed so far: "+so, func(f frame) bool {
			impossible = f.has("cannot be given now")
			return impossible || f.has(so)
		})
		if impossible {
			return false
		}
	}
	s.until("that the text is complete", func(f frame) bool { return f.has("enter gives the order") })
	return true
}

// yes answers a confirmation that one key gives.
func (s *screen) yes() {
	s.t.Helper()
	s.until("a dialog that one key answers", func(f frame) bool {
		return f.has("y  gives the order") && !f.has("after a moment of quiet")
	})
	s.press("y")
}

// choose picks an entry of the list in front by typing its name.
func (s *screen) choose(label string) {
	s.t.Helper()
	s.tmux("send-keys", "-t", "person", "-l", "--", label)
	at := regexp.MustCompile(`(?m)^.>..` + regexp.QuoteMeta(label) + ` `)
	s.until("that "+label+" is selected", func(f frame) bool { return at.MatchString(f.text) })
	s.press("Enter")
}

// resize makes the window another size.
func (s *screen) resize(width, height int) {
	s.t.Helper()
	s.tmux("resize-window", "-t", "person", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
	s.width, s.height = width, height
}

// whole waits for a frame without a flaw.
func (s *screen) whole() frame {
	s.t.Helper()
	return s.until(fmt.Sprintf("a whole frame of %d by %d", s.width, s.height), func(f frame) bool { return s.flaw(f) == "" })
}

// renew replaces a shell whose terminal was left as it was by what was killed.
func (s *screen) renew() {
	s.t.Helper()
	s.says = nil
	s.tmux("respawn-pane", "-k", "-t", "person", shell)
	s.until("a prompt of a new shell", func(f frame) bool { return f.has(prompt) && !f.has("shop-demo") })
}

// inFront is the process that the shell of the window has started.
func (s *screen) inFront() int {
	s.t.Helper()
	shell := s.ask("pane_pid")
	raw, err := os.ReadFile(filepath.Join("/proc", shell, "task", shell, "children"))
	if err != nil {
		s.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		s.t.Fatalf("the shell has the children %q, want one: %v", raw, err)
	}
	return pid
}
