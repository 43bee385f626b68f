package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// initialised is what ic init has done.
type initialised struct {
	Config string `json:"config"`
	State  string `json:"state"`
	Joined bool   `json:"joined"` // the policy was there already
	Public string `json:"public"` // the line of our key for the trust root
	started
	Next []string `json:"next"`
}

func (a *app) initCmd() *cobra.Command {
	var s starting
	cmd := &cobra.Command{
		Use:   "init",
		Short: "First run: your key, a policy to begin with, and the configuration",
		Long: `Set this console up: ask for what was not said, make a key if none is named, start a policy
out of a template, and write the configuration. With --policy and --root-sha256 a policy that
is there already is joined instead. What is there is never replaced.`,
		Example: `  ic init
  ic init --yes --fleet acme --person sam --template shop --no-passphrase
  ic init --yes --fleet acme --person fiona --key agent --policy /srv/policy --root-sha256 HEX`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := a.told(cmd)
			if err != nil {
				return err
			}
			if _, err := os.Lstat(w.config); !errors.Is(err, fs.ErrNotExist) {
				return fail(exitUsage, "%s is there: this console is set up, and it is not replaced", w.config).hinting("ic status looks around; --state names another state folder")
			}
			c := w.over(config{}, a.getenv)
			c.Policy = orElse(c.Policy, filepath.Join(c.State, "policy"))
			out, err := a.initialise(cmd.Context(), c, s, w.config)
			if err != nil {
				return err
			}
			out.next(w.state != defaultState(a.getenv) && w.flags["state"] != "")
			return a.print(out, func(w io.Writer) { out.print(w) })
		},
	}
	s.flags(cmd)
	return cmd
}

func (a *app) initialise(ctx context.Context, c config, s starting, path string) (initialised, error) {
	out := initialised{Config: path, State: c.State}
	_, err := os.Lstat(c.Policy)
	out.Joined = err == nil && c.RootSHA256 != ""
	if err := a.askFor(&c, &s, out.Joined); err != nil {
		return out, err
	}
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		return out, fail(exitFailed, "make the state folder: %w", err)
	}
	if out.Joined {
		out.started, err = a.joinPolicy(ctx, &c, s)
	} else {
		out.started, err = a.startPolicy(ctx, c, s)
	}
	if err != nil {
		return out, err
	}
	c.Key, c.RootSHA256, out.Public = out.Key, out.RootSHA256, out.public
	return out, writeConfig(path, c)
}

// askFor asks for what was not said, where there is somebody to ask.
func (a *app) askFor(c *config, s *starting, joined bool) error {
	type question struct {
		what, proposal string
		into           *string
	}
	questions := []question{{"fleet (a name for what you run)", "", &c.Fleet}, {"person (your name in it)", a.getenv("USER"), &c.Person}}
	if !joined {
		questions = append(questions, question{"template (" + strings.Join(templates.Names(), ", ") + ")", "shop", &s.template})
	}
	for _, q := range questions {
		if *q.into != "" {
			continue
		}
		word, _, _ := strings.Cut(q.what, " ")
		if a.yes || !a.terminal() {
			return fail(exitUsage, "which %s?", word).hinting("--%s; without a terminal, or with --yes, nobody is asked", word)
		}
		fmt.Fprintf(a.err, "%s%s: ", q.what, bracketed(q.proposal))
		answer, err := readLine(a.in)
		if err != nil {
			return fail(exitInterrupted, "stopped: nothing was done")
		}
		*q.into = orElse(strings.TrimSpace(answer), q.proposal)
	}
	return nil
}

func bracketed(proposal string) string {
	if proposal == "" {
		return ""
	}
	return " [" + proposal + "]"
}

// joinPolicy takes a policy that others have made. The pin is not taken from the
// folder: whoever could change the folder could change it too.
func (a *app) joinPolicy(ctx context.Context, c *config, s starting) (started, error) {
	out := started{Fleet: c.Fleet, Person: c.Person, Policy: c.Policy, RootSHA256: c.RootSHA256}
	if err := errors.Join(nameable("fleet", c.Fleet), nameable("person", c.Person)); err != nil {
		return out, err
	}
	switch pin, err := pinOf(c.Policy); {
	case err != nil:
		return out, fail(exitUsage, "read the policy: %w", err)
	case pin != c.RootSHA256:
		return out, fail(exitIntegrity, "the first root of %s has the SHA-256 %s, you were given %s", c.Policy, pin, c.RootSHA256)
	}
	key, _, err := a.starterKey(ctx, c, s.key)
	out.Key, out.NewKey = c.Key, key.made
	if err == nil {
		out.public = keys.Line(key.Public)
	}
	return out, err
}

func (i *initialised) next(elsewhere bool) {
	i.Next = []string{"ic can", "ic shed 1 --reason 'try it'", "ic policy invite NAME"}
	if len(i.Runbooks) > 0 {
		i.Next = append(i.Next, "ic runbook list")
	}
	if i.Joined {
		i.Next = []string{"ic keys check", "ic policy inspect", "ic can"}
	}
	if elsewhere {
		for n := range i.Next {
			i.Next[n] += " --state " + quoted(i.State)
		}
	}
}

func (i *initialised) print(w io.Writer) {
	verb := "started"
	if i.Joined {
		verb = "joined"
	}
	fmt.Fprintf(w, "%s: %s of %s\n", i.Config, i.Person, i.Fleet)
	fmt.Fprintf(w, "  policy  %s (%s), root %s\n", i.Policy, verb, i.RootSHA256)
	if i.NewKey {
		fmt.Fprintf(w, "  key     %s (new)\n", i.Key)
	} else {
		fmt.Fprintf(w, "  key     %s\n", i.Key)
	}
	fmt.Fprintf(w, "  state   %s\n", i.State)
	i.givenRunbooks.print(w)
	if i.Joined && i.NewKey {
		fmt.Fprintf(w, "send this to whoever keeps the policy, for ic policy invite %s --add:\n  %s\n", i.Person, i.Public)
	}
	fmt.Fprintf(w, "next:\n  %s\n", strings.Join(i.Next, "\n  "))
}

// writeConfig writes a new configuration file, with paths relative to it where
// they lie below: the folder can be moved.
func writeConfig(path string, c config) error {
	doc := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range settings {
		value := *s.into(&c)
		if value == "" || s.key == "state" && filepath.Clean(value) == filepath.Dir(path) {
			continue
		}
		if s.path && value != agentKey {
			value = beside(path, value)
		}
		doc.Content = append(doc.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: s.key}, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value})
	}
	text, err := yaml.Marshal(doc)
	if err != nil {
		return fail(exitFailed, "write the configuration: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fail(exitFailed, "write the configuration: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fail(exitFailed, "write the configuration: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fail(exitFailed, "write the configuration: %w", err)
	}
	return nil
}

// beside is a path as it stands in the configuration at config: absolute, or
// relative when it lies below.
func beside(config, path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	dir, err := filepath.Abs(filepath.Dir(config))
	if err != nil {
		return abs
	}
	if rel, err := filepath.Rel(dir, abs); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return abs
}
