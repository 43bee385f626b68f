package sim

import (
	"crypto/ed25519"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/templates"
	"golang.org/x/crypto/ssh"
)

// sign makes everybody's key from the seed, and a policy that these keys sign.
func (w *World) sign(specs []shop.Spec) error {
	if s := w.o.Signed; s != nil {
		w.bundle, w.signers = s.Bundle, s.Signers
		return nil
	}
	people := map[string]ssh.Signer{}
	w.signers = map[string]ssh.Signer{}
	for _, name := range append(templates.ShopPeople(), templates.LadderController) {
		signer, err := w.keyOf(name)
		if err != nil {
			return err
		}
		w.signers[name] = signer
		if name != templates.LadderController {
			people[name] = signer
		}
	}
	files, err := templates.Shop(w.policyParams(people, specs))
	if err != nil {
		return fmt.Errorf("render the policy: %w", err)
	}
	sum, err := templates.Sign(w.policyDir(), files, templates.Signing{
		Signers: people, Rand: w.k.Stream("policy"), Realm: directive.Drill, Fleet: Fleet, Version: 1,
	})
	if err != nil {
		return fmt.Errorf("sign the policy: %w", err)
	}
	w.bundle, _, err = policy.LoadDir(w.policyDir(), policy.LoadOptions{Fleet: Fleet, RootSHA256: sum, Realm: directive.Drill, Now: w.o.Start})
	if err != nil {
		return fmt.Errorf("load the policy: %w", err)
	}
	return nil
}

func (w *World) keyOf(name string) (ssh.Signer, error) {
	var seed [ed25519.SeedSize]byte
	if _, err := io.ReadFull(w.k.Stream("key/"+name), seed[:]); err != nil {
		return nil, fmt.Errorf("make the key of %s: %w", name, err)
	}
	return ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed[:]))
}

func (w *World) policyParams(people map[string]ssh.Signer, specs []shop.Spec) templates.ShopParams {
	p := templates.ShopParams{
		Fleet: Fleet, Version: 1, Expires: w.o.Start.Add(w.o.PolicyLife).Truncate(time.Second), Pace: w.o.Pace,
		People:   map[string]ssh.PublicKey{},
		Machines: map[string]ssh.PublicKey{templates.LadderController: w.signers[templates.LadderController].PublicKey()},
		Queries:  queries(),
		Reviewed: w.o.Start.AddDate(0, -2, 0).Truncate(24 * time.Hour),
	}
	for name, signer := range people {
		p.People[name] = signer.PublicKey()
	}
	for _, spec := range specs {
		p.Hosts = append(p.Hosts, policy.InventoryHost{Host: spec.Name, Services: []string{spec.Service}})
	}
	return p
}

// queries are the signals of the policy in the words of the recorded series.
func queries() map[string]string {
	const failed = `outcome=~"failed_dependency|rejected_capacity"`
	return map[string]string{
		templates.CheckoutP99:    `histogram_quantile(0.99, sum by (le) (rate(service:shop_request_duration_seconds_bucket{service="checkout"}[30s])))`,
		templates.CheckoutErrors: `100 * sum(rate(service:shop_requests_total{service="checkout",` + failed + `}[30s])) / sum(rate(service:shop_requests_total{service="checkout"}[30s]))`,
		templates.CPU:            `100 * max(service:shop_cpu_share)`,
		templates.PaymentRiskUp:  `avg(service:up{service="payment-risk"})`,
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
