package worlds

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/degradedmode/ic/plugins/sdk"
	"github.com/degradedmode/ic/plugins/sdk/conformance"
)

const (
	// EnvFile is the environment file of the repository, Branch its branch.
	EnvFile = "fleet/ic.env"
	Branch  = "main"

	// EnvText is what the file holds at first, with line endings of both kinds and
	// no newline at its end.
	EnvText = "A=1\r\n# a comment\nB=two words"

	manyNames = 65_000 // host names that make one plan exceed 4 MiB
)

// Repository is a bare repository that a pipeline would watch, and the clone of
// somebody who works with it.
type Repository struct{ Bare, Clone string }

// NewRepository makes one with a first commit.
func NewRepository(t *testing.T) *Repository {
	t.Helper()
	dir := t.TempDir()
	r := repositoryIn(dir)
	Git(t, dir, "init", "--quiet", "--bare", "--template=", "--initial-branch="+Branch, r.Bare)
	Git(t, dir, "init", "--quiet", "--template=", "--initial-branch="+Branch, r.Clone)
	Git(t, r.Clone, "remote", "add", "origin", "../"+filepath.Base(r.Bare))
	r.Write(t, "README", "the fleet\n")
	r.Write(t, EnvFile, EnvText)
	return r
}

func repositoryIn(dir string) *Repository {
	return &Repository{Bare: filepath.Join(dir, "fleet.git"), Clone: filepath.Join(dir, "clone")}
}

// copy is the same repository in another place: it costs a tenth of a new one.
func (r *Repository) copy(t *testing.T) *Repository {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(filepath.Dir(r.Bare))))
	return repositoryIn(dir)
}

// Git runs the program as somebody else would.
func Git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Write commits and pushes one file as Ada.
func (r *Repository) Write(t *testing.T, path, text string) {
	t.Helper()
	if Git(t, r.Clone, "ls-remote", "origin", Branch) != "" {
		Git(t, r.Clone, "pull", "--quiet", "--ff-only", "origin", Branch)
	}
	full := filepath.Join(r.Clone, path)
	must(t, os.MkdirAll(filepath.Dir(full), 0o755))
	must(t, os.WriteFile(full, []byte(text), 0o644))
	Git(t, r.Clone, "add", path)
	Git(t, r.Clone, "commit", "--quiet", "--allow-empty", "--message=change "+path)
	Git(t, r.Clone, "push", "--quiet", "origin", "HEAD:"+Branch)
}

// Text is a file at the tip of the branch; empty if there is none.
func (r *Repository) Text(t *testing.T, path string) string {
	t.Helper()
	if Git(t, r.Bare, "ls-tree", Branch, path) == "" {
		return ""
	}
	out, err := exec.Command("git", "--git-dir="+r.Bare, "show", Branch+":"+path).Output()
	must(t, err)
	return string(out)
}

// Tip is the commit at the tip of the branch.
func (r *Repository) Tip(t *testing.T) string {
	t.Helper()
	return Git(t, r.Bare, "rev-parse", Branch)
}

// Config is what the git backend is told about the repository.
func (r *Repository) Config() map[string]string {
	return map[string]string{"repo": r.Bare, "branch": Branch, "path": EnvFile}
}

// value reads our line, and what is around it.
func (r *Repository) value(t *testing.T) (value, others string) {
	t.Helper()
	for line := range strings.Lines(r.Text(t, EnvFile)) {
		if after, ours := strings.CutPrefix(line, sdk.Name+"="); ours {
			value = strings.TrimSuffix(after, "\n")
			continue
		}
		others += line
	}
	return value, others
}

// GitRepositories makes worlds of a repository each: all hosts read the one file.
func GitRepositories(t *testing.T, open Open) func(t *testing.T) conformance.Subject {
	first := NewRepository(t)
	return func(t *testing.T) conformance.Subject { return first.copy(t).subject(open) }
}

func (r *Repository) subject(open Open) conformance.Subject {
	return conformance.Subject{
		Open:    func(t *testing.T) sdk.Conn { return open(t, r.Config()) },
		Targets: []string{"edge-01", "checkout-01", "checkout-02"},
		Many:    names(manyNames),
		Read: func(t *testing.T, _ string) string {
			value, _ := r.value(t)
			return value
		},
		Disturb: func(t *testing.T, _, value string) {
			now, others := r.value(t)
			if now != value {
				r.Write(t, EnvFile, others+"\n"+sdk.Name+"="+value+"\n")
			}
		},
		Touch: func(t *testing.T) func(t *testing.T) {
			r.Write(t, "README", "changed\n")
			_, before := r.value(t)
			return func(t *testing.T) {
				t.Helper()
				// A last line without its ending has to get one when ours follows.
				if _, now := r.value(t); strings.TrimSuffix(now, "\n") != before {
					t.Errorf("the lines that are not ours were %q and are %q", before, now)
				}
				if r.Text(t, "README") != "changed\n" {
					t.Errorf("a file that is not ours was changed")
				}
			}
		},
		Snapshot: r.Tip,
	}
}
