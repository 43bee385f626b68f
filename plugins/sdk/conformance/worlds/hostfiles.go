package worlds

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/degradedmode/ic/plugins/sdk"
	"github.com/degradedmode/ic/plugins/sdk/conformance"
)

// manyFiles is how many hosts make a plan of watched files exceed 4 MiB.
const manyFiles = 300

// Open starts a backend with a configuration.
type Open func(t *testing.T, config map[string]string) sdk.Conn

// HostFiles makes worlds of a folder with one folder per host.
func HostFiles(open Open) func(t *testing.T) conformance.Subject {
	return func(t *testing.T) conformance.Subject { return hostFiles(t, open) }
}

func hostFiles(t *testing.T, open Open) conformance.Subject {
	dir := t.TempDir()
	hosts := []string{"edge-01", "checkout-01", "checkout-02", "catalog-01"}
	for _, h := range hosts {
		must(t, os.Mkdir(filepath.Join(dir, h), 0o755))
	}
	file := func(host string) string { return filepath.Join(dir, host, "ic.directives") }
	return conformance.Subject{
		Open:    func(t *testing.T) sdk.Conn { return open(t, map[string]string{"dir": dir}) },
		Targets: hosts,
		Many:    names(manyFiles),
		Read: func(t *testing.T, host string) string {
			text, err := os.ReadFile(file(host))
			if os.IsNotExist(err) {
				return ""
			}
			must(t, err)
			value, ends := strings.CutSuffix(string(text), "\n")
			if !ends && value != "somebody-elses" {
				t.Errorf("the file of %s does not end in a newline", host)
			}
			return value
		},
		Disturb: func(t *testing.T, host, value string) { must(t, os.WriteFile(file(host), []byte(value), 0o644)) },
		Touch: func(t *testing.T) func(t *testing.T) {
			other := filepath.Join(dir, hosts[0], "other.conf")
			must(t, os.WriteFile(other, []byte("a=1\r\nb = 2"), 0o600))
			was := stamp(t, other)
			return func(t *testing.T) {
				t.Helper()
				if now := stamp(t, other); now != was {
					t.Errorf("a file that is not ours was %s and is %s", was, now)
				}
			}
		},
		Snapshot: func(t *testing.T) string {
			var out strings.Builder
			must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					out.WriteString(stamp(t, path) + "\n")
				}
				return err
			}))
			return out.String()
		},
	}
}

// stamp identifies one state of one file: inode and times also differ when the
// same text is written again.
func stamp(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	return fmt.Sprintf("%s %x %s %d", filepath.Base(path), sha256.Sum256(text), info.ModTime(), info.Sys().(*syscall.Stat_t).Ino)
}

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("host-%05d-%s", i, strings.Repeat("x", 60))
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
