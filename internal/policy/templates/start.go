package templates

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"golang.org/x/crypto/ssh"
)

// Groups of a template's root besides those of kit.go.
const (
	product = "product"
	finance = "finance"
	risk    = "risk"
)

// Names lists the templates with which a policy can be started, sorted.
func Names() []string { return []string{"api", "payments", "shop"} }

// StartParams are what somebody who starts has: a fleet, a name and a key.
type StartParams struct {
	Template string // one of Names
	Fleet    string
	Person   string
	Key      ssh.PublicKey
	Now      time.Time // the classes count as reviewed on this day
	Expires  time.Time // of everything
}

// Starter is the policy of one person, complete and unsigned, by file name.
type Starter struct {
	Files map[string][]byte
	// Later holds the documents with what one person cannot have yet: rights that
	// want a second signature or a review by somebody else, and pipelines.
	Later map[string][]byte
}

// Start renders a template for one person, who is every group alone. Nothing in
// it is automatic, because no controller has a key, and it lists no hosts: what is
// decided is done by hand until there are some.
func Start(p StartParams) (Starter, error) {
	if !slices.Contains(Names(), p.Template) {
		return Starter{}, fmt.Errorf("there is no template %q; there are %v", p.Template, Names())
	}
	if !directive.Name(p.Fleet) || !directive.Name(p.Person) {
		return Starter{}, fmt.Errorf("fleet %q and person %q are names: lower-case letters, digits, '-', '.', '_', at most %d", p.Fleet, p.Person, directive.MaxName)
	}
	if p.Key == nil || p.Now.IsZero() || !p.Expires.After(p.Now) {
		return Starter{}, fmt.Errorf("a policy starts with a key, and expires after it has begun")
	}
	d := template(&p)
	d.root = alone(d.root, p.Person, authorized(p.Key))
	d.ownedByGroups()
	d.withoutMachines()
	later := d.render()
	d.withoutSeconds()
	d.backends.Backends, d.backends.Inventory.Hosts = map[string]policy.Backend{}, nil
	out := Starter{Files: d.render(), Later: map[string][]byte{}}
	for file, content := range later {
		if string(content) != string(out.Files[file]) {
			out.Later[file] = content
		}
	}
	return out, d.root.Validate()
}

// template is the chosen one with everything that a company of several people
// would have.
func template(p *StartParams) *documents {
	f := &frame{fleet: p.Fleet, version: 1, expires: p.Expires.UTC().Truncate(time.Second), reviewed: p.Now.UTC().Truncate(24 * time.Hour), pace: RealPace()}
	switch p.Template {
	case "api":
		return api(f)
	case "payments":
		return payments(f)
	}
	shop := ShopParams{Fleet: p.Fleet, Expires: p.Expires, Reviewed: f.reviewed, Machines: map[string]ssh.PublicKey{LadderController: p.Key}, People: map[string]ssh.PublicKey{}}
	for _, name := range ShopPeople() {
		shop.People[name] = p.Key // nobody's name but the caller's stays in it
	}
	shop.fill()
	shop.gameDay = time.Time{}
	return shop.documents()
}

// starterRoot names the groups, the domains and the roles; who is in them is said
// by alone.
func (f *frame) starterRoot(controls map[policy.Domain]policy.DomainRule, lastTier int) *policy.Root {
	domains := map[policy.Domain]policy.DomainRule{
		policy.Features: {Group: product, Grants: []model.Kind{}},
		policy.Journeys: {Group: product, Grants: []model.Kind{}},
		policy.Ladder:   {Group: reliability, Grants: []model.Kind{}},
		policy.Backends: {Group: reliability, Grants: []model.Kind{}},
		policy.Rights: {Group: "rights-owners", Lasts: seconds(4 * 3600),
			Grants: []model.Kind{model.Shed, model.Off, model.Freeze, model.Ping, model.End}},
	}
	maps.Copy(domains, controls)
	groups := map[string]policy.Group{}
	for _, name := range []string{"everyone", reliability, product, finance, risk, business, "rights-owners"} {
		groups[name] = policy.Group{}
	}
	return &policy.Root{
		V: 1, Fleet: f.fleet, Version: 1, Expires: f.expires, Machines: map[string]policy.Machine{}, Groups: groups, Root: "everyone", Publish: reliability,
		Domains: domains, Roles: map[string]policy.Role{Commander: {Machines: []string{}, Tightens: true, MaxTier: lastTier}}, Revoked: []string{},
	}
}

// alone makes one person every group of a root, with a threshold of 1, and drops
// the roles of machines.
func alone(root *policy.Root, person, key string) *policy.Root {
	root.People = map[string]policy.Person{person: {Name: person, Reach: "write here how to reach you at night", Keys: []string{key}}}
	for name := range root.Groups {
		root.Groups[name] = policy.Group{Any: 1, Of: []string{person}}
	}
	for name, role := range root.Roles {
		if len(role.Machines) > 0 {
			delete(root.Roles, name)
			continue
		}
		role.Members = []string{person}
		root.Roles[name] = role
	}
	root.Machines = map[string]policy.Machine{}
	return root
}

// ownedByGroups puts groups in the place of the shop's people, so that nobody who
// starts with it has to know them.
func (d *documents) ownedByGroups() {
	group := map[string]string{Ines: reliability, Dev: "platform", Fiona: finance, Priya: product, Ravi: finance}
	own := func(owner *string) {
		if g, ok := group[*owner]; ok {
			*owner = g
		}
	}
	for name, f := range d.features.Features {
		own(&f.Owner)
		for _, e := range f.Endpoints {
			for field, i := range e.Invariants {
				own(&i.Owner)
				e.Invariants[field] = i
			}
		}
		d.features.Features[name] = f
	}
	for i := range d.ladder.Tiers {
		own(&d.ladder.Tiers[i].Owner)
	}
	for _, doc := range d.controls {
		for name, c := range doc.Controls {
			own(&c.Owner)
			doc.Controls[name] = c
		}
	}
}

// everyRights calls fn for the rights of every document.
func (d *documents) everyRights(fn func(rights map[string]policy.Right)) {
	fn(d.rights.Rights)
	for _, doc := range d.controls {
		fn(doc.Rights)
	}
}

// withoutMachines leaves nothing to a controller that has no key yet.
func (d *documents) withoutMachines() {
	for i := range d.ladder.Tiers {
		d.ladder.Tiers[i].Auto = false
	}
	d.everyRights(func(rights map[string]policy.Right) {
		maps.DeleteFunc(rights, func(_ string, r policy.Right) bool {
			_, held := d.root.Roles[r.Who]
			return !held
		})
	})
}

// withoutSeconds leaves out the rights that one person could never use, or that
// nobody else could look at afterwards. A shed wants no second person who is not
// there: tightening goes on.
func (d *documents) withoutSeconds() {
	d.everyRights(func(rights map[string]policy.Right) {
		for name, r := range rights {
			switch {
			case r.Kind == model.Shed:
				r.Cosign.Count, r.Lead = 0, 0
				rights[name] = r
			case r.Cosign.Count > 0, r.Review != "":
				delete(rights, name)
			}
		}
	})
}

// exampleHosts is how many hosts of each service the examples count with.
const exampleHosts = 6

func (f *frame) exampleBackends(services ...string) *policy.BackendsDoc {
	inventory := policy.Inventory{MaxAge: seconds(24 * 3600)}
	for _, service := range services {
		for n := range exampleHosts {
			inventory.Hosts = append(inventory.Hosts, policy.InventoryHost{Host: fmt.Sprintf("%s-%02d", service, n+1), Services: []string{service}})
		}
	}
	return f.pipelines(
		map[string]string{"repo": "ssh://git.example/deploy.git", "branch": "main", "path": "env/ic.env"},
		map[string]string{"path": "/etc/ic/directives"}, inventory)
}
