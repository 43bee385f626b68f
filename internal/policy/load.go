package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

// LoadOptions say which policy is meant and what has been obeyed before.
type LoadOptions struct {
	Fleet      string
	RootSHA256 string // SHA-256, in hex, of roots/1.yaml: pinned in the configuration
	Realm      directive.Realm
	State      *Highest  // nil: nothing has been obeyed yet
	Now        time.Time // only Inspect counts days with it; Load consults no time
}

// ErrManifest is wrapped by every error about the manifest: without a valid one
// nothing loads.
var ErrManifest = errors.New("manifest is not valid")

// Load reads a policy folder, verifies every signature and joins what the right
// people signed. An error means that nothing of the folder may be obeyed. A
// domain that falls short is not an error: it is inactive, Bundle.Domains says
// why, and everything else stays in force.
//
// The caller keeps the returned Highest and passes it to the next Load.
func Load(fsys fs.FS, opts LoadOptions) (*Bundle, Highest, error) {
	l := loader{fsys: fsys, opts: opts}
	b, err := l.load()
	if err != nil {
		return nil, Highest{}, err
	}
	return b, l.highest, nil
}

// LoadDir is Load for a folder on disk. Inside it symbolic links are refused.
func LoadDir(dir string, opts LoadOptions) (*Bundle, Highest, error) {
	fsys, err := openDir(dir)
	if err != nil {
		return nil, Highest{}, err
	}
	b, h, err := Load(fsys, opts)
	return b, h, errors.Join(err, fsys.Close())
}

// loader is one pass over a folder. Load keeps its bundle, Inspect what it
// noticed on the way.
type loader struct {
	fsys fs.FS
	opts LoadOptions

	roots    []RootReport
	root     *Root
	rootMark Mark
	keys     map[string]Signer // of the newest root

	manifest        Manifest
	manifestMark    Mark
	manifestSigners []string

	states  map[Domain]DomainState
	docs    Documents
	notes   []string
	highest Highest
}

func (l *loader) load() (*Bundle, error) {
	if l.opts.State != nil && l.opts.State.Fleet != l.opts.Fleet {
		return nil, fmt.Errorf("the remembered versions are of fleet %q, this is %q", l.opts.State.Fleet, l.opts.Fleet)
	}
	if err := l.loadRoots(); err != nil {
		return nil, err
	}
	if err := l.loadManifest(); err != nil {
		return nil, err
	}
	if err := l.checkRollback(); err != nil {
		return nil, err
	}
	l.loadDomains()
	l.crossCheck()
	ref := model.PolicyRef{Version: l.manifest.Version, Digest: l.manifestMark.SHA256}
	b, err := NewBundle(l.root, ref, l.states, l.docs)
	if err != nil {
		return nil, err
	}
	active := make(map[Domain]Mark)
	for domain, state := range l.states {
		if state.Active {
			active[domain] = Mark(l.manifest.Files[fileOf(domain)])
		}
	}
	l.highest = l.opts.State.after(l.opts.Fleet, l.rootMark, l.manifestMark, active)
	return b, nil
}

func fileOf(d Domain) string { return string(d) + yamlSuffix }

func rootFile(version int64) string {
	return RootsFolder + "/" + strconv.FormatInt(version, 10) + yamlSuffix
}

// loadManifest wants the signatures of the group that the newest root names for
// publishing, and that the newest root is at least the one it was made under:
// otherwise cutting off the last root would bring revoked keys back.
func (l *loader) loadManifest() error {
	raw, err := readFile(l.fsys, ManifestFileName, MaxDocument)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrManifest, err)
	}
	valid, notes := signatures(l.fsys, ManifestFileName, raw, l.opts.Realm, l.opts.Fleet, l.keys)
	l.notes = append(l.notes, notes...)
	signed := people(valid, l.keys)
	if !l.root.Satisfied(l.root.Publish, signed) {
		return fmt.Errorf("%w: %s: %s", ErrManifest, ManifestFileName, lacking(l.root, l.root.Publish, signed))
	}
	l.manifestSigners = sortedKeys(signed)
	if err := parseCanonical(ManifestFileName, raw, &l.manifest); err != nil {
		return fmt.Errorf("%w: %w", ErrManifest, err)
	}
	m := &l.manifest
	if m.Version < 1 || m.Fleet != l.opts.Fleet {
		return fmt.Errorf("%w: %s: version is at least 1, fleet %q; it says version %d, fleet %q",
			ErrManifest, ManifestFileName, l.opts.Fleet, m.Version, m.Fleet)
	}
	l.manifestMark = Mark{Version: m.Version, SHA256: digest(raw)}
	return l.manifestNamesRoot()
}

func (l *loader) manifestNamesRoot() error {
	named := 0
	for _, file := range sortedKeys(l.manifest.Files) {
		if !strings.HasPrefix(file, RootsFolder+"/") {
			if domain, ok := domainOf(file); !ok || !directive.Name(string(domain)) {
				return fmt.Errorf("%w: it lists %q, which is no file of a policy", ErrManifest, file)
			}
			continue
		}
		named++
		pin := l.manifest.Files[file]
		if file != rootFile(pin.Version) || pin.Version < 1 || pin.Version > int64(len(l.roots)) || l.roots[pin.Version-1].SHA256 != pin.SHA256 {
			return fmt.Errorf("%w: it was made under %s, which is not among the roots here; get all files of roots/", ErrManifest, file)
		}
	}
	if named != 1 {
		return fmt.Errorf("%w: it names %d roots, it has to name the one it was made under", ErrManifest, named)
	}
	return nil
}

// domainOf is the domain that a file of the folder's top holds.
func domainOf(file string) (Domain, bool) {
	name, ok := strings.CutSuffix(file, yamlSuffix)
	return Domain(name), ok && file != ManifestFileName
}

func (l *loader) checkRollback() error {
	seen := l.opts.State
	if seen == nil {
		return nil
	}
	if err := seen.Root.notBelow(rootFile(l.rootMark.Version), l.rootMark); err != nil {
		return err
	}
	if err := seen.Manifest.notBelow(ManifestFileName, l.manifestMark); err != nil {
		return err
	}
	for _, domain := range sortedKeys(seen.Domains) {
		if entry, ok := l.manifest.Files[fileOf(domain)]; ok {
			if err := seen.Domains[domain].notBelow(fileOf(domain), Mark(entry)); err != nil {
				return err
			}
		}
	}
	return nil
}
