package templates

import (
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// automatic are the document's own limits: one move in 5 min, flapping when there
// are more than 3 in 10 min.
func (p *ShopParams) automatic() policy.Automatic {
	return policy.Automatic{
		Every: p.Pace.RampStep * 5 / 2, ShedAtOnce: true, Flaps: 3, FlapWindow: p.Pace.Dwell,
		Blind: 1, Stuck: seconds(4 * 3600), Budget: seconds(2 * 3600),
	}
}

// programme holds the assumptions of the framework document: a company of five
// billion dollars a year, two outages of an hour.
func programme() *policy.Programme {
	usd := func(minor int64) model.Money { return model.Money{Minor: minor, Currency: "USD"} }
	return &policy.Programme{
		Engineers: 2, EngineerMonth: usd(25_000_00), Storage: usd(500_00), Hourly: usd(570_000_00),
		Outages: 2, Lasts: 60, Retained: 80,
	}
}

// endpoints are the ways in of the features for which the shop has written them
// down: the stock count is enhancing on a page and required at the till.
func (p *ShopParams) endpoints() map[string]map[string]policy.Endpoint {
	stockOnPage := policy.Dependency{
		Need: policy.Enhancing, QPS: 900, TimeoutMS: 200, Attempts: 1, Resources: []string{"stock-service", "stock-pool", "region-a"},
		Fallback: &policy.Fallback{
			Text: "in stock or not, from the last snapshot", Source: policy.Snapshot, Resources: []string{"object-storage", "region-b"},
			Differs: "a file in another region, read without the stock service and its pool",
			Refresh: seconds(600), Job: seconds(300), MaxAge: seconds(1500), Traffic: 2, Marked: true,
		},
	}
	prices := policy.Dependency{
		Need: policy.Enhancing, QPS: 900, TimeoutMS: 200, Attempts: 2, Resources: []string{"price-service", "price-pool", "region-a"},
		Fallback: &policy.Fallback{
			Text: "the list price", Source: policy.Static, Resources: []string{"product-file"},
			Differs: "the list price is part of the product file on every host", Traffic: 1, Marked: true,
		},
	}
	stock := policy.Invariant{Source: "stock-service", MaxAge: seconds(1500), Authorization: "public", Degraded: "in stock or not", Disclosure: "the page says how old it is", Owner: Priya}
	return map[string]map[string]policy.Endpoint{
		"stock-counts": {"browse": {
			Path: "GET /p/{id}", Criticality: 2,
			Dependencies: map[string]policy.Dependency{"stock-service": stockOnPage},
			Invariants:   map[string]policy.Invariant{"stock": stock},
		}},
		"personal-prices": {"browse": {
			Path: "GET /p/{id}", Criticality: 1,
			Dependencies: map[string]policy.Dependency{"price-service": prices},
			Invariants: map[string]policy.Invariant{"price": {
				Source: "price-service", MaxAge: 0, Authorization: "the signed-in customer", Degraded: "the list price",
				Disclosure: "the discount is given at the till", Owner: Priya,
			}},
		}},
		"place-order": {"pay": {
			Path: "POST /orders", Criticality: 0,
			Dependencies: map[string]policy.Dependency{
				"stock-service": {Need: policy.Required, QPS: 110, TimeoutMS: 200, Attempts: 2, Resources: []string{"stock-service", "stock-pool", "region-a"}},
				PaymentRisk:     {Need: policy.Required, QPS: 110, TimeoutMS: 800, Attempts: 1, Resources: []string{PaymentRisk, "risk-pool", "region-a"}},
			},
			Invariants: map[string]policy.Invariant{},
		}},
		"recommendations": {"browse": {
			Path: "GET /p/{id}", Criticality: 3,
			Dependencies: map[string]policy.Dependency{
				"recommender": {Need: policy.Optional, QPS: 900, TimeoutMS: 150, Attempts: 1, Resources: []string{"recommender", "recommender-pool", "region-a"}},
			},
			Invariants: map[string]policy.Invariant{},
		}},
	}
}
