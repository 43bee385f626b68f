package shipped

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/runbooks"
	"golang.org/x/crypto/ssh"
)

// Files are the runbooks, and README.md.
//
//go:embed *.md
var Files embed.FS

// readme is written beside the runbooks, and is none.
const readme = "README.md"

// validUntil is the line of the front matter that is made anew for each folder: a
// runbook must not have expired in the program before it is first written.
var validUntil = regexp.MustCompile(`(?m)^valid_until: .*$`)

// Texts are the runbooks by file name, valid until the day of a time (UTC).
func Texts(until time.Time) (map[string][]byte, error) {
	names, err := runbooks.Names(Files)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(names))
	for _, name := range names {
		raw, err := fs.ReadFile(Files, name)
		if err != nil {
			return nil, err
		}
		at := validUntil.FindIndex(raw) // the first one: the front matter stands at the top
		if at == nil {
			return nil, fmt.Errorf("%s says nowhere until when it is valid", name)
		}
		out[name] = slices.Concat(raw[:at[0]], []byte("valid_until: "+until.UTC().Format(time.DateOnly)), raw[at[1]:])
	}
	return out, nil
}

// Signing is how a folder of runbooks is signed.
type Signing struct {
	Root    *policy.Root
	Signers map[string]ssh.Signer // by person; those who do not sign runbooks are left out
	Rand    io.Reader
	Realm   directive.Realm
	Fleet   string
}

// Write makes a folder with the texts, each signed by everybody in Signers whose
// signature counts, and with README.md. The folder must not be there yet: it is
// written beside and renamed, so that half of it is never there.
func Write(dir string, texts map[string][]byte, s Signing) (err error) {
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("write the runbooks: %w: %s", fs.ErrExist, dir)
	}
	draft, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".init-*")
	if err != nil {
		return fmt.Errorf("write the runbooks: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(draft) // the error that is told is the first one
		}
	}()
	about, err := fs.ReadFile(Files, readme)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(draft, readme), about, 0o644); err != nil {
		return fmt.Errorf("write the runbooks: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := os.WriteFile(filepath.Join(draft, name), texts[name], 0o644); err != nil {
			return fmt.Errorf("write the runbooks: %w", err)
		}
		if err := s.sign(draft, name, texts[name]); err != nil {
			return err
		}
	}
	if err := os.Chmod(draft, 0o755); err != nil {
		return fmt.Errorf("write the runbooks: %w", err)
	}
	return os.Rename(draft, dir)
}

func (s *Signing) sign(dir, name string, text []byte) error {
	group := runbooks.Group(s.Root)
	for _, person := range slices.Sorted(maps.Keys(s.Signers)) {
		if !s.Root.InGroup(group, person) {
			continue
		}
		if err := runbooks.SignFile(dir, name, person, text, s.Signers[person], s.Rand, s.Realm, s.Fleet); err != nil {
			return err
		}
	}
	return nil
}
