package policy

import (
	"errors"
	"fmt"
	"github.com/degradedmode/ic/internal/model"
	"io/fs"
	"slices"
	"strings"
)

// loadDomains judges every domain that the root or the manifest names, one by
// one.
func (l *loader) loadDomains() {
	l.states = make(map[Domain]DomainState)
	l.docs.Controls = make(map[Domain]*ControlsDoc)
	for domain := range l.root.Domains {
		l.states[domain] = DomainState{Domain: domain}
	}
	for file := range l.manifest.Files {
		if domain, ok := domainOf(file); ok && !strings.Contains(file, "/") {
			l.states[domain] = DomainState{Domain: domain}
		}
	}
	for _, domain := range sortedKeys(l.states) {
		state, doc := l.domain(domain)
		l.states[domain] = state
		if state.Active {
			l.docs.put(domain, doc)
		}
	}
	l.noteStrangers()
}

// domain judges one document: listed, whole, signed, canonical, within the
// root's grant. Bytes are parsed only after the signatures over them count.
func (l *loader) domain(domain Domain) (DomainState, any) {
	state := DomainState{Domain: domain}
	fall := func(format string, args ...any) (DomainState, any) {
		state.Why = fmt.Sprintf(format, args...)
		return state, nil
	}
	file := fileOf(domain)
	rule, owned := l.root.Domains[domain]
	if !owned {
		return fall("the root names no group that signs %s", file)
	}
	state.Group = rule.Group
	entry, listed := l.manifest.Files[file]
	if !listed {
		return fall("%s is not in the manifest", file)
	}
	state.Version = entry.Version
	raw, err := readFile(l.fsys, file, MaxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		return fall("%s is missing", file)
	}
	if err != nil {
		return fall("%s cannot be read: %v", file, err)
	}
	valid, notes := signatures(l.fsys, file, raw, l.opts.Realm, l.opts.Fleet, l.keys)
	l.notes = append(l.notes, notes...)
	signed := people(valid, l.keys)
	state.Signers = sortedKeys(signed)
	if got := digest(raw); got != entry.SHA256 {
		return fall("%s is not the file that the manifest names: its SHA-256 is %s, not %s", file, got, entry.SHA256)
	}
	if !l.root.Satisfied(rule.Group, signed) {
		return fall("signatures are missing: %s", lacking(l.root, rule.Group, signed))
	}
	doc := newDocument(file)
	if err := parseCanonical(file, raw, doc); err != nil {
		return fall("%v", firstOf(err))
	}
	head := headerOf(doc)
	state.Expires = head.Expires
	if why := l.headerFits(domain, head, entry); why != "" {
		return fall("%s", why)
	}
	if why := withinGrant(domain, doc, rule); why != "" {
		return fall("%s", why)
	}
	state.Active = true
	return state, doc
}

// firstOf keeps the reason of an inactive domain to one sentence.
func firstOf(err error) error {
	var all SyntaxErrors
	if errors.As(err, &all) && len(all) > 0 {
		return all[0]
	}
	return err
}

func (l *loader) headerFits(domain Domain, head Header, entry ManifestFile) string {
	switch {
	case head.Fleet != l.opts.Fleet:
		return fmt.Sprintf("it is for fleet %q, this is %q", head.Fleet, l.opts.Fleet)
	case head.Domain != domain:
		return fmt.Sprintf("it says domain %q, its file is %s", head.Domain, fileOf(domain))
	case head.Version != entry.Version || head.Version < 1:
		return fmt.Sprintf("it says version %d, the manifest %d", head.Version, entry.Version)
	}
	return ""
}

// noteStrangers mentions documents that nobody asked for.
func (l *loader) noteStrangers() {
	entries, err := fs.ReadDir(l.fsys, ".")
	if err != nil {
		l.notes = append(l.notes, fmt.Sprintf("the folder cannot be listed: %v", err))
		return
	}
	for _, entry := range entries {
		domain, ok := domainOf(entry.Name())
		if _, known := l.states[domain]; ok && !known {
			l.notes = append(l.notes, fmt.Sprintf("%q is ignored: neither the root nor the manifest names it", entry.Name()))
		}
	}
}

func headerOf(doc any) Header {
	switch d := doc.(type) {
	case *FeaturesDoc:
		return d.Header
	case *LadderDoc:
		return d.Header
	case *RightsDoc:
		return d.Header
	case *ControlsDoc:
		return d.Header
	case *BackendsDoc:
		return d.Header
	case *JourneysDoc:
		return d.Header
	}
	return Header{}
}

func (docs *Documents) put(domain Domain, doc any) {
	switch d := doc.(type) {
	case *FeaturesDoc:
		docs.Features = d
	case *LadderDoc:
		docs.Ladder = d
	case *RightsDoc:
		docs.Rights = d
	case *ControlsDoc:
		docs.Controls[domain] = d
	case *BackendsDoc:
		docs.Backends = d
	case *JourneysDoc:
		docs.Journeys = d
	}
}

// crossCheck makes a domain inactive that contradicts another. The rule that
// protects is kept: a feature never displaces a control, and a document of
// controls never displaces the matrix or the document before it.
func (l *loader) crossCheck() {
	controls, rights := make(map[string]Domain), make(map[string]Domain)
	if l.docs.Rights != nil {
		for name := range l.docs.Rights.Rights {
			rights[name] = Rights
		}
	}
	for _, domain := range sortedKeys(l.docs.Controls) {
		doc := l.docs.Controls[domain]
		if why := taken(domain, doc, controls, rights); why != "" {
			l.fall(domain, why)
			delete(l.docs.Controls, domain)
			continue
		}
		for name := range doc.Controls {
			controls[name] = domain
		}
		for name := range doc.Rights {
			rights[name] = domain
		}
	}
	if l.docs.Features == nil {
		return
	}
	for _, name := range sortedKeys(l.docs.Features.Features) {
		if domain, ok := controls[name]; ok {
			l.fall(Features, fmt.Sprintf("it names %s as a feature, which %s protects as a control; a control is weakened only by a bypass", name, domain))
			l.docs.Features = nil
			return
		}
	}
}

func taken(domain Domain, doc *ControlsDoc, controls, rights map[string]Domain) string {
	for _, name := range sortedKeys(doc.Controls) {
		if other, ok := controls[name]; ok {
			return fmt.Sprintf("its control %s is defined by %s already", name, other)
		}
	}
	for _, name := range sortedKeys(doc.Rights) {
		if other, ok := rights[name]; ok {
			return fmt.Sprintf("its right %s is granted by %s already", name, other)
		}
	}
	return ""
}

func (l *loader) fall(domain Domain, why string) {
	state := l.states[domain]
	state.Active, state.Why = false, why
	l.states[domain] = state
}

// withinGrant compares a document with what the root lets its owners grant:
// nobody signs more than the root gave to his domain.
func withinGrant(domain Domain, doc any, rule DomainRule) string {
	switch d := doc.(type) {
	case *RightsDoc:
		return rightsWithin(d.Rights, nil, rule)
	case *ControlsDoc:
		return rightsWithin(d.Rights, d.Controls, rule)
	}
	return ""
}

func rightsWithin(rights map[string]Right, controls map[string]Control, rule DomainRule) string {
	for _, name := range sortedKeys(rights) {
		right := rights[name]
		if why := rightWithin(&right, controls, rule); why != "" {
			return fmt.Sprintf("right %s: %s", name, why)
		}
	}
	return ""
}

func rightWithin(right *Right, controls map[string]Control, rule DomainRule) string {
	if !slices.Contains(rule.Grants, right.Kind) {
		return fmt.Sprintf("the root does not let this domain grant %s", right.Kind)
	}
	if rule.Lasts > 0 && right.Lasts > rule.Lasts {
		return fmt.Sprintf("it lasts %s, the root allows %s", right.Lasts, rule.Lasts)
	}
	if right.Cosign.Count < 0 {
		return "it wants a negative number of co-signers"
	}
	if (right.Kind == model.Bypass) != (right.Bypass != nil) {
		return "bounds of a bypass belong to rights of kind bypass, and every one of those has them"
	}
	if (right.Kind == model.Dimmer) != (right.Dimmer != nil) {
		return "bounds of a dimmer belong to rights of kind dimmer, and every one of those has them"
	}
	if right.Bypass == nil {
		return ""
	}
	return bypassWithin(right.Bypass, controls, rule)
}

func bypassWithin(b *Bypass, controls map[string]Control, rule DomainRule) string {
	control, ok := controls[b.Control]
	switch {
	case !ok:
		return fmt.Sprintf("it bypasses %s, and only the document that defines a control may weaken it", b.Control)
	case control.Protects == ProtectsAuthorization:
		return fmt.Sprintf("%s protects authorization, which never opens, whoever signs", b.Control)
	case rule.Under == nil || rule.Total == nil || rule.Lasts <= 0:
		return "the root sets no under, total and lasts for bypasses of this domain; an absent bound is not unbounded"
	case b.Under.Minor <= 0 || b.HostTotal.Minor <= 0 || b.Total.Minor <= 0 || b.HostCount <= 0 || b.Lasts <= 0 || b.PerDay <= 0 || b.Live <= 0 || b.MaxReplacements < 0:
		return "every bound of a bypass is above zero, max_replacements at least zero"
	case b.HostTotal.Currency != b.Under.Currency || b.Total.Currency != b.Under.Currency:
		return "the amounts of a bypass are in one currency"
	case over(b.Under, *rule.Under):
		return fmt.Sprintf("it reaches items under %s, the root allows %s", b.Under, *rule.Under)
	case over(b.Total, *rule.Total):
		return fmt.Sprintf("its total is %s, the root allows %s", b.Total, *rule.Total)
	case over(b.HostTotal, *rule.Total):
		return fmt.Sprintf("its host_total is %s, the root allows a total of %s", b.HostTotal, *rule.Total)
	case b.Lasts > rule.Lasts:
		return fmt.Sprintf("it lasts %s, the root allows %s", b.Lasts, rule.Lasts)
	}
	return ""
}
