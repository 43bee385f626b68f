package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

// SignFile signs a file of the policy folder dir as person and writes
// <file>.sig/<person>.sig. It refuses a file that is not canonical, and a key
// that no root in the folder lists for that person. rand is used by ECDSA and
// RSA keys.
func SignFile(dir, file, person string, signer ssh.Signer, rand io.Reader, realm directive.Realm, fleet string) error {
	content, keys, err := readForSigning(dir, file, fleet)
	if err != nil {
		return fmt.Errorf("sign %s: %w", file, err)
	}
	if !ownedBy(keys, ssh.FingerprintSHA256(signer.PublicKey()), person) {
		return fmt.Errorf("sign %s: the key %s is not %s's in the trust root; use the key that the root lists, or change the root first",
			file, ssh.FingerprintSHA256(signer.PublicKey()), person)
	}
	sig, err := sshsig.Sign(signer, rand, content, realm.Namespace(documentWord(file), fleet))
	if err != nil {
		return fmt.Errorf("sign %s: %w", file, err)
	}
	return writeSignature(dir, file, person, sshsig.Armor(sig.Blob))
}

// AddDetached puts a signature that was made elsewhere, for example with
// ssh-keygen -Y sign, in its place, after verifying it as Load would.
func AddDetached(dir, file, person string, armored []byte, realm directive.Realm, fleet string) error {
	content, keys, err := readForSigning(dir, file, fleet)
	if err != nil {
		return fmt.Errorf("add a signature to %s: %w", file, err)
	}
	if _, err := verifySignature(person, armored, content, realm.Namespace(documentWord(file), fleet), keys); err != nil {
		return fmt.Errorf("add a signature to %s: %w", file, err)
	}
	return writeSignature(dir, file, person, armored)
}

// SigningKeys lists the fingerprints with which person may sign a file of the
// policy folder dir, so that a caller with several keys at hand offers the right
// one. It judges no signature.
func SigningKeys(dir, file, person, fleet string) ([]string, error) {
	_, roots, err := readForSigning(dir, file, fleet)
	if err != nil {
		return nil, fmt.Errorf("look for the keys of %s: %w", person, err)
	}
	out := make(map[string]bool)
	for _, keys := range roots {
		for fingerprint := range keys {
			if ownedBy(roots, fingerprint, person) {
				out[fingerprint] = true
			}
		}
	}
	return sortedKeys(out), nil
}

func ownedBy(roots []map[string]Signer, fingerprint, person string) bool {
	for _, keys := range roots {
		if owner, ok := keys[fingerprint]; ok && owner.Name == person && !owner.Machine && !owner.Revoked {
			return true
		}
	}
	return false
}

// readForSigning reads a file that is canonical and for this fleet, and the keys
// of the roots whose people may sign it: the newest, and for a root also the one
// before it.
func readForSigning(dir, file, fleet string) ([]byte, []map[string]Signer, error) {
	fsys, err := openDir(dir)
	if err != nil {
		return nil, nil, err
	}
	content, keys, err := forSigning(fsys, file, fleet)
	return content, keys, errors.Join(err, fsys.Close())
}

func forSigning(fsys fs.FS, file, fleet string) ([]byte, []map[string]Signer, error) {
	content, err := readFile(fsys, file, MaxDocument)
	if err != nil {
		return nil, nil, err
	}
	doc := newDocument(file)
	if err := parseCanonical(file, content, doc); err != nil {
		return nil, nil, err
	}
	if got := fleetOf(doc); got != fleet {
		return nil, nil, fmt.Errorf("it is for fleet %q, this is %q", got, fleet)
	}
	root, err := newestRoot(fsys)
	if err != nil {
		return nil, nil, err
	}
	roots := []*Root{root}
	if signed, ok := doc.(*Root); ok {
		roots = []*Root{signed}
		if signed.Version > 1 {
			before, err := readRootFile(fsys, rootFile(signed.Version-1))
			if err != nil {
				return nil, nil, err
			}
			roots = append(roots, before)
		}
	}
	keys := make([]map[string]Signer, len(roots))
	for i, r := range roots {
		if keys[i], err = r.index(); err != nil {
			return nil, nil, err
		}
	}
	return content, keys, nil
}

func fleetOf(doc any) string {
	switch d := doc.(type) {
	case *Root:
		return d.Fleet
	case *Manifest:
		return d.Fleet
	}
	return headerOf(doc).Fleet
}

// NewestRoot reads the last root of a policy folder without judging its
// signatures: for preparing files to sign, never for obeying.
func NewestRoot(dir string) (*Root, error) {
	fsys, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	root, err := newestRoot(fsys)
	return root, errors.Join(err, fsys.Close())
}

// newestRoot reads the last root of a folder without judging its signatures:
// good enough to tell somebody that he is about to sign with the wrong key, and
// for nothing else.
func newestRoot(fsys fs.FS) (*Root, error) {
	return readRootFile(fsys, newestRootFile(fsys))
}

func newestRootFile(fsys fs.FS) string {
	last := rootFile(1)
	for version := int64(2); version <= maxRoots; version++ {
		if _, err := fs.Stat(fsys, rootFile(version)); err != nil {
			break
		}
		last = rootFile(version)
	}
	return last
}

func readRootFile(fsys fs.FS, file string) (*Root, error) {
	raw, err := readFile(fsys, file, MaxDocument)
	if err != nil {
		return nil, fmt.Errorf("read the trust root: %w", err)
	}
	root := new(Root)
	if err := parseCanonical(file, raw, root); err != nil {
		return nil, err
	}
	return root, root.Validate()
}

func writeSignature(dir, file, person string, armored []byte) error {
	folder := filepath.Join(dir, filepath.FromSlash(file)+sigSuffix)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return replaceFile(filepath.Join(folder, person+sigSuffix), armored)
}

// BuildManifest prints the canonical manifest of the domain documents that lie
// in dir and of its newest root. It writes nothing.
func BuildManifest(dir string, version int64) ([]byte, error) {
	fsys, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	out, err := buildManifest(fsys, version)
	return out, errors.Join(err, fsys.Close())
}

func buildManifest(fsys fs.FS, version int64) ([]byte, error) {
	root, err := newestRoot(fsys)
	if err != nil {
		return nil, err
	}
	m := Manifest{V: 1, Fleet: root.Fleet, Version: version, Files: map[string]ManifestFile{}}
	pin := func(file string, version int64) error {
		raw, err := readFile(fsys, file, MaxDocument)
		if err != nil {
			return err
		}
		m.Files[file] = ManifestFile{Version: version, SHA256: digest(raw)}
		return nil
	}
	if err := pin(rootFile(root.Version), root.Version); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		file := entry.Name()
		if _, ok := domainOf(file); !ok || strings.HasPrefix(file, ".") {
			continue
		}
		raw, err := readFile(fsys, file, MaxDocument)
		if err != nil {
			return nil, err
		}
		doc := newDocument(file)
		if err := parseCanonical(file, raw, doc); err != nil {
			return nil, err
		}
		if err := pin(file, headerOf(doc).Version); err != nil {
			return nil, err
		}
	}
	return Canonical(&m), nil
}
