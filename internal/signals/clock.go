package signals

import (
	"net/http"
	"strings"
	"time"
)

// ClockLimit is the most that the server's clock and ours may differ before it is
// said. Machines that keep time by NTP are within a second of each other; ten
// seconds are a third of the shortest age that a sample is usually given.
const ClockLimit = 10 * time.Second

// ServerClock is the clock of Prometheus beside ours, as of its last answer.
type ServerClock struct {
	Ahead time.Duration // of ours; negative when it is behind
	At    time.Time     // when this was found out, by our clock; zero: not yet
}

// Off reports whether the two differ by more than ClockLimit.
func (c ServerClock) Off() bool { return c.Ahead.Abs() > ClockLimit }

// Clock compares the server's clock with ours: by the time at which it evaluated
// its last query, and by the Date of an answer that came after that, which is
// right to about a second.
func (s *Source) Clock() ServerClock {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	if s.guard.evaluated.At.Before(s.guard.dated.At) {
		return s.guard.dated
	}
	return s.guard.evaluated
}

// readDate takes the Date of an answer, which is cut to seconds, against the
// middle of our wait. An answer out of a cache says nothing about now.
func (g *guard) readDate(resp *http.Response, sent, received time.Time) {
	date, err := http.ParseTime(resp.Header.Get("Date"))
	cached := strings.TrimLeft(resp.Header.Get("Age"), "0") != ""
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && !cached {
		g.dated = compare(date.Add(time.Second/2), sent, received)
	}
}

// readEvaluation takes the time at which an instant query was evaluated. One that
// lies far behind the Date of the same answer was evaluated long ago and kept by
// a cache: then the Date stands.
func (g *guard) readEvaluation(at, sent, received time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := compare(at, sent, received)
	if g.dated.At.IsZero() || g.dated.Ahead-now.Ahead <= ClockLimit {
		g.evaluated = now
	}
}

func compare(theirs, sent, received time.Time) ServerClock {
	return ServerClock{Ahead: theirs.Sub(sent.Add(received.Sub(sent) / 2)), At: received}
}
