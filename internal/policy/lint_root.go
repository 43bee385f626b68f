package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// Days before an expiry at which lint raises its voice. Renewing takes the
// signatures of a whole group.
const (
	expiryNotice  = 30
	expiryUrgent  = 14
	expiryPressed = 7
)

// rootRules are about the people behind the policy. What makes a root invalid is
// Validate's; these are about roots that are valid and will disappoint.
func rootRules() []rule {
	person := func(check func(l *lint, say say, path, name string, p *Person)) func(*lint, say) {
		return func(l *lint, say say) {
			if l.root == nil {
				return
			}
			for _, name := range sortedKeys(l.root.People) {
				p := l.root.People[name]
				check(l, say, "people."+name, name, &p)
			}
		}
	}
	return []rule{
		{"person-unreachable", LintWarning, person(func(l *lint, say say, path, name string, p *Person) {
			if p.Reach == "" {
				say(l.rootName(), path+".reach", "nothing says how %s is reached at night", name)
			}
		})},
		{"person-without-part", LintWarning, person(func(l *lint, say say, path, name string, _ *Person) {
			if !l.hasPart(name) {
				say(l.rootName(), path, "%s is in no group and has no role; a key that is trusted for nothing is one more to lose", name)
			}
		})},
		{"group-out-of-reach", LintError, groupOutOfReach},
		{"alone-may-grant", LintWarning, aloneMayGrant},
		{"revoked-stranger", LintWarning, revokedStranger},
	}
}

// rootName is the file of the newest root.
func (l *lint) rootName() string { return cmp.Or(l.rootFile, rootFile(l.root.Version)) }

func (l *lint) hasPart(person string) bool {
	for group := range l.root.Groups {
		if l.root.InGroup(group, person) {
			return true
		}
	}
	return len(l.root.RolesOf(Signer{Name: person})) > 0
}

// groupOutOfReach finds a group that cannot sign any more what it has to.
func groupOutOfReach(l *lint, say say) {
	if l.root == nil {
		return
	}
	alive := make(map[string]bool)
	for _, name := range l.people {
		alive[name] = true
	}
	tell := func(path, group, what string) {
		if _, defined := l.root.Groups[group]; defined && !l.root.Satisfied(group, alive) {
			say(l.rootName(), path, "group %s signs %s and has too few people left with a key that is not revoked", group, what)
		}
	}
	tell("root", l.root.Root, "the next root")
	tell("publish", l.root.Publish, "the manifest")
	for _, domain := range sortedKeys(l.root.Domains) {
		tell(fmt.Sprintf("domains.%s.group", domain), l.root.Domains[domain].Group, fileOf(domain))
	}
}

// aloneMayGrant finds where one stolen key could sign its own bypass.
func aloneMayGrant(l *lint, say say) {
	if l.root == nil {
		return
	}
	for _, domain := range sortedKeys(l.root.Domains) {
		rule := l.root.Domains[domain]
		if !slices.Contains(rule.Grants, model.Bypass) {
			continue
		}
		for _, person := range l.people {
			if l.root.Satisfied(rule.Group, map[string]bool{person: true}) {
				say(l.rootName(), fmt.Sprintf("domains.%s.group", domain), "%s alone satisfies %s, which may grant a bypass: one stolen key signs it", person, rule.Group)
				break
			}
		}
	}
}

// revokedStranger finds a revocation that stops nobody; an empty list is fine
// and revokes nobody.
func revokedStranger(l *lint, say say) {
	if l.root == nil {
		return
	}
	keys, _ := l.root.index() // a root with a bad key is reported where it is read
	for i, fingerprint := range l.root.Revoked {
		if _, known := keys[fingerprint]; keys != nil && !known {
			say(l.rootName(), fmt.Sprintf("revoked[%d]", i), "%s is nobody's key in this root: mistyped it revokes nothing, and of somebody who has left it can go", fingerprint)
		}
	}
}

// eachExpiry calls fn for everything that runs out.
func (l *lint) eachExpiry(fn func(file string, at time.Time)) {
	if l.names.Now.IsZero() {
		return
	}
	if l.root != nil {
		fn(l.rootName(), l.root.Expires)
	}
	l.each(func(file string, head Header) { fn(file, head.Expires) })
}

func expired(l *lint, say say) {
	l.eachExpiry(func(file string, at time.Time) {
		if !l.names.Now.Before(at) {
			say(file, "expires", "it expired at %s: it still sheds and recovers, and loosens nothing; renew it", at.Format(timeLayout))
		}
	})
}

func expiresSoon(l *lint, say say) {
	l.eachExpiry(func(file string, at time.Time) {
		left := at.Sub(l.names.Now)
		days := int(left.Hours() / 24)
		switch {
		case left <= 0 || days >= expiryNotice:
		case days < expiryPressed:
			say(file, "expires", "it expires in %d days: sign a new version now, no night is left to forget it", days)
		case days < expiryUrgent:
			say(file, "expires", "it expires in %d days: collect the signatures this week", days)
		default:
			say(file, "expires", "it expires in %d days: begin to renew it", days)
		}
	})
}
