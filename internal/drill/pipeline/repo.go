package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"
)

const (
	// EnvFile is the file inside the repository that the pipeline deploys.
	EnvFile = "fleet/ic.env"
	// Branch is the branch that is deployed.
	Branch = "main"
	// gitLimit is the longest one git command may take; on a local repository
	// of one file they take milliseconds.
	gitLimit = 20 * time.Second
)

// firstEnv is the env file of the initial commit: what a checkout service would
// have there before any incident.
const firstEnv = `# settings of the shop's hosts; a push to main restarts them in batches
SHOP_REGION=demo
CHECKOUT_TIMEOUT_MS=800
RISK_TIMEOUT_MS=3000
CATALOG_TIMEOUT_MS=800
`

// hook exports the pushed env file and drops a marker. It finds its way from
// its own repository and contains no path.
const hook = `#!/bin/sh
# The demo's deploy pipeline: hand the pushed env file to the fleet.
set -eu
root=$(cd .. && pwd)
while read -r _ new ref; do
	[ "$ref" = refs/heads/` + Branch + ` ] || continue
	case $new in *[!0]*) ;; *) continue ;; esac
	part=$root/env/.$new
	if ! git show "$new:` + EnvFile + `" >"$part"; then
		rm -f "$part"
		echo "pipeline: no ` + EnvFile + ` in $new, nothing is deployed" >&2
		continue
	fi
	mv -f "$part" "$root/env/ic.env"
	: >"$root/inbox/$new"
	echo "pipeline: $new taken, hosts restart in batches" >&2
done
`

// repository is the bare repository under dir.
type repository struct {
	dir    string // of the pipeline
	git    string
	search string // PATH
}

func (r *repository) path() string  { return filepath.Join(r.dir, "repo.git") }
func (r *repository) env() string   { return filepath.Join(r.dir, "env", "ic.env") }
func (r *repository) inbox() string { return filepath.Join(r.dir, "inbox") }

// ensure creates what is missing; a repository that has its first commit is
// left as it is.
func (r *repository) ensure(ctx context.Context, now time.Time) error {
	for _, d := range []string{filepath.Dir(r.env()), r.inbox()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("make the pipeline's folder: %w", err)
		}
	}
	if err := r.configure(ctx); err != nil {
		return err
	}
	head := "refs/heads/" + Branch
	if _, err := r.run(ctx, "", "rev-parse", "--verify", "--quiet", head); err == nil {
		return nil
	}
	commit, err := r.firstCommit(ctx, now)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(r.env(), []byte(firstEnv), 0o600); err != nil {
		return fmt.Errorf("write the pipeline's env file: %w", err)
	}
	_, err = r.run(ctx, "", "update-ref", head, commit)
	return err
}

// configure sets up the repository. The pusher's own git configuration must not
// send its hooks elsewhere or keep files of a template here.
func (r *repository) configure(ctx context.Context) error {
	if _, err := r.run(ctx, "", "init", "--quiet", "--bare", "--template=", r.path()); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"symbolic-ref", "HEAD", "refs/heads/" + Branch},
		{"config", "core.hooksPath", "hooks"},
		{"config", "receive.denyNonFastForwards", "true"},
		{"config", "receive.denyDeletes", "true"},
		{"config", "gc.auto", "0"},
	} {
		if _, err := r.run(ctx, "", args...); err != nil {
			return err
		}
	}
	file := filepath.Join(r.path(), "hooks", "post-receive")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("make the pipeline's hook: %w", err)
	}
	if err := renameio.WriteFile(file, []byte(hook), 0o700, renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("write the pipeline's hook: %w", err)
	}
	return nil
}

// firstCommit makes a commit that holds firstEnv, and returns its id.
func (r *repository) firstCommit(ctx context.Context, now time.Time) (string, error) {
	blob, err := r.run(ctx, firstEnv, "hash-object", "-w", "--stdin")
	if err != nil {
		return "", err
	}
	folder, name := filepath.Split(EnvFile)
	inner, err := r.run(ctx, fmt.Sprintf("100644 blob %s\t%s\n", blob, name), "mktree")
	if err != nil {
		return "", err
	}
	tree, err := r.run(ctx, fmt.Sprintf("040000 tree %s\t%s\n", inner, strings.TrimSuffix(folder, "/")), "mktree")
	if err != nil {
		return "", err
	}
	stamp := fmt.Sprintf("%d +0000", now.Unix())
	return r.runWith(ctx, []string{"GIT_AUTHOR_DATE=" + stamp, "GIT_COMMITTER_DATE=" + stamp},
		"Settings of the demo's fleet\n", "commit-tree", tree)
}

func (r *repository) run(ctx context.Context, stdin string, args ...string) (string, error) {
	return r.runWith(ctx, nil, stdin, args...)
}

// runWith runs git on the repository with nothing of the caller's environment
// but PATH, and without a terminal.
func (r *repository) runWith(ctx context.Context, env []string, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, gitLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.git, append([]string{"--git-dir=" + r.path()}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(env,
		"PATH="+r.search, "HOME="+r.dir, "XDG_CONFIG_HOME="+r.dir, "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=ic demo", "GIT_AUTHOR_EMAIL=demo@ic.invalid",
		"GIT_COMMITTER_NAME=ic demo", "GIT_COMMITTER_EMAIL=demo@ic.invalid",
	)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s in %s: %w: %q", args[0], r.path(), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// program finds an executable in the folders of search, the value of PATH.
// Relative folders are passed over: what they mean depends on where we stand.
func program(name, search string) (string, error) {
	for _, dir := range filepath.SplitList(search) {
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		if filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("find %s on PATH: it is not there: install %s", name, name)
}
