package shop

// Bounds are the upper bounds of the latency histogram's buckets in µs. 40,
// 800 and 900 ms and 3 s are among them because the documents speak about them.
var Bounds = [...]int64{
	5_000, 10_000, 20_000, 30_000, 40_000, 60_000, 80_000, 100_000, 150_000, 200_000, 300_000, 400_000,
	600_000, 800_000, 900_000, 1_000_000, 1_500_000, 2_000_000, 3_000_000, 5_000_000, 10_000_000,
}

// shape is the distribution of every service's own latency: the share (ppm) of
// requests that take at most x (ppm of the p99). A log-normal with sigma 0.6,
// straight between the points: p50 is a quarter and p95 two thirds of the p99.
var shape = [...]struct{ x, share int64 }{
	{0, 0}, {38_776, 1_000}, {61_322, 10_000}, {92_299, 50_000}, {114_780, 100_000}, {149_452, 200_000},
	{180_785, 300_000}, {212_712, 400_000}, {247_633, 500_000}, {288_287, 600_000}, {339_199, 700_000},
	{410_313, 800_000}, {461_188, 850_000}, {534_257, 900_000}, {587_376, 925_000}, {664_383, 950_000},
	{765_418, 970_000}, {849_116, 980_000}, {910_506, 985_000}, {1_000_000, 990_000}, {1_161_473, 995_000},
	{1_392_483, 998_000}, {1_581_432, 999_000}, {2_306_200, 999_900}, {3_000_000, million},
}

// meanOfP99 is the mean of that distribution, in ppm of its p99.
const meanOfP99 = 296_000

// within is the share (ppm) of requests with this p99 that take at most t.
func within(t, p99 int64) int64 {
	i := 0
	return walk(&i, part(t, million, p99))
}

// walk is the share at x; *from is where the last, smaller x was found.
func walk(from *int, x int64) int64 {
	if x <= 0 {
		return 0
	}
	for *from < len(shape) && shape[*from].x < x {
		*from++
	}
	if *from == len(shape) {
		return million
	}
	a, b := shape[*from-1], shape[*from]
	return a.share + (x-a.x)*(b.share-a.share)/(b.x-a.x)
}

// histogram counts requests (in millionths) by latency, cumulatively.
type histogram struct {
	le    [len(Bounds)]int64
	count int64
	sum   int64 // µs of all requests together
}

// add counts n requests whose own latency has this p99, after a wait.
func (h *histogram) add(n, p99, wait int64) {
	if n <= 0 {
		return
	}
	h.count += n
	h.sum += of(n, wait+of(p99, meanOfP99))
	at := 0
	for i, bound := range Bounds {
		share := walk(&at, part(bound-wait, million, p99))
		h.le[i] += of(n, share)
	}
}

// spike counts n requests that all take t: those that waited out a timeout.
func (h *histogram) spike(n, t int64) {
	if n <= 0 {
		return
	}
	h.count += n
	h.sum += of(n, t)
	for i, bound := range Bounds {
		if t <= bound {
			h.le[i] += n
		}
	}
}

// merge adds another histogram.
func (h *histogram) merge(other *histogram) {
	h.count += other.count
	h.sum += other.sum
	for i := range h.le {
		h.le[i] += other.le[i]
	}
}

// quantile is the latency in µs that share (ppm) of the requests do not exceed,
// straight inside a bucket as PromQL's histogram_quantile has it.
func (h *histogram) quantile(share int64) int64 {
	rank := of(h.count, share)
	low, below := int64(0), int64(0)
	for i, bound := range Bounds {
		if h.le[i] >= rank {
			return low + part(bound-low, rank-below, h.le[i]-below)
		}
		low, below = bound, h.le[i]
	}
	return Bounds[len(Bounds)-1]
}
