package incident

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

// observed is what was last heard from outside: readings, host reports,
// carriers. Everything in it has an age, and nothing in it is ever invented.
type observed struct {
	mu       sync.Mutex
	readings map[string]model.Reading
	hosts    []model.HostView
	hostsAt  time.Time
	carriers []carrierState
	board    Cell
	boardAt  time.Time
	posted   map[string]string            // proposals on the board, by id
	verified map[string]*directive.Signed // by token; nil for one that does not verify
}

// carrierState is one carrier as last read. Tokens of the last successful read
// stay when a later one fails: they were there.
type carrierState struct {
	tokens map[string]string
	readAt time.Time
	note   string // what is wrong with it although it was read
	err    error
}

// refresh asks all sources at once; done is called after each has answered.
func (s *observed) refresh(ctx context.Context, o *Options, done func()) {
	var wait sync.WaitGroup
	ask := func(read func(context.Context)) {
		wait.Go(func() {
			limited, cancel := context.WithTimeout(ctx, readLimit)
			defer cancel()
			read(limited)
			done()
		})
	}
	if o.Readings != nil {
		ask(func(ctx context.Context) { s.takeReadings(o.Readings(ctx)) })
	}
	if o.Hosts != nil {
		ask(func(limited context.Context) {
			hosts := o.Hosts(limited)
			if ctx.Err() == nil { // else it was cut off by whoever asked, and says nothing
				s.takeHosts(hosts, o.Clock.Now().Wall)
			}
		})
	}
	for i, c := range o.Carriers {
		ask(func(ctx context.Context) {
			tokens, note, err := c.Read(ctx)
			s.takeCarrier(i, carrierState{tokens: tokens, note: note, err: err, readAt: o.Clock.Now().Wall})
		})
	}
	if o.Board != nil {
		ask(func(ctx context.Context) {
			if cell, err := o.Board.Lease(ctx); err == nil {
				s.takeBoard(cell, o.Clock.Now().Wall)
			}
		})
		ask(func(ctx context.Context) {
			if posted, err := o.Board.Proposals(ctx); err == nil {
				s.takePosted(posted)
			}
		})
	}
	wait.Wait()
}

func (s *observed) takeReadings(r map[string]model.Reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readings = r
}

func (s *observed) takeHosts(h []model.HostView, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts, s.hostsAt = h, at
}

func (s *observed) takeCarrier(i int, read carrierState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if read.err != nil {
		s.carriers[i].err = read.err
		return
	}
	s.carriers[i] = read
}

func (s *observed) takePosted(posted map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posted = posted
}

func (s *observed) takeBoard(c Cell, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.board, s.boardAt = c, at
}

// heard is a copy of what was heard, for one world.
type heard struct {
	readings map[string]model.Reading
	hosts    []model.HostView
	hostsAt  time.Time
	carriers []carrierState
	board    Cell
	boardAt  time.Time
	posted   map[string]string
}

func (s *observed) copy() heard {
	s.mu.Lock()
	defer s.mu.Unlock()
	return heard{
		readings: maps.Clone(s.readings), hosts: slices.Clone(s.hosts), hostsAt: s.hostsAt,
		carriers: slices.Clone(s.carriers), board: s.board, boardAt: s.boardAt, posted: s.posted,
	}
}

// maxVerified bounds the cache of verified tokens: far more than one incident
// has, far less than memory.
const maxVerified = 4096

// verify checks a token once; the answer for the same bytes does not change.
func (s *observed) verify(token string, realm directive.Realm, fleet string) *directive.Signed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.verified[token]; ok {
		return known
	}
	signed, err := directive.Verify(token, realm, fleet)
	if err != nil {
		signed = nil
	}
	if s.verified == nil || len(s.verified) >= maxVerified {
		s.verified = make(map[string]*directive.Signed)
	}
	s.verified[token] = signed
	return signed
}
