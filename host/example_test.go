package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/degradedmode/ic/host"
	"github.com/degradedmode/ic/host/cache"
	"github.com/degradedmode/ic/host/degraded"
	"github.com/degradedmode/ic/host/dimmer"
	"github.com/degradedmode/ic/host/fallback"
	"github.com/degradedmode/ic/internal/directive"
)

// sheddedShop is a host's configuration with a signed policy and a shed to tier 1
// in the environment.
func sheddedShop() (cfg host.Config, remove func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	s, err := shopIn(dir)
	if err != nil {
		panic(err)
	}
	if s.cfg.Directives, err = s.sign(directive.Production, shed(1)); err != nil {
		panic(err)
	}
	return s.cfg, func() { _ = os.RemoveAll(dir) }
}

func ExampleOpen() {
	cfg, remove := sheddedShop() // fleet, name, services, policy folder and its pin, state folder, sources
	defer remove()
	cfg.Defaults = &host.Defaults{} // while nothing can be read: normal operation
	h, err := host.Open(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()

	fmt.Println("tier", h.Tier("checkout"), "condition", h.Condition())
	on, how := h.Feature("reviews")
	fmt.Println("reviews", on, how)
	allowed, why := h.Allow("payment-risk", 4999, "USD") // 49.99 USD
	fmt.Println("skip the risk check", allowed, why)
	// Output:
	// tier 1 condition ok
	// reviews true the newest three, up to a day old
	// skip the risk check false closed
}

func ExampleHost_Watch() {
	cfg, remove := sheddedShop()
	defer remove()
	h, err := host.Open(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for change := range h.Watch(ctx) { // the first one comes at once
		if was, is := change.Old.Tiers["checkout"], change.New.Tiers["checkout"]; was != is {
			fmt.Println("checkout went from tier", was, "to", is)
		}
		stop() // a service goes on to its own end
	}
	// Output: checkout went from tier 0 to 1
}

// product is what a page of the example shows.
type product struct {
	Name            string                   `json:"name"`
	Reviews         degraded.Panel[[]string] `json:"reviews"`
	Recommendations []string                 `json:"recommendations,omitempty"`
	Degraded        *degraded.Degraded       `json:"degraded,omitempty"`
}

// A whole service: the tier and the features of its host, a cache of what it calls,
// a dimmer for what is optional, the marks in its answers, and its metrics.
func Example() {
	cfg, remove := sheddedShop()
	defer remove()
	h, err := host.Open(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	counters, _ := fallback.New(fallback.Config{Dependencies: []string{"reviews"}})
	dim, _ := dimmer.New(dimmer.Config{Name: "recommendations", Signed: func() (dimmer.Bounds, bool) { return h.Dimmer("checkout") }})
	reviews, _ := cache.New(cache.Config[[]string]{
		Name: "reviews", Fresh: time.Nanosecond, Stale: 24 * time.Hour, Fallbacks: counters,
		Size: func(v []string) int { return len(strings.Join(v, "")) },
	})
	down := false
	fetchReviews := func(ctx context.Context) ([]string, error) {
		if down {
			return nil, errors.New("503")
		}
		return []string{"bright", "small"}, nil
	}

	page := func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		defer func() { dim.Observe(time.Since(began)) }()
		var marker degraded.Marker
		answer := product{Name: "A lamp", Reviews: degraded.None[[]string]("off")}
		if on, _ := h.Feature("reviews"); on {
			key := cache.Key{Scope: r.Header.Get("Tenant"), Policy: h.PolicyVersion(), Name: "lamp"}
			answer.Reviews = cache.Panel(reviews.Get(r.Context(), key, fetchReviews))
		}
		answer.Reviews.Mark(&marker, "reviews")
		if on, _ := h.Feature("recommendations"); on && dim.ShowFor("recommendations", r.Header.Get("Session")) {
			answer.Recommendations = []string{"A bulb"}
		}
		marker.Set(w.Header())
		answer.Degraded = marker.Degraded()
		_ = json.NewEncoder(w).Encode(answer)
	}
	ask := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/p/lamp", nil)
		r.Header.Set("Tenant", "tenant-a")
		w := httptest.NewRecorder()
		page(w, r)
		return w
	}
	fmt.Print(ask().Body)
	down = true
	w := ask()
	var answer product
	_ = json.Unmarshal(w.Body.Bytes(), &answer)
	value, _ := answer.Reviews.Value()
	fmt.Println(answer.Reviews.Availability(), value, "because of", answer.Reviews.Reason())
	fmt.Println(answer.Degraded.Stale, strings.HasPrefix(w.Header().Get(degraded.Header), "stale=(reviews), as_of=@"))

	metrics := httptest.NewRecorder()
	h.Handler(host.DefaultMaxAge, counters, dim, reviews).ServeHTTP(metrics, httptest.NewRequest("GET", "/metrics", nil))
	fmt.Println(strings.Contains(metrics.Body.String(), `ic_fallback_total{dependency="reviews",reason="error"} 1`))
	// Output:
	// {"name":"A lamp","reviews":{"availability":"AVAILABLE","value":["bright","small"]}}
	// STALE [bright small] because of error
	// [reviews] true
	// true
}
