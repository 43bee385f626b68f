package drill_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/kernel"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/drill/sim"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

// The control that nobody may open.
const (
	accessCheck  = "access-check"
	accessDomain = policy.Domain("access")
)

// law is the policy of the swarm as its owners wrote it, and a judge of statements
// that shares no code with the product's own: the documents, read by hand.
type law struct {
	docs    policy.Documents
	root    *policy.Root
	signers map[string]ssh.Signer
	names   map[string]string // fingerprint -> person or machine
	bundle  *policy.Bundle
}

// swarmPace lets a whole incident fit into ten minutes.
func swarmPace() templates.Pace {
	s := func(n int) model.Duration { return model.Duration(time.Duration(n) * time.Second) }
	return templates.Pace{
		Enter: s(20), EnterErrors: s(10), Leave: s(30), Dwell: s(60), RampStep: s(20), MaxAge: s(60), Step: s(5),
		SmallOrders: s(120), MedOrders: s(90), Freeze: s(60), Ping: s(60), Lead: s(20),
	}
}

// enact makes the policy, with one more control than the example has: one that
// protects authorization. bend changes the documents before they become a bundle.
func enact(dir string, bend func(*policy.Documents)) (*law, error) {
	l := &law{signers: map[string]ssh.Signer{}, names: map[string]string{}}
	params := templates.ShopParams{
		Fleet: sim.Fleet, Version: 1, Expires: sim.DefaultStart().AddDate(0, 3, 0), Pace: swarmPace(),
		People: map[string]ssh.PublicKey{}, Machines: map[string]ssh.PublicKey{},
	}
	for _, spec := range shop.Fleet(swarmHosts) {
		params.Hosts = append(params.Hosts, policy.InventoryHost{Host: spec.Name, Services: []string{spec.Service}})
	}
	keys := kernel.NewStream(1, "keys of the swarm")
	for _, name := range append(templates.ShopPeople(), templates.LadderController) {
		var seed [ed25519.SeedSize]byte
		_, _ = keys.Read(seed[:])
		signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed[:]))
		if err != nil {
			return nil, err
		}
		l.signers[name], l.names[ssh.FingerprintSHA256(signer.PublicKey())] = signer, name
		if name == templates.LadderController {
			params.Machines[name] = signer.PublicKey()
		} else {
			params.People[name] = signer.PublicKey()
		}
	}
	files, err := templates.Shop(params)
	if err != nil {
		return nil, err
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return nil, err
		}
	}
	return l, l.read(dir, bend)
}

func (l *law) read(dir string, bend func(*policy.Documents)) error {
	docs, root, findings, err := policy.ReadDrafts(os.DirFS(dir))
	if err != nil || len(findings) > 0 {
		return fmt.Errorf("read the swarm's policy: %v %v", findings, err)
	}
	header := docs.Controls[templates.PaymentsDomain].Header
	header.Domain = accessDomain
	docs.Controls[accessDomain] = &policy.ControlsDoc{Header: header, Controls: map[string]policy.Control{accessCheck: {
		Protects: policy.ProtectsAuthorization, Fails: policy.FailsClosed, Services: []string{shop.Edge, shop.Checkout}, Owner: templates.Ravi, Text: "nobody sees another one's orders",
	}}}
	root.Domains[accessDomain] = policy.DomainRule{Group: "finance", Grants: []model.Kind{}}
	if bend != nil {
		bend(&docs)
	}
	states := map[policy.Domain]policy.DomainState{}
	for domain := range root.Domains {
		states[domain] = policy.DomainState{Domain: domain, Version: 1, Expires: header.Expires, Active: true, Group: root.Domains[domain].Group}
	}
	ref := model.PolicyRef{Version: 1, Digest: fmt.Sprintf("%064x", 1)}
	l.docs, l.root = docs, root
	l.bundle, err = policy.NewBundle(root, ref, states, docs)
	return err
}

// right finds a row by its name.
func (l *law) right(name string) (policy.Right, bool) {
	if r, ok := l.docs.Rights.Rights[name]; ok {
		return r, true
	}
	for _, doc := range l.docs.Controls {
		if r, ok := doc.Rights[name]; ok {
			return r, true
		}
	}
	return policy.Right{}, false
}

// forbids says why the policy does not permit a statement to those who signed it,
// or "" if it does.
func (l *law) forbids(d *model.Directive, signers []string) string {
	if d.Kind == model.Bypass && l.guards(d.Control) != policy.ProtectsMoney {
		return "it opens " + d.Control
	}
	right, ok := l.right(d.Right)
	switch {
	case !ok:
		return "there is no right " + d.Right
	case right.Kind != d.Kind || d.Kind == model.End && right.Ends != d.Ends:
		return "the right is for something else"
	case !slices.Contains(right.Scope, model.AnyScope) && !slices.Contains(right.Scope, d.Scope):
		return "out of scope"
	}
	if why := l.bounds(d, &right); why != "" {
		return why
	}
	return l.people(d, &right, signers)
}

func (l *law) guards(control string) policy.Protects {
	for _, doc := range l.docs.Controls {
		if c, ok := doc.Controls[control]; ok {
			return c.Protects
		}
	}
	return ""
}

func (l *law) bounds(d *model.Directive, right *policy.Right) string {
	window := d.NotAfter.Sub(d.NotBefore)
	switch d.Kind {
	case model.Shed:
		if d.Tier < right.Tiers.From || d.Tier > right.Tiers.To {
			return fmt.Sprintf("tier %d", d.Tier)
		}
	case model.End:
		if d.Ends == model.Shed && (d.From-d.To != 1 || d.From < right.Tiers.From || d.From > right.Tiers.To || d.Ramp == "" || d.Percent < 1) {
			return fmt.Sprintf("a step from %d to %d", d.From, d.To)
		}
	case model.Freeze, model.Ping:
		if d.NotAfter.IsZero() || window > right.Lasts.Std() {
			return "it lasts " + window.String()
		}
	case model.Bypass:
		most, c := right.Bypass, d.Caps
		dear := func(a, b model.Money) bool { return a.Currency != b.Currency || a.Minor > b.Minor }
		if d.Control != most.Control || d.NotAfter.IsZero() || window > most.Lasts.Std() {
			return "it lasts " + window.String()
		}
		if dear(c.Under, most.Under) || dear(c.HostTotal, most.HostTotal) || dear(c.Total, most.Total) || c.HostCount > most.HostCount {
			return "over a cap"
		}
	}
	return ""
}

// people: one of the role asks, and enough others of the group have signed.
func (l *law) people(d *model.Directive, right *policy.Right, signers []string) string {
	role := l.root.Roles[right.Who]
	for _, asks := range signers {
		if !slices.Contains(role.Members, asks) && !slices.Contains(role.Machines, asks) || max(d.Tier, d.From) > role.MaxTier {
			continue
		}
		others := map[string]bool{}
		for _, s := range signers {
			_, person := l.root.People[s]
			if s != asks && person && slices.Contains(l.root.Groups[right.Cosign.Of].Of, s) {
				others[s] = true
			}
		}
		if len(others) >= right.Cosign.Count {
			return ""
		}
	}
	return fmt.Sprintf("signed by %v", signers)
}

// sign makes a token of any directive, whatever the policy says of it.
func (l *law) sign(d model.Directive, names ...string) (string, error) {
	payload, err := directive.Encode(d)
	if err != nil {
		return "", err
	}
	return l.signPayload(payload, names...)
}

func (l *law) signPayload(payload []byte, names ...string) (string, error) {
	var signatures []sshsig.Signature
	for _, name := range names {
		s, err := directive.Sign(l.signers[name], rand.Reader, payload, directive.Drill, sim.Fleet)
		if err != nil {
			return "", err
		}
		signatures = append(signatures, s)
	}
	return directive.Token(payload, signatures...)
}
