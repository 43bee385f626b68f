package runbooks_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/runbooks"
)

// oneStep is a runbook of one step with an effect.
func oneStep(do, probe, undo string) string {
	return "---\nv: 1\nid: payment-risk-down\nowner: payments-oncall\nuse_when: always\nvalid_until: 2027-03-01\nmax_duration: 3h\n---\n# T\n" +
		"\n```ic-step\nid: a\n" + do + "\ntimeout: 5m\non_timeout: stop\nprobe: " + probe + "\n" + undo + "\n```\n"
}

const (
	shedTwo  = "do: {right: shed, scope: checkout, tier: 2, reason: r}"
	openRisk = "do: {right: risk-bypass, scope: checkout, reason: r}"
	endRisk  = "do: {right: end-bypass, scope: checkout, reason: r}"
	onePC    = "recover: {scope: checkout, to: 1, percent: 10}"
	reach95  = "{reach: {at_least: 95}}"
	noUndo   = "irreversible: a test"
)

func TestAProbeThatCannotProveItsStepIsAnError(t *testing.T) {
	for name, c := range map[string]struct{ do, probe, path, sentence string }{
		"a number below itself":         {shedTwo, "{promql: '1', is: '< 0'}", "a.probe.is", `"1" is never anything but 1, so this never holds`},
		"a count below nothing":         {shedTwo, "{promql: 'count(up)', is: '< 0'}", "a.probe.is", `"count(up)" is never below 1`},
		"a count that is none":          {shedTwo, "{promql: 'count(up)', is: '== 0'}", "a.probe.is", `"count(up)" is never below 1`},
		"a truth above 1":               {shedTwo, "{promql: 'max(up > bool 0)', is: '> 1'}", "a.probe.is", "is always between 0 and 1"},
		"a debt above nothing":          {shedTwo, "{promql: '-count(up)', is: '>= 0'}", "a.probe.is", "is never above -1"},
		"another tier":                  {shedTwo, "{tier: {scope: checkout, is: 3}}", "a.probe.tier.is", `brings "checkout" to tier 2, and tier 3 does not prove it`},
		"another tier of all":           {shedTwo, `{tier: {scope: "*", is: 1}}`, "a.probe.tier.is", "tier 1 does not prove it"},
		"another service":               {shedTwo, "{tier: {scope: catalog, is: 2}}", "a.probe.tier.scope", `moves "checkout", and "catalog" does not prove it`},
		"beyond the last tier":          {`do: {right: shed, scope: "*", tier: 4, reason: r}`, "{tier: {scope: checkout, is: 2}}", "a.probe.tier.is", `brings "checkout" to tier 3`},
		"a control for a shed":          {shedTwo, "{bypass: {control: risk, is: open}}", "a.probe.bypass", `"shed" neither opens nor closes a control`},
		"a control for a recovery":      {onePC, "{bypass: {control: risk, is: open}}", "a.probe.bypass", "a recovery neither opens nor closes a control"},
		"a tier for a bypass":           {openRisk, "{tier: {scope: checkout, is: 2}}", "a.probe.tier", `"risk-bypass" moves no tier`},
		"closed for what opens":         {openRisk, "{bypass: {control: risk, is: closed}}", "a.probe.bypass.is", "it is proved by open"},
		"open for what closes":          {endRisk, "{bypass: {control: risk, is: open}}", "a.probe.bypass.is", "it is proved by closed"},
		"another control":               {openRisk, "{bypass: {control: stock, is: open}}", "a.probe.bypass.control", `opens "risk", and "stock" does not prove it`},
		"a tier that a ramp is not at":  {onePC, "{tier: {scope: checkout, is: 1}}", "a.probe.tier", "with 10 percent of the hosts at tier 1 no scope is at one tier"},
		"the tier that a recovery left": {strings.Replace(onePC, "10", "100", 1), "{tier: {scope: checkout, is: 2}}", "a.probe.tier.is", "tier 2 does not prove it"},
	} {
		found := lintOf(oneStep(c.do, c.probe, noUndo))
		if !slices.ContainsFunc(found, func(f runbooks.Finding) bool {
			return f.Code == runbooks.CodeNeverAnswers && f.Path == c.path && strings.Contains(f.Sentence, c.sentence)
		}) {
			t.Errorf("%s: %v", name, found)
		}
	}
	for name, c := range map[string]struct{ do, probe string }{
		"its own tier":              {shedTwo, "{tier: {scope: checkout, is: 2}}"},
		"all at the tier":           {shedTwo, `{tier: {scope: "*", is: 2}}`},
		"the last tier of one":      {`do: {right: shed, scope: "*", tier: 4, reason: r}`, "{tier: {scope: checkout, is: 3}}"},
		"its own control":           {openRisk, "{bypass: {control: risk, is: open}}"},
		"what it closes":            {endRisk, "{bypass: {control: risk, is: closed}}"},
		"a count":                   {shedTwo, "{promql: 'count(up) or vector(0)', is: '< 1'}"},
		"a count as it can be":      {shedTwo, "{promql: 'count(up)', is: '== 1'}"},
		"an absence":                {shedTwo, "{promql: 'count(up)', is: '!= 1'}"},
		"whatever a push carries":   {"push: {backend: hostfile}", "{bypass: {control: risk, is: open}}"},
		"what people look at":       {shedTwo, "{signal: risk-errors, is: normal}"},
		"the reach of its own step": {onePC, reach95},
	} {
		for _, f := range lintOf(oneStep(c.do, c.probe, noUndo)) {
			if f.Code == runbooks.CodeNeverAnswers {
				t.Errorf("%s: %v", name, f)
			}
		}
	}
}

func TestAnUndoThatTakesNothingBackIsAnError(t *testing.T) {
	k := known()
	k.Rights["freeze"] = policy.Right{Kind: model.Freeze, Who: "commander", Scope: []string{"*"}}
	k.Rights["shed-deep"] = policy.Right{Kind: model.Shed, Who: "commander", Scope: []string{"*"}, Tiers: &policy.Range{From: 1, To: 4}}
	for name, c := range map[string]struct{ do, undo, sentence string }{
		"the step itself":              {shedTwo, "undo: {" + strings.Replace(shedTwo, "reason: r", "reason: back", 1) + "}", "this is the step itself once more"},
		"the same right higher":        {shedTwo, "undo: {do: {right: shed, scope: checkout, tier: 3, reason: r}}", `"shed" does what the step does, of the kind shed`},
		"another right of the kind":    {shedTwo, "undo: {do: {right: shed-deep, scope: checkout, tier: 1, reason: r}}", `"shed-deep" does what the step does`},
		"the end of something else":    {"do: {right: freeze, reason: r}", "undo: {do: {right: end-bypass, scope: checkout, reason: r}}", `"end-bypass" ends what is of the kind bypass, and the step is of the kind freeze`},
		"a recovery of another scope":  {`do: {right: shed, scope: "*", tier: 2, reason: r}`, "undo: {recover: {scope: checkout, to: 1, percent: 10}}", `sheds "*", and a recovery of "checkout" ends nothing of that`},
		"a recovery after a recovery":  {onePC, "undo: {recover: {scope: checkout, to: 1, percent: 10}}", "a recovery is not taken back by a recovery"},
		"the override of another push": {"push: {backend: hostfile}", "undo: {push: {undo: pipeline}}", "{push: {undo: hostfile}}"},
	} {
		found := runbooks.LintSource("payment-risk-down.md", []byte(oneStep(c.do, reach95, c.undo)), k)
		if !slices.ContainsFunc(found, func(f runbooks.Finding) bool {
			return f.Code == runbooks.CodeUndoOther && strings.Contains(f.Sentence, c.sentence)
		}) {
			t.Errorf("%s: %v", name, found)
		}
	}
	for name, c := range map[string]struct{ do, undo string }{
		"a recovery of its scope":  {shedTwo, "undo: {recover: {scope: checkout, to: 1, percent: 10}}"},
		"the end of what it opens": {openRisk, "undo: {do: {right: end-bypass, scope: checkout, reason: r}}"},
		"another setting":          {"do: {right: slow, target_ms: 200, reason: r}", "undo: {do: {right: slow, target_ms: 400, reason: r}}"},
		"a shed after a recovery":  {onePC, "undo: {do: {right: shed, scope: checkout, tier: 2, reason: r}}"},
	} {
		for _, f := range runbooks.LintSource("payment-risk-down.md", []byte(oneStep(c.do, reach95, c.undo)), k) {
			if f.Code == runbooks.CodeUndoOther {
				t.Errorf("%s: %v", name, f)
			}
		}
	}
}

func TestARampIsHeldToItsOrderFromTheFirstStepAndInAnUndo(t *testing.T) {
	two := func(first, second string) string { return ramp(first, second) }
	for name, c := range map[string]struct{ text, path, sentence string }{
		"the first of all":          {oneStep(strings.Replace(onePC, "10", "50", 1), reach95, noUndo), "a.recover.percent", "begins the ramp out of tier 2, and its first step is 10, not 50"},
		"the first after a shed":    {ramp("recover: {scope: checkout, to: 2, percent: 100}"), "sb.recover.percent", "out of tier 3, and its first step is 10, not 100"},
		"one is left out":           {ramp("recover: {scope: checkout, to: 2, percent: 10}", "recover: {scope: checkout, to: 2, percent: 100}", onePC, strings.Replace(onePC, "10", "100", 1)), "se.recover.percent", "after 10 percent the ramp out of tier 2 goes to 50, not to 100"},
		"one of another scope":      {two(`recover: {scope: "*", to: 2, percent: 10}`, "recover: {scope: checkout, to: 2, percent: 100}"), "sc.recover.percent", "its first step is 10"},
		"no step in an undo":        {oneStep(shedTwo, reach95, "undo: {recover: {scope: checkout, to: 1, percent: 13}}"), "a.undo.recover.percent", "13 is no step of the ramp out of tier 2, which is 10, 50, 100"},
		"a later step in an undo":   {oneStep(shedTwo, reach95, "undo: {recover: {scope: checkout, to: 1, percent: 50}}"), "a.undo.recover.percent", "its first step is 10, not 50"},
		"another tier in an undo":   {oneStep(shedTwo, reach95, "undo: {recover: {scope: checkout, to: 0, percent: 10}}"), "a.undo.recover.to", "the step sheds to tier 2, and a recovery goes one tier down, to 1"},
		"a step that nobody begins": {skipped("to: 1, percent: 10", "to: 1, percent: 50"), "c.recover.percent", ""},
	} {
		at := slices.IndexFunc(lintOf(c.text), func(f runbooks.Finding) bool { return f.Code == runbooks.CodeRecoverOrder && f.Path == c.path })
		if c.sentence == "" { // on one of the ways the ramp has begun, so nobody can say
			if at >= 0 {
				t.Errorf("%s: %v", name, lintOf(c.text))
			}
			continue
		}
		if at < 0 || !strings.Contains(lintOf(c.text)[at].Sentence, c.sentence) {
			t.Errorf("%s: %v", name, lintOf(c.text))
		}
	}
}

// skipped is a runbook in which one way leads around the first step of a ramp.
func skipped(first, second string) string {
	const head = "\n```ic-step\nid: "
	effect := func(id, body string) string {
		return head + id + "\nrecover: {scope: checkout, " + body + "}\ntimeout: 5m\non_timeout: stop\nprobe: " + reach95 + "\n" + noUndo + "\n```\n"
	}
	text, _, _ := strings.Cut(oneStep(shedTwo, reach95, noUndo), "\n```ic-step")
	return text + head + "a\ncheck: {skew: {at_least: 95}}\ntimeout: 1m\non_timeout: c\n```\n" + effect("b", first) + effect("c", second)
}

func TestAnEmptyFileIsAnErrorAndOneStepIsOne(t *testing.T) {
	for _, text := range []string{"", "\n", " \t\r\n\n"} {
		found := runbooks.LintSource("x.md", []byte(text), known())
		if len(found) != 1 || found[0].Code != runbooks.CodeMissing || !strings.HasPrefix(found[0].String(), "x.md:1:1: the file is empty") {
			t.Errorf("%q: %v", text, found)
		}
	}
	found := runbooks.LintSource("x.md", []byte("Call the bank.\n"), known())
	if len(found) != 1 || !strings.Contains(found[0].Sentence, "a check list of 1 manual step,") {
		t.Errorf("%v", found)
	}
}
