package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/untrusted"
)

// maxSignatures bounds how many signature files of one document are looked at.
const maxSignatures = 64

// signature is one signature file that verified: the key is known to a root, the
// owner is the person whose name the file bears.
type signature struct {
	person      string
	fingerprint string
}

// documentWord is the word of the SSHSIG namespace for a file: a signature for a
// root never counts for a domain.
func documentWord(file string) string {
	switch {
	case file == ManifestFileName:
		return "manifest"
	case strings.HasPrefix(file, RootsFolder+"/"):
		return "root"
	default:
		return "policy"
	}
}

// readFile reads a file of a policy folder, up to limit bytes.
func readFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing can be lost
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return raw, nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// signatures reads <file>.sig/ and verifies what stands there over content. A
// signature that does not count is described in notes and changes nothing else.
// keys are those of the roots that will judge.
func signatures(fsys fs.FS, file string, content []byte, realm directive.Realm, fleet string, keys ...map[string]Signer) (valid []signature, notes []string) {
	entries, err := fs.ReadDir(fsys, file+sigSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []string{fmt.Sprintf("signatures of %s cannot be read: %v", file, err)}
	}
	if len(entries) > maxSignatures {
		notes = append(notes, fmt.Sprintf("%s has %d signature files; the first %d are looked at", file, len(entries), maxSignatures))
		entries = entries[:maxSignatures]
	}
	namespace := realm.Namespace(documentWord(file), fleet)
	for _, entry := range entries {
		name := file + sigSuffix + "/" + entry.Name()
		person, ok := strings.CutSuffix(entry.Name(), sigSuffix)
		if !ok || !directive.Name(person) {
			notes = append(notes, untrusted.Text(name, MaxText)+" is ignored: signature files are named <person>.sig")
			continue
		}
		armored, err := readFile(fsys, name, sshsig.MaxArmor)
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s is ignored: %v", name, err))
			continue
		}
		sig, err := verifySignature(person, armored, content, namespace, keys)
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s does not count: %v", name, err))
			continue
		}
		valid = append(valid, sig)
	}
	return valid, notes
}

// verifySignature wants the signature of a key that one of the roots lists for
// this very person.
func verifySignature(person string, armored, content []byte, namespace string, keys []map[string]Signer) (signature, error) {
	blob, err := sshsig.Unarmor(armored)
	if err != nil {
		return signature{}, err
	}
	sig, err := sshsig.Parse(blob, sshsig.ForPolicy)
	if err != nil {
		return signature{}, err
	}
	owned := slices.ContainsFunc(keys, func(root map[string]Signer) bool {
		owner, ok := root[sig.Fingerprint]
		return ok && owner.Name == person && !owner.Machine
	})
	if !owned {
		return signature{}, fmt.Errorf("the key %s is not %s's in the trust root", sig.Fingerprint, person)
	}
	if err := sig.Verify(content, namespace); err != nil {
		return signature{}, err
	}
	return signature{person: person, fingerprint: sig.Fingerprint}, nil
}

// people counts signatures under one root: keys that it knows for that person
// and has not revoked.
func people(valid []signature, keys map[string]Signer) map[string]bool {
	out := make(map[string]bool, len(valid))
	for _, s := range valid {
		if owner, ok := keys[s.fingerprint]; ok && owner.Name == s.person && !owner.Machine && !owner.Revoked {
			out[s.person] = true
		}
	}
	return out
}

// lacking says in words what a group still wants, such as
// "finance wants 2 of fiona, ravi; signed by fiona".
func lacking(root *Root, group string, signed map[string]bool) string {
	g := root.Groups[group]
	by := "nobody"
	if len(signed) > 0 {
		by = strings.Join(sortedKeys(signed), ", ")
	}
	return fmt.Sprintf("%s wants %d of %s; signed by %s", group, g.Any, strings.Join(g.Of, ", "), by)
}
