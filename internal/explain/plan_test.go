package explain_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/explain"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

func planned(t *testing.T, src explain.Source, load string) string {
	t.Helper()
	factor, err := explain.ParseFactor(load)
	if err != nil {
		t.Fatal(err)
	}
	r, err := explain.Plan(src, factor)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r.Text(&b)
	return strings.Join(strings.Fields(b.String()), " ")
}

func wants(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

func TestAPlanShowsItsFormulasAndNumbers(t *testing.T) {
	wants(t, planned(t, signed(t), "1"),
		"Tier 2: freed 21 / 42 = 50 % (recommendations and reviews); serves 6000 x (1 + freed) = 9000 a second.",
		"A load of 4200 a second needs tier 0.",
		"stock-service: 10m + 5m + 10m = 25m, within the accepted 25m.",
		"110 x 0.8 s (place-order, pay) x 1.5 = 132 slots.",
		"price-service (2): 2 = 2 calls for one request.",
		"10m + 3 x 2m = 16m; from here to normal 64m.",
		"(16 + 4) x 1500.00 USD = 30000.00 USD, against a signed total of 30000.00 USD.",
		"Keeps: 570000.00 USD x 60 / 60 x 2 x 80 % = 912000.00 USD.",
		"Net: 912000.00 USD - 606000.00 USD = 306000.00 USD a year.")
}

func TestMoreLoadNeedsAHigherTier(t *testing.T) {
	text := planned(t, signed(t), "1.5")
	wants(t, text, "load: peak x 1.5", "A load of 6300 a second needs tier 1.", "NO TIER SUFFICES for a load of 165 a second.")
}

func TestWhatNobodyMeasuredIsSaidSo(t *testing.T) {
	src := signed(t)
	service := src.Docs.Ladder.Services["catalog"]
	service.Capacity = 0
	src.Docs.Ladder.Services["catalog"] = service
	src.Docs.Features.Programme = nil
	for name, feature := range src.Docs.Features.Features {
		feature.Endpoints = map[string]policy.Endpoint{}
		src.Docs.Features.Features[name] = feature
	}
	wants(t, planned(t, src, "1"),
		"catalog - Not measured: capacity or peak is 0 in the ladder.", "Tier 1: freed 15 / 42 = 35.7 % (recommendations).",
		"No fallback serves a snapshot.", "No endpoint says what it calls.", "Not measured: features.yaml holds no programme with its assumptions.")
}

func TestAPlanKnowsWhoPractised(t *testing.T) {
	src := signed(t)
	service := src.Docs.Ladder.Services["edge"]
	service.GameDay = src.Now.Add(-time.Hour)
	src.Docs.Ladder.Services["edge"] = service
	wants(t, planned(t, src, "1"), "Within a quarter (92 days): edge;")
}

func TestALoadFactorIsAPlainNumber(t *testing.T) {
	for text, want := range map[string]*big.Rat{"1": big.NewRat(1, 1), "1.5": big.NewRat(3, 2), "0.1": big.NewRat(1, 10), "10": big.NewRat(10, 1), "0.000001": big.NewRat(1, 1_000_000)} {
		if got, err := explain.ParseFactor(text); err != nil || got.Cmp(want) != 0 {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "0.0", "-1", "1e9", "1/3", "1.", ".5", "0x10", "NaN", "Inf", "1_000", "99999999", "1.0000001", "1.5.5", " 1"} {
		if got, err := explain.ParseFactor(text); !errors.Is(err, explain.ErrFactor) {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestAPlanSaysWhatDoesNotHold(t *testing.T) {
	src := signed(t)
	bypassOf(src, small).HostTotal, bypassOf(src, small).VolatileHosts = usd(1501_00), true
	src.Docs.Features.Programme.Storage.Currency = "EUR"
	feature := src.Docs.Features.Features["stock-counts"]
	endpoint := feature.Endpoints["browse"]
	endpoint.Dependencies = map[string]policy.Dependency{
		"stock-service": {Need: policy.Enhancing, QPS: 1, TimeoutMS: 1, Fallback: &policy.Fallback{Source: policy.Snapshot, Refresh: 600e9, Job: 300e9, MaxAge: 900e9}},
		"catalog":       {Need: policy.Required, Attempts: 2},
	}
	feature.Endpoints["browse"] = endpoint
	src.Docs.Features.Features["stock-counts"] = feature
	wants(t, planned(t, src, "1"),
		"(16 + 4) x 1501.00 USD = 30020.00 USD, against a signed total of 30000.00 USD: MORE than was signed; an estimate, because hosts without a state folder may open.",
		"stock-service: 10m + 5m + 10m = 25m, OLDER THAN the accepted 15m.",
		"NO BOUND: the services call each other in a circle: catalog -> catalog.",
		"Net: cannot be said, the amounts are in several currencies.")
	src.Hosts = []model.HostView{}
	wants(t, planned(t, src, "1"), "not known, because the inventory names no host that holds the control; 1501.00 USD a host")
}

func TestAnEmptyPolicyHasAPlanWithNothingInIt(t *testing.T) {
	wants(t, planned(t, explain.Source{Root: signed(t).Root}, "1"), "The ladder names no service.", "The ladder has no tiers.", "No right is a bypass.", "No endpoint says what it calls.")
}
