package explain

import (
	"fmt"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

func (p *page) rightParts(domain policy.Domain, rights map[string]policy.Right) []Part {
	out := []Part{}
	for _, name := range sortedKeys(rights) {
		r := rights[name]
		part := Part{Name: name, Sentences: p.right(domain, &r)}
		if r.Bypass != nil {
			part.Worst = p.worst(name)
			part.Sentences = append(part.Sentences, p.bypass(&r, part.Worst)...)
		}
		part.Sentences = append(part.Sentences, p.around(&r)...)
		part.Sentences = append(part.Sentences, p.end(domain, &r))
		if r.Why != "" {
			part.Sentences = append(part.Sentences, say("right.why", "Why: %s", sentence(r.Why)))
		}
		out = append(out, part)
	}
	return out
}

// right says who may do what, where and how far.
func (p *page) right(domain policy.Domain, r *policy.Right) []Sentence {
	who := holders(p.Root, r.Who)
	what := r.Text
	if what == "" {
		what = "use it"
	}
	out := []Sentence{say("right.who", "%s may %s, %s (role %s, kind %s).", either(who), trimStop(what), scopeWords(r.Scope), r.Who, kindWords(r))}
	if len(who) == 0 {
		out[0] = say("right.nobody", "Nobody holds the role %s: nobody may %s.", r.Who, trimStop(what))
	}
	out = append(out, p.reach(r)...)
	return append(out, p.cosign(r)...)
}

func kindWords(r *policy.Right) string {
	if r.Kind == model.End {
		return "end of " + string(r.Ends)
	}
	return string(r.Kind)
}

// reach says how far a right goes: tiers, features, bounds of a dimmer.
func (p *page) reach(r *policy.Right) []Sentence {
	var out []Sentence
	top := p.Root.Roles[r.Who].MaxTier
	if r.Tiers != nil {
		verb := "It enters"
		if r.Kind == model.End {
			verb = "It leaves"
		}
		text := fmt.Sprintf("%s tier %d", verb, r.Tiers.From)
		if r.Tiers.To != r.Tiers.From {
			text = fmt.Sprintf("%s tiers %d to %d", verb, r.Tiers.From, r.Tiers.To)
		}
		if top < r.Tiers.To {
			text += fmt.Sprintf(", but the role %s goes no further than tier %d", r.Who, top)
		}
		out = append(out, say("right.tiers", "%s.", text))
	}
	switch {
	case r.Kind == model.Off && r.Feature == "*":
		out = append(out, say("right.feature", "Any feature, one at a time; never a control."))
	case r.Kind == model.Off:
		out = append(out, say("right.feature", "Only the feature %s.", r.Feature))
	case r.Dimmer != nil:
		out = append(out, say("right.dimmer", "Optional work is done for %d to %d %% of requests, for a latency target of %d to %d ms.",
			r.Dimmer.Floor, r.Dimmer.Ceiling, r.Dimmer.TargetMS.From, r.Dimmer.TargetMS.To))
	}
	return out
}

// cosign says who signs besides, and how long they have.
func (p *page) cosign(r *policy.Right) []Sentence {
	if r.Cosign.Count <= 0 {
		return []Sentence{say("right.alone", "One signature is enough: nobody signs besides.")}
	}
	possible := members(p.Root, r.Cosign.Of)
	out := []Sentence{say("right.cosign", "%s of %s (%s) %s the very same words besides, and the one who asks does not count.",
		count(int64(r.Cosign.Count), "person", "people"), r.Cosign.Of, either(possible), verb(r.Cosign.Count, "signs", "sign"))}
	if len(possible) < r.Cosign.Count {
		out = append(out, say("right.cosign-never", "There are not that many: nobody can ever use it."))
	}
	return append(out, sayConsole("right.lead", "It begins %s after it was proposed; a signature that comes later makes it shorter and never moves its end.", r.LeadTime()))
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// around holds what has to come before a use, and what a use owes afterwards.
func (p *page) around(r *policy.Right) []Sentence {
	var out []Sentence
	if r.NoSecond != nil {
		out = append(out, sayConsole("right.no-second", "Only when a proposal of %s has waited %s and nobody came to sign it.", r.NoSecond.Of, r.NoSecond.After))
	}
	if r.RehearsedWithin > 0 {
		out = append(out, sayConsole("right.rehearsed", "Only when it was used or rehearsed over the real carriers within the last %s.", r.RehearsedWithin))
	}
	if r.Kind == model.End && r.Ends == model.Shed {
		if r.Blind {
			out = append(out, sayConsole("right.blind", "No signal has to be good: whoever asks types what he has seen instead."))
		} else {
			out = append(out, sayConsole("right.signals", "Only after the dwell of the tier and with every signal of its way out known to be good."))
		}
		out = append(out, say("right.one-tier", "One tier at a time."))
	}
	if p.b.Direction(&model.Directive{Kind: r.Kind, Ends: r.Ends, Feature: r.Feature}) != model.Tighten {
		out = append(out, sayConsole("right.lease", "Only by whoever holds command of the incident, and not during a freeze."))
	}
	if r.Kind == model.End && r.Ends == model.Shed && len(p.b.Root.Roles[r.Who].Machines) > 0 {
		out = append(out, sayConsole("right.lease-machine", "A machine needs no command to leave what machines of its role have entered, or to go on with a ramp that is under way."))
	}
	if r.Review != "" {
		out = append(out, sayConsole("right.review", "Each use owes a review by %s (%s) afterwards.", r.Review, p.wants(r.Review)))
	}
	if r.Advice != "" {
		out = append(out, say("right.advice", "Where no host verifies directives, a person does by hand: %s", sentence(r.Advice)))
	}
	if r.Runbook != "" {
		out = append(out, say("right.runbook", "Its runbook is %s.", r.Runbook))
	}
	return out
}

// end says for how long: what a use does by itself, and when the right is over.
func (p *page) end(domain policy.Domain, r *policy.Right) Sentence {
	switch r.Kind {
	case model.Bypass:
		text := fmt.Sprintf("The right itself ends on %s", when(p.b.RightExpires(domain, r)))
		if r.Expires.After(p.b.Domains[domain].Expires) {
			text += ", which is after its document: it is there for the night on which nobody could renew the policy"
		}
		return say("right.ends", "%s.", text)
	case model.Freeze, model.Ping:
		return say("right.ends", "A use lasts at most %s and ends by itself.", r.Lasts)
	case model.Shed, model.Off, model.Dimmer:
		return say("right.ends", "A use holds until somebody ends it; it outlives the policy, because being too strict is safe.")
	default:
		return say("right.ends", "What it ends stays ended; an expired policy does not take this right away.")
	}
}
