package decisions

import (
	"math/big"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// TierRecovery is the least time from entering a tier until it has been left and
// the last step was watched.
type TierRecovery struct {
	Tier     int            `json:"tier"`
	Dwell    model.Duration `json:"dwell"`
	Steps    int            `json:"steps"`
	RampStep model.Duration `json:"ramp_step"`
	Takes    model.Duration `json:"takes"`     // dwell + steps x ramp_step
	ToNormal model.Duration `json:"to_normal"` // this tier and all below it, one after the other
}

// RecoveryOf computes dwell + ramp steps x ramp_step for each tier, and their sum
// down to tier 0. Known-good signals for that long are assumed.
func RecoveryOf(ladder *policy.LadderDoc) []TierRecovery {
	out := []TierRecovery{}
	if ladder == nil {
		return out
	}
	var all int64
	for i := range ladder.Tiers {
		t := &ladder.Tiers[i]
		steps := max(len(t.Ramp), 1) // without a ramp it goes in one step
		takes := sum(int64(t.Dwell), product(int64(steps), max(int64(t.RampStep), 0)))
		all = sum(all, takes)
		out = append(out, TierRecovery{
			Tier: t.Tier, Dwell: t.Dwell, Steps: steps, RampStep: t.RampStep,
			Takes: model.Duration(takes), ToNormal: model.Duration(all),
		})
	}
	return out
}

// Cost is what being able to degrade costs and keeps in a year.
type Cost struct {
	Engineers   model.Money `json:"engineers"`          // engineers x month x 12
	Storage     model.Money `json:"storage"`            // storage x 12
	Total       model.Money `json:"total"`              // both
	Keeps       model.Money `json:"keeps"`              // hourly x lasts / 60 x outages x retained %
	Net         model.Money `json:"net"`                // keeps - total, below zero when it costs more
	OneCurrency bool        `json:"one_currency"`       // false: total or net cannot be said
	Practised   []string    `json:"practised"`          // services whose last game day is at most a quarter ago
	Unpractised []string    `json:"unpractised"`        // the others
	Assumed     bool        `json:"assumed"`            // the policy holds the assumptions; false: nothing above can be said
	Saturated   bool        `json:"saturated,omitzero"` // an amount is larger than can be written
}

// quarter is how old a game day may be: the longest three months have 92 days.
const quarter = 92 * 24 * time.Hour

const (
	monthsPerYear  = 12
	minutesPerHour = 60
	hundred        = 100
)

// CostOf computes the programme of a year from the assumptions of the policy. What
// it costs is rounded up to the next cent, what it keeps down.
func CostOf(p *policy.Programme, ladder *policy.LadderDoc, now time.Time) Cost {
	c := Cost{Practised: []string{}, Unpractised: []string{}}
	if ladder != nil {
		for _, name := range sorted(ladder.Services) {
			day := ladder.Services[name].GameDay
			if day.IsZero() || day.After(now) || now.Sub(day) > quarter {
				c.Unpractised = append(c.Unpractised, name)
			} else {
				c.Practised = append(c.Practised, name)
			}
		}
	}
	if p == nil {
		return c
	}
	engineers, ok1 := exact(p.Engineers)
	retained, ok2 := exact(p.Retained)
	if !ok1 || !ok2 || p.EngineerMonth.Minor < 0 || p.Storage.Minor < 0 || p.Hourly.Minor < 0 || p.Outages < 0 || p.Lasts < 0 {
		return c
	}
	c.Assumed = true
	c.OneCurrency = p.EngineerMonth.Currency == p.Storage.Currency && p.Storage.Currency == p.Hourly.Currency
	cents := func(m model.Money, factors ...*big.Rat) *big.Rat {
		r := big.NewRat(m.Minor, 1)
		for _, f := range factors {
			r.Mul(r, f)
		}
		return r
	}
	year := big.NewRat(monthsPerYear, 1)
	people, storage := ceiling(cents(p.EngineerMonth, engineers, year)), ceiling(cents(p.Storage, year))
	keeps := floor(cents(p.Hourly, big.NewRat(int64(p.Lasts), minutesPerHour), big.NewRat(int64(p.Outages), 1), retained, big.NewRat(1, hundred)))
	c.Engineers = model.Money{Minor: capped(people), Currency: p.EngineerMonth.Currency}
	c.Storage = model.Money{Minor: capped(storage), Currency: p.Storage.Currency}
	c.Keeps = model.Money{Minor: capped(keeps), Currency: p.Hourly.Currency}
	total := new(big.Int).Add(people, storage)
	c.Saturated = !total.IsInt64() || !keeps.IsInt64()
	if c.OneCurrency {
		c.Total = model.Money{Minor: capped(total), Currency: p.Storage.Currency}
		c.Net = model.Money{Minor: c.Keeps.Minor - c.Total.Minor, Currency: p.Storage.Currency}
	}
	return c
}
