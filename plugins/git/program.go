package git

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/degradedmode/ic/plugins/sdk"
)

const (
	maxOutput  = 8 << 20         // bytes kept of what git prints: more is cut, and what needs it fails
	maxQuoted  = 300             // bytes quoted of git's own words in an error
	killedWait = 2 * time.Second // for what a killed git has left running

	connectLimit  = 10   // seconds for ssh to connect
	lowSpeedBytes = 1000 // bytes per second below which a transfer is dead,
	lowSpeedTime  = 20   // after so many seconds
)

// program runs git in one private bare repository.
type program struct {
	settings settings
	dir      string // private folder; the repository is repo inside it
	env      []string
}

// open makes the private repository.
func open(ctx context.Context, s settings, getenv func(string) string) (*program, error) {
	dir, err := os.MkdirTemp("", "ic-git-")
	if err != nil {
		return nil, sdk.Refuse(sdk.CodeFailed, "git needs a temporary folder: %v", err)
	}
	p := &program{settings: s, dir: dir, env: []string{
		"PATH=" + getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "LC_ALL=C",
		"GIT_DIR=" + filepath.Join(dir, "repo"), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_ALLOW_PROTOCOL=file:http:https:ssh",
		"GIT_AUTHOR_NAME=" + s.authorName, "GIT_AUTHOR_EMAIL=" + s.authorEmail,
		"GIT_COMMITTER_NAME=" + s.authorName, "GIT_COMMITTER_EMAIL=" + s.authorEmail,
	}}
	if socket := getenv("SSH_AUTH_SOCK"); socket != "" {
		p.env = append(p.env, "SSH_AUTH_SOCK="+socket)
	}
	if _, err := p.run(ctx, nil, "init", "--quiet", "--bare", "--template="); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *program) close() error { return os.RemoveAll(p.dir) }

// fixed settings of every call.
var fixed = []string{
	"-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.quotePath=false",
	"-c", "commit.gpgSign=false", "-c", "log.showSignature=false",
}

// run calls git on the private repository, without any network.
func (p *program) run(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	return p.exec(ctx, input, os.DevNull, args)
}

// dial calls git with the network. How we get in stands in a file that only we
// can read and that is gone afterwards: arguments and environments of a process
// are there for others to see.
func (p *program) dial(ctx context.Context, args ...string) ([]byte, error) {
	access := filepath.Join(p.dir, "access")
	if err := os.WriteFile(access, []byte(p.settings.access()), 0o600); err != nil {
		return nil, sdk.Refuse(sdk.CodeFailed, "git needs to write in its temporary folder: %v", err)
	}
	defer os.Remove(access)
	return p.exec(ctx, nil, access, args)
}

// access is the git configuration for the network.
func (s *settings) access() string {
	ssh := fmt.Sprintf("ssh -o BatchMode=yes -o ConnectTimeout=%d", connectLimit)
	if s.sshKey != "" {
		ssh += " -o IdentitiesOnly=yes -i '" + s.sshKey + "'"
	}
	out := fmt.Sprintf("[core]\n\tsshCommand = \"%s\"\n[http]\n\tfollowRedirects = false\n\tlowSpeedLimit = %d\n\tlowSpeedTime = %d\n",
		ssh, lowSpeedBytes, lowSpeedTime)
	if s.token != "" {
		secret := base64.StdEncoding.EncodeToString([]byte(s.user + ":" + s.token))
		out += fmt.Sprintf("[http \"%s\"]\n\textraHeader = \"Authorization: Basic %s\"\n", s.repo, secret)
	}
	return out
}

// oldest is the first git that reads its configuration from where we say: an
// older one would send no token, and read the user's settings.
var oldest = [2]int{2, 32}

// version is what git calls itself. It fails for one that is too old.
func (p *program) version(ctx context.Context) (string, error) {
	out, err := p.run(ctx, nil, "version")
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(out))
	return text, newEnough(text)
}

func newEnough(text string) error {
	var major, minor int
	if _, err := fmt.Sscanf(text, "git version %d.%d", &major, &minor); err != nil {
		return sdk.Refuse(sdk.CodeFailed, "git calls itself %q, which says no version", text)
	}
	if major < oldest[0] || major == oldest[0] && minor < oldest[1] {
		return sdk.Refuse(sdk.CodeFailed, "%s is too old: at least %d.%d is needed", text, oldest[0], oldest[1])
	}
	return nil
}

func (p *program) exec(ctx context.Context, input []byte, global string, args []string) ([]byte, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, sdk.Refuse(sdk.CodeFailed, "the git program is not installed, or not in PATH: %v", err)
	}
	cmd := exec.CommandContext(ctx, path, append(append([]string{}, fixed...), args...)...)
	cmd.Env = append(p.env[:len(p.env):len(p.env)], "GIT_CONFIG_GLOBAL="+global)
	cmd.Dir = p.dir
	cmd.WaitDelay = killedWait
	cmd.Stdin = bytes.NewReader(input)
	stdout, stderr := &bounded{}, &bounded{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	wait, err := sdk.StartBound(cmd)
	if err == nil {
		err = wait()
	}
	if ctx.Err() != nil {
		return stdout.Bytes(), fmt.Errorf("git %s was ended: %w", args[0], ctx.Err())
	}
	if err != nil {
		return stdout.Bytes(), explain(args[0], err, stderr.String())
	}
	if stdout.cut {
		return nil, sdk.Refuse(sdk.CodeFailed, "git %s printed more than %d bytes", args[0], maxOutput)
	}
	return stdout.Bytes(), nil
}

// bounded keeps the first maxOutput bytes and takes the rest in silence.
type bounded struct {
	bytes.Buffer
	cut bool
}

func (b *bounded) Write(text []byte) (int, error) {
	keep := text[:min(len(text), maxOutput-b.Len())]
	b.cut = b.cut || len(keep) < len(text)
	b.Buffer.Write(keep)
	return len(text), nil
}

// signs tell what git means by its words. The first that is found counts.
var signs = []struct {
	text string
	code sdk.Code
}{
	{"Authentication failed", sdk.CodeDenied},
	{"could not read Username", sdk.CodeDenied},
	{"Permission denied", sdk.CodeDenied},
	{"permission denied", sdk.CodeDenied},
	{"insufficient permission", sdk.CodeDenied},
	{"error: 401", sdk.CodeDenied},
	{"error: 403", sdk.CodeDenied},
	{"Host key verification failed", sdk.CodeDenied},
	{"dubious ownership", sdk.CodeDenied},
	{"couldn't find remote ref", sdk.CodeUnreachable},
	{"Could not read from remote repository", sdk.CodeUnreachable},
	{"unable to access", sdk.CodeUnreachable},
	{"does not appear to be a git repository", sdk.CodeUnreachable},
	{"remote end hung up", sdk.CodeUnreachable},
	{"not found", sdk.CodeUnreachable},
}

func explain(verb string, err error, stderr string) error {
	code := sdk.CodeFailed
	for _, sign := range signs {
		if strings.Contains(stderr, sign.text) {
			code = sign.code
			break
		}
	}
	words := strings.Join(strings.Fields(stderr), " ")
	if len(words) > maxQuoted {
		words = words[:maxQuoted] + "..."
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || words == "" {
		words = strings.TrimSpace(err.Error() + " " + words)
	}
	return sdk.Refuse(code, "git %s: %s", verb, words)
}
