package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Limits of a folder that is copied: 256 domains, 1,024 roots, and 64 signatures
// of each are far below.
const (
	maxTreeFiles = 16 << 10
	maxTreeBytes = 256 << 20
)

// tree is all files of a folder by their name in it.
type tree map[string][]byte

// readTree reads a folder. Links are refused as everywhere in a policy, and so is
// a repository of its own: swapping the folder would swap its history.
func readTree(dir string) (tree, error) {
	fsys, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	out, total := tree{}, 0
	err = fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path.Base(name) == ".git":
			return fmt.Errorf("%s is a repository of its own; keep the policy in a folder below it, which staging can swap", dir)
		case entry.IsDir():
			return nil
		}
		raw, err := readFile(fsys, name, MaxDocument)
		if err != nil {
			return err
		}
		out[name] = raw
		if total += len(raw); len(out) > maxTreeFiles || total > maxTreeBytes {
			return fmt.Errorf("%s holds more than %d files or %d bytes; a policy folder holds a policy", dir, maxTreeFiles, maxTreeBytes)
		}
		return nil
	})
	if err = errors.Join(err, fsys.Close()); err != nil {
		return nil, fmt.Errorf("read the policy folder: %w", err)
	}
	return out, nil
}

// write writes the files into a folder that is new.
func (t tree) write(dir string) error {
	for _, name := range sortedKeys(t) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, t[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// documents lists the domain documents: the files at the top that end in .yaml.
func (t tree) documents() []string {
	var out []string
	for _, name := range sortedKeys(t) {
		if isDocument(name) {
			out = append(out, name)
		}
	}
	return out
}

func isDocument(name string) bool {
	_, ok := domainOf(name)
	return ok && !strings.Contains(name, "/") && !strings.HasPrefix(name, ".")
}

// newestRoot is the number of the last root of the chain; 0 without one.
func (t tree) newestRoot() int64 {
	version := int64(0)
	for version < maxRoots && t[rootFile(version+1)] != nil {
		version++
	}
	return version
}

// signaturesOf lists the files in <file>.sig/.
func (t tree) signaturesOf(file string) []string {
	var out []string
	for _, name := range sortedKeys(t) {
		if strings.HasPrefix(name, file+sigSuffix+"/") {
			out = append(out, name)
		}
	}
	return out
}

// takeSignatures adds the signatures of a file that another tree has.
func (t tree) takeSignatures(file string, from tree) {
	for _, name := range from.signaturesOf(file) {
		t[name] = from[name]
	}
}

// dropSignatures removes everything that is said to sign a file.
func (t tree) dropSignatures(file string) {
	for _, name := range t.signaturesOf(file) {
		delete(t, name)
	}
}

// manifest reads the manifest without judging its signatures; the zero value when
// there is none that can be read.
func (t tree) manifest() Manifest {
	var m Manifest
	if parseCanonical(ManifestFileName, t[ManifestFileName], &m) != nil {
		return Manifest{}
	}
	return m
}
