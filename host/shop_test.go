package host_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/host"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/oklog/ulid/v2"
)

// dimmerRight is a row that the example shop does not have.
const dimmerRight = `  dim-recommendations:
    text: dim recommendations
    kind: dimmer
    who: ` + templates.Commander + `
    cosign: {count: 0, of: finance}
    scope: ["*"]
    dimmer: {target_ms: {from: 100, to: 1000}, floor: 2, ceiling: 100}
    why: a test
`

// shop is a policy that is in force today, and what a host by it needs.
type shop struct {
	t      testing.TB // nil in an example
	bundle *policy.Bundle
	cfg    host.Config
}

func newShop(t testing.TB) *shop {
	t.Helper()
	s, err := shopIn(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.t = t
	return s
}

// shopIn signs a policy and makes room for a state folder below dir.
func shopIn(dir string) (*shop, error) {
	p := policytest.Params()
	p.Expires = time.Now().UTC().AddDate(1, 0, 0).Truncate(24 * time.Hour)
	files, err := templates.Shop(p)
	if err != nil {
		return nil, err
	}
	files["rights.yaml"] = append(files["rights.yaml"], dimmerRight...)
	if files["rights.yaml"], err = policy.Fmt("rights.yaml", files["rights.yaml"]); err != nil {
		return nil, err
	}
	grants := []byte(`grants: [shed, "off", freeze, ping, end]`)
	files["roots/1.yaml"] = bytes.Replace(files["roots/1.yaml"], grants, []byte(`grants: [shed, "off", freeze, dimmer, ping, end]`), 1)
	folder := filepath.Join(dir, "policy")
	pin, err := templates.Sign(folder, files, templates.Signing{
		Signers: policytest.People(), Rand: policytest.Rand(), Realm: directive.Production, Fleet: policytest.Fleet, Version: 1,
	})
	if err != nil {
		return nil, err
	}
	bundle, _, err := policy.LoadDir(folder, policy.LoadOptions{Fleet: policytest.Fleet, RootSHA256: pin, Realm: directive.Production})
	if err != nil {
		return nil, err
	}
	if state := bundle.Domains[policy.Rights]; !state.Active {
		return nil, errors.New(state.Why)
	}
	return &shop{bundle: bundle, cfg: host.Config{
		Fleet: policytest.Fleet, Name: "checkout-01", Services: []string{"checkout"},
		Policy: folder, RootSHA256: pin, State: filepath.Join(dir, "state"),
	}}, nil
}

func (s *shop) open() *host.Host {
	s.t.Helper()
	h, err := host.Open(s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = h.Close() })
	return h
}

func (s *shop) token(realm directive.Realm, d model.Directive) string {
	s.t.Helper()
	token, err := s.sign(realm, d)
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

func (s *shop) sign(realm directive.Realm, d model.Directive) (string, error) {
	now := time.Now().UTC().Truncate(time.Second)
	d.ID, d.Fleet, d.Incident, d.IssuedAt, d.NotBefore = ulid.Make().String(), policytest.Fleet, "inc-1", now, now
	d.Policy, d.Log = s.bundle.Ref, model.LogHead{Origin: policytest.Fleet + "/inc-1/s1", Root: strings.Repeat("0", 64)}
	if d.Kind == model.Bypass {
		right, _, _ := s.bundle.Right(d.Right)
		b := right.Bypass
		d.Control, d.NotAfter = b.Control, now.Add(b.Lasts.Std())
		d.Caps = model.Caps{Under: b.Under, HostCount: 2, HostTotal: b.HostTotal, Total: b.Total}
	}
	payload, err := directive.Encode(d)
	if err != nil {
		return "", err
	}
	sig, err := directive.Sign(policytest.Key(templates.Ines), rand.Reader, payload, realm, policytest.Fleet)
	if err != nil {
		return "", err
	}
	return directive.Token(payload, sig)
}

func shed(tier int) model.Directive {
	return model.Directive{Kind: model.Shed, Scope: model.AnyScope, Tier: tier, Right: "shed"}
}

func (s *shop) shed(tier int) string { return s.token(directive.Production, shed(tier)) }

func (s *shop) off(feature string) string {
	return s.token(directive.Production, model.Directive{Kind: model.Off, Scope: "catalog", Feature: feature, Right: "feature-off"})
}

func (s *shop) dim(target, floor, ceiling int) string {
	return s.token(directive.Production, model.Directive{
		Kind: model.Dimmer, Scope: "checkout", TargetMS: target, Floor: floor, Ceiling: ceiling, Right: "dim-recommendations",
	})
}

func (s *shop) bypass() string {
	return s.token(directive.Production, model.Directive{Kind: model.Bypass, Scope: "checkout", Right: "risk-bypass-small-orders"})
}
