package explain

import (
	"fmt"
	"math"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

func (p *page) controlParts(controls map[string]policy.Control) []Part {
	out := []Part{}
	for _, name := range sortedKeys(controls) {
		c := controls[name]
		part := Part{Name: name + " (the control)"}
		text := "It guards " + string(c.Protects)
		if c.Text != "" {
			text += ": " + trimStop(c.Text)
		}
		part.Sentences = append(part.Sentences, say("control.guards", "%s.", text))
		fails := "refuses"
		if c.Fails == policy.FailsOpen {
			fails = "lets everything through"
		}
		part.Sentences = append(part.Sentences, say("control.fails", "When what it asks is gone, it fails %s: it %s. It is held %s; %s answers for it.", c.Fails, fails, scopeWords(c.Services), c.Owner))
		if c.Protects == policy.ProtectsAuthorization {
			part.Sentences = append(part.Sentences, say("control.never", "It never opens, whoever signs."))
		} else {
			part.Sentences = append(part.Sentences, say("control.opens", "Only the rights of this document may weaken it."))
		}
		out = append(out, part)
	}
	return out
}

// bypass says what a bypass may cost: its bounds as they were signed, then the
// worst case as decisions computes it.
func (p *page) bypass(r *policy.Right, w *Worst) []Sentence {
	rule := r.Bypass
	out := []Sentence{
		say("bypass.item", "It weakens %s for items worth less than %s each; an item of exactly %s is refused.", rule.Control, rule.Under, rule.Under),
		say("bypass.host", "One host lets at most %s through in one UTC day, worth at most %s together.", count(rule.HostCount, "item", "items"), rule.HostTotal),
		say("bypass.lasts", "One grant lasts at most %s and ends by itself, also when nobody is there to end it.", rule.Lasts),
		say("bypass.live", "%s may be in force at the same time.", capitalCount(rule.Live)),
		sayConsole("bypass.per-day", "%s may begin in one UTC day. All of them share the budget of the hosts, so the number does not change the worst case.", capitalCount(rule.PerDay)),
	}
	if w == nil {
		return out
	}
	out = append(out, p.worstWords(rule, w)...)
	if rule.VolatileHosts {
		out = append(out, say("bypass.volatile", "Hosts without a state folder may open too, and begin anew after a restart: the worst case is an estimate."))
	}
	return out
}

func capitalCount(n int) string { return "At most " + count(int64(n), "grant", "grants") }

func (p *page) worstWords(rule *policy.Bypass, w *Worst) []Sentence {
	exactly := "a host's budget is the smaller of its total and of its items at the largest worth that passes"
	if w.Hosts == 0 {
		return []Sentence{
			say("bypass.worst-unknown", "WORST CASE: not known, because the inventory names no host that holds %s. Each host adds %s a day (%s), and %s may join; the signed total is %s.",
				rule.Control, w.PerHost, exactly, count(w.Replacements, "host", "hosts"), w.Total),
			sayConsole("bypass.no-inventory", "As long as it knows of no host, the console grants nothing."),
		}
	}
	head := "WORST CASE in one UTC day"
	if w.Estimate {
		head += ", an estimate"
	}
	out := []Sentence{say("bypass.worst", "%s: (%s + %s that may join) x %s each = %s, in one grant of %s or in several: %s. A grant that begins after midnight UTC begins a new day.",
		head, count(w.Hosts, "host", "hosts"), count(w.Replacements, "host", "hosts"), w.PerHost, w.WorstCase, rule.Lasts, exactly)}
	out = append(out, say("bypass.assumed", "That no more than %s in a day is assumed, not enforced: each further one adds %s.", joining(w.Replacements), w.PerHost))
	if w.Within {
		return append(out, say("bypass.within", "That is within the total of %s that is signed here.", w.Total))
	}
	return append(out, sayConsole("bypass.over", "That is MORE than the total of %s that is signed here. The console makes the budget of each host smaller until it fits; whoever signs without the console can use all of it.", w.Total))
}

func joining(n int64) string { return count(n, "host joins", "hosts join") }

// moneyOf adds amounts by currency, staying at the largest number.
type moneyOf map[string]model.Money

func (m moneyOf) add(amount model.Money) {
	sum := m[amount.Currency]
	sum.Currency = amount.Currency
	if sum.Minor > math.MaxInt64-amount.Minor {
		sum.Minor = math.MaxInt64
	} else {
		sum.Minor += amount.Minor
	}
	m[amount.Currency] = sum
}

func (m moneyOf) words() string {
	var out []string
	for _, currency := range sortedKeys(m) {
		out = append(out, fmt.Sprint(m[currency]))
	}
	return list(out)
}
