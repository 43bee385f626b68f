package policy

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// draft writes the next version into a new folder, without the signatures that
// do not count, and judges it.
func (s *stager) draft(dir string) (Staging, error) {
	out := Staging{V: 1, Live: s.loaded.Version, Changed: []string{}, Removed: []string{}, Wanted: []FileReport{}, Findings: []Finding{}}
	delete(s.next, ManifestFileName)
	signed := maps.Clone(s.next)
	signed.dropSignatures(ManifestFileName)
	if err := signed.write(dir); err != nil {
		return out, err
	}
	if err := s.lint(dir, &out); err != nil {
		return out, err
	}
	if err := s.manifest(dir, &out); err != nil {
		return out, err
	}
	for _, file := range union(s.next.documents(), s.live.documents()) {
		switch {
		case s.next[file] == nil:
			out.Removed = append(out.Removed, file)
		case !bytes.Equal(s.next[file], s.live[file]):
			out.Changed = append(out.Changed, file)
		}
	}
	if next := rootFile(s.live.newestRoot() + 1); s.next[next] != nil {
		out.Changed = append(out.Changed, next)
	}
	if out.Version != out.Live {
		out.Changed = append(out.Changed, ManifestFileName)
	}
	var err error
	out.Wanted, err = s.wanted(dir, out.Changed)
	return out, err
}

// lint refuses errors, but not those that the policy in force has already: a rule
// that is new, or a document that nobody has renewed, must not stand in the way
// of mending another.
func (s *stager) lint(dir string, out *Staging) error {
	found, err := LintFolder(os.DirFS(dir), s.opts.Names)
	if err != nil {
		return err
	}
	before, err := LintFolder(os.DirFS(s.place.live), s.opts.Names)
	if err != nil {
		return err
	}
	out.Findings = append(out.Findings, found...)
	for _, f := range found {
		if f.Severity == LintError && !slices.ContainsFunc(before, f.repeats) {
			return ErrLint
		}
	}
	return nil
}

// repeats reports whether another version of a folder has the same finding.
func (f Finding) repeats(old Finding) bool {
	bothRoots := strings.HasPrefix(f.File, RootsFolder+"/") && strings.HasPrefix(old.File, RootsFolder+"/")
	return f.Code == old.Code && f.Severity == old.Severity && f.Path == old.Path && (f.File == old.File || bothRoots)
}

// manifest writes the manifest over the settled files: the live one if it says
// the same.
func (s *stager) manifest(dir string, out *Staging) error {
	version := s.loaded.Version + 1
	if seen := s.opts.Load.State; seen != nil {
		version = max(version, seen.Manifest.Version+1)
	}
	raw, err := BuildManifest(dir, version)
	if err != nil {
		return err
	}
	made := tree{ManifestFileName: raw}.manifest()
	if maps.Equal(made.Files, s.loaded.Files) && version == s.loaded.Version+1 {
		raw, version = s.live[ManifestFileName], s.loaded.Version
		s.next.takeSignatures(ManifestFileName, s.live)
	}
	s.next[ManifestFileName], out.Version = raw, version
	write := tree{ManifestFileName: raw}
	write.takeSignatures(ManifestFileName, s.next)
	write[baseFile] = s.live[ManifestFileName]
	return write.write(dir)
}

// wanted drops the signatures that do not verify over what is staged, and says
// who has signed and who has not.
func (s *stager) wanted(dir string, changed []string) ([]FileReport, error) {
	fsys, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer fsys.Close() // read only: nothing can be lost
	newest := s.next.newestRoot()
	root, err := readRootFile(fsys, rootFile(newest))
	if err != nil {
		return nil, err
	}
	judges := []*Root{root}
	if before := s.live.newestRoot(); before < newest {
		old, err := readRootFile(fsys, rootFile(before))
		if err != nil {
			return nil, err
		}
		judges = append(judges, old)
	}
	out := []FileReport{}
	for _, file := range append(append([]string{rootFile(newest)}, s.next.documents()...), ManifestFileName) {
		by := judges[:1]
		if file == rootFile(newest) {
			by = judges // the root before it has to agree
		}
		reports, err := s.judge(dir, fsys, file, by)
		if err != nil {
			return nil, err
		}
		for _, r := range reports {
			if slices.Contains(changed, file) || r.Needs > 0 {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// judge reports on the signatures of one file under each root, and removes those
// that count under none. Old roots keep theirs: they were judged when they came.
func (s *stager) judge(dir string, fsys dirFS, file string, by []*Root) ([]FileReport, error) {
	keys := make([]map[string]Signer, len(by))
	for i, root := range by {
		var err error
		if keys[i], err = root.index(); err != nil {
			return nil, err
		}
	}
	valid, _ := signatures(fsys, file, s.next[file], s.opts.Load.Realm, s.opts.Load.Fleet, keys...)
	inForce := strings.HasPrefix(file, RootsFolder+"/") && s.live[file] != nil
	for _, name := range s.next.signaturesOf(file) {
		counts := slices.ContainsFunc(valid, func(v signature) bool { return name == file+sigSuffix+"/"+v.person+sigSuffix })
		if !counts && !inForce {
			if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				return nil, err
			}
		}
	}
	var out []FileReport
	for i, root := range by {
		l := loader{root: root}
		r := l.fileReport(file, root.GroupFor(file), sortedKeys(people(valid, keys[i])))
		r.Version, r.SHA256 = s.versionOf(file, root), digest(s.next[file])
		if i > 0 {
			r.Why = "the root before it has to agree"
		}
		out = append(out, r)
	}
	return out, nil
}

func (s *stager) versionOf(file string, root *Root) int64 {
	switch doc := newDocument(file).(type) {
	case *Root:
		return cmp.Or(s.next.newestRoot(), root.Version)
	case *Manifest:
		return s.next.manifest().Version
	default:
		if parseCanonical(file, s.next[file], doc) != nil {
			return 0
		}
		return headerOf(doc).Version
	}
}

// install puts the draft in the place of the staged folder.
func (s *stager) install(draft string) error {
	d, parent := realDisk(), filepath.Dir(s.staged)
	err := errors.Join(os.Chmod(draft, 0o755), d.syncTree(draft))
	switch {
	case err != nil:
		return err
	case !isFolder(s.staged):
		return errors.Join(d.rename(draft, s.staged), d.syncDir(parent))
	}
	err = d.exchange(draft, s.staged)
	if errors.Is(err, errors.ErrUnsupported) {
		// Between the two renames the work of people lies in the one that ends in
		// .old: it is not removed before the other is in place.
		err = errors.Join(d.rename(s.staged, draft+oldSuffix), d.rename(draft, s.staged))
		draft += oldSuffix
	}
	if err != nil {
		return err
	}
	return errors.Join(d.syncDir(parent), os.RemoveAll(draft))
}
