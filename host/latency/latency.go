package latency

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	fine    = 5         // bits: an octave has 32 buckets, so that a bucket is 3.2 % wide at most
	octaves = 27 - fine // up to 2^27 us
	buckets = (octaves + 1) << fine

	// Longest is the longest time that is told from longer ones: 134 s.
	Longest = time.Duration(1<<27-1) * time.Microsecond
)

// Histogram counts how long things took. The zero value is empty and ready. It is
// safe for concurrent use; it must not be copied.
type Histogram struct {
	count   atomic.Uint64
	buckets [buckets]atomic.Uint64
}

// Observe counts one duration. A negative one counts as zero.
func (h *Histogram) Observe(d time.Duration) {
	h.buckets[bucketOf(d)].Add(1)
	h.count.Add(1)
}

// Count is how many were counted since the last Take.
func (h *Histogram) Count() uint64 { return h.count.Load() }

// Take empties the histogram and returns what was in it. What is observed at the
// same time counts once, here or in the next.
func (h *Histogram) Take() Summary {
	var s Summary
	for i := range h.buckets {
		s.buckets[i] = h.buckets[i].Swap(0)
		s.Count += s.buckets[i]
	}
	h.count.Add(-s.Count)
	return s
}

// Summary is what a histogram held.
type Summary struct {
	Count   uint64
	buckets [buckets]uint64
}

// Quantile is the time within which a share q of all stayed, from 0 to 1. It is
// false when nothing was counted: no requests are no fast requests.
func (s *Summary) Quantile(q float64) (d time.Duration, ok bool) {
	if s.Count == 0 || !(q >= 0 && q <= 1) {
		return 0, false
	}
	rank := max(1, uint64(math.Ceil(q*float64(s.Count))))
	var seen uint64
	for i, n := range s.buckets {
		if seen += n; seen >= rank {
			return edge(i), true
		}
	}
	return Longest, true
}

// bucketOf places a duration by its highest bits, in microseconds rounded up.
func bucketOf(d time.Duration) int {
	us := uint64((max(0, min(d, Longest)) + time.Microsecond - 1) / time.Microsecond)
	if us < 1<<fine {
		return int(us)
	}
	octave := bits.Len64(us) - 1 - fine
	return octave<<fine + int(us>>octave)
}

// edge is the longest duration of a bucket.
func edge(i int) time.Duration {
	if i < 1<<fine {
		return time.Duration(i) * time.Microsecond
	}
	octave := i>>fine - 1
	lowest := uint64(i-octave<<fine) << octave
	return time.Duration(lowest+1<<octave-1) * time.Microsecond
}
