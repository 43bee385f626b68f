package cache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/degradedmode/ic/host/fallback"
)

// Defaults of a Config.
const (
	DefaultTimeout    = time.Second
	DefaultReserve    = 10 * time.Millisecond // to write an answer of some kilobytes
	DefaultRetryAfter = time.Second
	DefaultEntries    = 10_000
	DefaultBytes      = 16 << 20
	DefaultFetches    = 16
)

const (
	valueShare = 16  // a value may take a sixteenth of all bytes: one cannot push out the rest
	overhead   = 256 // bytes of an entry besides its value and its key
	early      = 0.2 // the share of Fresh in which an entry is renewed ahead of time
)

// Config of a cache. Name, Fresh and Size are required.
type Config[V any] struct {
	Name  string        // of the dependency: in errors and metrics
	Fresh time.Duration // how long an answer is served as it is
	Stale time.Duration // how long after that it is served when the dependency fails; 0: not at all

	// Size is how many bytes a value takes.
	Size func(V) int
	// Check says what is wrong with a value, nil if nothing is. It is asked before a
	// value is kept and whenever one is served. nil: every value is right.
	Check func(Key, V) error

	Timeout    time.Duration // of one fetch; 0: DefaultTimeout
	Reserve    time.Duration // of the caller's time, kept for the answer itself; 0: DefaultReserve
	RetryAfter time.Duration // after a failed fetch, roughly: until then a stale answer is served at once; 0: DefaultRetryAfter

	MaxEntries int   // 0: DefaultEntries
	MaxBytes   int64 // 0: DefaultBytes; a value may take a sixteenth of it
	MaxFetches int   // at the same time, of all keys; 0: DefaultFetches

	Fallbacks *fallback.Counters // counts stale answers under Name, by reason and age; nil: nobody does

	Now  func() time.Time // nil: time.Now
	Rand func() float64   // from 0 to below 1, safe for concurrent use; nil: math/rand/v2
}

func (cfg Config[V]) withDefaults() (Config[V], error) {
	set(&cfg.Timeout, DefaultTimeout)
	set(&cfg.Reserve, DefaultReserve)
	set(&cfg.RetryAfter, DefaultRetryAfter)
	set(&cfg.MaxEntries, DefaultEntries)
	set(&cfg.MaxBytes, DefaultBytes)
	set(&cfg.MaxFetches, DefaultFetches)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	switch {
	case cfg.Name == "":
		return cfg, errors.New("make a cache: it needs the name of the dependency behind it")
	case cfg.Size == nil:
		return cfg, fmt.Errorf("make a cache of %s: without Size its bytes cannot be bounded", cfg.Name)
	case cfg.Fresh <= 0 || cfg.Stale < 0:
		return cfg, fmt.Errorf("make a cache of %s: fresh for %s and stale for %s; fresh has to be above zero, stale not below", cfg.Name, cfg.Fresh, cfg.Stale)
	case min(cfg.Timeout, cfg.Reserve, cfg.RetryAfter) < 0 || min(cfg.MaxEntries, cfg.MaxFetches) < 0 || cfg.MaxBytes < 0:
		return cfg, fmt.Errorf("make a cache of %s: a limit is below zero", cfg.Name)
	}
	return cfg, nil
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
