package engine_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

const fleet = "shop-test"

// liveGrants is how many bypasses of one right may be open at a time.
const liveGrants = 2

var (
	start  = time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	digest = strings.Repeat("0", 64)
)

// people of the test shop: ada commands, bea may too, finn is finance, sam was a
// commander whose key a test may revoke, eve is nobody.
var people = []string{"ada", "bea", "finn", "sam", "eve"}

func signerOf(name string) ssh.Signer {
	i := slices.Index(people, name)
	s, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i + 1)}, ed25519.SeedSize)))
	if err != nil {
		panic(err)
	}
	return s
}

func fingerprint(name string) string { return ssh.FingerprintSHA256(signerOf(name).PublicKey()) }

func publicKey(name string) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signerOf(name).PublicKey())))
}

// shop is what a policy of the tests can be changed in before it is made.
type shop struct {
	root    *policy.Root
	version int64
	bypass  policy.Bypass
	states  map[policy.Domain]policy.DomainState
	// until when the right open outlives its document; zero: it does not
	outlives time.Time
	ladder   *policy.LadderDoc
}

func newShop() *shop {
	person := func(name string) policy.Person { return policy.Person{Keys: []string{publicKey(name)}} }
	active := func(d policy.Domain) policy.DomainState {
		return policy.DomainState{Domain: d, Version: 1, Active: true, Expires: start.AddDate(1, 0, 0)}
	}
	return &shop{
		version: 3,
		root: &policy.Root{
			V: 1, Fleet: fleet, Version: 1, Expires: start.AddDate(1, 0, 0),
			People: map[string]policy.Person{"ada": person("ada"), "bea": person("bea"), "finn": person("finn"), "sam": person("sam")},
			Groups: map[string]policy.Group{"finance": {Any: 1, Of: []string{"finn"}}},
			Roles: map[string]policy.Role{
				"commander": {Members: []string{"ada", "bea", "sam"}, Tightens: true, MaxTier: 4},
			},
		},
		bypass: policy.Bypass{
			Control: "risk", Under: usd(5000), HostCount: 40, HostTotal: usd(40000), Total: usd(4000000),
			Lasts: model.Duration(15 * time.Minute), PerDay: 3, Live: liveGrants, MaxReplacements: 5,
		},
		states: map[policy.Domain]policy.DomainState{"ladder": active("ladder"), "rights": active("rights"), "payments": active("payments")},
		ladder: &policy.LadderDoc{
			Services: map[string]policy.Service{"checkout": {Tiers: 4}, "catalog": {Tiers: 2}},
			Tiers:    []policy.Tier{{Tier: 1}, {Tier: 2}, {Tier: 3}, {Tier: 4}},
		},
	}
}

func (s *shop) bundle(t testing.TB) *policy.Bundle {
	t.Helper()
	any := []string{model.AnyScope}
	row := func(kind, ends model.Kind) policy.Right {
		return policy.Right{Kind: kind, Ends: ends, Who: "commander", Scope: any}
	}
	tiers := &policy.Range{From: 1, To: 4}
	rights := map[string]policy.Right{
		"shed": row(model.Shed, ""), "off": row(model.Off, ""), "freeze": row(model.Freeze, ""), "ping": row(model.Ping, ""),
		"recover": row(model.End, model.Shed), "on": row(model.End, model.Off), "thaw": row(model.End, model.Freeze),
		"close": row(model.End, model.Bypass), "open": row(model.Bypass, ""), "open-by-two": row(model.Bypass, ""),
		"recover-by-two": row(model.End, model.Shed), "open-anywhere": row(model.Bypass, ""),
		"dim": row(model.Dimmer, ""), "undim": row(model.End, model.Dimmer),
	}
	for name, r := range rights {
		r.Tiers, r.Lasts = tiers, model.Duration(time.Hour)
		if r.Kind == model.Off {
			r.Feature = "*"
		}
		if r.Kind == model.Dimmer {
			r.Dimmer = &policy.Dimmer{TargetMS: policy.Range{From: 100, To: 1000}, Floor: 2, Ceiling: 100}
		}
		if strings.HasSuffix(name, "by-two") {
			r.Cosign = policy.Cosign{Count: 1, Of: "finance"}
		}
		if r.Kind == model.Bypass {
			bounds := s.bypass
			bounds.VolatileHosts = name == "open-anywhere"
			r.Bypass = &bounds
			if name == "open" {
				r.Expires = s.outlives
			}
		}
		rights[name] = r
	}
	plain, money := map[string]policy.Right{}, map[string]policy.Right{}
	for name, r := range rights {
		if r.Kind == model.Bypass {
			money[name] = r
		} else {
			plain[name] = r
		}
	}
	features := &policy.FeaturesDoc{Features: map[string]policy.Feature{"reviews": {}, "search": {}, "wishlist": {}}}
	docs := policy.Documents{Features: features, Controls: map[policy.Domain]*policy.ControlsDoc{}}
	if s.states["ladder"].Active {
		docs.Ladder = s.ladder
	}
	if s.states["rights"].Active {
		docs.Rights = &policy.RightsDoc{Rights: plain}
	}
	if s.states["payments"].Active {
		docs.Controls["payments"] = &policy.ControlsDoc{
			Controls: map[string]policy.Control{"risk": {Protects: policy.ProtectsMoney, Services: []string{"checkout", "payment-risk"}}},
			Rights:   money,
		}
	}
	b, err := policy.NewBundle(s.root, model.PolicyRef{Version: s.version, Digest: digest}, s.states, docs)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func usd(minor int64) model.Money { return model.Money{Minor: minor, Currency: "USD"} }

// clock is a host's clocks, moved by hand.
type clock struct{ now model.Instant }

func newClock() *clock {
	return &clock{model.Instant{Wall: start, Boot: time.Hour, BootID: "boot-1", State: model.ClockOK}}
}

func (c *clock) Now() model.Instant { return c.now }

func (c *clock) pass(d time.Duration) {
	c.now.Wall = c.now.Wall.Add(d)
	c.now.Boot += d
}

// set moves the wall clock alone, as a person or a time server does.
func (c *clock) set(d time.Duration) { c.now.Wall = c.now.Wall.Add(d) }

// reboot takes d and starts the boot clock anew.
func (c *clock) reboot(d time.Duration) {
	c.now.Wall = c.now.Wall.Add(d)
	c.now.Boot = time.Minute
	c.now.BootID += "+"
}

// ids makes ULIDs in ascending order.
type ids struct{ n int }

func (i *ids) next() string {
	i.n++
	return fmt.Sprintf("01JDZ8K3V5Q2M7N9P4%08d", i.n)
}

// draft fills in what a directive of the tests always has.
func draft(id string, d model.Directive, at time.Time) model.Directive {
	d.ID, d.Fleet, d.Incident = id, fleet, "inc-1"
	if d.Scope == "" {
		d.Scope = model.AnyScope
	}
	if d.IssuedAt.IsZero() {
		d.IssuedAt = at
	}
	if d.NotBefore.IsZero() {
		d.NotBefore = d.IssuedAt
	}
	if d.Policy.Version == 0 {
		d.Policy.Version = 3
	}
	if d.Policy.Digest == "" {
		d.Policy.Digest = digest
	}
	if d.Log.Origin == "" {
		d.Log = model.LogHead{Origin: fleet + "/inc-1/s1", Size: 1, Root: digest}
	}
	return d
}

func sign(t testing.TB, d model.Directive, names ...string) string {
	t.Helper()
	payload, err := directive.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	return signPayload(t, payload, d.Fleet, names...)
}

func signPayload(t testing.TB, payload []byte, fleet string, names ...string) string {
	t.Helper()
	var sigs []sshsig.Signature
	for _, name := range names {
		sig, err := directive.Sign(signerOf(name), nil, payload, directive.Production, fleet)
		if err != nil {
			t.Fatal(err)
		}
		sigs = append(sigs, sig)
	}
	token, err := directive.Token(payload, sigs...)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// The directives that tests need most.
func shed(tier int) model.Directive {
	return model.Directive{Kind: model.Shed, Tier: tier, Right: "shed"}
}

func open(window time.Duration, at time.Time) model.Directive {
	return model.Directive{
		Kind: model.Bypass, Control: "risk", Right: "open", IssuedAt: at, NotAfter: at.Add(window), Scope: "checkout",
		Caps: model.Caps{Under: usd(5000), HostCount: 40, HostTotal: usd(40000), Total: usd(4000000)},
	}
}

func step(from, percent int, chain ...string) model.Directive {
	slices.Sort(chain)
	return model.Directive{
		Kind: model.End, Ends: model.Shed, IDs: chain, From: from, To: from - 1,
		Ramp: "01JDZ8K3V5Q2M7N9P400000000", Percent: percent, Right: "recover",
	}
}

func end(kind model.Kind, right string, listed ...string) model.Directive {
	slices.Sort(listed)
	return model.Directive{Kind: model.End, Ends: kind, IDs: listed, Right: right}
}

// host is one engine under test with its clock, folder and policy.
type host struct {
	*engine.Engine
	t      testing.TB
	name   string
	clock  *clock
	folder engine.Folder
	shop   *shop
	ids    *ids
	opened engine.Opened
}

func newHost(t testing.TB) *host {
	t.Helper()
	h := &host{t: t, name: "checkout-01", clock: newClock(), folder: engine.NewMemory(), shop: newShop(), ids: &ids{}}
	h.start()
	return h
}

func (h *host) start() {
	h.t.Helper()
	cfg := engine.Config{
		Fleet: fleet, Host: h.name, Services: []string{"checkout"}, Realm: directive.Production,
		Bundle: h.shop.bundle(h.t), Folder: h.folder, Volatile: h.folder == nil, Software: "test",
		Rand: rand.NewChaCha8([32]byte{}),
	}
	var err error
	if h.Engine, h.opened, err = engine.Open(cfg, h.clock.Now()); err != nil {
		h.t.Fatal(err)
	}
}

// crash loses power and starts again at once, in the same boot.
func (h *host) crash() {
	h.t.Helper()
	h.folder = h.folder.(*engine.Memory).Crash()
	h.start()
}

// make signs a directive issued now.
func (h *host) make(d model.Directive, names ...string) (id, token string) {
	h.t.Helper()
	if len(names) == 0 {
		names = []string{"ada"}
	}
	id = h.ids.next()
	return id, sign(h.t, draft(id, d, h.clock.Now().Wall), names...)
}

// take offers a directive that has to be taken.
func (h *host) take(d model.Directive, names ...string) string {
	h.t.Helper()
	id, token := h.make(d, names...)
	if r := h.offer(token); r.Code != "" || r.ID != id || !r.New {
		h.t.Fatalf("offer of %s %s: %+v", d.Kind, id, r)
	}
	return id
}

func (h *host) offer(token string) engine.Result { return h.Offer("test", token, h.clock.Now()) }

func (h *host) refuses(token string, want model.Code) {
	h.t.Helper()
	if r := h.offer(token); r.Code != want || r.New {
		h.t.Errorf("offer: %+v, want %s", r, want)
	}
}

func (h *host) wantTier(service string, want int) {
	h.t.Helper()
	if got := h.Tier(service, h.clock.Now()); got != want {
		h.t.Errorf("tier of %s is %d, want %d", service, got, want)
	}
}

func (h *host) allow(minor int64) (bool, model.Code) {
	return h.Allow("risk", "checkout", usd(minor), h.clock.Now())
}

// wantOpen asks for the smallest item, so that it costs next to no budget.
func (h *host) wantOpen(want bool) {
	h.t.Helper()
	ok, code := h.allow(1)
	if ok != want || !want && code != engine.CodeClosed {
		h.t.Errorf("allow says %v %q, want %v", ok, code, want)
	}
}

func (h *host) live() []string {
	out := []string{}
	for _, l := range h.Report(h.clock.Now()).Live {
		out = append(out, l.ID)
	}
	return out
}

func (h *host) wantState(want engine.Condition) {
	h.t.Helper()
	if got := h.Report(h.clock.Now()).State; got != string(want) {
		h.t.Errorf("state is %q, want %q", got, want)
	}
}

func (h *host) refused(id string) model.Code {
	for _, r := range h.Report(h.clock.Now()).Refused {
		if r.ID == id {
			return model.Code(r.Code)
		}
	}
	return ""
}

var errGone = errors.New("the file system is gone")

// stateLine is a record as docs/host-state.md describes it, made without the
// engine: its SHA-256, its length, itself, twice.
func stateLine(text string) string {
	line := fmt.Sprintf("%x %06d %s\n", sha256.Sum256([]byte(text)), len(text), text)
	line = line[:16] + line[64:]
	return line + line
}
