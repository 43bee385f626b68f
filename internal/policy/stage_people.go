package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/directive"
	"golang.org/x/crypto/ssh"
)

// NewPerson is somebody who is to be in the next root.
type NewPerson struct {
	Name   string // as signatures are filed
	Full   string // in full, with what he or she answers for
	Reach  string // at night
	Key    string // a line of an OpenSSH .pub file; its comment is dropped
	Groups []string
	Roles  []string
}

// WithPerson prints the next root of a policy folder with one more person in it,
// for Stage: the newest root that is there, staged or in force, otherwise as it
// is. Thresholds stay what they were.
func WithPerson(dir string, p NewPerson) ([]byte, error) {
	root, err := NewestRoot(dir)
	if err != nil {
		return nil, err
	}
	if !directive.Name(p.Name) {
		return nil, fmt.Errorf("%.80q is no name of a person", p.Name)
	}
	if _, known := root.People[p.Name]; known {
		return nil, fmt.Errorf("%s is in root %d already; change what it says there", p.Name, root.Version)
	}
	key, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(p.Key))
	if err != nil || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, fmt.Errorf("the key of %s is not one line of an OpenSSH .pub file", p.Name)
	}
	if len(p.Groups) == 0 {
		return nil, fmt.Errorf("%s is in no group, and signs nothing; the groups are %s", p.Name, strings.Join(sortedKeys(root.Groups), ", "))
	}
	root.People[p.Name] = Person{Name: p.Full, Reach: p.Reach, Keys: []string{strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))}}
	for _, name := range p.Groups {
		group, known := root.Groups[name]
		if !known {
			return nil, fmt.Errorf("there is no group %.80q; the groups are %s", name, strings.Join(sortedKeys(root.Groups), ", "))
		}
		group.Of = append(slices.Clone(group.Of), p.Name)
		root.Groups[name] = group
	}
	for _, name := range p.Roles {
		role, known := root.Roles[name]
		if !known {
			return nil, fmt.Errorf("there is no role %.80q; the roles are %s", name, strings.Join(sortedKeys(root.Roles), ", "))
		}
		role.Members = append(slices.Clone(role.Members), p.Name)
		root.Roles[name] = role
	}
	return Canonical(root), root.Validate()
}

// Unsigned lists the files of a policy folder that wait for a person: those of
// the groups that he or she is in, without a signature that counts.
func Unsigned(dir, person string, realm directive.Realm, fleet string) ([]string, error) {
	fsys, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer fsys.Close() // read only: nothing can be lost
	root, err := newestRoot(fsys)
	if err != nil {
		return nil, err
	}
	manifest, err := BuildManifest(dir, 1) // for the names of the files
	if err != nil {
		return nil, err
	}
	files := sortedKeys(tree{ManifestFileName: manifest}.manifest().Files)
	var out []string
	for _, file := range append(files, ManifestFileName) {
		content, judges, err := forSigning(fsys, file, fleet)
		if err != nil {
			return nil, err
		}
		valid, _ := signatures(fsys, file, content, realm, fleet, judges...)
		signed := slices.ContainsFunc(valid, func(s signature) bool { return s.person == person })
		if root.InGroup(root.GroupFor(file), person) && !signed {
			out = append(out, file)
		}
	}
	return out, nil
}

// ErrNoSuchFile means that a name is none of a policy's files.
var ErrNoSuchFile = errors.New("it is no file of a policy")

// Namespace is the SSHSIG namespace in which a file of a policy is signed.
func Namespace(file string, realm directive.Realm, fleet string) (string, error) {
	_, isRoot := newDocument(file).(*Root)
	domain, isDomain := domainOf(file)
	if !isRoot && file != ManifestFileName && (!isDomain || !directive.Name(string(domain))) {
		return "", fmt.Errorf("%.80q: %w: manifest.yaml, roots/N.yaml or <domain>.yaml", file, ErrNoSuchFile)
	}
	return realm.Namespace(documentWord(file), fleet), nil
}
