package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// maxRoots bounds the chain: one new root a week for twenty years.
const maxRoots = 1024

// RootReport is one link of the chain of trust roots.
type RootReport struct {
	Version int64     `json:"version"`
	SHA256  string    `json:"sha256"`
	Expires time.Time `json:"expires"`
	Signers []string  `json:"signers"` // people whose signatures count under this root
}

// loadRoots walks the chain from the pinned first root. Every root is signed by
// its own root group, and every later one by that of its predecessor too. A root
// that has expired is still followed: it must not block its own successor.
func (l *loader) loadRoots() error {
	var previous *Root
	var previousKeys map[string]Signer
	for version := int64(1); version <= maxRoots; version++ {
		file := rootFile(version)
		raw, err := readFile(l.fsys, file, MaxDocument)
		if errors.Is(err, fs.ErrNotExist) && version > 1 {
			return l.noLaterRoot(version)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRoot, err)
		}
		root, keys, report, err := l.readRoot(file, raw, version, previous, previousKeys)
		if err != nil {
			return err
		}
		l.roots = append(l.roots, report)
		l.root, l.keys, l.rootMark = root, keys, Mark{Version: version, SHA256: report.SHA256}
		previous, previousKeys = root, keys
	}
	return fmt.Errorf("%w: more than %d roots", ErrRoot, maxRoots)
}

func (l *loader) readRoot(file string, raw []byte, version int64, previous *Root, previousKeys map[string]Signer) (*Root, map[string]Signer, RootReport, error) {
	report := RootReport{Version: version, SHA256: digest(raw)}
	if version == 1 && report.SHA256 != l.opts.RootSHA256 {
		return nil, nil, report, fmt.Errorf("%w: %s has the SHA-256 %s, pinned is %s; one of the two is of another fleet or was changed",
			ErrRoot, file, report.SHA256, l.opts.RootSHA256)
	}
	root := new(Root)
	if err := parseCanonical(file, raw, root); err != nil {
		return nil, nil, report, fmt.Errorf("%w: %w", ErrRoot, err)
	}
	if err := root.Validate(); err != nil {
		return nil, nil, report, fmt.Errorf("%s: %w", file, err)
	}
	if root.Fleet != l.opts.Fleet || root.Version != version {
		return nil, nil, report, fmt.Errorf("%w: %s says fleet %q, version %d; it has to be fleet %q, version %d",
			ErrRoot, file, root.Fleet, root.Version, l.opts.Fleet, version)
	}
	keys, err := root.index()
	if err != nil {
		return nil, nil, report, err
	}
	valid, notes := signatures(l.fsys, file, raw, l.opts.Realm, l.opts.Fleet, keys, previousKeys)
	l.notes = append(l.notes, notes...)
	signed := people(valid, keys)
	if !root.Satisfied(root.Root, signed) {
		return nil, nil, report, fmt.Errorf("%w: %s: its own group %s", ErrRoot, file, lacking(root, root.Root, signed))
	}
	if previous != nil {
		before := people(valid, previousKeys)
		if !previous.Satisfied(previous.Root, before) {
			return nil, nil, report, fmt.Errorf("%w: %s: of the root before it, group %s", ErrRoot, file, lacking(previous, previous.Root, before))
		}
	}
	report.Expires, report.Signers = root.Expires, sortedKeys(signed)
	return root, keys, report, nil
}

// noLaterRoot makes sure that the chain ends where the files end: a gap would
// hide every root behind it.
func (l *loader) noLaterRoot(missing int64) error {
	entries, err := fs.ReadDir(l.fsys, RootsFolder)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRoot, err)
	}
	for _, entry := range entries {
		number, yes := strings.CutSuffix(entry.Name(), yamlSuffix)
		if version, err := strconv.ParseInt(number, 10, 64); yes && err == nil && version > missing {
			return fmt.Errorf("%w: %s is missing and %s is there; get all files of %s/", ErrRoot, rootFile(missing), rootFile(version), RootsFolder)
		}
	}
	return nil
}
