//go:build !linux

package breakglass

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// pinned makes a program of a checked descriptor. Where a descriptor cannot be
// executed, it is a copy in our private folder, hashed as it was copied.
func pinned(file *os.File, f Foreign, dir string) (program, error) {
	defer file.Close()
	path := filepath.Join(dir, filepath.Base(file.Name()))
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return program{}, err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, hash), io.NewSectionReader(file, 0, maxProgram))
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err == nil && !strings.EqualFold(hex.EncodeToString(hash.Sum(nil)), f.SHA256) {
		err = errors.New("it changed while it was copied")
	}
	return program{path: path, name: filepath.Base(path)}, err
}
