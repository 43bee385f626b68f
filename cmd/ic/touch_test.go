package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/sshsig/sshsigtest"
	lib "github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// A security key that nobody touched proves nothing but that it is plugged in,
// and whoever holds the computer can ask it. So the touch is looked for where a
// signature is read, whatever program has made it: in a policy, in a directive
// and in a lease. Each test reads two signatures of the same token over the same
// bytes, one with the flag and one without.

// loose signs as a program does that looks at no flags: sshsig.Sign would not
// hand such a signature out.
func loose(t *testing.T, signer ssh.Signer, content []byte, namespace string) []byte {
	t.Helper()
	sig, err := lib.SignWithRand(bytes.NewReader(content), rand.Reader, signer, lib.HashSHA512, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return sig.Marshal()
}

// tokenShop is the test shop in which dev holds a security key.
func tokenShop(t *testing.T) (dir string, opts policy.LoadOptions) {
	t.Helper()
	params, signers := policytest.Params(), policytest.People()
	signers[templates.Dev] = token(t, sshsigtest.Touched)
	params.People[templates.Dev] = token(t, 0).PublicKey()
	files, err := templates.Shop(params)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	pin, err := templates.Sign(dir, files, templates.Signing{Signers: signers, Rand: policytest.Rand(), Realm: directive.Production, Fleet: policytest.Fleet, Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	return dir, policy.LoadOptions{Fleet: policytest.Fleet, RootSHA256: pin, Realm: directive.Production, Now: policytest.Now()}
}

func TestAPolicySignatureWithoutATouchDoesNotCount(t *testing.T) {
	dir, opts := tokenShop(t)
	content, err := os.ReadFile(filepath.Join(dir, "backends.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for flags, counts := range map[byte]bool{sshsigtest.Touched: true, sshsigtest.Touched | sshsigtest.Verified: true, sshsigtest.Verified: false, 0: false} {
		blob := loose(t, token(t, flags), content, directive.Production.Namespace("policy", policytest.Fleet))
		if err := os.WriteFile(filepath.Join(dir, "backends.yaml.sig", "dev.sig"), sshsig.Armor(blob), 0o644); err != nil {
			t.Fatal(err)
		}
		b, _, err := policy.LoadDir(dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		if state := b.Domains[policy.Backends]; state.Active != counts {
			t.Errorf("flags %#x: active is %v, %s", flags, state.Active, state.Why)
		}
		err = policy.AddDetached(dir, "backends.yaml", templates.Dev, sshsig.Armor(blob), directive.Production, policytest.Fleet)
		if (err == nil) != counts || err != nil && !errors.Is(err, sshsig.ErrSignature) {
			t.Errorf("flags %#x: put in place: %v", flags, err)
		}
	}
}

func TestADirectiveWithoutATouchIsNoDirective(t *testing.T) {
	payload, err := directive.Encode(model.Directive{
		ID: "01K0000000000000000000000A", Fleet: policytest.Fleet, Incident: "one", Scope: model.AnyScope, Kind: model.Shed, Tier: 1, Reason: "who asked for this?",
		IssuedAt: policytest.Now(), NotBefore: policytest.Now(), Right: "shed",
		Policy: model.PolicyRef{Version: 1, Digest: fmt.Sprintf("%064x", 1)},
		Log:    model.LogHead{Origin: policytest.Fleet + "/one/dev", Size: 1, Root: fmt.Sprintf("%064x", 1)},
	})
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	for flags, counts := range map[byte]bool{sshsigtest.Touched: true, sshsigtest.Verified: false, 0: false} {
		blob := loose(t, token(t, flags), payload, directive.Production.Namespace("directive", policytest.Fleet))
		_, err := directive.Verify("ic1."+b64(payload)+"."+b64(blob), directive.Production, policytest.Fleet)
		if (err == nil) != counts || err != nil && !errors.Is(err, sshsig.ErrSignature) {
			t.Errorf("flags %#x: %v", flags, err)
		}
	}
}

// still is a clock that stands.
type still struct{ at time.Time }

func (s still) Now() model.Instant { return model.Instant{Wall: s.at, State: model.ClockOK} }

// noticeBoard holds one lease.
type noticeBoard struct{ lease incident.Cell }

func (b *noticeBoard) Lease(context.Context) (incident.Cell, error) { return b.lease, nil }

func (b *noticeBoard) SwapLease(_ context.Context, previous int64, value string) error {
	b.lease = incident.Cell{Value: value, Revision: previous + 1}
	return nil
}

func (b *noticeBoard) Proposal(context.Context, string) (incident.Cell, error) {
	return incident.Cell{}, nil
}

func (b *noticeBoard) Proposals(context.Context) (map[string]string, error) { return nil, nil }

func (b *noticeBoard) SwapProposal(context.Context, string, int64, string) error {
	return errors.New("nobody proposes anything here")
}

func TestALeaseWithoutATouchTakesCommandFromNobody(t *testing.T) {
	dir, load := tokenShop(t)
	bundle, _, err := policy.LoadDir(dir, load)
	if err != nil {
		t.Fatal(err)
	}
	board := &noticeBoard{}
	d, err := incident.New(incident.Options{
		Realm: directive.Production, Fleet: policytest.Fleet, Person: templates.Ines, State: t.TempDir(), Session: "ines-1",
		Bundle: bundle, Clock: still{policytest.Now()}, Board: board,
		Signer: func(context.Context) (ssh.Signer, error) { return policytest.Key(templates.Ines), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Command(t.Context(), incident.Open, "", ""); err != nil {
		t.Fatal(err)
	}
	payload := []byte(fmt.Sprintf(`{"v":1,"fleet":%q,"incident":%q,"holder":"dev","deputy":"","offered_to":"","from":%q,"until":%q,"prev":""}`, policytest.Fleet,
		d.Snapshot().World.Incident.ID, policytest.Now().Format(time.RFC3339), policytest.Now().Add(time.Hour).Format(time.RFC3339)))
	b64 := base64.RawURLEncoding.EncodeToString
	for _, c := range []struct {
		flags  byte
		holder string
	}{{0, templates.Ines}, {sshsigtest.Verified, templates.Ines}, {sshsigtest.Touched, templates.Dev}} {
		blob := loose(t, token(t, c.flags), payload, directive.Production.Namespace("lease", policytest.Fleet))
		board.lease = incident.Cell{Value: "icl1." + b64(payload) + "." + b64(blob), Revision: 99}
		d.Refresh(t.Context())
		if got := d.Snapshot().World.Incident.Lease.Holder; got != c.holder {
			t.Errorf("flags %#x: %s holds command, want %s", c.flags, got, c.holder)
		}
	}
}
