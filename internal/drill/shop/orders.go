package shop

import "github.com/degradedmode/ic/internal/drill/kernel"

// amounts is the distribution of an order's amount: cents at each share (ppm),
// straight in between. A log-normal with a median of 38.00 and sigma 0.9, cut at
// 1,200.00: 62 % of the orders are below 50.00, the mean is 57.35.
var amounts = [...]struct{ share, cents int64 }{
	{0, 100}, {1_000, 235}, {10_000, 468}, {30_000, 699}, {50_000, 865}, {100_000, 1_199}, {150_000, 1_495},
	{200_000, 1_782}, {250_000, 2_071}, {300_000, 2_370}, {350_000, 2_686}, {400_000, 3_025}, {450_000, 3_394},
	{500_000, 3_800}, {550_000, 4_255}, {600_000, 4_773}, {650_000, 5_375}, {700_000, 6_092}, {750_000, 6_973},
	{800_000, 8_105}, {850_000, 9_658}, {900_000, 12_042}, {930_000, 14_342}, {950_000, 16_699},
	{970_000, 20_650}, {980_000, 24_128}, {990_000, 30_837}, {995_000, 38_600}, {998_000, 50_671},
	{999_000, 61_326}, {999_900, 107_998}, {million, 120_000},
}

// amountAt is the amount in cents of which share (ppm) of the orders are below.
func amountAt(share int64) int64 {
	for i := 1; i < len(amounts); i++ {
		a, b := amounts[i-1], amounts[i]
		if share <= b.share {
			return a.cents + (share-a.share)*(b.cents-a.cents)/(b.share-a.share)
		}
	}
	return amounts[len(amounts)-1].cents
}

// How an order ended.
const (
	Scored   = "scored"   // payment-risk said yes
	Unscored = "unscored" // a bypass let it skip the check
	Refused  = "refused"  // turned away on purpose: over the bypass, or read-only
	Failed   = "failed"   // lost: a timeout, or no room
)

// OrderOutcomes lists them in the order of their tallies.
var OrderOutcomes = [...]string{Scored, Unscored, Refused, Failed}

// Order is one attempt to buy.
type Order struct {
	Host    string // empty: no checkout host was up
	Cents   int64
	Outcome string
}

// Tally is a number of orders and what they are worth.
type Tally struct{ Count, Cents int64 }

// arrivalSlots is into how many chances a second is divided; with one order at
// most in each, the number of orders is close to a Poisson one up to 30 times
// the design load.
const arrivalSlots = 64

// arrival is an order before it meets a host: its amount and where the load
// balancer would put it. Both are drawn for every order, whoever is up, so that
// two runs of one seed meet the same customers whatever was decided in them.
type arrival struct{ cents, place int64 }

// arrivals draws the orders of one second; rate is in millionths of an order
// per second.
func arrivals(s *kernel.Stream, rate int64, into []arrival) []arrival {
	into = into[:0]
	for range arrivalSlots {
		hit := s.Below(million) < rate/arrivalSlots
		amount, place := s.Below(million), s.Below(million)
		if hit {
			into = append(into, arrival{amountAt(amount), place})
		}
	}
	return into
}
