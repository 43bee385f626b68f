package templates

import (
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// programme holds the assumptions of the framework document: a company of five
// billion dollars a year, two outages of an hour.
func programme() *policy.Programme {
	return &policy.Programme{
		Engineers: 2, EngineerMonth: usd(25_000_00), Storage: usd(500_00), Hourly: usd(570_000_00),
		Outages: 2, Lasts: 60, Retained: 80,
	}
}

// endpoints are the ways into the shop's features. The stock count is enhancing
// on a page and required at the till: what a page may get wrong an order may not.
func (p *ShopParams) endpoints() map[string]map[string]policy.Endpoint {
	out := p.catalogEndpoints()
	for name, ways := range p.tillEndpoints() {
		out[name] = ways
	}
	return out
}

// public is what everybody may see, degraded as said.
func public(source, owner, degraded, disclosure string, maxAge model.Duration) policy.Invariant {
	return policy.Invariant{Source: source, MaxAge: maxAge, Authorization: "public", Degraded: degraded, Disclosure: disclosure, Owner: owner}
}

func (p *ShopParams) catalogEndpoints() map[string]map[string]policy.Endpoint {
	const age = "the page says how old it is"
	return map[string]map[string]policy.Endpoint{
		"browse-catalog": {"product-page": {
			Path: "GET /p/{id}", Criticality: 1,
			Dependencies: map[string]policy.Dependency{
				"product-store": enhanced(900, 250, 2, snapshot("the page of the last snapshot", "a file in another region, read without the product store", 2, "object-storage", "region-b"),
					"product-store", "product-pool", "region-a"),
			},
			Invariants: map[string]policy.Invariant{"product": public("product-store", Priya, "the page of the last snapshot", age, seconds(1500))},
		}},
		"product-images": {"image": {
			Path: "GET /img/{id}", Criticality: 2,
			Dependencies: map[string]policy.Dependency{
				"image-store": enhanced(2700, 300, 1, cached("a small image", "kept at the edge, without the store", seconds(86400), 5, "edge-cache"), "image-store", "region-a"),
			},
			Invariants: map[string]policy.Invariant{"image": public("image-store", Priya, "a small image", "none: a small image is no lie", seconds(86400))},
		}},
		"stock-counts": {"browse": {
			Path: "GET /p/{id}/stock", Criticality: 2,
			Dependencies: map[string]policy.Dependency{
				"stock-service": enhanced(900, 200, 1, snapshot("in stock or not, from the last snapshot", "a file in another region, read without the stock service and its pool", 2, "object-storage", "region-b"),
					"stock-service", "stock-pool", "region-a"),
			},
			Invariants: map[string]policy.Invariant{"stock": public("stock-service", Priya, "in stock or not", age, seconds(1500))},
		}},
		"personal-prices": {"browse": {
			Path: "GET /p/{id}/price", Criticality: 1,
			Dependencies: map[string]policy.Dependency{
				"price-service": enhanced(900, 200, 2, static("the list price", "the list price is part of the product file on every host", 1, "product-file"), "price-service", "price-pool", "region-a"),
			},
			Invariants: map[string]policy.Invariant{"price": {
				Source: "price-service", MaxAge: 0, Authorization: "the signed-in customer", Degraded: "the list price",
				Disclosure: "the discount is given at the till", Owner: Priya,
			}},
		}},
		"search-suggest": {"suggest": {
			Path: "GET /suggest", Criticality: 3,
			Dependencies: map[string]policy.Dependency{"suggest-index": call(policy.Optional, 1400, 80, 1, "suggest-index", "region-a")},
			Invariants:   none(),
		}},
		"recommendations": {"browse": {
			Path: "GET /p/{id}/more", Criticality: 3,
			Dependencies: map[string]policy.Dependency{"recommender": call(policy.Optional, 900, 150, 1, "recommender", "recommender-pool", "region-a")},
			Invariants:   none(),
		}},
		"reviews": {"browse": {
			Path: "GET /p/{id}/reviews", Criticality: 3,
			Dependencies: map[string]policy.Dependency{"review-store": call(policy.Optional, 900, 200, 1, "review-store", "region-a")},
			Invariants:   none(),
		}},
		"recently-viewed": {"browse": {
			Path: "GET /recent", Criticality: 3,
			Dependencies: map[string]policy.Dependency{"session-store": call(policy.Optional, 700, 100, 1, "session-store", "region-a")},
			Invariants:   none(),
		}},
	}
}

func (p *ShopParams) tillEndpoints() map[string]map[string]policy.Endpoint {
	return map[string]map[string]policy.Endpoint{
		"sign-in": {"sign-in": {
			Path: "POST /session", Criticality: 0,
			Dependencies: map[string]policy.Dependency{"identity": call(policy.Required, 60, 500, 2, "identity", "identity-pool", "region-a")},
			Invariants:   none(),
		}},
		"place-order": {"pay": {
			Path: "POST /orders", Criticality: 0,
			Dependencies: map[string]policy.Dependency{
				"stock-service": call(policy.Required, 110, 200, 2, "stock-service", "stock-pool", "region-a"),
				PaymentRisk:     call(policy.Required, 110, 800, 1, PaymentRisk, "risk-pool", "region-a"),
				"card-network":  call(policy.Required, 110, 3000, 1, "card-network", "egress"),
			},
			Invariants: none(),
		}},
		"delivery-dates": {"basket": {
			Path: "GET /basket/delivery", Criticality: 1,
			Dependencies: map[string]policy.Dependency{
				"carrier-rates": enhanced(220, 400, 2, static("a range of days per region", "a table in the program, made once a week", 2, "program"), "carrier-rates", "egress"),
			},
			Invariants: map[string]policy.Invariant{"delivery": {
				Source: "carrier-rates", MaxAge: seconds(7 * 86400), Authorization: "public", Degraded: "a range of days", Disclosure: "the page says that the day follows by mail", Owner: Priya,
			}},
		}},
	}
}
