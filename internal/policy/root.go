package policy

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

// Root is the trust root: who the people are and what their groups may sign.
// Root N+1 needs the thresholds of N and of N+1.
type Root struct {
	V        int                   `yaml:"v"`        // version of the format: 1
	Fleet    string                `yaml:"fleet"`    // audience: a name of at most 64 bytes
	Version  int64                 `yaml:"version"`  // 1 or more; N+1 follows N without a gap
	Expires  time.Time             `yaml:"expires"`  // UTC, whole seconds; afterwards nothing is loosened
	People   map[string]Person     `yaml:"people"`   // by name: those who count in a quorum
	Machines map[string]Machine    `yaml:"machines"` // by name: hold roles, never count
	Groups   map[string]Group      `yaml:"groups"`   // by name
	Root     string                `yaml:"root"`     // the group that signs the next root
	Publish  string                `yaml:"publish"`  // the group that signs the manifest
	Domains  map[Domain]DomainRule `yaml:"domains"`  // by document: who signs it and the most it may grant
	Roles    map[string]Role       `yaml:"roles"`    // by name: who may act
	Revoked  []string              `yaml:"revoked"`  // fingerprints of keys that count no longer, SHA256:…
}

// Person is somebody who counts in a quorum.
type Person struct {
	Name  string   `yaml:"name"`  // in full, with what he or she answers for
	Reach string   `yaml:"reach"` // how to reach him or her at night
	Keys  []string `yaml:"keys"`  // OpenSSH public keys without a comment
}

// Machine may hold a role but never counts in a quorum.
type Machine struct {
	Keys []string `yaml:"keys"` // OpenSSH public keys without a comment
}

// Group is satisfied when Any of its members are: people by a signature of their
// own, nested groups by being satisfied themselves.
type Group struct {
	Any int      `yaml:"any"` // how many have to sign: 1 to all
	Of  []string `yaml:"of"`  // people and groups, nested at most 4 deep, nobody by two ways
}

// DomainRule says which group signs a domain and the most its owners may grant.
type DomainRule struct {
	Group  string         `yaml:"group"`           // who signs the document
	Grants []model.Kind   `yaml:"grants"`          // kinds of rights that it may hold
	Under  *model.Money   `yaml:"under,omitempty"` // bypass: the most of any item
	Total  *model.Money   `yaml:"total,omitempty"` // bypass: the most on all hosts in one UTC day
	Lasts  model.Duration `yaml:"lasts,omitempty"` // bypass, freeze, ping: the longest window
}

// Role is who may act. Tightens lets its members shed, switch off and end a
// bypass even when the matrix itself is not active: stripping a signature from
// a file must never stop a fleet from shedding.
type Role struct {
	Members  []string `yaml:"members"`  // people or groups
	Machines []string `yaml:"machines"` // machines
	Tightens bool     `yaml:"tightens"` // may shed, switch off and end a bypass although the matrix is not in force
	MaxTier  int      `yaml:"max_tier"` // highest tier this role may shed to or recover from, 0 to 6
}

// Signer is one key's owner.
type Signer struct {
	Name    string
	Machine bool
	Revoked bool
}

// ErrRoot is wrapped by every error about a trust root.
var ErrRoot = errors.New("trust root is not valid")

// index maps fingerprints to owners; it refuses one key under two names, so
// that counting names is counting keys.
func (r *Root) index() (map[string]Signer, error) {
	out := make(map[string]Signer)
	add := func(owner Signer, keys []string) error {
		if len(keys) == 0 {
			return fmt.Errorf("%w: %s has no key", ErrRoot, owner.Name)
		}
		for _, text := range keys {
			fp, err := fingerprint(text)
			if err != nil {
				return fmt.Errorf("%w: key of %s: %v", ErrRoot, owner.Name, err)
			}
			if other, taken := out[fp]; taken {
				return fmt.Errorf("%w: one key is listed for %s and for %s", ErrRoot, other.Name, owner.Name)
			}
			owner.Revoked = slices.Contains(r.Revoked, fp)
			out[fp] = owner
		}
		return nil
	}
	for _, name := range sortedKeys(r.People) {
		if err := add(Signer{Name: name}, r.People[name].Keys); err != nil {
			return nil, err
		}
	}
	for _, name := range sortedKeys(r.Machines) {
		if err := add(Signer{Name: name, Machine: true}, r.Machines[name].Keys); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func fingerprint(authorized string) (string, error) {
	key, comment, options, rest, err := ssh.ParseAuthorizedKey([]byte(authorized))
	if err != nil {
		return "", fmt.Errorf("not an OpenSSH public key: %w", err)
	}
	if comment != "" || len(options) > 0 || len(rest) > 0 {
		return "", errors.New("a key is its type and its base64, without options or comment")
	}
	if err := sshsig.AcceptKey(key, sshsig.ForPolicy); err != nil {
		return "", err
	}
	return ssh.FingerprintSHA256(key), nil
}

// Validate checks everything in a root that needs no other file.
func (r *Root) Validate() error {
	if r.V != 1 || r.Version < 1 || !directive.Name(r.Fleet) || r.Expires.IsZero() {
		return fmt.Errorf("%w: v is 1, version at least 1, fleet a name, expires a time", ErrRoot)
	}
	if _, err := r.index(); err != nil {
		return err
	}
	for _, name := range sortedKeys(r.Groups) {
		if err := r.validateGroup(name); err != nil {
			return err
		}
	}
	for _, used := range append([]string{r.Root, r.Publish}, r.domainGroups()...) {
		if _, ok := r.Groups[used]; !ok {
			return fmt.Errorf("%w: group %q is used and not defined", ErrRoot, used)
		}
	}
	for _, name := range sortedKeys(r.Roles) {
		if err := r.validateRole(name); err != nil {
			return err
		}
	}
	for _, entry := range r.Revoked {
		if !isFingerprint(entry) {
			return fmt.Errorf("%w: revoked lists %q, which is no fingerprint and would revoke nothing; write what ssh-keygen -lf prints, SHA256:…", ErrRoot, entry)
		}
	}
	return nil
}

// isFingerprint reports whether s is a fingerprint in its one spelling.
func isFingerprint(s string) bool {
	digits, ok := strings.CutPrefix(s, "SHA256:")
	raw, err := base64.RawStdEncoding.Strict().DecodeString(digits)
	return ok && err == nil && len(raw) == sha256.Size && base64.RawStdEncoding.EncodeToString(raw) == digits
}

func (r *Root) domainGroups() []string {
	var out []string
	for _, d := range sortedKeys(r.Domains) {
		out = append(out, r.Domains[d].Group)
	}
	return out
}

// validateGroup refuses thresholds that nobody or everybody satisfies, cycles,
// and one person reachable by two ways: he would count twice.
func (r *Root) validateGroup(name string) error {
	g := r.Groups[name]
	if g.Any < 1 || g.Any > len(g.Of) {
		return fmt.Errorf("%w: group %s wants %d of %d members; a threshold is at least 1 and at most all", ErrRoot, name, g.Any, len(g.Of))
	}
	seen := make(map[string]bool)
	var walk func(inner string, depth int) error
	walk = func(inner string, depth int) error {
		if depth > maxGroupDepth {
			return fmt.Errorf("%w: group %s is nested deeper than %d or in itself", ErrRoot, name, maxGroupDepth)
		}
		for _, member := range r.Groups[inner].Of {
			_, person := r.People[member]
			_, group := r.Groups[member]
			switch {
			case person && group:
				return fmt.Errorf("%w: %q is a person and a group", ErrRoot, member)
			case person && seen[member]:
				return fmt.Errorf("%w: %s is in group %s by two ways and would count twice", ErrRoot, member, name)
			case person:
				seen[member] = true
			case group:
				if err := walk(member, depth+1); err != nil {
					return err
				}
			default:
				return fmt.Errorf("%w: group %s lists %q, who is neither a person nor a group", ErrRoot, inner, member)
			}
		}
		return nil
	}
	return walk(name, 0)
}

const maxGroupDepth = 4

func (r *Root) validateRole(name string) error {
	role := r.Roles[name]
	if len(role.Members)+len(role.Machines) == 0 {
		return fmt.Errorf("%w: role %s has no members", ErrRoot, name)
	}
	for _, m := range role.Members {
		_, person := r.People[m]
		_, group := r.Groups[m]
		if !person && !group {
			return fmt.Errorf("%w: role %s lists %q, who is neither a person nor a group", ErrRoot, name, m)
		}
	}
	for _, m := range role.Machines {
		if _, ok := r.Machines[m]; !ok {
			return fmt.Errorf("%w: role %s lists machine %q, which is not defined", ErrRoot, name, m)
		}
	}
	return nil
}

// GroupFor is the group that signs a file of the policy folder; "" for a file
// that nobody is named for.
func (r *Root) GroupFor(file string) string {
	switch documentWord(file) {
	case "root":
		return r.Root
	case "manifest":
		return r.Publish
	}
	domain, _ := domainOf(file)
	return r.Domains[domain].Group
}

// Satisfied reports whether the people named reach the group's threshold.
func (r *Root) Satisfied(group string, people map[string]bool) bool {
	g, ok := r.Groups[group]
	return ok && g.Any >= 1 && r.satisfiedMembers(group, people) >= g.Any
}

// satisfiedMembers counts the people and nested groups of a group that signed.
func (r *Root) satisfiedMembers(group string, people map[string]bool) int {
	n := 0
	for _, m := range r.Groups[group].Of {
		if _, nested := r.Groups[m]; nested && r.Satisfied(m, people) || people[m] {
			n++
		}
	}
	return n
}

// InGroup reports whether a person is anywhere in a group.
func (r *Root) InGroup(group, person string) bool {
	for _, m := range r.Groups[group].Of {
		if m == person {
			return true
		}
		if _, nested := r.Groups[m]; nested && r.InGroup(m, person) {
			return true
		}
	}
	return false
}

// HasRole reports whether a signer holds a role.
func (r *Root) HasRole(role string, who Signer) bool {
	def, ok := r.Roles[role]
	if !ok {
		return false
	}
	if who.Machine {
		return slices.Contains(def.Machines, who.Name)
	}
	for _, m := range def.Members {
		if m == who.Name || r.InGroup(m, who.Name) {
			return true
		}
	}
	return false
}

// RolesOf lists the roles a signer holds, sorted.
func (r *Root) RolesOf(who Signer) []string {
	var out []string
	for _, role := range sortedKeys(r.Roles) {
		if r.HasRole(role, who) {
			out = append(out, role)
		}
	}
	return out
}
