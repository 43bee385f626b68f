package hostrun

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy"
)

// RememberFile is the name under which a host with a state folder keeps the
// versions of Policy.Remember there.
const RememberFile = "policy.json"

// Policy says where a host reads what it may believe, and by which pin it trusts
// it.
type Policy struct {
	Dir        string // the policy folder
	Fleet      string
	RootSHA256 string // SHA-256 of the first trust root, in hex
	Realm      directive.Realm
	// Remember is the file with the highest versions ever obeyed, so that an old
	// policy is not obeyed again; "" for a host that remembers nothing.
	Remember string
}

// PolicyError means that there is no policy that verifies, and that nothing else is
// known to be wrong.
type PolicyError struct{ Err error }

// Error implements error.
func (e *PolicyError) Error() string { return e.Err.Error() }

// Unwrap is why.
func (e *PolicyError) Unwrap() error { return e.Err }

// Load verifies the folder. A memory of versions that cannot be read does not
// keep a host from starting: it is left aside, and note says so.
func (p *Policy) Load() (b *policy.Bundle, note string, err error) {
	opts := policy.LoadOptions{Fleet: p.Fleet, RootSHA256: p.RootSHA256, Realm: p.Realm}
	if p.Remember != "" {
		if opts.State, err = policy.ReadHighest(p.Remember); err != nil {
			note = fmt.Sprintf("the memory of policy versions is not used: %v", err)
		}
	}
	b, highest, err := policy.LoadDir(p.Dir, opts)
	if err != nil {
		return nil, note, &PolicyError{fmt.Errorf("load the policy in %s: %w", p.Dir, err)}
	}
	if p.Remember != "" {
		if err := policy.WriteHighest(p.Remember, highest); err != nil {
			note = fmt.Sprintf("the policy versions cannot be remembered: %v", err)
		}
	}
	return b, note, nil
}

// stamp changes when a file of the folder does: its name, size or time. It is
// cheap enough to look at every few seconds; the verification is not.
func (p *Policy) stamp() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(os.DirFS(p.Dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has just gone; the next look sees the rest
		}
		if err == nil {
			fmt.Fprintf(sum, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("look at the policy in %s: %w", p.Dir, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
