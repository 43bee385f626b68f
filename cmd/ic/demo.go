package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/drill/world"
	"github.com/degradedmode/ic/internal/drill/worldclock"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/tui"
	"github.com/spf13/cobra"
)

const (
	demoStart = 90 * time.Second // set-up on a slow machine
	demoPoll  = 50 * time.Millisecond
	demoLimit = 20 * time.Second // one request to the world
	demoBody  = 1 << 20          // bytes of an answer
	demoCopy  = "ic"             // this program, copied into the state folder
)

// demoFlags are what a world is started with.
type demoFlags struct {
	speed     int
	seed      uint64
	fast      bool
	noConsole bool
}

func (a *app) demoCmd() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "A shop in trouble on this machine, to try everything on",
		Long: `Set up a fleet of 60 hosts, a flag service, a deploy pipeline and a load model on
loopback, and open the console on it. The world is a process of its own: quitting the
console asks whether it should end too, a console that dies leaves it running, and
ic demo attaches again. Without a client it ends after 30 minutes. Nothing is left
behind but its state folder.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd, &f) },
	}
	cmd.Flags().IntVar(&f.speed, "speed", 1, "seconds of the demo's clock in a real one")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of load and faults")
	cmd.Flags().BoolVar(&f.fast, "fast-policy", false, "a policy whose bounds are a minute at most, for trying it out quickly")
	cmd.Flags().BoolVar(&f.noConsole, "no-console", false, "start the world and return")
	cmd.AddCommand(a.demoFaultCmd(), a.demoStopCmd(), a.demoStatusCmd())
	return cmd
}

// demoConfig is the configuration of a demo: unlike other commands it has a state
// folder of its own by default.
func (a *app) demoConfig(cmd *cobra.Command) (config, error) {
	c, err := a.load(cmd)
	if err != nil {
		return c, err
	}
	if !cmd.Flags().Changed("state") && a.getenv("IC_STATE_DIR") == "" {
		c.State = filepath.Join(defaultState(a.getenv), "demo")
		*a.flags["state"] = c.State
		if err := cmd.Flags().Set("state", c.State); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (a *app) demo(cmd *cobra.Command, f *demoFlags) error {
	c, err := a.demoConfig(cmd)
	if err != nil {
		return err
	}
	if f.speed < 1 || f.speed > worldclock.MaxSpeed {
		return fail(exitUsage, "--speed %d is not between 1 and %d", f.speed, worldclock.MaxSpeed)
	}
	if !f.noConsole && !tui.IsTerminal(a.in, a.out) {
		return fail(exitUsage, "the console needs a terminal").hinting("ic demo --no-console starts the world alone; then use the commands with --state %s", c.State)
	}
	info, err := a.attach(cmd.Context(), c)
	if err != nil {
		return err
	}
	if info == nil {
		if info, err = a.startWorld(cmd.Context(), c, f); err != nil {
			return err
		}
	}
	if f.noConsole {
		return a.print(info, func(w io.Writer) { printDemo(w, c, info) })
	}
	printDemo(a.err, c, info)
	a.seat = nil
	if err := a.console(cmd, nil); err != nil {
		return err
	}
	return a.leave(cmd.Context(), c)
}

func printDemo(w io.Writer, c config, info *world.Info) {
	fmt.Fprintf(w, "the shop is open: 60 hosts, clock x%d\n", info.Speed)
	fmt.Fprintf(w, "  prometheus  %s\n  etcd        %s\n  state       %s\n", info.Prometheus, info.Etcd, c.State)
	fmt.Fprintf(w, "  from another terminal:\n")
	fmt.Fprintf(w, "    export IC_STATE_DIR=%s\n    ic status | ic can | ic demo fault payment-risk-down | ic demo stop\n", c.State)
}

// attach finds a world that is running already.
func (a *app) attach(ctx context.Context, c config) (*world.Info, error) {
	info, err := world.ReadInfo(c.State)
	if err != nil || info == nil {
		return nil, err
	}
	if _, err := worldclock.Fetch(ctx, http.DefaultClient, info.Control, a.real); err != nil {
		// It ended without taking its announcement back: killed, or a power cut.
		if rerr := os.Remove(filepath.Join(c.State, world.InfoFile)); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			return nil, rerr
		}
		return nil, nil
	}
	a.note("attached to the demo that is running")
	return info, nil
}

// startWorld starts the world as a process of its own, from a copy of this
// program: go run deletes the one it has built.
func (a *app) startWorld(ctx context.Context, c config, f *demoFlags) (*world.Info, error) {
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		return nil, fail(exitFailed, "make the demo's state folder: %w", err)
	}
	program, err := a.copySelf(c.State)
	if err != nil {
		return nil, err
	}
	a.note("setting up the shop in %s", c.State)
	log, err := os.OpenFile(filepath.Join(c.State, world.LogFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := []string{"world", "--state", c.State, "--speed", fmt.Sprint(f.speed), "--seed", fmt.Sprint(f.seed)}
	if f.fast {
		args = append(args, "--fast-policy")
	}
	child := exec.Command(program, args...)
	child.Stdout, child.Stderr = log, log
	child.SysProcAttr = ownSession() // a console that dies must not take it along
	if err := child.Start(); err != nil {
		return nil, fail(exitFailed, "start the world: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	return waitForWorld(ctx, c.State, ended)
}

func waitForWorld(ctx context.Context, state string, ended <-chan error) (*world.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, demoStart)
	defer cancel()
	tick := time.NewTicker(demoPoll)
	defer tick.Stop()
	for {
		if info, err := world.ReadInfo(state); err == nil && info != nil {
			return info, nil
		}
		select {
		case err := <-ended:
			return nil, fail(exitFailed, "the world ended while it was being set up (%v)", err).hinting("see %s", filepath.Join(state, world.LogFile))
		case <-ctx.Done():
			return nil, fail(exitFailed, "the world did not come up within %s", demoStart).hinting("see %s", filepath.Join(state, world.LogFile))
		case <-tick.C:
		}
	}
}

// copySelf puts this program into the state folder, where it stays as long as
// the world runs.
func (a *app) copySelf(state string) (string, error) {
	self, err := a.self()
	if err != nil {
		return "", fail(exitFailed, "find this program: %w", err)
	}
	to := filepath.Join(state, demoCopy)
	if self == to {
		return to, nil
	}
	in, err := os.Open(self)
	if err != nil {
		return "", fail(exitFailed, "copy this program: %w", err)
	}
	defer in.Close()
	out, err := os.CreateTemp(state, demoCopy+".*")
	if err != nil {
		return "", fail(exitFailed, "copy this program: %w", err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Chmod(0o700), out.Close()); err == nil {
		err = os.Rename(out.Name(), to)
	}
	if err != nil {
		return "", fail(exitFailed, "copy this program: %w", errors.Join(err, os.Remove(out.Name())))
	}
	return to, nil
}

// leave ends the world with the console unless somebody wants to keep it. A
// terminal that has gone cannot be asked, and ends nothing.
func (a *app) leave(ctx context.Context, c config) error {
	fmt.Fprint(a.err, "the shop goes on without you. End it too? [Y/n] ")
	answer, err := readLine(a.in)
	if err != nil || strings.EqualFold(strings.TrimSpace(answer), "n") {
		a.note("it goes on; ic demo attaches again, ic demo stop ends it")
		return nil
	}
	return a.stopWorld(ctx, c)
}

func (a *app) demoStopCmd() *cobra.Command {
	return &cobra.Command{
		Use: "stop", Short: "End the demo's world", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.demoConfig(cmd)
			if err != nil {
				return err
			}
			if err := a.stopWorld(cmd.Context(), c); err != nil {
				return err
			}
			return a.print(map[string]bool{"stopped": true}, func(w io.Writer) { fmt.Fprintln(w, "the demo has ended") })
		},
	}
}

func (a *app) stopWorld(ctx context.Context, c config) error {
	d, err := a.drill(c)
	if err != nil {
		return err
	}
	if err := d.call(ctx, http.MethodPost, "/stop", nil); err != nil {
		return err
	}
	tick := time.NewTicker(demoPoll)
	defer tick.Stop()
	limited, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	for {
		if info, err := world.ReadInfo(c.State); err == nil && info == nil {
			return nil
		}
		select {
		case <-limited.Done():
			return fail(exitUnconfirmed, "the world was told to end and is still there after %s", demoLimit)
		case <-tick.C:
		}
	}
}

func (a *app) demoStatusCmd() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "The world behind the demo: clock, faults, pipeline", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.demoConfig(cmd)
			if err != nil {
				return err
			}
			d, err := a.drill(c)
			if err != nil {
				return err
			}
			var s world.Status
			if err := d.call(cmd.Context(), http.MethodGet, "/status", &s); err != nil {
				return err
			}
			return a.print(s, func(w io.Writer) {
				fmt.Fprintf(w, "%s, clock x%d, %d of %d hosts up; pipeline %s %d/%d\n", s.At.UTC().Format("2006-01-02 15:04:05Z"), s.Speed,
					s.HostsUp, s.Hosts, s.Pipeline.Phase, s.Pipeline.Restarted, s.Pipeline.Hosts)
				printFaults(w, s.Faults)
			})
		},
	}
}

func (a *app) demoFaultCmd() *cobra.Command {
	clear := false
	cmd := &cobra.Command{
		Use: "fault [NAME]", Short: "Begin a fault, or end it with --clear; without NAME list them", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.demoConfig(cmd)
			if err != nil {
				return err
			}
			d, err := a.drill(c)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if err := d.fault(cmd.Context(), args[0], clear); err != nil {
					return err
				}
			}
			var list []faults.State
			if err := d.call(cmd.Context(), http.MethodGet, "/faults", &list); err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) { printFaults(w, list) })
		},
	}
	cmd.Flags().BoolVar(&clear, "clear", false, "end it")
	return cmd
}

func printFaults(w io.Writer, list []faults.State) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range list {
		state := "-"
		if f.Active {
			state = "ACTIVE"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Name, state, f.Description)
	}
	t.Flush()
}

// drillControl is the handle on a drill's world.
type drillControl struct {
	base string

	mu   sync.Mutex
	last []incident.FaultView
	read time.Time
}

func (a *app) drill(c config) (*drillControl, error) {
	info, err := world.ReadInfo(c.State)
	if err != nil {
		return nil, fail(exitFailed, "%w", err)
	}
	if info == nil {
		return nil, fail(exitNeeds, "no demo is running in %s", c.State).hinting("ic demo starts one")
	}
	return &drillControl{base: info.Control}, nil
}

// call asks the world for something; into may be nil.
func (d *drillControl) call(ctx context.Context, method, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, d.base+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fail(exitNeeds, "ask the demo's world: %w", err).hinting("ic demo starts it again")
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, demoBody))
	switch {
	case err != nil:
		return fmt.Errorf("ask the demo's world: %w", err)
	case resp.StatusCode == http.StatusNotFound:
		return fail(exitUsage, "%s", strings.TrimSpace(string(body))).hinting("ic demo fault lists them")
	case resp.StatusCode != http.StatusOK:
		return fail(exitFailed, "the demo's world: %s", strings.TrimSpace(string(body)))
	case into == nil:
		return nil
	}
	return json.Unmarshal(body, into)
}

func (d *drillControl) fault(ctx context.Context, name string, clear bool) error {
	path := "/faults/" + url.PathEscape(name)
	if clear {
		path += "?clear=1"
	}
	return d.call(ctx, http.MethodPost, path, nil)
}

// faultsEvery bounds how often the list is read for the screen.
const faultsEvery = time.Second

// faults is the list for the screen. It never waits: a read that is due runs
// beside, and the last answer is given.
func (d *drillControl) faults() []incident.FaultView {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.read) > faultsEvery {
		d.read = time.Now()
		go d.readFaults()
	}
	return d.last
}

func (d *drillControl) readFaults() {
	var list []faults.State
	if d.call(context.Background(), http.MethodGet, "/faults", &list) != nil {
		return // the console shows what it knew; its own reads say that the world is gone
	}
	out := make([]incident.FaultView, len(list))
	for i, f := range list {
		out[i] = incident.FaultView{Name: f.Name, Text: f.Description, Active: f.Active}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = out
}

// worldCmd runs a world; ic demo starts it.
func (a *app) worldCmd() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use: "world", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load(cmd)
			if err != nil {
				return err
			}
			o := world.Options{State: c.State, Speed: f.speed, Seed: f.seed, Getenv: a.getenv, Real: a.real, Rand: randReader, Log: a.err}
			if f.fast {
				o.Pace = templates.TestPace()
			}
			w, err := world.Start(cmd.Context(), o)
			if err != nil {
				return err
			}
			return w.Run(cmd.Context())
		},
	}
	cmd.Flags().IntVar(&f.speed, "speed", 1, "")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "")
	cmd.Flags().BoolVar(&f.fast, "fast-policy", false, "")
	return cmd
}
