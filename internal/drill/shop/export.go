package shop

import "strconv"

// Sink takes one sample; labels come in pairs.
type Sink func(name string, value float64, pairs ...string) error

// Collect hands the present state to sink, as a scrape of every host would find
// it. A host that is down, and payment-risk while it answers nobody, has only
// its series up, with 0.
//
//	up                                    service, host
//	shop_requests_total                   service, host, outcome
//	shop_cpu_share                        service, host              0 to 1
//	shop_breaker_open                     service, host, dependency  0 or 1
//	shop_request_duration_seconds_bucket  service, le (and _sum, _count)
//	shop_orders_total                     outcome
//	shop_order_cents_total                outcome
//	shop_unscored_orders_total            host
//	shop_unscored_cents_total             host
func (s *Shop) Collect(sink Sink) error {
	for _, sh := range shares {
		c := s.cells[sh.service]
		for _, h := range c.hosts {
			if err := s.collectHost(sink, c, h); err != nil {
				return err
			}
		}
		if err := collectLatency(sink, c); err != nil {
			return err
		}
	}
	return s.collectOrders(sink)
}

func (s *Shop) collectOrders(sink Sink) error {
	for i, outcome := range OrderOutcomes {
		if err := all(
			sink("shop_orders_total", float64(s.tallies[i].Count), "outcome", outcome),
			sink("shop_order_cents_total", float64(s.tallies[i].Cents), "outcome", outcome),
		); err != nil {
			return err
		}
	}
	return nil
}

func (s *Shop) collectHost(sink Sink, c *cell, h *host) error {
	up := h.Up() && (c.name != PaymentRisk || s.risk)
	if err := sink("up", flag(up), "service", c.name, "host", h.Name()); err != nil || !up {
		return err
	}
	for o, name := range requestOutcomes {
		if err := sink("shop_requests_total", float64(h.counts[o]/million), "service", c.name, "host", h.Name(), "outcome", name); err != nil {
			return err
		}
	}
	err := sink("shop_cpu_share", float64(h.cpu)/million, "service", c.name, "host", h.Name())
	switch c.name {
	case Edge:
		return all(err, sink("shop_breaker_open", flag(s.refresh.open), "service", Edge, "host", h.Name(), "dependency", Catalog))
	case Checkout:
		return all(err,
			sink("shop_breaker_open", flag(h.risk.open), "service", Checkout, "host", h.Name(), "dependency", PaymentRisk),
			sink("shop_unscored_orders_total", float64(h.unscored.Count), "host", h.Name()),
			sink("shop_unscored_cents_total", float64(h.unscored.Cents), "host", h.Name()))
	}
	return err
}

// CollectServices is Collect as rules that sum by service would record it: the same
// names without the label host. up and the CPU are means, a breaker counts as open
// when one is. A fleet of any size has the same few series.
func (s *Shop) CollectServices(sink Sink) error {
	for _, sh := range shares {
		c := s.cells[sh.service]
		if err := all(s.collectService(sink, c), collectLatency(sink, c)); err != nil {
			return err
		}
	}
	return s.collectOrders(sink)
}

func (s *Shop) collectService(sink Sink, c *cell) error {
	var counts [outcomes]int64
	var up, cpu, open int64
	var unscored Tally
	for _, h := range c.hosts {
		for o, n := range h.counts {
			counts[o] += n
		}
		unscored.Count += h.unscored.Count
		unscored.Cents += h.unscored.Cents
		if !h.Up() || c.name == PaymentRisk && !s.risk {
			continue
		}
		up++
		cpu += h.cpu
		if h.risk.open {
			open = 1
		}
	}
	err := sink("up", float64(up)/float64(len(c.hosts)), "service", c.name)
	for o, name := range requestOutcomes {
		err = all(err, sink("shop_requests_total", float64(counts[o]/million), "service", c.name, "outcome", name))
	}
	if up > 0 {
		err = all(err, sink("shop_cpu_share", float64(cpu)/million/float64(up), "service", c.name))
	}
	switch c.name {
	case Edge:
		return all(err, sink("shop_breaker_open", flag(s.refresh.open), "service", Edge, "dependency", Catalog))
	case Checkout:
		return all(err,
			sink("shop_breaker_open", float64(open), "service", Checkout, "dependency", PaymentRisk),
			sink("shop_unscored_orders_total", float64(unscored.Count)),
			sink("shop_unscored_cents_total", float64(unscored.Cents)))
	}
	return err
}

func collectLatency(sink Sink, c *cell) error {
	const name = "shop_request_duration_seconds"
	for i, bound := range Bounds {
		le := strconv.FormatFloat(float64(bound)/million, 'g', -1, 64)
		if err := sink(name+"_bucket", float64(c.total.le[i]/million), "service", c.name, "le", le); err != nil {
			return err
		}
	}
	count := float64(c.total.count / million)
	return all(
		sink(name+"_bucket", count, "service", c.name, "le", "+Inf"),
		sink(name+"_count", count, "service", c.name),
		sink(name+"_sum", float64(c.total.sum)/million, "service", c.name))
}

// all is the first error.
func all(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
