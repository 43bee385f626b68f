package breakglass

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Foreign is a backend that is not bundled, as the signed policy pins it.
type Foreign struct {
	Path   string // absolute
	SHA256 string // of the file, in hex
}

// program is what will be executed. Files are passed on as descriptors 3, 4, …
type program struct {
	path  string
	name  string // argv[0]
	args  []string
	files []*os.File
}

func (p program) argv() []string { return append([]string{p.name}, p.args...) }

func (p program) close() {
	for _, f := range p.files {
		f.Close()
	}
}

// openForeign opens the file once and checks what it has opened: the answer is
// about this descriptor, whatever the path leads to by now.
func openForeign(f Foreign) (*os.File, error) {
	if !filepath.IsAbs(f.Path) {
		return nil, fmt.Errorf("path %q is not absolute", f.Path)
	}
	want, err := hex.DecodeString(f.SHA256)
	if err != nil || len(want) != sha256.Size {
		return nil, fmt.Errorf("the policy pins no SHA-256 for this platform (%q)", f.SHA256)
	}
	// A link would make two files of one name, a pipe would hold us.
	file, err := os.OpenFile(f.Path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link: name the file itself", f.Path)
	}
	if err != nil {
		return nil, err
	}
	if err := checkFile(file, want); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s %w", f.Path, err)
	}
	return file, nil
}

func checkFile(file *os.File, want []byte) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return errors.New("is not a regular file")
	case mode.Perm()&0o022 != 0:
		return fmt.Errorf("can be written by its group or by everybody (mode %04o): chmod go-w it", mode.Perm())
	case mode.Perm()&0o111 == 0:
		return fmt.Errorf("is not executable (mode %04o)", mode.Perm())
	case !known || owner.Uid != 0 && int(owner.Uid) != os.Geteuid():
		return errors.New("belongs to another user, who could change it")
	case info.Size() > maxProgram:
		return fmt.Errorf("has %d bytes, at most %d are a program", info.Size(), maxProgram)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(file, 0, info.Size())); err != nil {
		return err
	}
	if got := hash.Sum(nil); string(got) != string(want) {
		return fmt.Errorf("has SHA-256 %x, the policy pins %x: it is another program, or another version", got, want)
	}
	return nil
}
