package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/drill/scenario"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/tui"
	"github.com/degradedmode/ic/internal/untrusted"
	"github.com/degradedmode/ic/testdata/scenarios"
	"github.com/spf13/cobra"
)

// rehearsalFlags are what ic rehearse was told.
type rehearsalFlags struct {
	with, as, script, html string
	dir                    string
	seed                   uint64
	speed                  int
	auto, baseline         bool
	all, list              bool
}

func (a *app) rehearseCmd() *cobra.Command {
	var f rehearsalFlags
	cmd := &cobra.Command{
		Use:   "rehearse [SCENARIO]",
		Short: "Play an incident on a simulated fleet and score what was decided",
		Long: `Play a scenario on a fleet that exists in this process only: the product's own code
under virtual time, with keys, a trust root and namespaces of its own. No host, flag
service or pipeline of yours is asked or told anything.

SCENARIO is the name of one that ships (--list), or of one in the folder --dir, or
the path of a file. In a terminal the console opens before it, at human speed or
--speed N times as fast: you act, in the seat of the first person, of who follows the
scenario's runbook, or of --as, by hand or by a runbook in view 4. The others of the
scenario sign what you ask for. At the end the console shows the verdict until you
leave; who has done nothing has not passed.

--auto plays what the scenario says that people do with ic; --script FILE plays the
lines of FILE instead, written like its section "with ic"; --with RUNBOOK follows a
runbook, and so does a scenario that names one: from the folder beside the policy, else
as it ships. The same people are played without ic first, with the same reaction times,
and the score card holds both against each other and against your last run that was
played the same way: in the same seat, or unattended.

The exit code is 0 for a rehearsal that passed, and 1 for one that failed, was
aborted, is inconclusive or whose fault was never injected. --all plays every
scenario and exits with 1 also where one is worse than the last time.
Each run is kept in the folder rehearsals of the state folder, whence the dates
"rehearsed: simulated" come.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(args, tui.IsTerminal(a.in, a.out)); err != nil {
				return err
			}
			switch {
			case f.list:
				return a.listScenarios(f.library())
			case f.all:
				return a.rehearseAll(cmd, &f)
			}
			return a.rehearse(cmd, args[0], &f)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return f.library().names(), cobra.ShellCompDirectiveDefault
		},
	}
	p := cmd.Flags()
	p.StringVar(&f.with, "with", "", "follow this runbook instead of the scenario's own acts: its id, or a path; at the console it lies on the shelf")
	p.StringVar(&f.as, "as", "", "who follows the runbook, or sits at the console: a role of the policy, or a person of the scenario")
	f.seed = 1
	p.Var((*seedFlag)(&f.seed), "seed", "what chance is drawn from; the same seed gives the same run")
	p.IntVar(&f.speed, "speed", 1, fmt.Sprintf("at the console: how many times faster than real time, 1 to %d", maxSpeed))
	p.BoolVar(&f.auto, "auto", false, "nobody is asked: the scenario, or the runbook, acts")
	p.StringVar(&f.script, "script", "", "play the acts in this file")
	p.StringVar(&f.html, "html", "", "write the score card with the timeline drawn into this file")
	p.BoolVar(&f.baseline, "baseline", false, "play only what people did without ic")
	p.BoolVar(&f.all, "all", false, "play every scenario, and print a row for each")
	p.BoolVar(&f.list, "list", false, "list the scenarios")
	p.StringVar(&f.dir, "dir", "", "folder of your own scenarios, instead of those that ship")
	return cmd
}

// seedFlag is a seed as it is typed.
type seedFlag uint64

// String implements pflag.Value.
func (s *seedFlag) String() string { return strconv.FormatUint(uint64(*s), 10) }

// Type implements pflag.Value: a word for the help.
func (s *seedFlag) Type() string { return "number" }

// Set implements pflag.Value.
func (s *seedFlag) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return errors.New("a seed is a whole number from 0 to 18446744073709551615")
	}
	*s = seedFlag(n)
	return nil
}

// check refuses words that do not go together.
func (f *rehearsalFlags) check(args []string, terminal bool) error {
	whole := f.all || f.list
	switch {
	case f.all && f.list, whole && len(args) > 0:
		return fail(exitUsage, "--all, --list and a SCENARIO exclude each other")
	case whole && (f.with != "" || f.as != "" || f.script != "" || f.html != "" || f.baseline):
		return fail(exitUsage, "--with, --as, --script, --html and --baseline are for one SCENARIO")
	case whole:
		return nil
	case len(args) == 0:
		return fail(exitUsage, "which scenario?").hinting("ic rehearse --list shows those that ship")
	case f.script != "" && (f.with != "" || f.baseline):
		return fail(exitUsage, "--script says what is done: it does not go with --with or --baseline")
	case f.baseline && f.with != "":
		return fail(exitUsage, "a baseline is without ic: it follows no runbook")
	case f.speed < 1 || f.speed > maxSpeed:
		return fail(exitUsage, "--speed is 1 to %d times real time", maxSpeed)
	case !f.atConsole() && f.speed != 1:
		return fail(exitUsage, "--speed is for a person at the console: without one a rehearsal takes as long as it takes to compute")
	case f.as != "" && (f.script != "" || f.baseline):
		return fail(exitUsage, "--as says who follows a runbook, or who sits at the console: with --script or --baseline everybody acts as it is written")
	case f.atConsole() && !terminal:
		return fail(exitUsage, "nobody would act in this rehearsal: there is no terminal for a console").
			hinting("give --auto, which plays what the scenario says, or --script FILE with acts of your own")
	}
	return nil
}

// library is where scenarios are found by their names.
type library struct{ files fs.FS }

func (f *rehearsalFlags) library() library {
	if f.dir == "" {
		return library{scenarios.Files}
	}
	return library{os.DirFS(f.dir)}
}

func (l library) names() []string {
	files, err := fs.Glob(l.files, "*"+scenario.Extension)
	if err != nil {
		return nil // the pattern is ours and is well formed
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = strings.TrimSuffix(file, scenario.Extension)
	}
	return names
}

// read reads one by its name, or a file elsewhere by its path.
func (l library) read(word string) (*scenario.Scenario, error) {
	file := word
	var raw []byte
	var err error
	if strings.ContainsRune(word, filepath.Separator) || strings.HasSuffix(word, scenario.Extension) {
		raw, err = readSome(word, scenario.MaxBytes+1) // what is too long is said with its place
	} else {
		file = word + scenario.Extension
		raw, err = fs.ReadFile(l.files, file)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return nil, fail(exitUsage, "there is no scenario %s", untrusted.Text(word, maxAnswer)).
			hinting("ic rehearse --list shows them; a file elsewhere is named by its path")
	case err != nil:
		return nil, fail(exitUsage, "read the scenario: %w", err)
	}
	s, err := scenario.Parse(file, raw, scenario.Shop())
	if err == nil {
		err = s.Named(file)
	}
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	return s, nil
}

// shipped is one line of the list of scenarios.
type shipped struct {
	World  string `json:"world"`
	Name   string `json:"name"`
	Title  string `json:"title"`
	Source string `json:"source"`
}

func (a *app) listScenarios(l library) error {
	out := []shipped{}
	for _, name := range l.names() {
		s, err := l.read(name)
		if err != nil {
			return err
		}
		out = append(out, shipped{World: string(model.Rehearsing), Name: s.Name, Title: s.Title, Source: s.Source})
	}
	return a.print(out, func(w io.Writer) {
		for _, s := range out {
			fmt.Fprintf(w, "%s  %-32s %s\n", s.World, s.Name, s.Title)
		}
	})
}

// scripted is the scenario with other acts: the lines of a file in the place of
// its section "with ic". What is wrong with them is said with their own lines.
func scripted(s *scenario.Scenario, file string) (out *scenario.Scenario, digest string, err error) {
	raw, err := readSome(file, scenario.MaxBytes+1) // what is too long is said with its place
	if err != nil {
		return nil, "", fail(exitUsage, "read the script: %w", err)
	}
	without := *s
	without.Runbook, without.IC = "", nil
	const indent = "  "
	var text strings.Builder
	before, at := 0, 0
	for line := range strings.Lines(string(scenario.Format(&without))) {
		text.WriteString(line)
		at++
		if !strings.HasPrefix(line, "with ic") {
			continue
		}
		before = at
		for act := range strings.Lines(string(raw)) {
			text.WriteString(indent + strings.TrimRight(act, "\n") + "\n")
		}
	}
	out, err = scenario.Parse(file, []byte(text.String()), scenario.Shop())
	var wrong scenario.Errors
	if errors.As(err, &wrong) {
		wrong = slices.Clone(wrong)
		for i := range wrong {
			wrong[i].Line, wrong[i].Column = max(wrong[i].Line-before, 1), max(wrong[i].Column-len(indent), 1)
		}
		return nil, "", fail(exitUsage, "%w", wrong)
	}
	if err != nil {
		return nil, "", fail(exitUsage, "%w", err)
	}
	sum := sha256.Sum256(raw)
	return out, hex.EncodeToString(sum[:]), nil
}

// modesOf are the runs with ic that a scenario asks for.
func modesOf(s *scenario.Scenario) []score.Mode {
	modes := []score.Mode{score.WithIC}
	if slices.ContainsFunc(s.Expect, func(e scenario.Expectation) bool { return e.Mode == score.NoSecondBypass }) {
		modes = append(modes, score.NoSecondBypass)
	}
	return modes
}
