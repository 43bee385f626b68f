package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
)

// Mark is the newest version of a file that was in force, and its digest.
type Mark struct {
	Version int64  `json:"version"`
	SHA256  string `json:"sha256"`
}

// Highest is what a host or console remembers of every policy it has ever
// obeyed, so that an old file, however well signed, is never obeyed again. The
// caller keeps it on disk: what Load returns replaces it.
type Highest struct {
	V        int             `json:"v"`
	Fleet    string          `json:"fleet"`
	Root     Mark            `json:"root"`
	Manifest Mark            `json:"manifest"`
	Domains  map[Domain]Mark `json:"domains"`
}

// ErrRolledBack is wrapped by the error about a file that is older than one
// already obeyed, or that differs from it under the same version.
var ErrRolledBack = errors.New("rolled back")

// remembered is Highest as it stands in its file. Without the sum a bit that has
// flipped in a version or a digest would make an old file pass, or a current one be
// called old for ever.
type remembered struct {
	Highest
	Sum string `json:"sum,omitempty"` // see sum; not in a file of before there were sums
}

// sum is the SHA-256 of the JSON of h without spaces.
func (h Highest) sum() (string, error) {
	raw, err := json.Marshal(h)
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(raw)
	return hex.EncodeToString(digest[:]), nil
}

const (
	maxHighest   = 1 << 16 // bytes: 256 domains fit
	sha256HexLen = 64
)

// ReadHighest reads what WriteHighest wrote. It is nil without an error when
// there is no such file: nothing has been obeyed yet.
func ReadHighest(path string) (*Highest, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the highest policy versions: %w", err)
	}
	var h remembered
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err = dec.Decode(&h)
	sum, _ := h.sum()
	if err != nil || len(raw) > maxHighest || h.V != 1 || h.Sum != "" && h.Sum != sum {
		return nil, fmt.Errorf("%s does not hold the highest policy versions; restore it, or remove it if every file of this fleet's policy is known to be current", path)
	}
	return &h.Highest, nil
}

// WriteHighest replaces the file durably: after a crash the old or the new
// content is there, never a part.
func WriteHighest(path string, h Highest) error {
	sum, err := h.sum()
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(remembered{h, sum}, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(path, append(raw, '\n'))
}

// replaceFile writes a file beside path, syncs it, renames it over path and
// syncs the folder.
func replaceFile(path string, content []byte) (err error) {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = tmp.Write(content)
	// Policy is public data: hosts read it under another user.
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(dir)
	if err != nil {
		return nil // the file is in place; a folder that cannot be opened cannot be synced
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// notBelow refuses a file that this memory says is old or forged.
func (m Mark) notBelow(file string, seen Mark) error {
	switch {
	case seen.Version < m.Version:
		return fmt.Errorf("%s: %w: it is version %d, version %d was in force here; get the current files", file, ErrRolledBack, seen.Version, m.Version)
	case seen.Version == m.Version && seen.SHA256 != m.SHA256:
		return fmt.Errorf("%s: %w: version %d was in force here with other content; a change needs a new version", file, ErrRolledBack, seen.Version)
	}
	return nil
}

// after is the memory once b is in force: h may be nil. Versions never go down,
// and a domain that is not active leaves no mark.
func (h *Highest) after(fleet string, root, manifest Mark, active map[Domain]Mark) Highest {
	out := Highest{V: 1, Fleet: fleet, Root: root, Manifest: manifest, Domains: map[Domain]Mark{}}
	if h != nil {
		maps.Copy(out.Domains, h.Domains)
	}
	maps.Copy(out.Domains, active)
	return out
}
