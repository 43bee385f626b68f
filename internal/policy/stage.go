package policy

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// StageOptions say what the next version of a policy folder is to hold.
type StageOptions struct {
	Load  LoadOptions       // the fleet, the realm and what was obeyed before
	Names Names             // for lint
	Files map[string][]byte // edited files by name: documents, or the next root under any name of a root
	From  string            // a folder whose documents are taken instead of the live ones; "" for none
}

// Staging is what Stage made.
type Staging struct {
	V        int          `json:"v"`
	Dir      string       `json:"dir"`      // the staged folder
	Live     int64        `json:"live"`     // version of the manifest in force
	Version  int64        `json:"version"`  // version of the staged manifest
	Changed  []string     `json:"changed"`  // files that are not in the live folder as they are here
	Removed  []string     `json:"removed"`  // documents that are not here any more
	Wanted   []FileReport `json:"wanted"`   // who signs what, and who has: every changed file, and what is short of signatures
	Findings []Finding    `json:"findings"` // of lint
}

// Errors of Stage that a caller decides on.
var (
	ErrLint     = errors.New("lint finds errors in it")
	ErrConflict = errors.New("it was changed here and in the live folder")
)

// Stage makes the next version of the policy folder dir in a folder beside it, or
// brings the one that is there up to date: documents in their canonical form, the
// version of each changed one raised above everything that was ever obeyed, a
// manifest over them, and no signature that does not verify. What did not change
// keeps its version and its signatures. The live folder is not touched.
//
// Doing it again changes nothing. With errors of lint that the policy in force does
// not have nothing is staged, and the folder that was staged before stays as it was.
func Stage(dir string, o StageOptions) (Staging, error) {
	p, err := placeOf(dir)
	if err != nil {
		return Staging{}, err
	}
	var out Staging
	err = p.whileLocked(realDisk(), func() error {
		s := stager{place: p, opts: o}
		if err := s.gather(); err != nil {
			return fmt.Errorf("stage %s: %w", p.live, err)
		}
		var err error
		if out, err = s.make(); err != nil {
			return fmt.Errorf("stage %s: %w", p.live, err)
		}
		return nil
	})
	return out, err
}

// stager is one run of Stage.
type stager struct {
	place
	opts StageOptions

	live   tree
	base   Manifest // of the live folder from which the staged one was made
	next   tree
	chosen map[string]bool // files that the caller named: never a conflict
	loaded Manifest        // of the live folder
}

// gather puts together the files of the next version, before any is settled.
func (s *stager) gather() error {
	var err error
	if s.live, err = readTree(s.place.live); err != nil {
		return err
	}
	s.loaded = s.live.manifest()
	s.base, s.next, s.chosen = s.loaded, maps.Clone(s.live), map[string]bool{}
	if isFolder(s.staged) {
		if s.next, err = readTree(s.staged); err != nil {
			return err
		}
		if raw, ok := s.next[baseFile]; ok {
			s.base = tree{ManifestFileName: raw}.manifest()
		}
		delete(s.next, baseFile)
	}
	if err := s.takeFrom(); err != nil {
		return err
	}
	for _, name := range sortedKeys(s.opts.Files) {
		if err := s.takeFile(name, s.opts.Files[name]); err != nil {
			return err
		}
	}
	return nil
}

// takeFrom replaces all documents by those of another folder, such as one that
// was in force before. Roots are not taken: they only go forward.
func (s *stager) takeFrom() error {
	if s.opts.From == "" {
		return nil
	}
	from, err := readTree(s.opts.From)
	if err != nil {
		return err
	}
	if len(from.documents()) == 0 {
		return fmt.Errorf("%s holds no document of a policy", s.opts.From)
	}
	for _, name := range append(s.next.documents(), s.live.documents()...) {
		s.chosen[name] = true
		delete(s.next, name)
		s.next.dropSignatures(name)
	}
	for _, name := range from.documents() {
		s.chosen[name] = true
		s.next[name] = from[name]
	}
	return nil
}

func (s *stager) takeFile(name string, content []byte) error {
	switch newDocument(name).(type) {
	case *Manifest:
		return fmt.Errorf("%s is made by staging; it cannot be given", name)
	case *Root:
		s.next[rootFile(s.live.newestRoot()+1)] = content
		return nil
	}
	if !isDocument(name) || path.Base(name) != name {
		return fmt.Errorf("%q is no file of a policy; documents are named <domain>.yaml", name)
	}
	s.chosen[name] = true
	s.next[name] = content
	return nil
}

// make settles every file and puts the staged folder in place.
func (s *stager) make() (Staging, error) {
	if err := s.settleRoots(); err != nil {
		return Staging{}, err
	}
	if err := s.settleDocuments(); err != nil {
		return Staging{}, err
	}
	parent := filepath.Dir(s.place.live)
	draft, err := os.MkdirTemp(parent, "."+filepath.Base(s.place.live)+".stage-*")
	if err != nil {
		return Staging{}, err
	}
	out, err := s.draft(draft)
	if err == nil {
		err = s.install(draft)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(draft))
	}
	out.Dir = s.staged
	return out, err
}

// settleRoots keeps the chain that is in force as it is, and makes of a draft
// after it the next root.
func (s *stager) settleRoots() error {
	newest := s.live.newestRoot()
	if newest == 0 {
		return fmt.Errorf("%w: %s is missing", ErrRoot, rootFile(1))
	}
	for version := int64(1); version <= newest; version++ {
		file := rootFile(version)
		if staged, ok := s.next[file]; ok && !bytes.Equal(staged, s.live[file]) {
			return fmt.Errorf("%s is in force and never changes; write the next root into %s", file, rootFile(newest+1))
		}
		s.next[file] = s.live[file]
		s.next.takeSignatures(file, s.live)
	}
	draft, ok := s.next[rootFile(newest+1)]
	switch {
	case s.next[rootFile(newest+2)] != nil:
		return fmt.Errorf("%s: one new root at a time; %s follows %s", rootFile(newest+2), rootFile(newest+1), rootFile(newest))
	case !ok:
		return nil
	}
	root := new(Root)
	if err := parse(rootFile(newest+1), draft, root, nil); err != nil {
		return err
	}
	root.Version = newest
	if bytes.Equal(Canonical(root), s.live[rootFile(newest)]) {
		delete(s.next, rootFile(newest+1)) // nothing new in it
		s.next.dropSignatures(rootFile(newest + 1))
		return nil
	}
	root.Version = newest + 1
	s.next[rootFile(newest+1)] = Canonical(root)
	return root.Validate()
}

func (s *stager) settleDocuments() error {
	for _, file := range union(s.next.documents(), s.live.documents()) {
		if err := s.settle(file); err != nil {
			return err
		}
	}
	return nil
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// settle decides on the content of one document. Somebody may have installed
// another version in the live folder since this one was staged: what was not
// touched here follows it, and what was touched in both is a person's decision.
func (s *stager) settle(file string) error {
	mine, here := s.next[file]
	base, known := s.base.Files[file]
	touched := s.chosen[file] || here != known || here && digest(mine) != base.SHA256
	switch {
	case !touched && s.inForce(file) != nil:
		return s.keep(file)
	case !here, !touched:
		delete(s.next, file)
		s.next.dropSignatures(file)
		return nil
	}
	same, err := s.same(file)
	switch {
	case err != nil:
		return err
	case same:
		return s.keep(file)
	case s.loaded.Files[file] != base && !s.chosen[file]:
		return fmt.Errorf("%s: %w since it was staged: compare the two, and stage the one you want by its name", file, ErrConflict)
	}
	return s.raise(file)
}

// inForce is the content of a document that the live manifest names; nil if it
// names none, or one that is nowhere. A live file that was edited in its place is
// a draft like any other.
func (s *stager) inForce(file string) []byte {
	for _, raw := range [][]byte{s.live[file], s.next[file]} {
		if raw != nil && digest(raw) == s.loaded.Files[file].SHA256 {
			return raw
		}
	}
	return nil
}

// keep takes a document as it is in force; it needs a new version only when this
// console has obeyed a newer one before.
func (s *stager) keep(file string) error {
	content := s.inForce(file)
	if !bytes.Equal(s.next[file], content) {
		s.next.dropSignatures(file)
	}
	s.next[file] = content
	s.next.takeSignatures(file, s.live)
	if s.loaded.Files[file].Version < s.seen(file) {
		return s.raise(file)
	}
	return nil
}

// same reports whether a document says what the one in force says, whatever its
// version and its spaces.
func (s *stager) same(file string) (bool, error) {
	doc := newDocument(file)
	if err := parse(file, s.next[file], doc, nil); err != nil {
		return false, err
	}
	*versionIn(doc) = s.loaded.Files[file].Version
	return bytes.Equal(Canonical(doc), s.inForce(file)), nil
}

// raise gives a changed document a version above every one that was in force.
func (s *stager) raise(file string) error {
	doc := newDocument(file)
	if err := parse(file, s.next[file], doc, nil); err != nil {
		return err
	}
	version := versionIn(doc)
	*version = max(*version, s.loaded.Files[file].Version+1, s.seen(file)+1)
	s.next[file] = Canonical(doc)
	return nil
}

// seen is the highest version of a document that was ever obeyed here.
func (s *stager) seen(file string) int64 {
	if s.opts.Load.State == nil {
		return 0
	}
	domain, _ := domainOf(file)
	return s.opts.Load.State.Domains[domain].Version
}

// versionIn is where a domain document keeps its version.
func versionIn(doc any) *int64 {
	switch d := doc.(type) {
	case *FeaturesDoc:
		return &d.Version
	case *LadderDoc:
		return &d.Version
	case *RightsDoc:
		return &d.Version
	case *BackendsDoc:
		return &d.Version
	case *JourneysDoc:
		return &d.Version
	case *ControlsDoc:
		return &d.Version
	}
	return new(int64) // of no document that is staged
}
