package shop

import "github.com/degradedmode/ic/internal/model"

// million is one whole in parts per million; it is also a second in µs.
const million = 1_000_000

// The services of the shop.
const (
	Catalog     = "catalog"
	Checkout    = "checkout"
	Edge        = "edge"
	PaymentRisk = "payment-risk"
)

// The features that a page of the shop is made of, for Host.Off and policies.
const (
	Recommendations = "recommendations"
	AlsoViewed      = "also-viewed"
	Badges          = "badges"
	Search          = "search"
	Reviews         = "reviews"
	ProductPage     = "product-page"
)

// Feature is one part of a page: a share of its fan-out, and the tier at which
// it is no longer called live.
type Feature struct {
	Name     string
	FanOut   int64 // ppm of a page's calls
	GoneFrom int   // lowest tier at which a snapshot or nothing takes its place
}

// Station is what one service's hosts can do.
type Station struct {
	P99      int64 // µs of its own work at the design load
	Busy     int64 // ppm of a host's CPU at the design load
	Optional int64 // ppm of that CPU which goes with the fan-out
}

// Params calibrates the model. Default documents the origin of each figure.
type Params struct {
	EdgeRate        int64 // requests per second that reach the edge at load 1
	CallsPerPage    int64 // calls of a page with every feature on
	CheckoutShare   int64 // ppm of pages that lead to a request at checkout
	RiskShare       int64 // ppm of checkout's requests that need payment-risk
	OrdersPerMinute int64 // at load 1

	BaseErrors int64 // ppm of requests that fail on a good day
	Probes     int64 // ppm of checkout's requests that a bypassed host still sends to an open breaker
	LoadNoise  int64 // ppm by which the load of one second differs at most

	Stations map[string]Station // by service
	Features []Feature

	QueueLimit     int64 // µs of work that may wait on a host
	CatalogTimeout int64 // µs that a page waits for the catalog
	RiskTimeout    int64 // µs that checkout waits for payment-risk
	FeatureTimeout int64 // µs that recommendations wait for the catalog
	PoolMargin     int64 // ppm: slots = rate x timeout x margin

	BreakerOpens  int64 // seconds of failure until a breaker opens
	BreakerCloses int64 // seconds of success until it closes
	EdgeBreaker   int64 // seconds of slowness until recommendations give up

	ColdWork  int64 // ppm more work while the optional features' caches are cold
	CoolsDown int64 // seconds without use until they are cold
	WarmsUp   int64 // seconds of use until they are warm
	Static    int64 // ppm of a page's work that a static page takes

	SlowCatalog  int64 // ppm: the fault catalog-slow stretches the catalog's p99 by this
	SlowQueries  int64 // ppm: and its work by this
	SurgeLoad    int64 // ppm of the design load: the fault load-surge
	FallbackLoad int64 // ppm of the catalog's load that a shared fallback adds

	// SharedFallback makes recommendations fall back on the catalog itself
	// instead of a snapshot: the first of the documents' incidents.
	SharedFallback bool
	Control        string // the control that a bypass opens
	Currency       string
}

// Default is the shop of the demo. "Document" marks figures that the source
// documents give; the rest is fitted to them or chosen, as docs/drill-model.md
// says one by one.
func Default() Params {
	return Params{
		EdgeRate: 2250, CallsPerPage: 14, CheckoutShare: 20_000,
		RiskShare:       349_000, // document: 35 % errors when payment-risk is dead, less BaseErrors
		OrdersPerMinute: 118,     // fitted: 41,000 dollars un-scored on the document's time line
		BaseErrors:      1_000,
		Probes:          4_000, // document: 0.5 % errors with every host bypassed, less BaseErrors
		LoadNoise:       20_000,
		Stations: map[string]Station{
			Edge:        {P99: 160_000, Busy: 450_000, Optional: 415_000}, // document: tier 1 takes CPU from 82 to 65 %
			Catalog:     {P99: 40_000, Busy: 500_000},                     // document: p99 40 ms
			Checkout:    {P99: 300_000, Busy: 400_000},
			PaymentRisk: {P99: 150_000, Busy: 350_000},
		},
		Features: []Feature{ // document: 50 % sheddable, 30 % degradable, 20 % critical
			{Recommendations, 200_000, 1}, {AlsoViewed, 200_000, 1}, {Badges, 100_000, 1},
			{Search, 150_000, 2}, {Reviews, 150_000, 2},
			{ProductPage, 200_000, staticFrom},
		},
		QueueLimit:     2 * million,
		CatalogTimeout: 800_000,   // document: the request's budget of 800 ms
		RiskTimeout:    3_000_000, // document: checkout p99 3 s
		FeatureTimeout: 300_000,
		PoolMargin:     1_500_000, // document: bulkhead = qps x timeout x 1.5
		BreakerOpens:   10, BreakerCloses: 15,
		EdgeBreaker: 20,      // document: the breaker opens 20 s after the catalog became slow
		ColdWork:    160_000, // document: CPU 95 % instead of 82 % while caches refill
		CoolsDown:   30,      // document: cold after 30 s at tier 1
		WarmsUp:     120, Static: 150_000,
		SlowCatalog:  16_200_000, // document: p99 900 ms, together with SlowQueries
		SlowQueries:  1_280_000,
		SurgeLoad:    1_830_000, // document: the edge at 82 % CPU
		FallbackLoad: 600_000,   // document: load +60 %
		Control:      PaymentRisk, Currency: "USD",
	}
}

// Tiers with a meaning of their own, beyond features that are gone.
const (
	snapshotFrom = 2 // pages are rendered from a snapshot and wait for no catalog
	readOnlyFrom = 3 // checkout takes no orders
	staticFrom   = 4 // static pages
)

// Host is what the model asks a host of the fleet. Its answers must be the
// engine's own.
type Host interface {
	Name() string
	Service() string
	Up() bool
	// Tier is the tier in force for the host's service.
	Tier() int
	// Off reports whether a feature is switched off on the host.
	Off(feature string) bool
	// Open reports whether a live bypass of control exists on the host, whatever
	// is left of its budget. A host with one refuses at once what the bypass does
	// not cover, where a host without one waits for the dependency.
	Open(control string) bool
	// Allow asks for one order of amount to skip control, and counts it against
	// the host's budget if the answer is yes.
	Allow(control string, amount model.Money) bool
}
