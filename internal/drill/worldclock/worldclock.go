package worldclock

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

const (
	// MaxSpeed bounds the speed of a demo. At 600 a minute of real time is ten
	// hours; above that a poll of one second misses what it should show.
	MaxSpeed = 600
	// maxAnswer bounds the body of a clock answer; a real one has 120 bytes.
	maxAnswer = 1024
	// fetchLimit is the longest wait for a clock on loopback, in real time.
	fetchLimit = 3 * time.Second
)

// Path is where a world serves its clock.
const Path = "/clock"

// Clock is virtual time: began at a virtual start, and runs speed times as fast
// as the real time that its source gives. It is safe for concurrent use.
type Clock struct {
	began  time.Time // virtual: when the world began, from which Boot counts
	anchor time.Time // virtual time at base
	base   time.Time // real time, with a monotonic reading
	speed  int64
	real   func() time.Time
}

var _ model.Clock = (*Clock)(nil)

// New starts a clock at start that runs at speed, from 1 to MaxSpeed. real is
// the machine's clock; its readings must carry Go's monotonic part, or a step
// of the machine's wall clock becomes a step of the demo.
func New(start time.Time, speed int, real func() time.Time) (*Clock, error) {
	if speed < 1 || speed > MaxSpeed {
		return nil, fmt.Errorf("start the demo's clock: speed %d is not between 1 and %d", speed, MaxSpeed)
	}
	start = start.UTC().Round(0)
	return &Clock{began: start, anchor: start, base: real(), speed: int64(speed), real: real}, nil
}

// At is the virtual time now, in UTC.
func (c *Clock) At() time.Time {
	return c.anchor.Add(c.real().Sub(c.base) * time.Duration(c.speed))
}

// Now implements model.Clock. Boot counts virtual time since the world began,
// under one boot id for the life of the world.
func (c *Clock) Now() model.Instant {
	at := c.At()
	return model.Instant{
		Wall: at, Boot: at.Sub(c.began), State: model.ClockOK,
		BootID: fmt.Sprintf("demo-%d", c.began.UnixMilli()),
	}
}

// Speed is how many virtual seconds pass in one real second.
func (c *Clock) Speed() int { return int(c.speed) }

// Real converts a virtual span to the real time it takes, for a loop that has
// to wake at a virtual deadline.
func (c *Clock) Real(virtual time.Duration) time.Duration {
	return virtual / time.Duration(c.speed)
}

// answer is the body of GET /clock.
type answer struct {
	At    time.Time `json:"at"`    // virtual now
	Began time.Time `json:"began"` // virtual start of the world
	Speed int       `json:"speed"`
}

// ServeHTTP answers GET /clock.
func (c *Clock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the clock is read with GET", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	// An error here is a client that has gone.
	_ = json.NewEncoder(w).Encode(answer{At: c.At(), Began: c.began, Speed: int(c.speed)})
}

// Fetch reads the clock of the world at base (such as "http://127.0.0.1:4711")
// once and returns a copy that goes on by itself. Half of the time that the
// answer took is taken as the way back.
func Fetch(ctx context.Context, client *http.Client, base string, real func() time.Time) (*Clock, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+Path, nil)
	if err != nil {
		return nil, fmt.Errorf("read the demo's clock at %s: %w", base, err)
	}
	asked := real()
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read the demo's clock: %w: is the demo still running?", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	got := real()
	if err != nil {
		return nil, fmt.Errorf("read the demo's clock at %s: %w", base, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the demo's clock at %s: it answered %s", base, resp.Status)
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || a.At.IsZero() || a.Began.After(a.At) || a.Speed < 1 || a.Speed > MaxSpeed {
		return nil, fmt.Errorf("read the demo's clock at %s: this is not a clock: does another program listen there?", base)
	}
	way := got.Sub(asked) / 2 * time.Duration(a.Speed)
	return &Clock{began: a.Began.UTC(), anchor: a.At.UTC().Add(way), base: got, speed: int64(a.Speed), real: real}, nil
}
