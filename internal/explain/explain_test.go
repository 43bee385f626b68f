package explain_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/explain"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"pgregory.net/rapid"
)

func usd(minor int64) model.Money { return model.Money{Minor: minor, Currency: "USD"} }

// signed is the signed shop, every document of it in force.
func signed(t testing.TB) explain.Source {
	t.Helper()
	dir, b, _ := policytest.Shop(t)
	docs, root, _, err := policy.ReadDrafts(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	return explain.Source{Root: root, Docs: docs, States: b.Domains, Ref: b.Ref, Now: policytest.Now()}
}

// tester is what *testing.T and *rapid.T have in common here.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func explained(t tester, src explain.Source, as string) explain.Report {
	t.Helper()
	r, err := explain.Explain(src, as)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// part finds what is said of one thing in one section.
func part(t tester, r explain.Report, section, name string) explain.Part {
	t.Helper()
	for _, s := range r.Sections {
		for _, p := range s.Parts {
			if s.Name == section && p.Name == name {
				return p
			}
		}
	}
	t.Fatalf("nothing is said of %q in %q", name, section)
	return explain.Part{}
}

func said(p explain.Part, code string) string {
	var out []string
	for _, s := range p.Sentences {
		if s.Code == code {
			out = append(out, s.Text)
		}
	}
	return strings.Join(out, " ")
}

func sections(r explain.Report) []string {
	var out []string
	for _, s := range r.Sections {
		out = append(out, s.Name)
	}
	return out
}

const small = "risk-bypass-small-orders"

func TestTheWorstCaseIsTheOneThatDecisionsComputes(t *testing.T) {
	src := signed(t)
	p := part(t, explained(t, src, ""), "payments", small)
	_, b, _ := policytest.Shop(t)
	right, _, _ := b.Right(small)
	d := model.Directive{Kind: model.Bypass, Right: small, Control: right.Bypass.Control, Scope: templates.Checkout, Caps: model.Caps{
		Under: right.Bypass.Under, HostCount: right.Bypass.HostCount, HostTotal: right.Bypass.HostTotal, Total: right.Bypass.Total,
	}}
	e := decisions.WorstCase(b, &model.World{Hosts: explain.HostsOf(src.Docs.Backends)}, &d)
	if p.Worst == nil || p.Worst.WorstCase != e.WorstCase || p.Worst.PerHost != e.PerHost || p.Worst.Hosts != e.Hosts || p.Worst.Replacements != e.Replacements {
		t.Fatalf("explain says %+v, decisions %+v", p.Worst, e)
	}
	want := "WORST CASE in one UTC day: (16 hosts + 4 hosts that may join) x 1500.00 USD each = 30000.00 USD, in one grant of 15m or in several"
	if got := said(p, "bypass.worst"); !strings.HasPrefix(got, want) {
		t.Errorf("got %q", got)
	}
	if said(p, "bypass.within") == "" || said(p, "bypass.over") != "" {
		t.Errorf("30,000 is within 30,000: %+v", p.Sentences)
	}
}

func TestABudgetThatDoesNotFitIsSaidAloud(t *testing.T) {
	src := signed(t)
	bypassOf(src, small).HostTotal = usd(1501_00)
	p := part(t, explained(t, src, ""), "payments", small)
	if got := said(p, "bypass.over"); !strings.HasPrefix(got, "That is MORE than the total of 30000.00 USD") || said(p, "bypass.within") != "" {
		t.Errorf("got %q", got)
	}
}

func bypassOf(src explain.Source, name string) *policy.Bypass {
	return src.Docs.Controls[templates.PaymentsDomain].Rights[name].Bypass
}

func TestVolatileHostsMakeItAnEstimate(t *testing.T) {
	src := signed(t)
	bypassOf(src, small).VolatileHosts = true
	p := part(t, explained(t, src, ""), "payments", small)
	if !strings.Contains(said(p, "bypass.worst"), "an estimate") || said(p, "bypass.volatile") == "" || !p.Worst.Estimate {
		t.Errorf("got %+v", p)
	}
}

func TestWithoutHostsNoWorstCaseIsInvented(t *testing.T) {
	src := signed(t)
	src.Hosts = []model.HostView{}
	r := explained(t, src, "")
	p := part(t, r, "payments", small)
	if got := said(p, "bypass.worst-unknown"); !strings.HasPrefix(got, "WORST CASE: not known") || said(p, "bypass.worst") != "" {
		t.Errorf("got %+v", p.Sentences)
	}
	if got := said(part(t, r, "stolen-keys", "ines"), "stolen.bypass-unknown"); !strings.Contains(got, small) {
		t.Errorf("a stolen key: %q", got)
	}
}

// Whatever the bounds are, each of them stands in what a finance lead reads.
func TestEveryBoundOfABypassIsSaid(t *testing.T) {
	src := signed(t)
	rapid.Check(t, func(rt *rapid.T) {
		money := func(name string) model.Money { return usd(rapid.Int64Range(1, 1_000_000_00).Draw(rt, name)) }
		b := bypassOf(src, small)
		*b = policy.Bypass{
			Control: templates.PaymentRisk, Under: money("under"), HostTotal: money("host_total"), Total: money("total"),
			HostCount: rapid.Int64Range(1, 10_000_000).Draw(rt, "host_count"), Lasts: model.Duration(time.Duration(rapid.IntRange(1, 7200).Draw(rt, "lasts")) * time.Second),
			PerDay: rapid.IntRange(1, 1000).Draw(rt, "per_day"), Live: rapid.IntRange(1, 1000).Draw(rt, "live"),
			MaxReplacements: rapid.Int64Range(0, 10_000).Draw(rt, "max_replacements"), VolatileHosts: rapid.Bool().Draw(rt, "volatile"),
		}
		var text []string
		p := part(rt, explained(rt, src, ""), "payments", small)
		for _, s := range p.Sentences {
			text = append(text, s.Text)
		}
		all := strings.Join(text, "\n")
		for _, want := range []string{
			b.Under.String() + " each", "worth at most " + b.HostTotal.String(), b.Total.String() + " that is signed here", "most " + fmt.Sprint(b.HostCount) + " item",
			"lasts at most " + b.Lasts.String() + " ", "At most " + fmt.Sprint(b.PerDay) + " grant", "At most " + fmt.Sprint(b.Live) + " grant",
			"+ " + fmt.Sprint(b.MaxReplacements) + " host", p.Worst.WorstCase.String(), p.Worst.PerHost.String(),
		} {
			if !strings.Contains(all, want) {
				rt.Fatalf("%q is not said in:\n%s", want, all)
			}
		}
		if strings.Contains(all, "an estimate") != b.VolatileHosts {
			rt.Fatalf("volatile %v:\n%s", b.VolatileHosts, all)
		}
	})
}

func TestFinanceReadsOnlyWhatFinanceSigns(t *testing.T) {
	src := signed(t)
	for _, c := range []struct {
		as   string
		want []string
	}{
		{"finance", []string{"payments", "stolen-keys", "console-only", "hosts-enforce"}},
		{"platform", []string{"backends", "stolen-keys"}},
		{"dev", []string{"root", "manifest", "rights", "ladder", "backends", "stolen-keys", "console-only", "hosts-enforce"}},
		{"reliability", []string{"manifest", "rights", "ladder", "stolen-keys", "console-only", "hosts-enforce"}},
		{"", []string{"root", "manifest", "payments", "rights", "ladder", "features", "journeys", "backends", "stolen-keys", "console-only", "hosts-enforce"}},
	} {
		if got := sections(explained(t, src, c.as)); !slices.Equal(got, c.want) {
			t.Errorf("%q reads %v, want %v", c.as, got, c.want)
		}
	}
	if _, err := explain.Explain(src, "nobody-known"); !errors.Is(err, explain.ErrNobody) {
		t.Errorf("a stranger: %v", err)
	}
	if _, err := explain.Explain(explain.Source{Docs: src.Docs}, ""); err == nil {
		t.Error("explained without a root")
	}
}

// The strongest thing that each key can do alone, in the shop as it is.
func TestAStolenKey(t *testing.T) {
	r := explained(t, signed(t), "")
	for _, c := range []struct{ who, code, want string }{
		{"ines", "stolen.sheds", "Can shed to tier 4 at most, under no right at all"},
		{"ines", "stolen.recovers", "Can leave tiers from 4 down, whatever the signals say"},
		{"ines", "stolen.cannot", "Cannot use risk-bypass-medium-orders alone: it takes 1 signature of finance besides."},
		{"ines", "stolen.cannot", "Cannot use shed-4 alone: it takes 1 signature of business besides."},
		{"ines", "stolen.publish", "Can publish alone"},
		{"ines", "stolen.signs", "Can sign new versions of ladder alone; and can put them in force"},
		{"dev", "stolen.signs", "Can sign new versions of backends and ladder alone"},
		{"fiona", "stolen.nothing", "Can give no directive alone."},
		{"fiona", "stolen.second", "risk-bypass-medium-orders"},
		{"fiona", "stolen.signs-nothing", "none of these documents alone"},
		{"priya", "stolen.signs", "Can sign new versions of features and journeys alone; somebody who may publish"},
		{"ladder-controller (a machine)", "stolen.sheds", "Can shed to tier 2 at most, by auto-shed."},
		{"ladder-controller (a machine)", "stolen.bare", "switch any feature off and end any bypass"},
		{"ladder-controller (a machine)", "stolen.signs-nothing", "never a second person"},
	} {
		if got := said(part(t, r, "stolen-keys", c.who), c.code); !strings.Contains(got, c.want) {
			t.Errorf("%s, %s: got %q, want %q", c.who, c.code, got, c.want)
		}
	}
}

// What a key is worth is the sum over the bypasses that hosts take from it alone,
// and a co-signature that is no longer wanted adds to it.
func TestAStolenKeyIsWorthWhatItOpensAlone(t *testing.T) {
	src := signed(t)
	rights := src.Docs.Controls[templates.PaymentsDomain].Rights
	for name := range rights {
		if name != small && name != "risk-bypass-medium-orders" {
			delete(rights, name)
		}
	}
	if got := said(part(t, explained(t, src, "finance"), "stolen-keys", "dev"), "stolen.bypass"); got != "Can open bypasses worth at most 30000.00 USD in one UTC day: risk-bypass-small-orders." {
		t.Errorf("got %q", got)
	}
	medium := rights["risk-bypass-medium-orders"]
	medium.Cosign.Count = 0
	rights["risk-bypass-medium-orders"] = medium
	if got := said(part(t, explained(t, src, "finance"), "stolen-keys", "dev"), "stolen.bypass"); !strings.HasPrefix(got, "Can open bypasses worth at most 50000.00 USD") {
		t.Errorf("without the second signature: %q", got)
	}
}

func TestAThresholdOfOneIsSaidAsWhatItIs(t *testing.T) {
	src := signed(t)
	src.Root.Groups["everyone"] = policy.Group{Any: 1, Of: src.Root.Groups["everyone"].Of}
	src.Root.Groups["finance"] = policy.Group{Any: 1, Of: src.Root.Groups["finance"].Of}
	p := part(t, explained(t, src, ""), "stolen-keys", "fiona")
	if said(p, "stolen.root") == "" || !strings.Contains(said(p, "stolen.grants"), "items under 250.00 USD, 50000.00 USD in one UTC day for each right, 30m") {
		t.Errorf("got %+v", p.Sentences)
	}
}

func TestARevokedKeyCanDoNothing(t *testing.T) {
	src := signed(t)
	_, b, _ := policytest.Shop(t)
	src.Root.Revoked = b.FingerprintsOf("ines")
	p := part(t, explained(t, src, ""), "stolen-keys", "ines")
	if len(p.Sentences) != 1 || p.Sentences[0].Code != "stolen.dead" {
		t.Errorf("got %+v", p.Sentences)
	}
}

func TestAnExpiredPolicyLoosensNothing(t *testing.T) {
	src := signed(t)
	src.Now = policytest.Expires().Add(time.Hour)
	r := explained(t, src, "")
	if got := said(part(t, r, "stolen-keys", "ines"), "stolen.cannot"); !strings.Contains(got, "Cannot use "+small+": it has expired.") {
		t.Errorf("got %q", got)
	}
	if said(part(t, r, "payments", ""), "expired") == "" {
		t.Error("the page does not say that it has expired")
	}
	if got := said(part(t, r, "stolen-keys", "ines"), "stolen.sheds"); got == "" {
		t.Error("shedding does not expire")
	}
}

func TestWhatOnlyTheConsoleEnforcesIsMarked(t *testing.T) {
	src := signed(t)
	rights := src.Docs.Controls[templates.PaymentsDomain].Rights
	right := rights[small]
	right.RehearsedWithin, right.Review = model.Duration(720*time.Hour), "finance"
	right.NoSecond = &policy.NoSecond{Of: "risk-bypass-medium-orders", After: model.Duration(10 * time.Minute)}
	rights[small] = right
	src.Docs.Ladder.Schedule = map[string]policy.Event{"sale": {Tier: 1, Scope: []string{"*"}, Soak: model.Duration(10 * time.Minute)}}
	r := explained(t, src, "")
	p := part(t, r, "payments", small)
	for _, code := range []string{"bypass.per-day", "right.rehearsed", "right.no-second", "right.review", "right.lease"} {
		i := slices.IndexFunc(p.Sentences, func(s explain.Sentence) bool { return s.Code == code })
		if i < 0 || !p.Sentences[i].ConsoleOnly {
			t.Errorf("%s is not marked", code)
		}
	}
	for _, code := range []string{"bypass.item", "bypass.host", "bypass.lasts", "bypass.live", "bypass.worst"} {
		i := slices.IndexFunc(p.Sentences, func(s explain.Sentence) bool { return s.Code == code })
		if i < 0 || p.Sentences[i].ConsoleOnly {
			t.Errorf("%s is not there or is marked", code)
		}
	}
	list := part(t, r, "console-only", "")
	for _, code := range []string{"console.signals", "console.rehearsed", "console.per-day", "console.no-second", "console.lead", "console.review", "console.lease", "console.soak"} {
		if said(list, code) == "" {
			t.Errorf("%s is missing from the list", code)
		}
	}
	if got := said(list, "console.rehearsed"); !strings.Contains(got, small) {
		t.Errorf("got %q", got)
	}
}

func TestADraftSaysThatItIsNotSigned(t *testing.T) {
	src := drafts(t, nil)
	r := explained(t, src, "finance")
	if got := said(part(t, r, "payments", ""), "unsigned"); got != "NOT SIGNED YET. it is a draft." || r.Signed {
		t.Errorf("got %q, signed %v", got, r.Signed)
	}
	if part(t, r, "payments", small).Worst == nil {
		t.Error("a draft has a worst case too")
	}
	whole := signed(t)
	if r := explained(t, whole, "finance"); !r.Signed {
		t.Error("the signed one says that it is not")
	}
	state := whole.States[templates.PaymentsDomain]
	state.Active, state.Why = false, "signatures are missing: finance wants 2 of fiona, ravi; signed by fiona"
	whole.States[templates.PaymentsDomain] = state
	r = explained(t, whole, "finance")
	if got := said(part(t, r, "payments", ""), "inactive"); got != "NOT IN FORCE: "+state.Why+"." || r.Signed {
		t.Errorf("got %q, signed %v", got, r.Signed)
	}
}

func TestADomainThatIsNotThereIsSaid(t *testing.T) {
	src := signed(t)
	src.Docs.Journeys = nil
	src.Docs.Controls["stray"] = &policy.ControlsDoc{}
	r := explained(t, src, "")
	if said(part(t, r, "journeys", ""), "missing") == "" || r.Signed {
		t.Error("a missing document is not mentioned")
	}
	if said(part(t, r, "stray", ""), "signers-none") == "" || said(part(t, r, "stray", ""), "stranger") == "" {
		t.Error("a document that nobody asked for is not called so")
	}
}

func TestTextFitsAndShowsNoControlCharacters(t *testing.T) {
	src := signed(t)
	src.Docs.Journeys.Why = "clear the screen \x1b[2J"
	r := explained(t, src, "")
	r.Sections[0].Parts[0].Sentences = append(r.Sections[0].Parts[0].Sentences, explain.Sentence{Text: "evil \u202e text \x1b[31m"})
	var b strings.Builder
	r.Text(&b)
	for _, line := range strings.Split(b.String(), "\n") {
		if utf8.RuneCountInString(line) > explain.Columns && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
	if strings.ContainsAny(b.String(), "\x1b\u202e") {
		t.Error("a control character reaches the terminal")
	}
	if !regexp.MustCompile(`(?m)^  - At most 4 grants may begin in one UTC day\.`).MatchString(b.String()) {
		t.Error("the list of a right is not there")
	}
}

// What the shop does not use, and another policy may.
func TestTheRarerSentences(t *testing.T) {
	src := signed(t)
	src.Docs.Rights.Rights["dim"] = policy.Right{Kind: model.Dimmer, Who: "incident-commander", Scope: []string{"edge"}, Dimmer: &policy.Dimmer{TargetMS: policy.Range{From: 100, To: 300}, Floor: 2, Ceiling: 90}}
	src.Docs.Rights.Rights["no-reviews"] = policy.Right{Kind: model.Off, Who: "ladder-controller", Scope: []string{"catalog"}, Feature: "reviews"}
	src.Docs.Rights.Rights["never"] = policy.Right{Kind: model.Shed, Who: "ghosts", Scope: []string{"edge", "catalog"}, Tiers: &policy.Range{From: 1, To: 4}, Cosign: policy.Cosign{Count: 9, Of: "finance"}}
	src.Docs.Controls["login"] = &policy.ControlsDoc{Controls: map[string]policy.Control{"login": {Protects: policy.ProtectsAuthorization, Fails: policy.FailsClosed}}}
	src.Docs.Ladder.Exceptions = map[string]policy.Exception{"late": {Code: "review-old", Path: "features.yaml features.reviews", Owner: "priya", Until: policytest.Expires(), Why: "soon"}}
	src.Docs.Backends.Inventory = policy.Inventory{Query: "up", MaxAge: model.Duration(time.Hour)}
	src.Docs.Backends.Backends["own"] = policy.Backend{Path: "/opt/own", SHA256: map[string]string{"linux/amd64": "00"}, Targets: []string{"edge"}}
	r := explained(t, src, "")
	for _, c := range []struct{ section, part, code, want string }{
		{"rights", "dim", "right.dimmer", "2 to 90 % of requests, for a latency target of 100 to 300 ms"},
		{"rights", "no-reviews", "right.feature", "Only the feature reviews."},
		{"rights", "never", "right.nobody", "Nobody holds the role ghosts"},
		{"rights", "never", "right.cosign-never", "nobody can ever use it"},
		{"rights", "never", "right.tiers", "but the role ghosts goes no further than tier 0"},
		{"login", "login (the control)", "control.never", "It never opens, whoever signs."},
		{"hosts-enforce", "", "hosts.never", "login protects authorization and never opens."},
		{"ladder", "exception: late", "exception", "The standard's rule review-old is not kept at features.yaml features.reviews until 2027-11-30"},
		{"backends", "inventory", "inventory.query", "is asked of Prometheus: up"},
		{"backends", "own", "backend.path", "run only when its SHA-256 is the one written here (linux/amd64)"},
		{"stolen-keys", "ines", "stolen.uses", "dim"},
		{"stolen-keys", "ladder-controller (a machine)", "stolen.uses", "no-reviews"},
	} {
		if got := said(part(t, r, c.section, c.part), c.code); !strings.Contains(got, c.want) {
			t.Errorf("%s, %s, %s: got %q, want %q", c.section, c.part, c.code, got, c.want)
		}
	}
	if got := said(part(t, r, "stolen-keys", "ines"), "stolen.cannot"); strings.Contains(got, "never") {
		t.Errorf("a role that she does not hold: %q", got)
	}
}
