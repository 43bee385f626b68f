package policy

import (
	"slices"

	"github.com/degradedmode/ic/internal/model"
)

// each calls fn for every document that is there.
func (l *lint) each(fn func(file string, head Header)) {
	head := func(file Domain, doc any, there bool) {
		if there {
			fn(fileOf(file), headerOf(doc))
		}
	}
	head(Features, l.Features, l.Features != nil)
	head(Ladder, l.Ladder, l.Ladder != nil)
	head(Rights, l.Rights, l.Rights != nil)
	head(Backends, l.Backends, l.Backends != nil)
	head(Journeys, l.Journeys, l.Journeys != nil)
	for _, domain := range sortedKeys(l.Controls) {
		head(domain, l.Controls[domain], true)
	}
}

// headerOf is the header of one document.
func (l *lint) headerOf(file string) (head Header) {
	l.each(func(name string, h Header) {
		if name == file {
			head = h
		}
	})
	return head
}

// eachRight calls fn for every right of every document.
func (l *lint) eachRight(fn func(file, path string, r *Right)) {
	walk := func(domain Domain, rights map[string]Right) {
		for _, name := range sortedKeys(rights) {
			r := rights[name]
			fn(fileOf(domain), "rights."+name, &r)
		}
	}
	if l.Rights != nil {
		walk(Rights, l.Rights.Rights)
	}
	for _, domain := range sortedKeys(l.Controls) {
		walk(domain, l.Controls[domain].Rights)
	}
}

func (l *lint) right(name string) bool {
	found := false
	l.eachRight(func(_, path string, _ *Right) { found = found || path == "rights."+name })
	return found
}

// bypassesIn lists the rights beside a bypass; only a document of controls holds
// any.
func (l *lint) bypassesIn(file string) map[string]Right {
	domain, _ := domainOf(file)
	if doc := l.Controls[domain]; doc != nil {
		return doc.Rights
	}
	return nil
}

// control names the document that defines a control; "" if none does.
func (l *lint) control(name string) Domain {
	for _, domain := range sortedKeys(l.Controls) {
		if _, ok := l.Controls[domain].Controls[name]; ok {
			return domain
		}
	}
	return ""
}

// holders lists who may use a right, up to the tier given: people, and machines
// marked so.
func (l *lint) holders(r *Right, tier int) []Signer {
	if l.root == nil || l.root.Roles[r.Who].MaxTier < tier {
		return nil
	}
	var out []Signer
	for _, name := range l.people {
		if s := (Signer{Name: name}); l.root.HasRole(r.Who, s) {
			out = append(out, s)
		}
	}
	for _, name := range sortedKeys(l.root.Machines) {
		if s := (Signer{Name: name, Machine: true}); l.alive[name] && l.root.HasRole(r.Who, s) {
			out = append(out, s)
		}
	}
	return out
}

// owner reports whether a name is somebody of the root: a person or a group.
func (l *lint) owner(name string) bool {
	if l.root == nil {
		return true
	}
	_, person := l.root.People[name]
	_, group := l.root.Groups[name]
	return person || group
}

// service reports whether the ladder names a service, or cannot say.
func (l *lint) service(name string) bool {
	if l.Ladder == nil {
		return true
	}
	_, ok := l.Ladder.Services[name]
	return ok
}

// eachFeature calls fn for every feature.
func (l *lint) eachFeature(fn func(path, name string, f *Feature)) {
	if l.Features == nil {
		return
	}
	for _, name := range sortedKeys(l.Features.Features) {
		f := l.Features.Features[name]
		fn("features."+name, name, &f)
	}
}

// eachEndpoint calls fn for every way into a feature.
func (l *lint) eachEndpoint(fn func(path string, f *Feature, e *Endpoint)) {
	l.eachFeature(func(path, _ string, f *Feature) {
		for _, name := range sortedKeys(f.Endpoints) {
			e := f.Endpoints[name]
			fn(path+".endpoints."+name, f, &e)
		}
	})
}

// call is one dependency of one endpoint, and where it stands.
type call struct {
	Dependency
	name, path string
	feature    *Feature
	endpoint   *Endpoint
}

// eachCall calls fn for every dependency of every endpoint.
func (l *lint) eachCall(fn func(c *call)) {
	l.eachEndpoint(func(path string, f *Feature, e *Endpoint) {
		for _, name := range sortedKeys(e.Dependencies) {
			fn(&call{Dependency: e.Dependencies[name], name: name, path: path + ".dependencies." + name, feature: f, endpoint: e})
		}
	})
}

// eachService calls fn for every service of the ladder.
func (l *lint) eachService(fn func(path, name string, s *Service)) {
	if l.Ladder == nil {
		return
	}
	for _, name := range sortedKeys(l.Ladder.Services) {
		s := l.Ladder.Services[name]
		fn("services."+name, name, &s)
	}
}

// covers reports whether a scope holds every service of another one.
func covers(outer, inner []string) bool {
	if slices.Contains(outer, model.AnyScope) {
		return true
	}
	return !slices.ContainsFunc(inner, func(name string) bool { return !slices.Contains(outer, name) })
}

// personHolds reports whether somebody who can be woken may use a right up to a
// tier.
func (l *lint) personHolds(r *Right, tier int) bool {
	return slices.ContainsFunc(l.holders(r, tier), func(s Signer) bool { return !s.Machine })
}

// scope wants services that the ladder names, or "*".
func (l *lint) scope(say say, file, path string, scope []string) {
	if len(scope) == 0 {
		say(file, path, "the scope is empty; name services, or \"*\" for any")
	}
	for _, name := range scope {
		if name != model.AnyScope && !l.service(name) {
			say(file, path, "the ladder names no service %q", name)
		}
	}
}
