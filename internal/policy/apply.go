package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// ApplyOptions say by what the staged version is judged.
type ApplyOptions struct {
	Load          LoadOptions // the fleet, the pinned root, the realm and what was obeyed before
	AllowInactive []Domain    // domains that may be out of force afterwards, each by its name
}

// Applied is what Apply did.
type Applied struct {
	V        int          `json:"v"`
	From     int64        `json:"from"`     // version of the manifest that was in force; 0 when none could be read
	Version  int64        `json:"version"`  // version that is in force now
	Previous string       `json:"previous"` // the folder of the old one
	Changed  []string     `json:"changed"`  // domains with another version than before
	Inactive []FileReport `json:"inactive"` // domains that are not in force
	Notes    []string     `json:"notes"`
	Highest  Highest      `json:"-"` // to be remembered
}

// Errors of Apply that a caller decides on.
var (
	ErrNothingStaged = errors.New("nothing is staged")
	ErrNotForward    = errors.New("it does not go forward")
	ErrInactive      = errors.New("it would not be in force")
)

// Apply puts the staged version of the policy folder dir in the place of the live
// one and keeps that beside it, by its version.
//
// The staged folder is loaded as a host would load it: thresholds met, versions
// above everything that was in force, and no domain out of force unless it is
// allowed by name. A live policy that has expired or cannot be read does not stand
// in the way. Whenever it is killed, the old or the new policy is there as a whole;
// where a file system cannot swap two folders the next Recover puts it there.
func Apply(dir string, o ApplyOptions) (Applied, error) { return applyOn(realDisk(), dir, o) }

func applyOn(d disk, dir string, o ApplyOptions) (Applied, error) {
	p, err := placeOf(dir)
	if err != nil {
		return Applied{}, err
	}
	var out Applied
	err = p.whileLocked(d, func() error {
		if !isFolder(p.staged) {
			return fmt.Errorf("apply: %w: there is no %s", ErrNothingStaged, p.staged)
		}
		// From here on nobody who has the staged folder open by its name writes
		// into what is being judged.
		if err := d.rename(p.staged, p.next); err != nil {
			return fmt.Errorf("apply: %w", err)
		}
		var err error
		if out, err = p.judge(o); err != nil {
			return fmt.Errorf("apply %s: %w", p.staged, errors.Join(err, d.rename(p.next, p.staged)))
		}
		out.Previous, err = p.swap(d)
		if err != nil {
			return fmt.Errorf("apply %s: %w", p.staged, errors.Join(err, p.recover(d)))
		}
		return nil
	})
	return out, err
}

// judge loads what is live and what is next, and refuses what does not lead from
// one to the other.
func (p place) judge(o ApplyOptions) (Applied, error) {
	out := Applied{V: 1, Changed: []string{}, Inactive: []FileReport{}, Notes: []string{}}
	live, err := Inspect(p.live, o.Load)
	if errors.Is(err, fs.ErrNotExist) {
		return out, err
	}
	seen := o.Load
	switch {
	case err != nil:
		out.Notes = append(out.Notes, fmt.Sprintf("the policy in force cannot be read and does not count: %v", err))
	case live.Error != "":
		out.Notes = append(out.Notes, "the policy in force may not be obeyed and does not count: "+live.Error)
	default:
		out.From, seen.State = live.Manifest.Version, &live.Highest
	}
	next, err := Inspect(p.next, seen)
	if err != nil {
		return out, err
	}
	if next.Error != "" {
		_, _, err := LoadDir(p.next, seen) // for the error itself
		return out, cmp.Or(err, errors.New(next.Error))
	}
	if out.From >= next.Manifest.Version {
		return out, fmt.Errorf("%w: version %d is in force, version %d is staged; stage it again", ErrNotForward, out.From, next.Manifest.Version)
	}
	out.Version, out.Highest = next.Manifest.Version, next.Highest
	out.Notes = append(out.Notes, next.Notes...)
	return out, out.compare(live.Domains, next.Domains, o.AllowInactive)
}

// compare wants every domain in force that is or was to be: what is out of force
// already, in that very version, may stay so.
func (a *Applied) compare(live, next []FileReport, allowed []Domain) error {
	find := func(in []FileReport, file string) (FileReport, bool) {
		i := slices.IndexFunc(in, func(r FileReport) bool { return r.File == file })
		if i < 0 {
			return FileReport{}, false
		}
		return in[i], true
	}
	var failed []error
	fall := func(r FileReport) {
		a.Inactive = append(a.Inactive, r)
		domain, _ := domainOf(r.File)
		if !slices.Contains(allowed, domain) {
			failed = append(failed, fmt.Errorf("%s: %w: %s", r.File, ErrInactive, r.Why))
		}
	}
	for _, r := range next {
		before, known := find(live, r.File)
		if r.Version != before.Version {
			a.Changed = append(a.Changed, r.File)
		}
		switch {
		case r.Active:
		case known && !before.Active && before.Version == r.Version && before.SHA256 == r.SHA256:
			a.Inactive = append(a.Inactive, r) // as before
		default:
			fall(r)
		}
	}
	for _, before := range live {
		if _, there := find(next, before.File); before.Active && !there {
			fall(FileReport{File: before.File, Signed: []string{}, Missing: []string{}, Why: "it is not in the staged folder"})
		}
	}
	return errors.Join(failed...)
}

// swap makes next live and keeps the old folder. It returns where.
func (p place) swap(d disk) (string, error) {
	if err := os.Remove(filepath.Join(p.next, baseFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.MkdirAll(p.previous, 0o755); err != nil {
		return "", err
	}
	if err := errors.Join(d.syncTree(p.next), d.syncDir(filepath.Dir(p.live))); err != nil {
		return "", err
	}
	err := d.exchange(p.next, p.live)
	if errors.Is(err, errors.ErrUnsupported) {
		return p.swapByTwo(d)
	}
	if err != nil {
		return "", err
	}
	if err := d.syncDir(filepath.Dir(p.live)); err != nil {
		return "", err
	}
	return p.keepOld(d, p.next)
}

// swapByTwo is for file systems that cannot swap. Between its renames there is no
// live folder, and whoever loads finds none; Recover finishes it.
func (p place) swapByTwo(d disk) (string, error) {
	kept, err := p.keepOld(d, p.live)
	if err != nil {
		return "", err
	}
	return kept, errors.Join(d.rename(p.next, p.live), d.syncDir(filepath.Dir(p.live)))
}

// maxKept bounds how many folders of one version are kept: a version is in force
// twice only after a broken folder has been replaced.
const maxKept = 64

// keepOld moves a folder that was in force to where old versions are.
func (p place) keepOld(d disk, from string) (string, error) {
	name := strconv.FormatInt(manifestVersion(from), 10)
	for n := 1; n <= maxKept; n++ {
		to := filepath.Join(p.previous, name)
		if n > 1 {
			to += "-" + strconv.Itoa(n)
		}
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return to, errors.Join(d.rename(from, to), d.syncDir(p.previous), d.syncDir(filepath.Dir(p.live)))
	}
	return "", fmt.Errorf("%s holds version %s %d times already; remove some", p.previous, name, maxKept)
}

// manifestVersion is what a folder says of itself, to name it by; 0 when it cannot
// be read. Nothing is obeyed because of it.
func manifestVersion(dir string) int64 {
	fsys, err := openDir(dir)
	if err != nil {
		return 0
	}
	defer fsys.Close() // read only: nothing can be lost
	raw, err := readFile(fsys, ManifestFileName, MaxDocument)
	if err != nil {
		return 0
	}
	return tree{ManifestFileName: raw}.manifest().Version
}

// Recover finishes or takes back what an Apply that was killed has left behind. It
// is for whoever finds no policy folder; Stage and Apply do it by themselves.
func Recover(dir string) error {
	p, err := placeOf(dir)
	if err != nil || !isFolder(p.next) {
		return err
	}
	return p.whileLocked(realDisk(), func() error { return nil })
}

func (p place) recover(d disk) error {
	if !isFolder(p.next) {
		return nil
	}
	parent := filepath.Dir(p.live)
	switch {
	case !isFolder(p.live):
		// It was judged before the live folder was moved away.
		return errors.Join(d.rename(p.next, p.live), d.syncDir(parent))
	case manifestVersion(p.next) < manifestVersion(p.live):
		// The swap is done; this is the old one.
		if err := os.MkdirAll(p.previous, 0o755); err != nil {
			return err
		}
		_, err := p.keepOld(d, p.next)
		return err
	case isFolder(p.staged):
		return fmt.Errorf("%s and %s are both there, and one of them is not of ic: move one away", p.next, p.staged)
	}
	return errors.Join(d.rename(p.next, p.staged), d.syncDir(parent))
}
