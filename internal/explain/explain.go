package explain

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Source is a policy to be explained: the documents as they lie in the folder,
// and what Load found about their signatures.
type Source struct {
	Root     *policy.Root
	Docs     policy.Documents
	States   map[policy.Domain]policy.DomainState // as Load found them; nil when nothing could be loaded
	Ref      model.PolicyRef                      // of the manifest; zero when nothing could be loaded
	Unsigned string                               // why nothing of it may be obeyed yet; "" when it was loaded
	Hosts    []model.HostView                     // the inventory; nil takes the one in the documents
	Now      time.Time
}

// Report is a policy in sentences.
type Report struct {
	V        int       `json:"v"`
	Fleet    string    `json:"fleet"`
	As       string    `json:"as,omitempty"` // only what this group or person signs
	Signed   bool      `json:"signed"`       // everything on the page is in force
	Sections []Section `json:"sections"`
}

// Section is one page: a document, or one question about all of them.
type Section struct {
	Name  string `json:"name"` // stable: the document, or root, manifest, stolen-keys, console-only, hosts-enforce
	Title string `json:"title"`
	Group string `json:"group,omitempty"` // who signs the document
	Parts []Part `json:"parts"`
}

// Part speaks about one thing: a right, a tier, a person.
type Part struct {
	Name      string     `json:"name,omitempty"` // "" for the document as a whole
	Sentences []Sentence `json:"sentences"`
	Worst     *Worst     `json:"worst_case,omitempty"`
}

// Sentence is one statement. Codes are stable words; ConsoleOnly marks what a
// host does not check, so that whoever has a key and no console is not bound by
// it.
type Sentence struct {
	Code        string `json:"code"`
	Text        string `json:"text"`
	ConsoleOnly bool   `json:"console_only,omitempty"`
}

// Worst is the worst case of a bypass in one UTC day, from what hosts enforce.
type Worst struct {
	PerHost      model.Money `json:"per_host"`
	Hosts        int64       `json:"hosts"`
	Replacements int64       `json:"replacements"`
	WorstCase    model.Money `json:"worst_case"`
	Total        model.Money `json:"total"`
	Within       bool        `json:"within"`   // worst case <= total
	Estimate     bool        `json:"estimate"` // hosts without a state folder may open
}

// ErrNobody is the error of Explain for a name that is neither a group nor a
// person of the root.
var ErrNobody = errors.New("is neither a group nor a person of the trust root")

// page is one explanation being written.
type page struct {
	Source
	b   *policy.Bundle // as if every document were signed
	as  string
	out Report
}

// Explain says what a policy means, with as only what that group or person signs.
// Documents that are not signed yet are explained as if they were, and marked.
func Explain(src Source, as string) (Report, error) {
	p, err := newPage(src, as)
	if err != nil {
		return Report{}, err
	}
	if as != "" && !p.isSomebody(as) {
		return Report{}, fmt.Errorf("%q %w", as, ErrNobody)
	}
	p.out = Report{V: 1, Fleet: src.Root.Fleet, As: as, Signed: src.Unsigned == "", Sections: []Section{}}
	p.documents()
	p.section("stolen-keys", "What one stolen key could do", p.stolenKeys())
	if len(p.rightsInView()) > 0 {
		p.section("console-only", "What only the console enforces", p.consoleOnly())
		p.section("hosts-enforce", "What every host enforces by itself", p.hostsEnforce())
	}
	return p.out, nil
}

// HostsOf turns the inventory of the documents into what a worst case is computed
// from.
func HostsOf(doc *policy.BackendsDoc) []model.HostView {
	if doc == nil {
		return nil
	}
	out := make([]model.HostView, 0, len(doc.Inventory.Hosts))
	for _, h := range doc.Inventory.Hosts {
		out = append(out, model.HostView{Host: h.Host, Services: h.Services})
	}
	return out
}

// newPage joins the documents as if all of them were signed. A root that is not
// valid is refused first: its groups may hold themselves.
func newPage(src Source, as string) (*page, error) {
	if src.Root == nil {
		return nil, errors.New("there is no trust root that can be read: nobody can say who may do what")
	}
	if err := src.Root.Validate(); err != nil {
		return nil, err
	}
	states := make(map[policy.Domain]policy.DomainState)
	for domain, head := range headers(&src.Docs) {
		states[domain] = policy.DomainState{Domain: domain, Version: head.Version, Expires: head.Expires, Active: true, Group: src.Root.Domains[domain].Group}
	}
	b, err := policy.NewBundle(src.Root, src.Ref, states, src.Docs)
	if err != nil {
		return nil, fmt.Errorf("these documents cannot be in force together: %w", err)
	}
	p := &page{Source: src, b: b, as: as}
	if p.Hosts == nil {
		p.Hosts = HostsOf(src.Docs.Backends)
	}
	return p, nil
}

// headers are the documents that are there.
func headers(docs *policy.Documents) map[policy.Domain]policy.Header {
	out := make(map[policy.Domain]policy.Header)
	for domain, doc := range documentsOf(docs) {
		switch d := doc.(type) {
		case *policy.FeaturesDoc:
			out[domain] = d.Header
		case *policy.LadderDoc:
			out[domain] = d.Header
		case *policy.RightsDoc:
			out[domain] = d.Header
		case *policy.BackendsDoc:
			out[domain] = d.Header
		case *policy.JourneysDoc:
			out[domain] = d.Header
		case *policy.ControlsDoc:
			out[domain] = d.Header
		}
	}
	return out
}

// documentsOf lists the documents that are there, by domain.
func documentsOf(docs *policy.Documents) map[policy.Domain]any {
	out := make(map[policy.Domain]any)
	if docs.Features != nil {
		out[policy.Features] = docs.Features
	}
	if docs.Ladder != nil {
		out[policy.Ladder] = docs.Ladder
	}
	if docs.Rights != nil {
		out[policy.Rights] = docs.Rights
	}
	if docs.Backends != nil {
		out[policy.Backends] = docs.Backends
	}
	if docs.Journeys != nil {
		out[policy.Journeys] = docs.Journeys
	}
	for domain, doc := range docs.Controls {
		out[domain] = doc
	}
	return out
}

func (p *page) section(name, title string, parts []Part) {
	p.out.Sections = append(p.out.Sections, Section{Name: name, Title: title, Parts: parts})
}

// documents writes one section for each file: the root and the manifest, every
// document, and every domain that the root names and nobody has written.
func (p *page) documents() {
	if p.signs(p.Root.Root) {
		p.out.Sections = append(p.out.Sections, Section{Name: "root", Title: "The trust root", Group: p.Root.Root, Parts: p.rootParts()})
	}
	if p.signs(p.Root.Publish) {
		p.out.Sections = append(p.out.Sections, Section{Name: "manifest", Title: "The manifest", Group: p.Root.Publish, Parts: p.manifestParts()})
	}
	heads, docs := headers(&p.Docs), documentsOf(&p.Docs)
	for _, domain := range p.domains() {
		group := p.Root.Domains[domain].Group
		if !p.signs(group) {
			continue
		}
		s := Section{Name: string(domain), Title: titleOf(domain), Group: group}
		head, there := heads[domain]
		s.Parts = append(s.Parts, Part{Sentences: p.standing(domain, head, there)})
		if there {
			s.Parts = append(s.Parts, p.content(domain, docs[domain])...)
		}
		p.out.Sections = append(p.out.Sections, s)
	}
}

// domains are those of the root and those that are there, the matrix and the
// documents of money first: they are what is asked for most.
func (p *page) domains() []policy.Domain {
	all := make(map[policy.Domain]bool)
	for domain := range p.Root.Domains {
		all[domain] = true
	}
	for domain := range documentsOf(&p.Docs) {
		all[domain] = true
	}
	last := map[policy.Domain]int{policy.Rights: 1, policy.Ladder: 2, policy.Features: 3, policy.Journeys: 4, policy.Backends: 5}
	return slices.SortedFunc(maps.Keys(all), func(a, b policy.Domain) int {
		if last[a] != last[b] {
			return last[a] - last[b]
		}
		return compare(a, b)
	})
}

func titleOf(domain policy.Domain) string {
	switch domain {
	case policy.Features:
		return "Features: what may get simpler and what goes first"
	case policy.Ladder:
		return "The ladder: when the fleet gets simpler, and when it comes back"
	case policy.Rights:
		return "The matrix of rights: who may do what"
	case policy.Backends:
		return "Break-glass backends and the inventory"
	case policy.Journeys:
		return "Journeys: what a user comes to do"
	default:
		return "The document " + string(domain) + ": a protected control and the rights that may weaken it"
	}
}

// standing says who signs a document, whether they have, and how long it lasts.
func (p *page) standing(domain policy.Domain, head policy.Header, there bool) []Sentence {
	var out []Sentence
	rule, owned := p.Root.Domains[domain]
	if owned {
		out = append(out, say("signers", "%s signs it: %s.", rule.Group, p.wants(rule.Group)))
	} else {
		out = append(out, say("signers-none", "The trust root names nobody who signs it: it is not in force and cannot be."))
	}
	state, judged := p.States[domain]
	switch {
	case !there:
		out = append(out, say("missing", "%s.yaml is not here or cannot be read: nothing of it is in force.", domain))
	case !judged && p.Unsigned == "":
		out = append(out, say("stranger", "NOT IN FORCE: neither the trust root nor the manifest names it."))
		p.out.Signed = false
	case !judged:
		out = append(out, say("unsigned", "NOT SIGNED YET. %s", sentence(p.Unsigned)))
		p.out.Signed = false
	case !state.Active:
		out = append(out, say("inactive", "NOT IN FORCE: %s.", trimStop(state.Why)))
		p.out.Signed = false
	default:
		out = append(out, say("active", "In force, signed by %s.", list(state.Signers)))
	}
	if !there {
		p.out.Signed = false
		return out
	}
	out = append(out, say("version", "Version %d, until %s.", head.Version, when(head.Expires)))
	if !p.Now.Before(head.Expires) {
		out = append(out, say("expired", "It has expired: it loosens nothing any more. Shedding and recovering go on."))
	}
	if head.Why != "" {
		out = append(out, say("why", "What it is for: %s", sentence(head.Why)))
	}
	return append(out, p.grantOf(rule)...)
}

// grantOf says what the root lets the owners of a domain grant at most.
func (p *page) grantOf(rule policy.DomainRule) []Sentence {
	if len(rule.Grants) == 0 {
		return nil
	}
	kinds := make([]string, len(rule.Grants))
	for i, kind := range rule.Grants {
		kinds[i] = string(kind)
	}
	text := "At most, the trust root lets this document grant rights of the kinds " + list(kinds)
	if rule.Under != nil {
		text += ", for items under " + rule.Under.String()
	}
	if rule.Total != nil {
		text += ", " + rule.Total.String() + " on all hosts in one UTC day"
	}
	if rule.Lasts > 0 {
		text += ", for " + rule.Lasts.String()
	}
	return []Sentence{say("grant", "%s.", text)}
}

func (p *page) content(domain policy.Domain, doc any) []Part {
	switch d := doc.(type) {
	case *policy.RightsDoc:
		return p.rightParts(domain, d.Rights)
	case *policy.ControlsDoc:
		return append(p.controlParts(d.Controls), p.rightParts(domain, d.Rights)...)
	case *policy.FeaturesDoc:
		return p.featureParts(d)
	case *policy.LadderDoc:
		return p.ladderParts(d)
	case *policy.BackendsDoc:
		return p.backendParts(d)
	case *policy.JourneysDoc:
		return p.journeyParts(d)
	}
	return nil
}

// rightsInView are the rights of the documents that are explained, sorted.
func (p *page) rightsInView() []string {
	var out []string
	for _, name := range p.b.RightNames() {
		if _, domain, _ := p.b.Right(name); p.signs(p.Root.Domains[domain].Group) {
			out = append(out, name)
		}
	}
	return out
}

// worst is the worst case of one right; nil when it is no bypass.
func (p *page) worst(name string) *Worst {
	e, ok := decisions.RightExposure(p.b, p.Hosts, name)
	if !ok {
		return nil
	}
	return &Worst{
		PerHost: e.PerHost, Hosts: e.Hosts, Replacements: e.Replacements, WorstCase: e.WorstCase, Total: e.Total,
		Within: e.WorstCase.Minor <= e.Total.Minor, Estimate: e.Estimate,
	}
}
