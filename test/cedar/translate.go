package cedar

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// text is a policy in Cedar: one permit for each right that is in force, one for
// whoever may tighten without one, and one forbid for what never passes.
func (p *rules) text() string {
	var out strings.Builder
	known := append(sorted(p.root.People), sorted(p.root.Machines)...)
	fmt.Fprintf(&out, "forbid (principal, action, resource) unless {\n  %s.containsAll(context.signers) &&\n  context.fleet == %q &&\n"+
		"  context.issued <= context.now + 86400 &&\n  context.mode != \"READ-ONLY\" &&\n  context.kind != \"melt\" &&\n  !(context.recovery && context.from == 0)\n};\n",
		signerList(known), p.root.Fleet)
	rights := p.rights
	for _, name := range sorted(rights) {
		right := rights[name]
		for _, who := range p.quorums(&right) {
			fmt.Fprintf(&out, "permit (principal, action == Action::%q, resource) when {\n  %s\n};\n", name, strings.Join(p.row(&right, name, who), " &&\n  "))
		}
	}
	p.withoutRow(&out, sorted(rights))
	return out.String()
}

// quorums spells out one right once for each set of people that would do, as a
// condition over the set of signers.
func (p *rules) quorums(right *policy.Right) []string {
	role, ok := p.root.Roles[right.Who]
	if !ok {
		return nil
	}
	holders := append(membersOf(p.root, role.Members), role.Machines...)
	slices.Sort(holders)
	var out []string
	for _, holder := range slices.Compact(holders) {
		others := membersOf(p.root, []string{right.Cosign.Of})
		slices.Sort(others)
		others = slices.DeleteFunc(slices.Compact(others), func(name string) bool { return name == holder })
		if p.root.Groups[right.Cosign.Of].Any == 0 && right.Cosign.Count > 0 {
			continue
		}
		for _, set := range choose(others, right.Cosign.Count) {
			out = append(out, fmt.Sprintf("context.signers.containsAll(%s)", signerList(append([]string{holder}, set...))))
		}
	}
	return out
}

// choose lists every set of n of names.
func choose(names []string, n int) [][]string {
	if n == 0 {
		return [][]string{nil}
	}
	var out [][]string
	for i := range names {
		for _, rest := range choose(names[i+1:], n-1) {
			out = append(out, append([]string{names[i]}, rest...))
		}
	}
	return out
}

// row is everything that one right wants, for one set of signers.
func (p *rules) row(right *policy.Right, name, who string) []string {
	maxTier := p.root.Roles[right.Who].MaxTier
	out := []string{who, fmt.Sprintf("context.kind == %q", right.Kind), fmt.Sprintf("context.reach <= %d", maxTier), within("context.scope", right.Scope)}
	switch right.Kind {
	case model.Shed:
		return append(out, tiers(right.Tiers, "context.tier"), stillOpen, p.noMachineInAFreeze())
	case model.Off:
		// What may be a control is no feature, and no row switches it off.
		out = append(out, "!("+p.mayBeControl()+")", stillOpen, p.noMachineInAFreeze())
		if p.states[policy.Features].Active {
			out = append(out, within("context.feature", sorted(p.docs.Features.Features)))
		}
		if right.Feature != "*" {
			out = append(out, fmt.Sprintf("context.feature == %q", right.Feature))
		}
		return out
	case model.Freeze, model.Ping:
		return append(out, lasting(right.Lasts), stillOpen)
	case model.Dimmer:
		if right.Dimmer == nil {
			return append(out, "false")
		}
		return append(out, stillOpen, p.noMachineInAFreeze(), fmt.Sprintf("context.target >= %d && context.target <= %d && context.floor >= %d && context.ceiling <= %d",
			right.Dimmer.TargetMS.From, right.Dimmer.TargetMS.To, right.Dimmer.Floor, right.Dimmer.Ceiling))
	case model.Bypass:
		return append(out, p.bypass(right)...)
	default:
		return append(out, p.ending(right)...)
	}
}

const (
	stillOpen = `(context.until == 0 || context.now < context.until)`
	inCommand = `context.holder != "" && context.holder == context.actor && context.now < context.lease`
	noFreeze  = `!(context.frozen.contains("*") || context.frozen.contains(context.scope) || (context.scope == "*" && !context.frozen.isEmpty()))`
)

func (p *rules) ending(right *policy.Right) []string {
	out := []string{fmt.Sprintf("context.ends == %q", right.Ends), "context.misfits == 0"}
	switch right.Ends {
	case model.Bypass, model.Ping:
		return append(out, "context.fits + context.unknown > 0", stillOpen)
	case model.Shed:
		return append(out[:1], p.recovery(right)...)
	case model.Freeze:
		out = append(out, inCommand)
	default:
		out = append(out, inCommand, noFreeze)
	}
	return append(out, "context.fits > 0", p.calm())
}

// calm is every signal with a threshold known and not beyond it.
func (p *rules) calm() string {
	out := []string{"true"}
	for _, name := range sorted(p.docs.Ladder.Signals) {
		if limit := p.docs.Ladder.Signals[name].Abnormal; limit != nil {
			out = append(out, fmt.Sprintf("context.%s.state == \"value\" && context.%s.value <= %d", name, name, int64(*limit.Above)))
		}
	}
	return strings.Join(out, " && ")
}

// mayRecover is who may: whoever is in command; a machine, where machines of the
// same role have signed all of the chain, or where the last step of its ramp is
// one of theirs or has a person's signature.
func (p *rules) mayRecover(right *policy.Right) string {
	role := p.root.Roles[right.Who]
	theirs := func(what string) string { return quotedList(role.Machines) + ".containsAll(" + what + ")" }
	return fmt.Sprintf("((%s) || (%s.contains(context.actor) && (\n   (%s && !context.chain.shed_by.isEmpty() && (context.chain.percent == 0 || (%s && !context.chain.step_by.isEmpty()))) ||\n"+
		"   (context.chain.percent > 0 && ((%s && !context.chain.step_by.isEmpty()) || %s.containsAny(context.chain.step_by))))))",
		inCommand, quotedList(sorted(p.root.Machines)), theirs("context.chain.shed_by"), theirs("context.chain.step_by"), theirs("context.chain.step_by"),
		quotedList(sorted(p.root.People)))
}

// noMachineInAFreeze: a freeze stops what machines would do by themselves, and no
// person.
func (p *rules) noMachineInAFreeze() string {
	return fmt.Sprintf("(!%s.contains(context.actor) || %s)", quotedList(sorted(p.root.Machines)), noFreeze)
}

func (p *rules) recovery(right *policy.Right) []string {
	out := []string{tiers(right.Tiers, "context.from"), p.mayRecover(right), noFreeze, "context.chain.tier > 0",
		"context.from == context.chain.tier", "context.from - context.to == 1", "context.whole",
		"(context.chain.percent == 0 || context.ramp == context.chain.ramp)"}
	var cases []string
	for tier := 1; tier <= 4; tier++ {
		cases = append(cases, fmt.Sprintf("(context.from == %d && %s)", tier, p.leaving(tier, right.Blind)))
	}
	out = append(out, "("+strings.Join(cases, " ||\n   ")+")")
	if right.Blind {
		out = append(out, "context.evidence")
	}
	return append(out, p.rehearsed(right), p.noMachineWhileBusy())
}

// rehearsed is a use of the right, or a ping in its scope, that is recent enough.
func (p *rules) rehearsed(right *policy.Right) string {
	if right.RehearsedWithin == 0 {
		return "true"
	}
	limit := int64(right.RehearsedWithin.Std().Seconds())
	out := []string{fmt.Sprintf("context.used_right <= %d", limit)}
	rights := p.rights
	for _, name := range sorted(rights) {
		if rights[name].Kind == model.Ping {
			out = append(out, fmt.Sprintf("(context.ages.%s <= %d && %s)", strings.ReplaceAll(name, "-", "_"), limit, within("context.scope", rights[name].Scope)))
		}
	}
	return "(" + strings.Join(out, " || ") + ")"
}

// busy is that an event runs which wants at least the tier that is left. No
// service knows more tiers than the ladder.
func (p *rules) busy(e *policy.Event) string {
	tier := min(e.Tier, len(p.docs.Ladder.Tiers))
	return fmt.Sprintf("(context.now >= %d && context.now < %d && context.from >= %d && (context.scope == \"*\" || %s))",
		e.From.Unix(), e.Until.Unix(), tier, within("context.scope", e.Scope))
}

func (p *rules) noMachineWhileBusy() string {
	out := "true"
	for _, name := range sorted(p.docs.Ladder.Schedule) {
		e := p.docs.Ladder.Schedule[name]
		out += fmt.Sprintf(" && (!%s || !%s.contains(context.actor))", p.busy(&e), quotedList(sorted(p.root.Machines)))
	}
	return out
}

func quotedList(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// leaving is what the ladder wants before a tier is left by the step after the one
// that has been reached.
func (p *rules) leaving(n int, blind bool) string {
	var tier *policy.Tier
	for i := range p.docs.Ladder.Tiers {
		if p.docs.Ladder.Tiers[i].Tier == n {
			tier = &p.docs.Ladder.Tiers[i]
		}
	}
	if tier == nil {
		// Nothing is said about this tier: only a blind recovery leaves it, at once and
		// in one step.
		if !blind {
			return "false"
		}
		return "context.percent == 100"
	}
	var steps []string
	before := 0
	for _, percent := range append(slices.Clone(tier.Ramp), 101) {
		// Having reached something from before up to here, the next step is this one.
		next := percent
		if percent == 101 {
			next = 100
		}
		steps = append(steps, fmt.Sprintf("(context.chain.percent >= %d && context.chain.percent < %d && context.percent == %d)", before, percent, next))
		before = percent
	}
	out := []string{"(" + strings.Join(steps, " || ") + ")", fmt.Sprintf(
		"(if context.chain.percent == 0 then context.now - context.chain.since - context.chain.late >= %d else context.now - context.chain.step - context.chain.late >= %d)",
		int64(tier.Dwell.Std().Seconds()), int64(tier.RampStep.Std().Seconds()))}
	if blind {
		return strings.Join(out, " && ")
	}
	if len(tier.Leave) == 0 {
		return "false"
	}
	out = append(out, "context.chain.seen")
	for _, name := range sorted(p.docs.Ladder.Schedule) {
		e := p.docs.Ladder.Schedule[name]
		for _, c := range tier.Leave {
			out = append(out, fmt.Sprintf("(!%s || context.%s.steady >= %d)", p.busy(&e), c.Signal, int64(e.Soak.Std().Seconds())))
		}
	}
	for _, c := range tier.Leave {
		out = append(out, fmt.Sprintf("context.%[1]s.state == \"value\" && context.%[1]s.value < %[2]d && context.%[1]s.steady >= %[3]d",
			c.Signal, int64(*c.Below), int64(c.For.Std().Seconds())))
	}
	return strings.Join(out, " && ")
}

func (p *rules) bypass(right *policy.Right) []string {
	b := right.Bypass
	control := p.docs.Controls[money].Controls[b.Control]
	ends := min(max(p.states[money].Expires.Unix(), right.Expires.Unix()), p.root.Expires.Unix())
	together := "true"
	if total := p.root.Domains[money].Total; total != nil {
		together = fmt.Sprintf("context.caps.under.currency == %q && context.together <= %d", total.Currency, total.Minor)
	}
	nobody := "true"
	if right.NoSecond != nil {
		nobody = fmt.Sprintf("context.waited.%s >= %d", strings.ReplaceAll(right.NoSecond.Of, "-", "_"), int64(right.NoSecond.After.Std().Seconds()))
	}
	if control.Protects == policy.ProtectsAuthorization {
		return []string{"false"}
	}
	hosts := []string{}
	for _, service := range control.Services {
		hosts = append(hosts, fmt.Sprintf("(if context.scope == \"*\" || context.scope == %q then context.hosts.%s else 0)", service, service))
	}
	return []string{
		fmt.Sprintf("context.version <= %d && (context.version < %d || context.digest == %q)", p.ref.Version, p.ref.Version, p.ref.Digest),
		fmt.Sprintf("context.now < %d", ends), fmt.Sprintf("context.control == %q", b.Control), within("context.scope", append([]string{model.AnyScope}, control.Services...)),
		amount("under", b.Under), amount("host_total", b.HostTotal), amount("total", b.Total),
		fmt.Sprintf("context.caps.host_count >= 1 && context.caps.host_count <= %d", b.HostCount),
		lasting(b.Lasts), stillOpen, inCommand, noFreeze, "context.durable", "context.fit", "context.reason",
		fmt.Sprintf("context.used < %d", b.PerDay), fmt.Sprintf("context.live < %d", b.Live), together, nobody, p.rehearsed(right),
		fmt.Sprintf("%s > 0", strings.Join(hosts, " + ")),
		fmt.Sprintf("context.per_host * (%s + %d) <= context.caps.total.minor", strings.Join(hosts, " + "), b.MaxReplacements),
	}
}

func amount(name string, limit model.Money) string {
	return fmt.Sprintf("context.caps.%[1]s.currency == %[2]q && context.caps.%[1]s.minor >= 1 && context.caps.%[1]s.minor <= %[3]d", name, limit.Currency, limit.Minor)
}

func lasting(d model.Duration) string {
	return fmt.Sprintf("context.until != 0 && context.until - context.from_time <= %d", int64(d.Std().Seconds()))
}

func tiers(r *policy.Range, what string) string {
	if r == nil {
		return "false"
	}
	return fmt.Sprintf("%s >= %d && %s <= %d", what, r.From, what, r.To)
}

// within is membership in a list of names, "*" being all of them.
func within(what string, names []string) string {
	if what == "context.scope" && slices.Contains(names, model.AnyScope) && len(names) == 1 {
		return "true"
	}
	return fmt.Sprintf("%s.contains(%s)", quotedList(names), what)
}

// mayBeControl is what the name of a feature must not be.
func (p *rules) mayBeControl() string {
	if p.states[money].Active {
		return within("context.feature", sorted(p.docs.Controls[money].Controls))
	}
	if p.docs.Features == nil {
		return "true"
	}
	return "!" + within("context.feature", sorted(p.docs.Features.Features))
}

// withoutRow lets whoever may tighten do so under a right that is not in force.
func (p *rules) withoutRow(out *strings.Builder, names []string) {
	for _, name := range sorted(p.root.Roles) {
		role := p.root.Roles[name]
		if !role.Tightens {
			continue
		}
		holders := append(membersOf(p.root, role.Members), role.Machines...)
		fmt.Fprintf(out, "permit (principal, action, resource) when {\n  !%[1]s &&\n  context.signers.containsAny(%[2]s) &&\n  %[3]s &&\n"+
			"  (context.kind == \"shed\" && context.tier <= %[4]d && %[5]s ||\n"+
			"   context.kind == \"off\" && !(%[6]s) && %[5]s ||\n"+
			"   context.kind == \"end\" && context.ends == \"bypass\" && context.misfits == 0 && context.fits + context.unknown > 0)\n};\n",
			within("context.right", names), signerList(holders), stillOpen, role.MaxTier, p.noMachineInAFreeze(), p.mayBeControl())
	}
}

func signerList(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("Signer::%q", name)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// ask is a request as Cedar sees it.
func (q *request) ask(p *rules, s *scene) cedar.Request {
	d := &q.Directive
	signers := []types.Value{types.NewEntityUID("Signer", types.String(q.Actor))}
	for _, name := range q.Cosigners {
		signers = append(signers, types.NewEntityUID("Signer", types.String(name)))
	}
	c := s.chains[d.Scope]
	context := types.RecordMap{
		"signers": types.NewSet(signers...), "actor": types.String(q.Actor), "right": types.String(d.Right),
		"fleet": types.String(d.Fleet), "kind": types.String(d.Kind), "scope": types.String(d.Scope), "feature": types.String(d.Feature),
		"control": types.String(d.Control), "ends": types.String(d.Ends), "ramp": types.String(d.Ramp),
		"tier": types.Long(d.Tier), "from": types.Long(d.From), "to": types.Long(d.To), "percent": types.Long(d.Percent), "reach": types.Long(q.reach()),
		"target": types.Long(d.TargetMS), "floor": types.Long(d.Floor), "ceiling": types.Long(d.Ceiling),
		"issued": types.Long(d.IssuedAt.Unix()), "from_time": types.Long(d.NotBefore.Unix()), "until": types.Long(0),
		"version": types.Long(d.Policy.Version), "digest": types.String(d.Policy.Digest),
		"reason": types.Boolean(strings.Trim(d.Reason, " \t") != ""), "evidence": types.Boolean(strings.Trim(q.Evidence, " ") != ""),
		"recovery": types.Boolean(d.Kind == model.End && d.Ends == model.Shed), "whole": types.Boolean(q.whole),
		"fits": types.Long(q.ends), "misfits": types.Long(q.others), "unknown": types.Long(q.unknown),
		"caps": caps(&d.Caps), "per_host": types.Long(min(max(d.Caps.Under.Minor-1, 0)*max(d.Caps.HostCount, 0), max(d.Caps.HostTotal.Minor, 0))),
		"now": types.Long(s.now), "mode": types.String(s.mode), "durable": types.Boolean(s.durable),
		"fit":    types.Boolean(s.clock == model.ClockOK || s.clock == model.ClockUnknown),
		"holder": types.String(s.holder), "lease": types.Long(s.until), "frozen": s.frozen(), "used": types.Long(s.usedToday(d)), "live": types.Long(s.live(d)),
		"together": types.Long(s.together(p, d)), "used_right": types.Long(s.age(d.Right)), "ages": s.ages(p), "waited": s.waited(p, d),
		"chain": types.NewRecord(types.RecordMap{"tier": types.Long(c.tier), "since": types.Long(c.since), "percent": types.Long(c.percent), "step": types.Long(c.stepAt), "ramp": types.String(c.ramp),
			"late": types.Long(c.late), "seen": types.Boolean(!c.unseen), "shed_by": names(c.shedBy), "step_by": names(c.stepBy)}),
	}
	if !d.NotAfter.IsZero() {
		context["until"] = types.Long(d.NotAfter.Unix())
	}
	hosts := types.RecordMap{}
	for _, service := range services {
		hosts[types.String(service)] = types.Long(s.hosts[service])
	}
	context["hosts"] = types.NewRecord(hosts)
	for _, name := range signals {
		r, ok := s.readings[name]
		if !ok {
			r.state = model.ReadingNoData
		}
		context[types.String(name)] = types.NewRecord(types.RecordMap{"state": types.String(r.state), "value": types.Long(r.value), "steady": types.Long(r.steady)})
	}
	return cedar.Request{
		Principal: types.NewEntityUID("Signer", types.String(q.Actor)), Action: types.NewEntityUID("Action", types.String(d.Right)),
		Resource: types.NewEntityUID("Scope", types.String(d.Scope)), Context: types.NewRecord(context),
	}
}

func names(of []string) types.Set {
	out := make([]types.Value, len(of))
	for i, name := range of {
		out[i] = types.String(name)
	}
	return types.NewSet(out...)
}

// reach is the tier that a role has to reach for it.
func (q *request) reach() int {
	if q.Directive.Kind == model.Shed {
		return q.Directive.Tier
	}
	return q.Directive.From
}

func caps(c *model.Caps) types.Record {
	amount := func(m model.Money) types.Record {
		return types.NewRecord(types.RecordMap{"minor": types.Long(m.Minor), "currency": types.String(m.Currency)})
	}
	return types.NewRecord(types.RecordMap{"under": amount(c.Under), "host_total": amount(c.HostTotal), "total": amount(c.Total), "host_count": types.Long(c.HostCount)})
}
