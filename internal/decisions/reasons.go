package decisions

import (
	"fmt"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// Codes of what only the console enforces; a host does not know them. With the
// codes of model.Code they are the stable vocabulary of verdicts. Behind each
// stand the fields of model.Reason that it uses.
const (
	NoLease         model.Code = "no-lease"         // Name: holder, or empty
	Frozen          model.Code = "frozen"           // Name: id of the freeze, At: its end
	Dwell           model.Code = "dwell"            // Wait, N: tier
	RampStep        model.Code = "ramp-step"        // Wait, N: percent reached, M: percent next
	NotThatTier     model.Code = "not-that-tier"    // N: asked, M: current
	OneTier         model.Code = "one-tier"         // N: from, M: to, Wait: for the first step
	NotNextPercent  model.Code = "not-next-percent" // N: asked, M: next
	OtherRamp       model.Code = "other-ramp"       // Name: the live ramp
	Unseen          model.Code = "unseen"           // Name: id of what began last, which no host reports
	IncompleteChain model.Code = "incomplete-chain" // Name: an id of the chain that the ending does not list
	OtherThing      model.Code = "other-thing"      // Name: an id of another kind or scope, Other: its scope
	NoExit          model.Code = "no-exit"          // N: tier, 0 for everything but a recovery
	NoRoom          model.Code = "no-room"          // -
	NothingToEnd    model.Code = "nothing-to-end"   // Name: kind
	SignalUnknown   model.Code = "signal-unknown"   // Name: signal, Other: state
	SignalNotGood   model.Code = "signal-not-good"  // Name: signal, Wait: window
	NoEvidence      model.Code = "no-evidence"      // -
	NotDurable      model.Code = "log-not-durable"  // -
	PerDay          model.Code = "per-day"          // N: used, M: allowed
	OverTotal       model.Code = "over-total"       // Amount: worst case, Limit: total; Name: control, when the limit is the root's for all grants of it
	NoInventory     model.Code = "no-inventory"     // -
	OldInventory    model.Code = "old-inventory"    // Wait: its age (zero: never read), M: limit in seconds
	NoReason        model.Code = "no-reason"        // -
	IsReadOnly      model.Code = "read-only"        // -
	EndsSoon        model.Code = "window-over"      // -
	NotRehearsed    model.Code = "not-rehearsed"    // Name: right, Other: a ping that counts, At: last one (zero: never), Wait: its age, M: limit in seconds
	NoProposal      model.Code = "no-proposal"      // Name: the right to propose
	SecondMayCome   model.Code = "second-may-come"  // Name: the right proposed, Wait
	NotEnforced     model.Code = "not-enforced"     // -
	Scheduled       model.Code = "scheduled"        // Name: event, At: its end
	NotOwn          model.Code = "not-own"          // N: tier
)

// soft codes are what time, people or a reading can still bring; the rest is
// denied.
var soft = map[model.Code]bool{
	NoLease: true, Frozen: true, Dwell: true, RampStep: true, Unseen: true, SignalUnknown: true, SignalNotGood: true,
	NoEvidence: true, NotDurable: true, NoInventory: true, OldInventory: true, NoReason: true,
	NotRehearsed: true, NoProposal: true, SecondMayCome: true,
	model.CodeQuorum: true, model.CodeClockUnfit: true, model.CodeOverLive: true,
}

// Sentence renders a reason for a person: what is in the way and what to do.
func Sentence(r model.Reason) string {
	if text, ok := dynamicSentence(r); ok {
		return text
	}
	return staticSentence(r)
}

func dynamicSentence(r model.Reason) (string, bool) {
	switch r.Code {
	case NoLease:
		if r.Name == "" {
			return "nobody holds command: take it (ic incident take)", true
		}
		return fmt.Sprintf("%s holds command: ask for it (ic incident give) or let %s decide", r.Name, r.Name), true
	case Frozen:
		return fmt.Sprintf("a freeze (%s) is in force until %s; shedding stays possible", r.Name, clock(r.At)), true
	case Dwell:
		return fmt.Sprintf("wait %s: tier %d has to hold before it is left", Spoken(r.Wait), r.N), true
	case RampStep:
		return fmt.Sprintf("wait %s: %d %% of hosts have to hold before %d %%", Spoken(r.Wait), r.N, r.M), true
	case NotThatTier:
		return fmt.Sprintf("the scope is at tier %d, not at tier %d", r.M, r.N), true
	case OneTier:
		if r.Wait > 0 {
			return fmt.Sprintf("from tier %d to tier %d is a jump: recovery goes one tier at a time; tier %d is possible in %s", r.N, r.M, r.N-1, Spoken(r.Wait)), true
		}
		return fmt.Sprintf("from tier %d to tier %d is a jump: recovery goes one tier at a time; go to tier %d first", r.N, r.M, r.N-1), true
	case NotNextPercent:
		return fmt.Sprintf("the next step of this ramp is %d %%, not %d %%", r.M, r.N), true
	case OtherRamp:
		return fmt.Sprintf("a ramp (%s) is under way: continue that one", r.Name), true
	case Unseen:
		return fmt.Sprintf("no host that reports has %s yet, which the tier rests on, so what comes of it is UNKNOWN: see that it arrives (ic doctor), or recover-blind, two people", r.Name), true
	case IncompleteChain:
		return fmt.Sprintf("%s is part of what is in force and not in the list: what has not been seen cannot be ended", r.Name), true
	case OtherThing:
		return fmt.Sprintf("%s is of another kind or scope (%s): an ending works within its own", r.Name, r.Other), true
	case NoExit:
		if r.N == 0 {
			return "no signal is in force in the policy, so nothing is known to be good (ic policy inspect)", true
		}
		return fmt.Sprintf("the policy in force says nothing about leaving tier %d, so nothing is known to be good: recover-blind, two people", r.N), true
	case NoRoom:
		return "a cap of zero lets nothing through: there are too many hosts for the total, or it was asked for", true
	case NothingToEnd:
		return fmt.Sprintf("no %s is in force in that scope", r.Name), true
	case SignalUnknown:
		return fmt.Sprintf("signal %s is %s: recovery needs a value (or recover-blind, two people)", r.Name, r.Other), true
	case SignalNotGood:
		return fmt.Sprintf("signal %s has not been good for the whole of %s", r.Name, Spoken(r.Wait)), true
	case NoEvidence:
		return "a blind recovery needs typed evidence: say what you have seen", true
	case NotDurable:
		return "the audit log cannot be written durably, and opening needs that: see ic doctor", true
	case PerDay:
		return fmt.Sprintf("%d of %d uses today are spent", r.N, r.M), true
	case OverTotal:
		if r.Name != "" {
			return fmt.Sprintf("with the other grants of %s of today and in force it is %s at worst, and the root allows %s: ask for a smaller cap per host, or wait for their end", r.Name, r.Amount, r.Limit), true
		}
		return fmt.Sprintf("the worst case of %s is over the total of %s: ask for a smaller cap per host", r.Amount, r.Limit), true
	case NoInventory:
		return "the inventory of hosts is not known, so the worst case is not known: see ic doctor", true
	case OldInventory:
		limit := Spoken(model.Duration(time.Duration(r.M) * time.Second))
		if r.Wait == 0 {
			return fmt.Sprintf("the inventory of hosts has not been read, and the policy wants one younger than %s, so the worst case is not known: see ic doctor", limit), true
		}
		return fmt.Sprintf("the inventory of hosts is %s old and the policy wants one younger than %s, so the worst case is not known: see ic doctor", Spoken(r.Wait), limit), true
	case NoReason:
		return "say why: --reason is written into the directive and the log", true
	case IsReadOnly:
		return "this console is read-only: no key of yours is in the trust root", true
	case EndsSoon:
		return "the window would be over before it began", true
	}
	return ruleSentence(r)
}

// ruleSentence is for what a row asks for besides its bounds.
func ruleSentence(r model.Reason) (string, bool) {
	switch r.Code {
	case NotRehearsed:
		return notRehearsed(r), true
	case NoProposal:
		return fmt.Sprintf("it is for when nobody comes: propose %s first (ic do %s)", r.Name, r.Name), true
	case SecondMayCome:
		return fmt.Sprintf("wait %s: somebody may still sign %s", Spoken(r.Wait), r.Name), true
	case NotEnforced:
		return "no host here verifies or ends a bypass, so nobody would close it again: run ic-agent or the library on the hosts and name them in the inventory", true
	case Scheduled:
		return fmt.Sprintf("%s runs until %s: until then only a person leaves its tier", r.Name, clock(r.At)), true
	case NotOwn:
		return fmt.Sprintf("a person has a part in what holds tier %d: a machine leaves only what machines of its role have entered, or goes on with a ramp that is under way", r.N), true
	case model.CodeOverLive:
		if r.At.IsZero() {
			return fmt.Sprintf("the right allows %d grants at a time", r.M), true
		}
		return fmt.Sprintf("%d in force, %d allowed at a time: a place is free in %s, at %s, or when one is ended (ic end)", r.N, r.M, Spoken(r.Wait), clock(r.At)), true
	}
	return "", false
}

// notRehearsed names the age in the terms in which a limit is written: hours and
// days.
func notRehearsed(r model.Reason) string {
	how := "rehearse it"
	if r.Other != "" {
		how = fmt.Sprintf("rehearse over the real carriers (ic do %s)", r.Other)
	}
	limit := age(model.Duration(time.Duration(r.M) * time.Second))
	if r.At.IsZero() {
		return fmt.Sprintf("%s was never rehearsed live, and has to be every %s: %s", r.Name, limit, how)
	}
	return fmt.Sprintf("%s was last rehearsed live %s ago, and has to be every %s: %s", r.Name, age(r.Wait), limit, how)
}

// age prints a long duration: whole days from two of them on.
func age(d model.Duration) string {
	if days := d.Std() / (24 * time.Hour); days >= 2 {
		return fmt.Sprintf("%d days", days)
	}
	return Spoken(d)
}

func staticSentence(r model.Reason) string {
	switch r.Code {
	case model.CodeUnknownRight:
		return fmt.Sprintf("no right named %q is in force: see ic can", r.Name)
	case model.CodeInactiveDomain:
		return fmt.Sprintf("the domain that grants %q is not active: its owners' signatures are missing (ic policy inspect)", r.Name)
	case model.CodeUnknownKey:
		return fmt.Sprintf("%q is not in the trust root", r.Name)
	case model.CodeWrongRole:
		return fmt.Sprintf("only the role %s may use this right", r.Other)
	case model.CodeQuorum:
		return fmt.Sprintf("%s from %s (ic cosign)", plural(r.N, "more signature", "more signatures"), r.Other)
	case model.CodeOutOfScope:
		return fmt.Sprintf("the right does not cover %q", r.Name)
	case model.CodeOverTier:
		return fmt.Sprintf("the right covers tiers %d to %d", r.N, r.M)
	case model.CodeOverCap:
		return "a bound goes beyond the one that was signed"
	case model.CodeOverDuration:
		return fmt.Sprintf("the right lasts at most %s", Spoken(r.Wait))
	case model.CodeNoEnd:
		return "an absolute end is required"
	case model.CodePolicyExpired:
		return "the policy has expired: only tightening and recovery are left"
	case model.CodeNeverOpens:
		return "authorization never opens, whoever signs"
	case model.CodeClockUnfit:
		return "the clock cannot be trusted, and a bypass ends by the clock: see ic doctor"
	case model.CodeWrongKind:
		return "the right grants something else"
	case model.CodeUnknownFeature:
		return fmt.Sprintf("the policy knows no feature %q", r.Name)
	case model.CodeUnknownControl:
		return fmt.Sprintf("the policy knows no control %q", r.Name)
	case model.CodePolicyBehind:
		return "a newer policy exists than the one at hand: fetch it first"
	case model.CodePolicyMismatch:
		return "the policy at hand differs from the one that was named"
	case model.CodeFuture:
		return "it was issued more than a day ahead of this clock: see ic doctor"
	case model.CodeUnsupported:
		return "this version does not know that kind of directive"
	case model.CodeForeignFleet:
		return fmt.Sprintf("it is for another fleet (%s)", r.Name)
	}
	return "refused: " + string(r.Code)
}

// Spoken prints a duration as people say it: 3m12s, 45s, 1h05m.
func Spoken(d model.Duration) string {
	s := int64(d.Std().Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600 && s%60 == 0:
		return fmt.Sprintf("%dm", s/60)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	default:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	}
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05Z") }

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
