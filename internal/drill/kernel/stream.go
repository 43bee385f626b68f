package kernel

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// Stream is the randomness of one component. It gives integers only: a floating
// point draw would tie the log to the rounding of one processor.
type Stream struct{ rng *rand.Rand }

// NewStream makes the stream of component under seed. Components do not share
// a stream, so one that draws more does not shift the fate of the others.
func NewStream(seed uint64, component string) *Stream {
	var head [8]byte
	binary.BigEndian.PutUint64(head[:], seed)
	sum := sha256.Sum256(append(head[:], component...))
	return &Stream{rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])))}
}

// Stream returns the stream of component, the same one at every call.
func (k *Kernel) Stream(component string) *Stream {
	s, ok := k.streams[component]
	if !ok {
		s = NewStream(k.seed, component)
		k.streams[component] = s
	}
	return s
}

// Below draws an integer from [0, n); n must be positive.
func (s *Stream) Below(n int64) int64 { return s.rng.Int64N(n) }

// Between draws an integer from [low, high].
func (s *Stream) Between(low, high int64) int64 { return low + s.rng.Int64N(high-low+1) }

// Hex draws n bytes and prints them in hex.
func (s *Stream) Hex(n int) string {
	out := make([]byte, 0, n+8)
	for len(out) < n {
		out = binary.BigEndian.AppendUint64(out, s.rng.Uint64())
	}
	return fmt.Sprintf("%x", out[:n])
}

// Read fills p and never fails: the entropy of ids and keys in a simulation.
// Must not be used for anything that production trusts.
func (s *Stream) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.rng.Uint32())
	}
	return len(p), nil
}
