package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// app is one run of the program: where it reads and writes, and what it was
// told. Nothing below it looks at the process's own environment.
type app struct {
	in     io.Reader
	out    io.Writer
	err    io.Writer
	getenv func(string) string
	real   func() time.Time       // the machine's clock, for deadlines
	self   func() (string, error) // this executable, for its own subprocesses

	json       bool
	yes        bool
	configFile string
	flags      map[string]*string
	tokenFiles map[string]string // by name, as --token-file has them

	kept  kept  // what was opened and asked once
	seat  *seat // where this console stands, once it is known
	began bool  // a command has begun: from here on an error is not a wrong word
	code  int   // exit code of a command that did not fail and yet is not done
}

// root builds the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "ic",
		Short: "Console and runbook engine of an incident commander",
		Long: `ic shows the live degradation tier, the signals, the version skew of the fleet
and the decision-rights matrix, and lets through only what the business signed in
daylight. Without a command it opens the console.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          a.console,
		PersistentPreRun: func(*cobra.Command, []string) {
			a.began = true
		},
	}
	p := root.PersistentFlags()
	p.BoolVar(&a.json, "json", false, "print JSON")
	p.BoolVar(&a.yes, "yes", false, "do not ask; the log says that nobody was asked")
	p.StringVar(&a.configFile, "config", "", "configuration file (IC_CONFIG; default config.yaml in the state folder)")
	p.StringToStringVar(&a.tokenFiles, "token-file", nil, "take the token for a NAME out of a FILE of mode 600: NAME=FILE (repeatable)")
	a.flags = make(map[string]*string)
	for _, s := range settings {
		v := new(string)
		a.flags[s.key] = v
		name := s.flag()
		p.StringVar(v, name, "", s.help+" ("+s.env()+")")
	}
	root.AddGroup(
		&cobra.Group{ID: "night", Title: "At 3am:"},
		&cobra.Group{ID: "day", Title: "In daylight:"},
		&cobra.Group{ID: "after", Title: "Afterwards:"},
	)
	a.add(root, "night", a.statusCmd(), a.watchCmd(), a.canCmd(), a.doCmd(), a.shedCmd(), a.recoverCmd(), a.endCmd(),
		a.freezeCmd(), a.breakCmd(), a.cosignCmd(), a.reissueCmd(), a.incidentCmd())
	a.add(root, "day", a.initCmd(), a.policyCmd(), a.keysCmd(), a.loginCmd(), a.doctorCmd(), a.controllerCmd(), a.runbookCmd(), a.rehearseCmd(), a.demoCmd())
	a.add(root, "after", a.auditCmd(), a.reportCmd())
	a.add(root, "", a.versionCmd(), a.manCmd(), a.backendCmd(), a.worldCmd())
	return root
}

// group is a command that only has commands below it.
func group(use, short string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
}

func (a *app) add(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		root.AddCommand(c)
	}
}

// load reads the configuration: file, then environment, then flags.
func (a *app) load(cmd *cobra.Command) (config, error) {
	w, err := a.told(cmd)
	if err != nil {
		return config{}, err
	}
	c, err := readConfig(w.config, w.named)
	if err != nil {
		return c, fail(exitUsage, "%w", err)
	}
	return w.over(c, a.getenv), nil
}

// words is what was said besides the configuration file.
type words struct {
	flags  map[string]string
	state  string // folder
	config string // path of the file
	named  bool   // the file was named, so it has to be there
}

func (a *app) told(cmd *cobra.Command) (words, error) {
	w := words{flags: map[string]string{}}
	for _, s := range settings {
		if f := cmd.Flags().Lookup(s.flag()); f != nil && f.Changed {
			w.flags[s.key] = *a.flags[s.key]
		}
	}
	w.state = orElse(orElse(w.flags["state"], a.getenv("IC_STATE_DIR")), defaultState(a.getenv))
	if w.state == "" {
		return w, fail(exitUsage, "no state folder: HOME is not set").hinting("name one with --state or IC_STATE_DIR")
	}
	w.config = orElse(a.configFile, a.getenv("IC_CONFIG"))
	w.named = w.config != ""
	w.config = orElse(w.config, filepath.Join(w.state, "config.yaml"))
	return w, nil
}

// over puts the words over what a file says.
func (w *words) over(c config, getenv func(string) string) config {
	c.overlay(getenv, w.flags)
	if c.State == "" {
		c.State = w.state
	}
	return c
}

// print writes a result: as JSON, or as text lines.
func (a *app) print(v any, text func(w io.Writer)) error {
	if !a.json {
		text(a.out)
		return nil
	}
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// printLine is print for a stream of results: each is one line, in JSON too.
func (a *app) printLine(v any, text func(w io.Writer)) error {
	if !a.json {
		text(a.out)
		return nil
	}
	if err := json.NewEncoder(a.out).Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

func (a *app) printError(code int, err error) {
	out := map[string]any{"error": err.Error(), "exit_code": code}
	var f *failure
	if errors.As(err, &f) && f.hint != "" {
		out["hint"] = f.hint
	}
	_ = json.NewEncoder(a.out).Encode(out)
}

// note tells a person something that is not the result.
func (a *app) note(format string, args ...any) { fmt.Fprintf(a.err, "ic: "+format+"\n", args...) }

// terminal reports whether we can ask a person.
func (a *app) terminal() bool {
	in, ok1 := a.in.(*os.File)
	out, ok2 := a.err.(*os.File)
	return ok1 && ok2 && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// confirm asks for exactly typed, or for "yes" where nothing special is to be
// typed. It reports whether a person was asked. Without a terminal it wants
// --yes.
func (a *app) confirm(question, typed string) (asked bool, err error) {
	if a.yes {
		return false, nil
	}
	if !a.terminal() {
		return false, fail(exitUsage, "this changes something, and there is no terminal to ask on").hinting("give --yes; the log will say that nobody was asked")
	}
	if typed == "" {
		typed = "yes"
	}
	fmt.Fprintf(a.err, "%s\ntype %q to go on, anything else to stop: ", question, typed)
	answer, err := readLine(a.in)
	if err != nil {
		return true, fail(exitInterrupted, "stopped: nothing was done")
	}
	if strings.TrimSpace(answer) != typed {
		return true, fail(exitInterrupted, "stopped: nothing was done")
	}
	return true, nil
}

// maxAnswer bounds an answer in bytes.
const maxAnswer = 4096

// readLine reads one line, byte by byte, so that nothing after it is swallowed.
func readLine(r io.Reader) (string, error) {
	var line []byte
	one := make([]byte, 1)
	for len(line) <= maxAnswer {
		n, err := r.Read(one)
		if n == 1 {
			if one[0] == '\n' {
				return string(line), nil
			}
			line = append(line, one[0])
			continue
		}
		if err != nil {
			return string(line), err
		}
	}
	return "", fmt.Errorf("an answer has at most %d bytes", maxAnswer)
}
