package templates

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"golang.org/x/crypto/ssh"
)

// documents is a policy before it is printed.
type documents struct {
	root     *policy.Root
	features *policy.FeaturesDoc
	ladder   *policy.LadderDoc
	rights   *policy.RightsDoc
	controls map[policy.Domain]*policy.ControlsDoc
	backends *policy.BackendsDoc
	journeys *policy.JourneysDoc
}

// render prints every document by its file name.
func (d *documents) render() map[string][]byte {
	out := map[string][]byte{
		"roots/1.yaml":  policy.Canonical(d.root),
		"features.yaml": policy.Canonical(d.features),
		"ladder.yaml":   policy.Canonical(d.ladder),
		"rights.yaml":   policy.Canonical(d.rights),
		"backends.yaml": policy.Canonical(d.backends),
		"journeys.yaml": policy.Canonical(d.journeys),
	}
	for domain, doc := range d.controls {
		out[string(domain)+".yaml"] = policy.Canonical(doc)
	}
	return out
}

// frame is what the documents of one template have in common.
type frame struct {
	fleet    string
	version  int64
	expires  time.Time
	reviewed time.Time // of every feature
	gameDay  time.Time // zero: no service has taken part in one
	pace     Pace
}

func (f *frame) header(domain policy.Domain, why string) policy.Header {
	return policy.Header{V: 1, Fleet: f.fleet, Domain: domain, Version: f.version, Expires: f.expires, Why: why}
}

// feature has one behaviour for each tier, from 1.
func (f *frame) feature(class policy.Class, owner, service string, calls int, why string, tiers ...string) policy.Feature {
	out := policy.Feature{Class: class, Owner: owner, Service: service, Reviewed: f.reviewed, Calls: calls, Endpoints: map[string]policy.Endpoint{}, Tiers: map[int]string{}, Why: why}
	for i, behaviour := range tiers {
		out.Tiers[i+1] = behaviour
	}
	return out
}

// withEndpoints puts the ways in into the features that they lead to.
func withEndpoints(features map[string]policy.Feature, endpoints map[string]map[string]policy.Endpoint) map[string]policy.Feature {
	for name, ways := range endpoints {
		f := features[name]
		f.Endpoints = ways
		features[name] = f
	}
	return features
}

func (f *frame) signal(query, unit string, abnormal policy.Threshold, right, why string) policy.Signal {
	return policy.Signal{Query: query, Unit: unit, MaxAge: f.pace.MaxAge, Step: f.pace.Step, Abnormal: &abnormal, Right: right, Why: why}
}

func (f *frame) tier(n int, name, text, owner string, auto bool, enter, leave []policy.Condition) policy.Tier {
	return policy.Tier{Tier: n, Name: name, Text: text, Owner: owner, Auto: auto, Enter: enter, EnterNeeds: 1, Leave: leave,
		Dwell: f.pace.Dwell, Ramp: []int{10, 50, 100}, RampStep: f.pace.RampStep}
}

func (f *frame) service(tiers int, carries policy.Carries, capacity, peak float64, dependencies ...string) policy.Service {
	return policy.Service{Tiers: tiers, Dependencies: append([]string{}, dependencies...), LocalState: true, Criticality: carries,
		Capacity: capacity, Peak: peak, GameDay: f.gameDay}
}

// automatic are the standard's own limits: one move in 5 min, flapping when there
// are more than 3 in 10 min.
func (f *frame) automatic() policy.Automatic {
	return policy.Automatic{
		Every: f.pace.RampStep * 5 / 2, ShedAtOnce: true, Flaps: 3, FlapWindow: f.pace.Dwell,
		Blind: 1, Stuck: seconds(4 * 3600), Budget: seconds(2 * 3600),
	}
}

// off and same are the two behaviours with a fixed word.
const (
	off  = policy.OffBehaviour
	same = policy.NoChange
)

func above(signal string, limit float64, held model.Duration) policy.Condition {
	return policy.Condition{Signal: signal, Threshold: over(limit), For: held}
}

func below(signal string, limit float64, held model.Duration) policy.Condition {
	return policy.Condition{Signal: signal, Threshold: under(limit), For: held}
}

func over(limit float64) policy.Threshold  { return policy.Threshold{Above: &limit} }
func under(limit float64) policy.Threshold { return policy.Threshold{Below: &limit} }

func usd(minor int64) model.Money { return model.Money{Minor: minor, Currency: "USD"} }

func amount(minor int64) *model.Money {
	m := usd(minor)
	return &m
}

// call is one dependency without a fallback.
func call(need policy.Need, qps float64, timeoutMS, attempts int, resources ...string) policy.Dependency {
	return policy.Dependency{Need: need, QPS: qps, TimeoutMS: timeoutMS, Attempts: attempts, Resources: resources}
}

// enhanced is a dependency with something in its place.
func enhanced(qps float64, timeoutMS, attempts int, instead policy.Fallback, resources ...string) policy.Dependency {
	instead.Marked = true
	d := call(policy.Enhancing, qps, timeoutMS, attempts, resources...)
	d.Fallback = &instead
	return d
}

// snapshot is made every 10 min in 5, and good for one missed run.
func snapshot(text, differs string, traffic float64, resources ...string) policy.Fallback {
	return policy.Fallback{Text: text, Source: policy.Snapshot, Resources: resources, Differs: differs,
		Refresh: seconds(600), Job: seconds(300), MaxAge: seconds(1500), Traffic: traffic}
}

func cached(text, differs string, maxAge model.Duration, traffic float64, resources ...string) policy.Fallback {
	return policy.Fallback{Text: text, Source: policy.Cache, Resources: resources, Differs: differs, MaxAge: maxAge, Traffic: traffic}
}

func static(text, differs string, traffic float64, resources ...string) policy.Fallback {
	return policy.Fallback{Text: text, Source: policy.Static, Resources: resources, Differs: differs, Traffic: traffic}
}

// none is for an endpoint whose answer no fallback fills.
func none() map[string]policy.Invariant { return map[string]policy.Invariant{} }

// Names that every template uses.
const (
	Commander   = "incident-commander"
	reliability = "reliability"
	business    = "business"
)

// matrix are the rights that every policy starts with. subject is what they are
// about, last the tier that stops business and wants a second signature; without
// automatic there are none for the controller.
func (f *frame) matrix(subject, lastText, lastWhy string, automatic, last int) map[string]policy.Right {
	alone, second := policy.Cosign{Count: 0, Of: business}, policy.Cosign{Count: 1, Of: business}
	anywhere := []string{model.AnyScope}
	tiers := func(from, to int) *policy.Range { return &policy.Range{From: from, To: to} }
	return map[string]policy.Right{
		"shed": {Text: "simplify " + subject + " to tier " + orList(last-1), Kind: model.Shed, Who: Commander, Cosign: alone, Scope: anywhere, Tiers: tiers(1, last-1),
			Advice: "Set the tier in the configuration of every service in scope, roll it out, and note the time at which each one had it.",
			Why:    "Nobody waits for a signature to shed."},
		fmt.Sprintf("shed-%d", last): {Text: lastText, Kind: model.Shed, Who: Commander, Cosign: second, Scope: anywhere, Tiers: tiers(last, last), Lead: f.pace.Lead,
			Advice: "Set the tier in the configuration of every service in scope, roll it out, tell support, and note the time at which each one had it.",
			Why:    lastWhy},
		"auto-shed": {Text: "simplify " + subject + " to tier " + orList(automatic) + " by the ladder", Kind: model.Shed, Who: LadderController, Cosign: alone, Scope: anywhere, Tiers: tiers(1, automatic),
			Why: "Tiers that hide only what product called sheddable or degradable."},
		"recover": {Text: "leave a tier, one step at a time", Kind: model.End, Ends: model.Shed, Who: Commander, Cosign: alone, Scope: anywhere, Tiers: tiers(1, last),
			Advice: "Set the next lower tier on one host in ten, look at the signals, then on half, then on all.",
			Why:    "With signals known to be good and after the dwell."},
		"auto-recover": {Text: "leave tier " + orList(automatic) + " by the ladder", Kind: model.End, Ends: model.Shed, Who: LadderController, Cosign: alone, Scope: anywhere, Tiers: tiers(1, automatic),
			Why: "What the ladder entered it may leave."},
		"recover-blind": {Text: "leave a tier without good signals, with typed evidence", Kind: model.End, Ends: model.Shed, Who: Commander,
			Cosign: policy.Cosign{Count: 1, Of: reliability}, Scope: anywhere, Tiers: tiers(1, last), Blind: true, Lead: f.pace.Lead,
			Advice: "Set the next lower tier on one host in ten, and let both people look at what a user sees before the next step.",
			Why:    "Two people look when the dashboards cannot."},
		"feature-off": {Text: "switch one feature off", Kind: model.Off, Who: Commander, Cosign: alone, Scope: anywhere, Feature: "*",
			Advice: "Switch the feature off in the configuration of its service and roll it out.",
			Why:    "The smallest way to shed."},
		"feature-on": {Text: "switch a feature on again", Kind: model.End, Ends: model.Off, Who: Commander, Cosign: alone, Scope: anywhere,
			Advice: "Take the switch out of the configuration of the service again and roll it out.",
			Why:    "Ends what feature-off began."},
		"end-bypass": {Text: "end a bypass before its time", Kind: model.End, Ends: model.Bypass, Who: Commander, Cosign: alone, Scope: anywhere,
			Advice: "Close the control again on every host, and read one host's configuration to be sure.",
			Why:    "Closing is always allowed."},
		"freeze": {Text: "hold everything where it is", Kind: model.Freeze, Who: Commander, Cosign: alone, Scope: anywhere, Lasts: f.pace.Freeze,
			Advice: "Tell everybody who can deploy, and stop the pipeline.",
			Why:    "Stops automatic moves, recoveries and bypasses; people may still shed."},
		"unfreeze": {Text: "end a freeze", Kind: model.End, Ends: model.Freeze, Who: Commander, Cosign: alone, Scope: anywhere,
			Advice: "Tell everybody that it is over, and start the pipeline again.",
			Why:    "Ends what freeze began."},
		"ping": {Text: "rehearse: reach every host and change nothing", Kind: model.Ping, Who: Commander, Cosign: alone, Scope: anywhere, Lasts: f.pace.Ping,
			Why: "A carrier that is never used is not there at night."},
	}
}

// orList prints 1 to n as "1, 2 or 3".
func orList(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprint(i + 1)
	}
	if n < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
}

// maxReplacements is how many hosts may join in a day in every template.
const maxReplacements = 4

// bypass shares its total among the hosts that can ever spend it, so that the
// worst case is the total.
func bypass(control string, hosts, under, total, count int64, lasts model.Duration, perDay int) *policy.Bypass {
	share := total / (hosts + maxReplacements)
	return &policy.Bypass{
		Control: control, Under: usd(under), HostCount: count, HostTotal: usd(share - share%100), Total: usd(total),
		Lasts: lasts, PerDay: perDay, Live: 1, MaxReplacements: maxReplacements, VolatileHosts: false,
	}
}

// pipelines are the two bundled backends, and the flag service that they survive.
func (f *frame) pipelines(git, hostFile map[string]string, inventory policy.Inventory) *policy.BackendsDoc {
	return &policy.BackendsDoc{
		Header: f.header(policy.Backends, "How an order reaches the fleet when the flag service does not, and which hosts there are."),
		Backends: map[string]policy.Backend{
			"git": {Bundled: "git", Config: git, Targets: []string{model.AnyScope}, Dependencies: []string{"git-host", "deploy-pipeline"},
				Secrets: []string{}, Why: "The deploy pipeline writes the env file and restarts hosts in batches; it does not need the flag service."},
			"hostfile": {Bundled: "hostfile", Config: hostFile, Targets: []string{model.AnyScope}, Dependencies: []string{"ssh-access"},
				Secrets: []string{}, Why: "A watched file on each host: no restart, for when the pipeline is down too."},
		},
		FlagService: policy.FlagService{Dependencies: []string{"etcd", "service-network"}, Why: "The everyday carrier."},
		Inventory:   inventory,
	}
}

func withDefaults(given, defaults map[string]string) map[string]string {
	out := maps.Clone(defaults)
	maps.Copy(out, given)
	return out
}

func authorized(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}
