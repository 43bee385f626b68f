package templates

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy"
	"golang.org/x/crypto/ssh"
)

// Signing is how a folder is signed: by whom, in which realm, for which fleet.
// The manifest gets Version.
type Signing struct {
	Signers map[string]ssh.Signer // by person
	Rand    io.Reader
	Realm   directive.Realm
	Fleet   string
	Version int64
}

// Sign writes files into dir, signs each with everybody in Signers who belongs to
// the group that has to, and adds a signed manifest. It returns the SHA-256 of
// the first root, which configurations pin.
func Sign(dir string, files map[string][]byte, s Signing) (rootSHA256 string, err error) {
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err := write(dir, file, files[file]); err != nil {
			return "", err
		}
	}
	root, err := policy.NewestRoot(dir)
	if err != nil {
		return "", err
	}
	manifest, err := policy.BuildManifest(dir, s.Version)
	if err != nil {
		return "", err
	}
	if err := write(dir, policy.ManifestFileName, manifest); err != nil {
		return "", err
	}
	for _, file := range append(slices.Sorted(maps.Keys(files)), policy.ManifestFileName) {
		for _, person := range slices.Sorted(maps.Keys(s.Signers)) {
			if !root.InGroup(root.GroupFor(file), person) {
				continue
			}
			if err := policy.SignFile(dir, file, person, s.Signers[person], s.Rand, s.Realm, s.Fleet); err != nil {
				return "", err
			}
		}
	}
	first, err := os.ReadFile(filepath.Join(dir, "roots", "1.yaml"))
	if err != nil {
		return "", fmt.Errorf("read the first root: %w", err)
	}
	sum := sha256.Sum256(first)
	return hex.EncodeToString(sum[:]), nil
}

func write(dir, file string, content []byte) error {
	path := filepath.Join(dir, filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
