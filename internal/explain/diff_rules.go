package explain

import (
	"maps"

	"github.com/degradedmode/ic/internal/policy"
)

// rule is what is known about one field: how it is called, and what a change of
// it lets people do. A field without a rule is still reported, by its own name
// and as neither wider nor narrower.
type rule struct {
	noun                              string
	up, down, added, removed, another Reach  // another: changed, and nobody can say whether to more or to less
	on, off                           string // for truth values: the sentence when it becomes so
	danger                            int    // among changes of one reach: lower comes first
}

// Danger of a change among those of one reach.
const (
	dangerOfMoney   = iota // caps of a bypass, what a control does
	dangerOfPeople         // who may, with whom, keys and thresholds
	dangerOfBounds         // how far, how long, how often
	dangerOfNumbers        // thresholds and times of the ladder, what a program is given
	dangerOfUnknown        // a field without a rule
	dangerOfWords          // texts for people
)

func (r rule) reach(how string, sign int) Reach {
	switch {
	case how == added:
		return r.added
	case how == removed:
		return r.removed
	case how == reordered:
		return Neither
	case sign > 0:
		return r.up
	case sign < 0:
		return r.down
	default:
		return r.another
	}
}

// grows: more of it lets people do more.
func grows(noun string, danger int) rule {
	return rule{noun: noun, danger: danger, up: Wider, down: Narrower, added: Wider, removed: Narrower, another: Wider}
}

// guards: more of it lets people do less.
func guards(noun string, danger int) rule {
	return rule{noun: noun, danger: danger, up: Narrower, down: Wider, added: Narrower, removed: Wider, another: Wider}
}

// swaps: another one lets other people or programs do it.
func swaps(noun string, danger int) rule {
	return rule{noun: noun, danger: danger, up: Wider, down: Wider, added: Wider, removed: Narrower, another: Wider}
}

// plain: nobody may do more or less.
func plain(noun string) rule {
	return rule{noun: noun, danger: dangerOfUnknown, up: Neither, down: Neither, added: Neither, removed: Neither, another: Neither}
}

func words(noun string) rule {
	r := plain(noun)
	r.danger = dangerOfWords
	return r
}

// switches is a truth value; true lets people do more.
func switches(on, off string, danger int) rule {
	r := grows("", danger)
	r.on, r.off = on, off
	return r
}

func fact(on, off string) rule {
	r := plain("")
	r.on, r.off = on, off
	return r
}

func rulesOf(domain policy.Domain) map[string]rule {
	out := headerRules()
	switch domain {
	case policy.Features:
		maps.Copy(out, featureRules())
	case policy.Ladder:
		maps.Copy(out, ladderRules())
	case policy.Backends:
		maps.Copy(out, backendRules())
	case policy.Journeys:
		maps.Copy(out, journeyRules())
	case policy.Rights:
		out["expires"] = grows("the expiry of the document", dangerOfBounds)
		maps.Copy(out, rightRules())
	default:
		out["expires"] = grows("the expiry of the document", dangerOfBounds)
		maps.Copy(out, rightRules())
		maps.Copy(out, controlRules())
	}
	return out
}

func headerRules() map[string]rule {
	return map[string]rule{
		"v": plain("the format"), "fleet": swaps("the fleet", dangerOfPeople), "domain": swaps("the domain", dangerOfPeople),
		"version": words("the version"), "expires": plain("the expiry of the document"), "why": words("what the document is for"),
	}
}

func rightRules() map[string]rule {
	return map[string]rule{
		"rights.*": grows("the right", dangerOfPeople), "rights.*.text": words("the text"), "rights.*.why": words("the reason"),
		"rights.*.kind": swaps("the kind", dangerOfPeople), "rights.*.ends": swaps("the kind that it ends", dangerOfPeople),
		"rights.*.who": swaps("the role", dangerOfPeople), "rights.*.cosign.count": guards("the number of people who sign besides", dangerOfPeople),
		"rights.*.cosign.of": swaps("the group that signs besides", dangerOfPeople), "rights.*.scope": grows("where it holds", dangerOfBounds),
		"rights.*.tiers": grows("its tiers", dangerOfBounds), "rights.*.tiers.from": guards("its lowest tier", dangerOfBounds),
		"rights.*.tiers.to": grows("its highest tier", dangerOfBounds), "rights.*.feature": swaps("the feature", dangerOfBounds),
		"rights.*.bypass": grows("the bounds of a bypass", dangerOfMoney), "rights.*.bypass.control": swaps("the control that it weakens", dangerOfMoney),
		"rights.*.bypass.under":            grows("the cap per item", dangerOfMoney),
		"rights.*.bypass.host_count":       grows("the number of items on one host in a day", dangerOfMoney),
		"rights.*.bypass.host_total":       grows("the worth of items on one host in a day", dangerOfMoney),
		"rights.*.bypass.total":            grows("the total in a day", dangerOfMoney),
		"rights.*.bypass.lasts":            grows("the longest window of a grant", dangerOfMoney),
		"rights.*.bypass.per_day":          grows("the number of grants in a day", dangerOfMoney),
		"rights.*.bypass.live":             grows("the number of grants in force at once", dangerOfMoney),
		"rights.*.bypass.max_replacements": grows("the number of hosts that may join in a day", dangerOfMoney),
		"rights.*.bypass.volatile_hosts": switches("hosts without a state folder may open now: the worst case is an estimate",
			"hosts without a state folder may not open any more", dangerOfMoney),
		"rights.*.dimmer": grows("the bounds of a dimmer", dangerOfBounds), "rights.*.dimmer.target_ms.from": guards("the lowest latency target in ms", dangerOfBounds),
		"rights.*.dimmer.target_ms.to": grows("the highest latency target in ms", dangerOfBounds), "rights.*.dimmer.floor": guards("the lowest share in percent", dangerOfBounds),
		"rights.*.dimmer.ceiling": grows("the highest share in percent", dangerOfBounds), "rights.*.lasts": grows("the longest window of a use", dangerOfBounds),
		"rights.*.blind": switches("it recovers without known-good signals now", "it needs known-good signals now", dangerOfPeople),
		"rights.*.lead":  guards("the time from a proposal to its start", dangerOfBounds), "rights.*.rehearsed_within": rehearsedWithin(),
		"rights.*.no_second": guards("the wait for a second person", dangerOfPeople), "rights.*.no_second.of": swaps("the right that has to wait in vain", dangerOfPeople),
		"rights.*.no_second.after": guards("how long a proposal waits in vain", dangerOfPeople), "rights.*.review": review(),
		"rights.*.expires": grows("the expiry of the right itself", dangerOfBounds), "rights.*.advice": words("the advice"), "rights.*.runbook": words("the runbook"),
	}
}

// rehearsedWithin: the longer ago, the wider; absent asks for no rehearsal.
func rehearsedWithin() rule {
	r := guards("how long ago a rehearsal may be", dangerOfBounds)
	r.up, r.down = Wider, Narrower
	return r
}

// review: another group is not more and not less.
func review() rule {
	r := guards("the review that each use owes", dangerOfPeople)
	r.another = Neither
	return r
}

func controlRules() map[string]rule {
	services := grows("where it is held, and a bypass reaches", dangerOfMoney)
	services.removed = Neither // fewer hosts hold it: nobody can tell whether less is protected
	return map[string]rule{
		"controls.*": guards("the control", dangerOfMoney), "controls.*.protects": swaps("what it guards", dangerOfMoney),
		"controls.*.fails": swaps("what it does when what it asks is gone", dangerOfMoney), "controls.*.services": services,
		"controls.*.owner": plain("who answers for it"), "controls.*.text": words("what it makes sure of"),
	}
}

func featureRules() map[string]rule {
	const dep, fallback, inv = "features.*.endpoints.*.dependencies.*", "features.*.endpoints.*.dependencies.*.fallback", "features.*.endpoints.*.invariants.*"
	return map[string]rule{
		"features.*": plain("the feature"), "features.*.class": plain("its class"), "features.*.owner": plain("who answers for it"), "features.*.service": plain("its service"),
		"features.*.reviewed": words("the day of its review"), "features.*.calls": plain("its backend calls"), "features.*.tiers.*": plain("at tier"), "features.*.why": words("the reason"),
		"features.*.endpoints.*": plain("the endpoint"), "features.*.endpoints.*.path": plain("its route"), "features.*.endpoints.*.criticality": plain("its criticality (0 is rejected last)"),
		dep: plain("the dependency"), dep + ".need": plain("what happens when it is gone"), dep + ".qps": plain("its calls per second"), dep + ".timeout_ms": plain("its timeout in ms"),
		dep + ".attempts": plain("its attempts"), dep + ".resources": plain("what it needs"),
		fallback: plain("the fallback"), fallback + ".text": words("what the user gets"), fallback + ".source": plain("where the fallback comes from"),
		fallback + ".resources": plain("what the fallback needs"), fallback + ".differs": words("how the fallback differs"), fallback + ".refresh": plain("the time between two snapshots"),
		fallback + ".job": plain("how long a snapshot takes"), fallback + ".max_age": plain("the oldest answer that is accepted"), fallback + ".traffic": plain("the percent of requests it serves on a normal day"),
		fallback + ".marked": fact("the answer says now that it is degraded", "the answer does not say any more that it is degraded"),
		inv:                  plain("the invariant"), inv + ".source": plain("its source of truth"), inv + ".max_age": plain("its tolerated age"), inv + ".authorization": plain("who may see it"),
		inv + ".degraded": plain("its allowed degraded state"), inv + ".disclosure": words("what the user is told"), inv + ".owner": plain("who recovers it"),
		"programme": words("the programme"), "programme.engineers": words("the number of engineers"), "programme.engineer_month": words("the cost of an engineer in a month"),
		"programme.storage": words("the cost of storage in a month"), "programme.hourly": words("the revenue in an hour"), "programme.outages": words("the outages a year"),
		"programme.lasts": words("the minutes of an outage"), "programme.retained": words("the percent that is kept"),
	}
}

func ladderRules() map[string]rule {
	leaveBelow := grows("the threshold to leave below", dangerOfNumbers)
	leaveAbove := guards("the threshold to leave above", dangerOfNumbers)
	return map[string]rule{
		"signals.*": plain("the signal"), "signals.*.query": plain("its query"), "signals.*.unit": plain("its unit"), "signals.*.max_age": grows("how old a sample may be", dangerOfNumbers),
		"signals.*.step": plain("the time between two samples"), "signals.*.abnormal": plain("when it is abnormal"), "signals.*.abnormal.above": plain("the threshold above which it is abnormal"),
		"signals.*.abnormal.below": plain("the threshold below which it is abnormal"), "signals.*.right": words("the right that fits"), "signals.*.runbook": words("the runbook that fits"), "signals.*.why": words("where it comes from"),
		"services.*": plain("the service"), "services.*.tiers": plain("the number of tiers it knows"), "services.*.dependencies": plain("what it depends on"),
		"services.*.local_state": fact("it reads its tier from memory now", "it does not read its tier from memory any more"), "services.*.criticality": plain("what it does with criticality"),
		"services.*.capacity": plain("its capacity"), "services.*.peak": plain("its peak"), "services.*.game_day": words("its last game day"),
		"tiers[]": plain("the tier"), "tiers[].tier": plain("its number"), "tiers[].name": words("its name"), "tiers[].text": words("what the user sees"), "tiers[].owner": plain("who answers for it"),
		"tiers[].auto":    switches("the controller may enter and leave it by itself now", "only people enter and leave it now", dangerOfPeople),
		"tiers[].enter[]": plain("a reason to enter"), "tiers[].enter[].signal": plain("its signal"), "tiers[].enter[].above": plain("the threshold to enter above"), "tiers[].enter[].below": plain("the threshold to enter below"),
		"tiers[].enter[].for": plain("how long it holds before the tier is entered"), "tiers[].enter_needs": plain("how many reasons have to hold"),
		"tiers[].leave[]": guards("a condition to leave", dangerOfNumbers), "tiers[].leave[].signal": swaps("its signal", dangerOfNumbers), "tiers[].leave[].above": leaveAbove, "tiers[].leave[].below": leaveBelow,
		"tiers[].leave[].for": guards("how long it holds before the tier is left", dangerOfNumbers), "tiers[].dwell": guards("the least time in it", dangerOfNumbers),
		"tiers[].ramp": guards("its ramp", dangerOfNumbers), "tiers[].ramp_step": guards("the time between two steps of its ramp", dangerOfNumbers),
		"automatic.every":        guards("the least time between two automatic moves", dangerOfNumbers),
		"automatic.shed_at_once": switches("an automatic shed need not wait now", "an automatic shed has to wait now", dangerOfNumbers),
		"automatic.flaps":        grows("the number of moves that is no flapping", dangerOfNumbers), "automatic.flap_window": guards("the window in which moves are counted", dangerOfNumbers),
		"automatic.blind": grows("the tier that missing signals alone may enter", dangerOfNumbers), "automatic.stuck": plain("how long a tier is held without an alarm"),
		"automatic.budget": plain("the time at tier 2 and above in a month without an alarm"),
		"schedule.*":       plain("the scheduled event"), "schedule.*.tier": plain("its tier"), "schedule.*.scope": plain("where it holds"), "schedule.*.from": plain("its beginning"), "schedule.*.until": plain("its end"),
		"schedule.*.soak": guards("how long signals are good before a tier is left during it", dangerOfNumbers), "schedule.*.why": words("the reason"),
		"exceptions.*": grows("the exception from the standard", dangerOfBounds), "exceptions.*.code": swaps("the rule that is not kept", dangerOfBounds), "exceptions.*.path": swaps("where the rule is not kept", dangerOfBounds),
		"exceptions.*.owner": plain("who mends it"), "exceptions.*.since": plain("the day it was agreed"), "exceptions.*.until": grows("its end", dangerOfBounds), "exceptions.*.why": words("the reason"),
	}
}

func backendRules() map[string]rule {
	return map[string]rule{
		"backends.*": grows("the backend", dangerOfPeople), "backends.*.bundled": swaps("the bundled backend", dangerOfPeople), "backends.*.path": swaps("the program", dangerOfPeople),
		"backends.*.sha256.*": swaps("the digest of the program for", dangerOfPeople), "backends.*.config.*": swaps("the setting", dangerOfNumbers), "backends.*.targets": grows("the services it reaches", dangerOfBounds),
		"backends.*.dependencies": plain("what it needs"), "backends.*.secrets": grows("the secrets it may read", dangerOfPeople), "backends.*.why": words("the reason"),
		"flag_service.dependencies": plain("what the flag service needs"), "flag_service.why": words("what is said of the flag service"),
		"inventory.max_age": plain("how old the inventory may be"), "inventory.hosts[]": plain("the host"), "inventory.hosts[].host": plain("the name of the host"),
		"inventory.hosts[].services": plain("what it runs"), "inventory.hosts[].report_url": plain("where it reports"), "inventory.query": plain("the query for hosts"),
	}
}

func journeyRules() map[string]rule {
	return map[string]rule{"journeys.*": plain("the journey"), "journeys.*.text": words("what a user comes to do"), "journeys.*.broken_by": plain("what breaks it")}
}

func rootRules() map[string]rule {
	out := map[string]rule{
		"v": plain("the format"), "fleet": swaps("the fleet", dangerOfPeople), "version": words("the version"), "expires": grows("the expiry of the trust root", dangerOfBounds),
		"people.*": plain("the person"), "people.*.name": words("the full name"), "people.*.reach": words("how to reach him or her"), "people.*.keys": grows("the keys", dangerOfPeople),
		"machines.*": plain("the machine"), "machines.*.keys": grows("the keys of the machine", dangerOfPeople),
		"groups.*": plain("the group"), "groups.*.any": guards("the number of members who have to sign", dangerOfPeople), "groups.*.of": grows("the members", dangerOfPeople),
		"root": swaps("the group that signs the trust root", dangerOfPeople), "publish": swaps("the group that signs the manifest", dangerOfPeople),
		"domains.*": grows("the domain", dangerOfPeople), "domains.*.group": swaps("the group that signs it", dangerOfPeople), "domains.*.grants": grows("the kinds of rights it may grant", dangerOfPeople),
		"domains.*.under": grows("the most of any item", dangerOfMoney), "domains.*.total": grows("the most in a day", dangerOfMoney), "domains.*.lasts": grows("the longest window it may grant", dangerOfMoney),
		"roles.*": grows("the role", dangerOfPeople), "roles.*.members": grows("who holds the role", dangerOfPeople), "roles.*.machines": grows("the machines that hold the role", dangerOfPeople),
		"roles.*.tightens": switches("its holders may shed also when the matrix is not in force", "its holders may not shed any more when the matrix is not in force", dangerOfPeople),
		"roles.*.max_tier": grows("the highest tier of the role", dangerOfPeople), "revoked": guards("the revoked keys", dangerOfPeople),
	}
	return out
}
