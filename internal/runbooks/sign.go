package runbooks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/untrusted"
	"github.com/google/renameio/v2"
	"golang.org/x/crypto/ssh"
)

// documentWord is the word of the SSHSIG namespace: ic-runbook-v1@<fleet>, and
// ic-drill-runbook-v1@<fleet> in a drill.
const documentWord = "runbook"

const sigSuffix = ".sig"

// maxSignatures bounds how many signature files of one runbook are looked at.
const maxSignatures = 64

// Namespace is the SSHSIG namespace in which runbooks of a fleet are signed.
func Namespace(realm directive.Realm, fleet string) string {
	return realm.Namespace(documentWord, fleet)
}

// SignState says what the signatures beside a runbook are worth.
type SignState string

// The states. Only a signed runbook runs against a real fleet.
const (
	Signed   SignState = "signed"   // the group has signed these very bytes
	Short    SignState = "short"    // signed by somebody, and the group wants more
	Changed  SignState = "changed"  // signed once, and changed since
	Unsigned SignState = "unsigned" // no signature that counts
)

// Signature is what is known of the signatures of one runbook.
type Signature struct {
	State   SignState `json:"state"`
	Group   string    `json:"group"`             // who has to sign
	By      []string  `json:"by"`                // people of whom a signature over these bytes counts
	Changed []string  `json:"changed,omitempty"` // people who have signed other bytes
	Why     string    `json:"why,omitempty"`     // one sentence when it is not signed
	Notes   []string  `json:"notes,omitempty"`   // signature files that do not count
}

// Group is the group that signs runbooks: the one that signs the matrix of
// rights, for a runbook says when its rows are used; where a trust root has no
// such domain, the one that publishes.
func Group(root *policy.Root) string {
	if rule, ok := root.Domains[policy.Rights]; ok {
		return rule.Group
	}
	return root.Publish
}

// Judge reads <file>.sig/ beside a runbook and verifies what stands there over
// its bytes, under the keys of a policy in force.
func Judge(fsys fs.FS, file string, content []byte, b *policy.Bundle, realm directive.Realm, fleet string) Signature {
	out := Signature{State: Unsigned, Group: Group(b.Root), By: []string{}}
	entries, err := fs.ReadDir(fsys, file+sigSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		out.Notes = append(out.Notes, untrusted.Text(fmt.Sprintf("signatures of %s cannot be read: %v", file, err), maxText))
	}
	if len(entries) > maxSignatures {
		out.Notes = append(out.Notes, fmt.Sprintf("%d signature files; the first %d are looked at", len(entries), maxSignatures))
		entries = entries[:maxSignatures]
	}
	counted := make(map[string]bool)
	for _, entry := range entries {
		person, ok := strings.CutSuffix(entry.Name(), sigSuffix)
		name := untrusted.Text(entry.Name(), maxText)
		if !ok || !directive.Name(person) {
			out.Notes = append(out.Notes, name+" is ignored: signature files are named <person>.sig")
			continue
		}
		switch matches, err := verify(fsys, file+sigSuffix+"/"+entry.Name(), person, content, b, Namespace(realm, fleet)); {
		case err != nil:
			out.Notes = append(out.Notes, untrusted.Text(fmt.Sprintf("%s does not count: %v", name, err), maxText))
		case !matches:
			out.Changed = append(out.Changed, person)
		default:
			counted[person] = true
			out.By = append(out.By, person)
		}
	}
	slices.Sort(out.By)
	return out.settle(b.Root.Satisfied(out.Group, counted))
}

// settle draws the conclusion.
func (s Signature) settle(satisfied bool) Signature {
	switch {
	case satisfied:
		s.State = Signed
	case len(s.Changed) > 0:
		s.State, s.Why = Changed, fmt.Sprintf("it is not what %s signed: it was changed since, or signed for another fleet; look at it and sign again", strings.Join(s.Changed, ", "))
	case len(s.By) > 0:
		s.State, s.Why = Short, fmt.Sprintf("%s has signed, and the group %s wants more", strings.Join(s.By, ", "), s.Group)
	default:
		s.Why = fmt.Sprintf("nobody of the group %s has signed it", s.Group)
	}
	return s
}

// verify reports whether a signature file holds this person's signature over
// content. An error means that it is nobody's.
func verify(fsys fs.FS, path, person string, content []byte, b *policy.Bundle, namespace string) (matches bool, err error) {
	armored, err := ReadFile(fsys, path, sshsig.MaxArmor)
	if err != nil {
		return false, err
	}
	blob, err := sshsig.Unarmor(armored)
	if err != nil {
		return false, err
	}
	sig, err := sshsig.Parse(blob, sshsig.ForPolicy)
	if err != nil {
		return false, err
	}
	owner, ok := b.SignerOf(sig.Fingerprint)
	switch {
	case !ok || owner.Machine || owner.Name != person:
		return false, fmt.Errorf("the key %s is not %s's in the trust root", sig.Fingerprint, person)
	case owner.Revoked:
		return false, fmt.Errorf("the key %s of %s is revoked", sig.Fingerprint, person)
	}
	return sig.Verify(content, namespace) == nil, nil
}

// SignFile signs the exact bytes of a file in the folder dir as person, and
// writes <file>.sig/<person>.sig. rand is used by ECDSA and RSA keys.
func SignFile(dir, file, person string, content []byte, signer ssh.Signer, rand io.Reader, realm directive.Realm, fleet string) error {
	sig, err := sshsig.Sign(signer, rand, content, Namespace(realm, fleet))
	if err != nil {
		return fmt.Errorf("sign %s: %w", file, err)
	}
	folder := filepath.Join(dir, file+sigSuffix)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("sign %s: %w", file, err)
	}
	// A signature is public: others read it under another user.
	if err := renameio.WriteFile(filepath.Join(folder, person+sigSuffix), sshsig.Armor(sig.Blob), 0o644); err != nil {
		return fmt.Errorf("sign %s: %w", file, err)
	}
	return nil
}

// ReadFile reads a file of at most limit bytes, and one byte more of a longer
// one: Parse then says that it is too long, with the place.
func ReadFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing can be lost
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// Names lists the runbooks of a folder, sorted: every file *.md but README.md.
func Names(fsys fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() && strings.HasSuffix(name, markdownExt) && !strings.HasPrefix(name, ".") && name != "README"+markdownExt {
			out = append(out, name)
		}
	}
	return out, nil
}
