package runbooks

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
	"go.yaml.in/yaml/v3"
)

// step reads one step.
func (r *reader) step(n *yaml.Node, s *Step) {
	m := r.mapping(n, "", "step")
	s.ID = m.name("id")
	if reservedID(s.ID) {
		m.fail("id", CodeSyntax, "%s means something where the id of a step may stand; take another word", quote(s.ID))
	}
	s.Kind = Kind(m.exactlyOne("a step", kindKeys()))
	s.Role = m.name("role")
	s.Timeout, s.OnTimeout, s.Then = m.duration("timeout"), m.name("on_timeout"), m.name("then")
	s.Irreversible = m.text("irreversible", maxText)
	if body := m.body("probe", "check"); body != nil {
		s.Probe = body.check(true)
	}
	if body := m.body("undo", "undo"); body != nil {
		s.Undo = body.undo()
	}
	r.kind(m, s)
	r.fits(m, s)
}

func reservedID(id string) bool {
	return slices.Contains([]string{OnStop, OnAsk, OnContinue, ToEnd}, id)
}

// kind reads the one body of a step.
func (r *reader) kind(m *mapping, s *Step) {
	if s.Kind == "" {
		return
	}
	body := m.body(string(s.Kind), string(s.Kind))
	if body == nil {
		return
	}
	switch s.Kind {
	case KindCheck:
		s.Check = body.check(false)
	case KindDecide:
		s.Decide = body.decide()
	case KindDo:
		s.Do = body.do()
	case KindRecover:
		s.Recover = body.recover()
	case KindPush:
		s.Push = body.push(false)
	case KindWait:
		s.Wait = body.wait()
	case KindNote:
		s.Note = &Note{Ask: body.text("ask", maxText)}
	}
}

// fits says which common keys make no sense at a kind.
func (r *reader) fits(m *mapping, s *Step) {
	if s.Kind != "" && !s.Kind.HasEffect() {
		for _, key := range []string{"probe", "undo", "irreversible"} {
			m.only(key, fmt.Sprintf("a %s has no effect that could be proved or undone", s.Kind))
		}
	}
	if m.has("undo") && m.has("irreversible") {
		m.fail("irreversible", CodeSyntax, "a step has undo or irreversible; here are both")
	}
	switch {
	case s.Kind == KindDecide:
		m.only("then", "each option of a decide has its own goto")
	case s.Kind == KindWait:
		m.only("timeout", "the deadline of a wait is at_most, or for")
		if s.Wait != nil && s.Wait.Until == nil {
			m.only("on_timeout", "a wait for a time is over after it")
		}
		return
	}
	if m.has("on_timeout") && !m.has("timeout") && !s.Kind.HasEffect() { // of an effect, lint says that a timeout is missing
		m.fail("on_timeout", CodeMissing, "there is no timeout that it could follow")
	}
	if m.has("timeout") && !m.has("on_timeout") && !s.Kind.HasEffect() {
		m.fail("timeout", CodeMissing, "on_timeout is missing: say whether to %s, %s, %s, or the id of a later step", OnStop, OnAsk, OnContinue)
	}
}

// body reads the mapping that is the value of a key.
func (m *mapping) body(key, name string) *mapping {
	n := m.values[key]
	if n == nil {
		return nil
	}
	return m.r.mapping(n, join(m.path, key), name)
}

// check reads a question. Only the probe of an effect may ask for the reach of
// its own directive.
func (m *mapping) check(probe bool) *Check {
	c := &Check{NoData: NoDataStop}
	kind := m.exactlyOne("a check", checkKeys())
	if word := m.oneOf("no_data", NoDataStop, NoDataAsk); word != "" {
		c.NoData = word
	}
	if kind != "promql" && kind != "" {
		m.only("for", "only promql is looked at over a time")
		if kind != "signal" {
			m.only("is", "only promql and signal are compared with it")
		}
	}
	switch kind {
	case "promql":
		c.PromQL = &PromQL{Query: m.text("promql", maxQuery), Is: m.comparison("is"), For: m.duration("for")}
	case "signal":
		c.Signal = &SignalIs{Name: m.name("signal"), Is: m.oneOf("is", SignalNormal, SignalAbnormal)}
	case "reach":
		if !probe {
			m.fail("reach", CodeSyntax, "only the probe of do, recover or push may ask for the reach of its own directive; a check asks for skew")
		}
	}
	if (kind == "promql" || kind == "signal") && !m.has("is") && !hasKey(m.node, "is") {
		m.r.fail(m.node, m.path, CodeMissing, `"is" is missing: what the answer is compared with`)
	}
	if kind == "" || kind == "promql" || kind == "signal" {
		return c
	}
	if b := m.body(kind, kind); b != nil {
		b.question(kind, c)
	}
	return c
}

// question reads the mapping inside a check.
func (m *mapping) question(kind string, c *Check) {
	switch kind {
	case "http":
		c.HTTP = &HTTP{URL: m.url("url"), Status: m.integer("status", minStatus, maxStatus)}
	case "tier":
		c.Tier = &TierIs{Scope: m.scope("scope"), Is: m.integer("is", 0, lastTier)}
	case "skew":
		c.Skew = &Skew{AtLeast: m.integer("at_least", 1, percentMax)}
	case "bypass":
		c.Bypass = &BypassIs{Control: m.name("control"), Is: m.oneOf("is", BypassOpen, BypassClosed)}
	case "reach":
		c.Reach = &Reach{AtLeast: m.integer("at_least", 1, percentMax)}
	}
}

// comparison reads "< 0.5".
func (m *mapping) comparison(key string) Comparison {
	s := m.text(key, maxText)
	if s == "" {
		return Comparison{}
	}
	op, number, _ := strings.Cut(s, " ")
	v, err := strconv.ParseFloat(number, 64)
	if !slices.Contains([]string{"<", "<=", ">", ">=", "==", "!="}, op) || err != nil || math.IsNaN(v) || math.IsInf(v, 0) || strings.Trim(number, "0123456789.-e") != "" {
		m.fail(key, CodeSyntax, "%s is no comparison; write one of < <= > >= == !=, a space and a number: '< 0.5'", quote(s))
		return Comparison{}
	}
	return Comparison{Op: op, Value: v}
}

// url reads an address that can be asked with GET.
func (m *mapping) url(key string) string {
	s := m.text(key, maxURL)
	if s == "" {
		return ""
	}
	if why := badURL(s); why != "" {
		m.fail(key, CodeSyntax, "%s: %s", quote(s), why)
		return ""
	}
	return s
}

func badURL(s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return "not an address such as https://shop.example/healthz"
	case u.Scheme != "https" && u.Scheme != "http":
		return "only https and http are asked"
	case u.User != nil:
		return "an address carries no name or password"
	case u.Fragment != "":
		return "what stands behind # is never sent; remove it"
	}
	return ""
}

// scope reads a service, or "*".
func (m *mapping) scope(key string) string {
	if n := m.values[key]; n != nil && n.Value == model.AnyScope {
		return model.AnyScope
	}
	return m.name(key)
}

func (m *mapping) decide() *Decide {
	d := &Decide{Ask: m.text("ask", maxText)}
	for i, n := range m.list("options", minOptions, maxOptions) {
		key := fmt.Sprintf("options[%d]", i)
		o := m.r.mapping(n, join(m.path, key), "option")
		if o == nil {
			continue
		}
		option := Option{Choose: o.name("choose"), Means: o.text("means", maxText), Goto: o.name("goto")}
		if slices.ContainsFunc(d.Options, func(other Option) bool { return other.Choose == option.Choose && option.Choose != "" }) {
			o.fail("choose", CodeDuplicate, "two options are called %s; a person has to tell them apart", quote(option.Choose))
		}
		d.Options = append(d.Options, option)
	}
	return d
}

func (m *mapping) do() *Do {
	d := &Do{
		Right: m.name("right"), Scope: m.scope("scope"), Control: m.name("control"), For: m.duration("for"),
		TargetMS: m.integer("target_ms", 1, maxLatency), Floor: m.integer("floor", 1, percentMax), Ceiling: m.integer("ceiling", 1, percentMax),
		Tier: m.integer("tier", 1, lastTier), Feature: m.scope("feature"), Reason: m.text("reason", model.MaxReason),
	}
	if strings.Contains(d.Reason, "\n") {
		m.fail("reason", CodeSyntax, "a reason is one line: it travels in the directive")
	}
	if caps := m.body("caps", "caps"); caps != nil {
		d.Under = caps.money("under")
	}
	return d
}

func (m *mapping) money(key string) model.Money {
	s := m.text(key, maxText)
	if s == "" {
		return model.Money{}
	}
	amount, err := model.ParseMoney(s)
	switch {
	case err != nil:
		m.fail(key, CodeSyntax, "%s", untrusted.Text(err.Error(), 2*maxQuoted))
	case amount.Minor == 0:
		m.fail(key, CodeSyntax, "a cap of nothing lets nothing through; write a higher one or remove caps")
	}
	return amount
}

func (m *mapping) recover() *Recover {
	return &Recover{Scope: m.scope("scope"), To: m.integer("to", 0, lastTier-1), Percent: m.integer("percent", 1, percentMax)}
}

// push reads a push. As the undo of a step it can only take back.
func (m *mapping) push(undo bool) *Push {
	p := &Push{}
	switch m.exactlyOne("a push", []string{"backend", "undo"}) {
	case "backend":
		p.Backend = m.name("backend")
		if undo {
			m.fail("backend", CodeSyntax, "the undo of a push is {undo: the same backend}, not another push")
		}
	case "undo":
		p.Undo = m.name("undo")
	}
	return p
}

func (m *mapping) wait() *Wait {
	w := &Wait{AtMost: m.duration("at_most"), For: m.duration("for")}
	switch m.exactlyOne("a wait", []string{"until", "for"}) {
	case "until":
		if body := m.body("until", "check"); body != nil {
			w.Until = body.check(false)
		}
		if !m.has("at_most") && !hasKey(m.node, "at_most") {
			m.r.fail(m.node, m.path, CodeMissing, `"at_most" is missing: nobody waits for ever`)
		}
	case "for":
		m.only("at_most", "a wait for a time is over after it")
	}
	return w
}

func (m *mapping) undo() *Undo {
	u := &Undo{}
	switch kind := m.exactlyOne("an undo", []string{"do", "recover", "push"}); kind {
	case "do":
		if b := m.body(kind, kind); b != nil {
			u.Do = b.do()
		}
	case "recover":
		if b := m.body(kind, kind); b != nil {
			u.Recover = b.recover()
		}
	case "push":
		if b := m.body(kind, kind); b != nil {
			u.Push = b.push(true)
		}
	}
	return u
}
