package shop

// edgeWork lets the visitors arrive, and returns the pages that the edge has
// the capacity for, per host in the order of up, as shares of its rate.
func (s *Shop) edgeWork() []served {
	c := s.cells[Edge]
	noise := s.load.Between(million-s.p.LoadNoise, million+s.p.LoadNoise)
	demand := of(s.demand, noise)
	clear(s.fanOut)
	got := make([]served, 0, len(c.up))
	s.serveAll(c, demand, s.pageWork, func(h *host, sv served) {
		h.rate = part(of(s.p.EdgeRate*million, demand), 1, int64(len(c.up)))
		s.callCatalog(h)
		got = append(got, sv)
	})
	return got
}

// pageWork is what a page costs on h, in ppm of a page with everything on.
func (s *Shop) pageWork(h *host) int64 {
	if h.tier >= staticFrom {
		return s.p.Static
	}
	optional := s.cells[Edge].station.Optional
	live, refilling := int64(0), false
	for i := range s.p.Features {
		f := &s.p.Features[i]
		if s.on(h, f) {
			live += f.FanOut
			refilling = refilling || f.GoneFrom == 1
		}
	}
	h.use(refilling, &s.p)
	work := million - optional + of(optional, live)
	if refilling {
		work += of(s.p.ColdWork, h.cold)
	}
	return work
}

// on reports whether h calls a feature live.
func (s *Shop) on(h *host, f *Feature) bool { return h.tier < f.GoneFrom && !h.Off(f.Name) }

func (s *Shop) live(h *host, feature string) bool {
	for i := range s.p.Features {
		if f := &s.p.Features[i]; f.Name == feature {
			return s.on(h, f)
		}
	}
	return false
}

// callCatalog adds the calls of h's pages to what reaches the catalog.
func (s *Shop) callCatalog(h *host) {
	pages := part(h.rate, million, s.p.EdgeRate*million) // ppm of the design's pages
	for i := range s.p.Features {
		f := &s.p.Features[i]
		if !s.on(h, f) {
			continue
		}
		calls := of(f.FanOut, pages)
		if f.Name == Recommendations && s.refresh.open {
			// The fallback: a snapshot, which calls nobody, or the catalog again.
			calls = 0
			if s.p.SharedFallback {
				calls = of(f.FanOut+s.p.FallbackLoad, pages)
			}
		}
		s.fanOut[i] += calls
	}
}

// catalogWork answers the calls. A catalog host drops what its own tier or
// switch says is gone, whoever still asks for it.
func (s *Shop) catalogWork() {
	c := s.cells[Catalog]
	queries, stretch := int64(million), int64(million)
	if s.slow {
		queries, stretch = s.p.SlowQueries, s.p.SlowCatalog
	}
	asked := int64(0)
	for _, n := range s.fanOut {
		asked += n
	}
	answered := func(h *host) (n int64) {
		for i := range s.p.Features {
			if s.on(h, &s.p.Features[i]) {
				n += s.fanOut[i]
			}
		}
		return n
	}
	s.serveAll(c, asked,
		func(h *host) int64 { return of(queries, part(answered(h), million, asked)) },
		func(h *host, sv served) {
			calls := of(s.p.EdgeRate*million*s.p.CallsPerPage, asked) / int64(len(c.up))
			live := part(calls, answered(h), max(1, asked))
			refused := of(live, sv.refused)
			failed := of(live-refused, s.p.BaseErrors)
			h.rate = calls
			h.add(rejectedCapacity, refused)
			h.add(failedDependency, failed)
			h.add(degradedSuccess, calls-live)
			h.add(primarySuccess, live-refused-failed)
			c.hist.add(live-refused, of(of(c.station.P99, sv.stretch), stretch), sv.wait)
			c.hist.spike(calls-live+refused, Bounds[0])
		})
	c.p99 = of(c.p99, stretch)
	s.refresh.observe(c.p99+c.wait > s.p.FeatureTimeout, s.p.EdgeBreaker, s.p.EdgeBreaker)
}

// edgePages finishes the pages: they wait for the catalog, fail with it, and
// hold their slot of the page pool meanwhile. It returns the pages from which
// checkout can be reached, in millionths per second.
func (s *Shop) edgePages(got []served) int64 {
	c := s.cells[Edge]
	slots := s.pool(s.p.EdgeRate*million/int64(len(c.hosts)), s.p.CatalogTimeout)
	reached := int64(0)
	for i, h := range c.up {
		own := of(c.station.P99, got[i].stretch)
		w := s.waitForCatalog(h)
		refused := of(h.rate, got[i].refused)
		held := of(own, meanOfP99) + got[i].wait + w.held
		if inFlight := part(h.rate-refused, held, million); inFlight > slots {
			refused = h.rate - part(slots, million, held)
		}
		taken := h.rate - refused
		late := of(taken, w.late)
		failed := min(taken, late+of(taken, s.p.BaseErrors))
		success := primarySuccess
		if h.tier >= snapshotFrom {
			success = degradedSuccess
		}
		h.add(rejectedCapacity, refused)
		h.add(failedDependency, failed)
		h.add(success, taken-failed)
		c.hist.add(taken-late, own+w.p99, got[i].wait+w.wait)
		c.hist.spike(late, own+s.p.CatalogTimeout)
		c.hist.spike(refused, Bounds[0])
		if h.tier < staticFrom { // a static page has no way to checkout
			reached += taken - failed
		}
	}
	return reached
}

// await is what waiting for a dependency does to a request.
type await struct {
	p99, wait int64 // µs, added to its own
	held      int64 // µs that it holds its slot, on average
	late      int64 // ppm of the requests that the dependency fails
}

// waitForCatalog is a page's wait on h; with a snapshot there is none.
func (s *Shop) waitForCatalog(h *host) await {
	if h.tier >= snapshotFrom || !s.live(h, ProductPage) {
		return await{}
	}
	c, limit := s.cells[Catalog], s.p.CatalogTimeout
	if len(c.up) == 0 {
		return await{late: million}
	}
	w := await{
		p99: min(c.p99, limit), wait: min(c.wait, limit),
		held: min(of(c.p99, meanOfP99)+c.wait, limit),
		late: million - within(limit-c.wait, c.p99),
	}
	if s.p.SharedFallback && s.refresh.open && s.live(h, Recommendations) {
		w.held *= 2 // the fallback waits for the same catalog, in the same slot
	}
	return w
}

// pool is how many requests (in millionths) a host may have waiting for a
// dependency: rate x timeout x margin.
func (s *Shop) pool(rate, timeout int64) int64 {
	return of(part(rate, timeout, million), s.p.PoolMargin)
}
