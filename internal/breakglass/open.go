package breakglass

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/untrusted"
	"github.com/degradedmode/ic/plugins/sdk"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
)

// Spec is a backend as the policy names and the operator configures it.
type Spec struct {
	Name     string   // the policy's name for it
	Bundled  string   // Git or HostFile; empty for a foreign one
	Foreign  *Foreign // nil for a bundled one
	Config   map[string]string
	Secrets  map[string]string // handed over by Configure, nowhere else
	SSHAgent bool              // it may use the operator's ssh-agent
}

// Options are what Open takes from the process around it.
type Options struct {
	Self    Program             // how to start a bundled backend; the zero value is this executable
	Getenv  func(string) string // required
	TempDir string              // for private folders; empty: the system's
	Limits  Limits              // the zero value is DefaultLimits
}

// Program is an executable and the arguments before "backend NAME".
type Program struct {
	Path string
	Args []string
}

// Open starts a backend and configures it. It either gives a client that
// answers, or leaves nothing behind. Only the bundled HostFile works without a
// process: the last way must not depend on being able to fork.
func Open(ctx context.Context, spec Spec, opts Options) (*Client, error) {
	if opts.Limits == (Limits{}) {
		opts.Limits = DefaultLimits()
	}
	c := &Client{name: spec.Name, limits: opts.Limits, words: &output{}}
	err := c.launch(ctx, spec, opts)
	if err != nil && spec.Bundled == HostFile && spec.Foreign == nil && ctx.Err() == nil {
		backend, _ := Bundled(HostFile)
		c.conn, c.inProcess, err = sdk.NewSession(backend), err, nil
	}
	if err != nil {
		return nil, err
	}
	if err := c.introduce(ctx, spec); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// launch starts the process and connects to it.
func (c *Client) launch(ctx context.Context, spec Spec, opts Options) error {
	f, err := makeFolder(opts.TempDir)
	if err != nil {
		return problem(spec.Name, NotStarted, err, "needs a private folder, which cannot be made: %v", err)
	}
	c.folder = f
	prog, err := c.program(spec, opts)
	if err == nil {
		err = c.start(ctx, prog, environment(opts.Getenv, f.path, spec.SSHAgent))
	}
	if err != nil {
		if c.folder != nil {
			err = errors.Join(err, c.folder.remove())
		}
		c.folder, c.process, c.plugin = nil, nil, nil
	}
	return err
}

// program finds what to execute, and checks it if it is foreign.
func (c *Client) program(spec Spec, opts Options) (program, error) {
	if spec.Foreign != nil {
		file, err := openForeign(*spec.Foreign)
		if err != nil {
			return program{}, problem(spec.Name, NotTrusted, err, "was not started: %v", err)
		}
		prog, err := pinned(file, *spec.Foreign, c.folder.path)
		if err != nil {
			return program{}, problem(spec.Name, NotTrusted, err, "was not started: %v", err)
		}
		return prog, nil
	}
	if _, known := Bundled(spec.Bundled); !known {
		return program{}, problem(spec.Name, NotStarted, nil, "has no path and is not bundled: %q is none of %s", spec.Bundled, strings.Join(BundledNames(), ", "))
	}
	path := opts.Self.Path
	if path == "" {
		var err error
		if path, err = own(); err != nil {
			return program{}, problem(spec.Name, NotStarted, err, "was not started, the running program cannot be found: %v", err)
		}
	}
	return program{path: path, name: "ic", args: append(append([]string{}, opts.Self.Args...), "backend", spec.Bundled)}, nil
}

// start executes the program and waits until it is connected.
func (c *Client) start(ctx context.Context, prog program, env []string) error {
	defer prog.close()
	limited, cancel := context.WithTimeout(ctx, c.limits.Start)
	defer cancel()

	p, err := newProcess(prog, env)
	if err != nil {
		return problem(c.name, NotStarted, err, "was not started: %v", err)
	}
	c.process = p
	client := plugin.NewClient(c.config(p))
	c.plugin = client
	type connected struct {
		conn sdk.Conn
		err  error
	}
	answer := make(chan connected, 1)
	go func() {
		conn, err := dispense(client) // this may outlive the attempt, and c.plugin does not
		answer <- connected{conn, err}
	}()
	select {
	case got := <-answer:
		c.conn, err = got.conn, got.err
	case <-limited.Done():
		err = limited.Err()
	}
	if err == nil {
		return nil
	}
	p.kill()
	ended := c.end()
	return errors.Join(c.explainStart(ctx, limited, err), ended)
}

func dispense(client *plugin.Client) (sdk.Conn, error) {
	protocol, err := client.Client()
	if err != nil {
		return nil, err
	}
	raw, err := protocol.Dispense(sdk.PluginName)
	if err != nil {
		return nil, err
	}
	conn, ok := raw.(sdk.Conn)
	if !ok {
		return nil, fmt.Errorf("it dispenses %T", raw)
	}
	return conn, nil
}

func (c *Client) config(p *process) *plugin.ClientConfig {
	return &plugin.ClientConfig{
		HandshakeConfig:  sdk.Handshake(),
		VersionedPlugins: sdk.HostPlugins(),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     2 * c.limits.Start, // ours is shorter and knows why
		Logger:           hclog.NewNullLogger(),
		Stderr:           c.words,
		SyncStdout:       c.words,
		SyncStderr:       c.words,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: c.folder.path},
		GRPCDialOptions:  []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(sdk.MaxMessage))},
		RunnerFunc: func(_ hclog.Logger, theirs *exec.Cmd, _ string) (runner.Runner, error) {
			p.cmd.Env = append(p.cmd.Env, theirs.Env...) // cookie, versions, certificate, socket folder
			return p, nil
		},
	}
}

// explainStart says in one sentence why there is no connection.
func (c *Client) explainStart(ctx, limited context.Context, err error) error {
	first := untrusted.Text(strings.TrimSpace(c.process.stdout.get()), maxFirstLine)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("starting backend %s was cut short: %w", c.name, ctx.Err())
	case !c.process.started():
		return problem(c.name, NotStarted, err, "was not started: %v", err)
	case limited.Err() != nil:
		return problem(c.name, Slow, err, "was not ready within %s and was ended; nothing was changed", c.limits.Start)
	case strings.HasPrefix(first, fmt.Sprintf("%d|", plugin.CoreProtocolVersion)):
		return problem(c.name, NoHandshake, err, "cannot be talked to: %s; nothing was changed", untrusted.Text(err.Error(), maxSentence))
	case first != "":
		return problem(c.name, NoHandshake, err, "printed \"%s\" instead of its handshake and was ended; nothing was changed", first)
	default:
		last := ""
		if said := c.words.lastLine(); said != "" {
			last = fmt.Sprintf(", its last words were \"%s\"", said)
		}
		return problem(c.name, NoHandshake, err, "ended before its handshake%s; nothing was changed", last)
	}
}

// introduce asks the backend what it is and tells it what it needs.
func (c *Client) introduce(ctx context.Context, spec Spec) error {
	if err := c.ask(ctx, call{doing: "being configured", limit: c.limits.Ask}, func(ctx context.Context) error {
		return c.conn.Configure(ctx, spec.Config, spec.Secrets)
	}); err != nil {
		return err
	}
	_, err := c.Describe(ctx)
	return err
}

// Close stops the backend, ends its process and removes what it left. One that
// does not stop when asked is killed.
func (c *Client) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.limits.Stop)
	defer cancel()
	err := c.Stop(ctx)
	switch {
	case c.process == nil:
		return err
	case err == nil:
		c.process.letGo()
	default:
		c.process.kill()
	}
	return c.end()
}

// end waits until the process is gone, not longer than it should take, and
// removes the folder.
func (c *Client) end() error {
	force := time.AfterFunc(c.limits.Stop, c.process.kill)
	defer force.Stop()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		c.plugin.Kill()
	}()
	limit := time.NewTimer(c.limits.Stop + cleanLimit)
	defer limit.Stop()
	select {
	case <-gone:
	case <-limit.C:
		return problem(c.name, Slow, nil, "does not end, even killed (process %s)", c.process.ID())
	}
	if c.folder == nil {
		return nil
	}
	f := c.folder
	c.folder = nil
	if err := f.remove(); err != nil {
		return fmt.Errorf("removing what backend %s left: %w", c.name, err)
	}
	return nil
}
