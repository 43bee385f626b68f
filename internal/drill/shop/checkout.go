package shop

// checkoutWork takes the requests that come from the pages which were answered
// (in millionths of a page per second), and the orders among them.
func (s *Shop) checkoutWork(reached int64) {
	c := s.cells[Checkout]
	demand := part(reached, million, s.p.EdgeRate*million)
	requests := of(reached, s.p.CheckoutShare)
	s.serveAll(c, demand,
		func(*host) int64 { return million }, // no change at tiers 1 and 2; what is turned away from 3 on was read first
		func(h *host, sv served) {
			h.rate = requests / int64(len(c.up))
			s.answer(h, sv)
		})
	s.takeOrders(demand)
}

// answer gives a second's requests on h their outcome. Those that need no
// check, and those that do while payment-risk answers, are as designed.
func (s *Shop) answer(h *host, sv served) {
	c := s.cells[Checkout]
	own := of(c.station.P99, sv.stretch)
	refused := of(h.rate, sv.refused)
	taken := h.rate - refused
	failed := of(taken, s.p.BaseErrors)
	needy := of(taken, s.p.RiskShare)
	plain := taken - failed - needy
	h.add(rejectedCapacity, refused)
	h.add(failedDependency, failed)
	h.add(primarySuccess, plain)
	c.hist.add(plain+failed, own, sv.wait)
	c.hist.spike(refused, Bounds[0])
	h.risk.observe(!s.answers(), s.p.BreakerOpens, s.p.BreakerCloses)
	switch {
	case h.tier >= readOnlyFrom:
		h.add(rejectedSafety, needy)
		c.hist.spike(needy, Bounds[0])
	case s.answers() && !h.risk.open:
		h.add(primarySuccess, needy)
		risk := s.cells[PaymentRisk]
		c.hist.add(needy, own+risk.p99, sv.wait+risk.wait)
	case h.Open(s.p.Control):
		s.bypassed(h, sv, own, needy)
	case s.answers(): // the breaker has not noticed yet, and nothing else heeds it
		h.add(primarySuccess, needy)
		c.hist.add(needy, own+s.cells[PaymentRisk].p99, sv.wait)
	default:
		s.waitOut(h, needy)
	}
}

// bypassed answers requests that need a check on a host with a live bypass. An
// open breaker spares them the wait; what belongs to orders that were refused
// is turned away, and a few requests still ask payment-risk whether it lives.
func (s *Shop) bypassed(h *host, sv served, own, needy int64) {
	c := s.cells[Checkout]
	probes := min(needy, of(h.rate, s.p.Probes))
	if !h.risk.open || s.answers() {
		probes = 0
	}
	away := min(h.debt, needy-probes)
	h.debt -= away
	passed := needy - probes - away
	h.add(degradedSuccess, passed)
	h.add(rejectedSafety, away)
	h.add(failedDependency, probes)
	if !h.risk.open {
		c.hist.spike(passed+away, s.p.RiskTimeout)
		return
	}
	c.hist.add(passed, own, sv.wait)
	c.hist.spike(away, Bounds[0])
	c.hist.spike(probes, s.p.RiskTimeout)
}

// waitOut is a host without a bypass: the check is required, so each request
// waits in the bulkhead until its timeout and fails. What finds no slot fails
// at once.
func (s *Shop) waitOut(h *host, needy int64) {
	c := s.cells[Checkout]
	design := of(of(s.p.EdgeRate*million, s.p.CheckoutShare)/int64(len(c.hosts)), s.p.RiskShare)
	waiting := min(needy, part(s.pool(design, s.p.RiskTimeout), million, s.p.RiskTimeout))
	h.add(failedDependency, waiting)
	h.add(rejectedCapacity, needy-waiting)
	c.hist.spike(waiting, s.p.RiskTimeout)
	c.hist.spike(needy-waiting, Bounds[0])
}

// answers reports whether payment-risk has anyone to answer.
func (s *Shop) answers() bool { return s.risk && len(s.cells[PaymentRisk].up) > 0 }

// takeOrders lets the second's orders meet their hosts.
func (s *Shop) takeOrders(demand int64) {
	c := s.cells[Checkout]
	s.arrived = arrivals(s.orders, of(s.p.OrdersPerMinute*million/60, demand), s.arrived)
	s.last.Orders = s.last.Orders[:0]
	for _, a := range s.arrived {
		o := Order{Cents: a.cents, Outcome: Failed}
		if len(c.up) > 0 {
			h := c.up[of(int64(len(c.up)), a.place)]
			o.Host, o.Outcome = h.Name(), s.decide(h, a.cents)
			if o.Outcome == Unscored {
				h.unscored.Count++
				h.unscored.Cents += a.cents
			}
		}
		for i, name := range OrderOutcomes {
			if name == o.Outcome {
				s.tallies[i].Count++
				s.tallies[i].Cents += a.cents
			}
		}
		s.last.Orders = append(s.last.Orders, o)
	}
}

// decide is one order on one host. The host is asked to let it skip the check
// only when the check cannot be had: a bypass that nobody needs costs nothing.
func (s *Shop) decide(h *host, cents int64) string {
	if h.tier >= readOnlyFrom {
		return Refused
	}
	open := h.Open(s.p.Control)
	if s.answers() && !(open && h.risk.open) {
		return Scored
	}
	if !open {
		return Failed
	}
	if h.Allow(s.p.Control, s.money(cents)) {
		return Unscored
	}
	h.debt += s.requestsPerOrder()
	return Refused
}

// requestsPerOrder is how many requests (in millionths) of those that need a
// check belong to one order, at the design load.
func (s *Shop) requestsPerOrder() int64 {
	needy := of(of(s.p.EdgeRate*million, s.p.CheckoutShare), s.p.RiskShare) // a second
	return part(needy, 60, s.p.OrdersPerMinute)
}

// riskWork is payment-risk's own second: the checks that reached it. A dead one
// answers nobody and counts nothing.
func (s *Shop) riskWork() {
	c, checkout := s.cells[PaymentRisk], s.cells[Checkout]
	if !s.risk {
		for _, h := range c.up {
			h.station = station{}
		}
		c.up = c.up[:0]
		return
	}
	checks := int64(0)
	for _, h := range checkout.up {
		if h.tier < readOnlyFrom && !(h.risk.open && h.Open(s.p.Control)) {
			checks += of(h.rate, s.p.RiskShare)
		}
	}
	design := of(of(s.p.EdgeRate*million, s.p.CheckoutShare), s.p.RiskShare)
	s.serveAll(c, part(checks, million, design),
		func(*host) int64 { return million }, // every tier: no change
		func(h *host, sv served) {
			h.rate = checks / int64(len(c.up))
			refused := of(h.rate, sv.refused)
			failed := of(h.rate-refused, s.p.BaseErrors)
			h.add(rejectedCapacity, refused)
			h.add(failedDependency, failed)
			h.add(primarySuccess, h.rate-refused-failed)
			c.hist.add(h.rate-refused, of(c.station.P99, sv.stretch), sv.wait)
			c.hist.spike(refused, Bounds[0])
		})
}
