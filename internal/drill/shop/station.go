package shop

// station is one host as a queue: work that arrives in a second, a second of
// capacity, and what waits.
type station struct {
	backlog int64 // µs of work waiting
	cold    int64 // ppm: how cold the caches of its optional features are
}

// served is how a host got through one second.
type served struct {
	cpu     int64 // ppm
	stretch int64 // ppm: latency against that at the design load, at least one
	wait    int64 // µs that a request waits in the queue
	refused int64 // ppm of the second's work that found the queue full
}

// worst utilisation at which the stretch still grows; beyond it the backlog does.
const saturated = 950_000

// serve takes in a second's work, in ppm of a host's capacity. Latency follows
// 1/(1 - utilisation), and is what the parameters say at the design load.
func (s *station) serve(offered, design, limit int64) served {
	before := s.backlog
	s.backlog = max(0, before+offered-million)
	out := served{cpu: min(million, before+offered), wait: s.backlog, stretch: million}
	if s.backlog > limit {
		out.refused = min(million, part(s.backlog-limit, million, offered))
		s.backlog, out.wait = limit, limit
	}
	if busy := min(offered, saturated); busy > design {
		out.stretch = part(million-design, million, million-busy)
	}
	return out
}

// use warms the caches of optional features, or lets them cool.
func (s *station) use(optional bool, p *Params) {
	if optional {
		s.cold = max(0, s.cold-million/p.WarmsUp)
		return
	}
	s.cold = min(million, s.cold+million/p.CoolsDown)
}

// breaker opens after seconds of failure and closes after seconds of success.
type breaker struct {
	open bool
	run  int64 // seconds of evidence against the present state
}

func (b *breaker) observe(failing bool, opens, closes int64) {
	if failing == b.open {
		b.run = 0
		return
	}
	b.run++
	if !b.open && b.run >= opens || b.open && b.run >= closes {
		b.open, b.run = !b.open, 0
	}
}

// of is share (ppm) of n.
func of(n, share int64) int64 { return n * share / million }

// part is n x by / whole, 0 of nothing.
func part(n, by, whole int64) int64 {
	if whole == 0 {
		return 0
	}
	return n * by / whole
}
