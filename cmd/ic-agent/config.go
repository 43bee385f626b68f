package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/model"
	"go.yaml.in/yaml/v3"
)

const (
	maxConfig = 64 << 10 // bytes of a configuration file
)

// Values of the settings clock and realm.
const (
	clockTrust   = "trust"
	clockRequire = "require-sync"
	realmLive    = "production"
	realmDrill   = "drill"
)

// config is everything an agent has to be told. Every key can stand in the file,
// in the environment as IC_<KEY>, and as a flag, in that order of increasing
// weight.
type config struct {
	fleet, host, services, rootSHA256, policy string
	state, etcd, file, stateFile, envFile     string
	listen, allowRemote                       string
	clock, realm, volatile, maxAge            string
}

// setting is one key and where it lands.
type setting struct {
	key, help string
	path      bool // relative to the file it stands in
	into      func(*config) *string
}

func settings() []setting {
	return []setting{
		{"fleet", "fleet that this host belongs to", false, func(c *config) *string { return &c.fleet }},
		{"host", "name of this host in the inventory", false, func(c *config) *string { return &c.host }},
		{"services", "services that run here, separated by commas", false, func(c *config) *string { return &c.services }},
		{"root_sha256", "SHA-256 of the first trust root, in hex", false, func(c *config) *string { return &c.rootSHA256 }},
		{"policy", "policy folder", true, func(c *config) *string { return &c.policy }},
		{"state", "state folder of this host alone", true, func(c *config) *string { return &c.state }},
		{"volatile", `"true": no state folder; opens nothing unless the right says so`, false, func(c *config) *string { return &c.volatile }},
		{"etcd", "endpoints of the flag service, separated by commas", false, func(c *config) *string { return &c.etcd }},
		{"file", "file of directives to watch", true, func(c *config) *string { return &c.file }},
		{"state_file", "file to keep up to date with what is in force, as JSON", true, func(c *config) *string { return &c.stateFile }},
		{"env_file", "file to keep up to date with what is in force, as KEY=VALUE lines", true, func(c *config) *string { return &c.envFile }},
		{"listen", "addresses to answer on, separated by commas: HOST:PORT on loopback, or unix:/PATH (" + defaultListen + "; exec: a free port)", false, func(c *config) *string { return &c.listen }},
		{"allow_remote", `"true": listen may name an address that is not loopback; reports only are answered there`, false, func(c *config) *string { return &c.allowRemote }},
		{"clock", `"trust" (the default) or "require-sync": opens nothing while the system calls its clock unsynchronised`, false, func(c *config) *string { return &c.clock }},
		{"realm", `"production" (the default) or "drill": whose signatures are believed`, false, func(c *config) *string { return &c.realm }},
		{"max_age", "age of a source from which /freshz fails (" + model.Duration(hostrun.DefaultMaxAge).String() + ")", false, func(c *config) *string { return &c.maxAge }},
	}
}

func (s setting) env() string {
	if s.key == "state" {
		return "IC_STATE_DIR"
	}
	return "IC_" + strings.ToUpper(s.key)
}

func (s setting) flag() string { return strings.ReplaceAll(s.key, "_", "-") }

// configEnv names the configuration file; a flag wins.
const (
	configEnv  = "IC_AGENT_CONFIG"
	configHelp = "configuration file"
)

// arguments are what a command line says.
type arguments struct {
	config
	command []string // behind "--"; nil: there is none
}

// readArgs makes the configuration from all three places. Help is written to
// help.
func readArgs(args []string, getenv func(string) string, help io.Writer) (arguments, error) {
	var a arguments
	args, a.command = atDashes(args)
	flags := flag.NewFlagSet("ic-agent", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // whoever called says what is wrong
	flags.Usage = func() {}
	path := flags.String("config", getenv(configEnv), configHelp)
	given := make(map[string]*string)
	for _, s := range settings() {
		given[s.flag()] = flags.String(s.flag(), "", s.help)
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			writeHelp(help)
		}
		return a, err
	}
	if flags.NArg() > 0 {
		return a, fmt.Errorf("there is no command %q; see ic-agent -h", flags.Arg(0))
	}
	if *path != "" {
		var err error
		if a.config, err = readConfig(*path); err != nil {
			return a, err
		}
	}
	for _, s := range settings() {
		if v := getenv(s.env()); v != "" {
			*s.into(&a.config) = v
		}
	}
	flags.Visit(func(f *flag.Flag) {
		for _, s := range settings() {
			if s.flag() == f.Name {
				*s.into(&a.config) = *given[f.Name]
			}
		}
	})
	return a, a.check()
}

// atDashes cuts at the first "--". What stands behind it is a program's.
func atDashes(args []string) (own, command []string) {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i], args[i+1:]
	}
	return args, nil
}

// check finds what is missing or cannot be meant.
func (c *config) check() error {
	for _, s := range settings() {
		if slices.Contains([]string{"fleet", "host", "services", "root_sha256", "policy"}, s.key) && *s.into(c) == "" {
			return fmt.Errorf("%s is not set: %s; give -%s, %s or a line in the configuration file", s.key, s.help, s.flag(), s.env())
		}
	}
	for _, one := range []struct {
		key, value string
		may        []string
	}{
		{"clock", c.clock, []string{"", clockTrust, clockRequire}},
		{"realm", c.realm, []string{"", realmLive, realmDrill}},
		{"volatile", c.volatile, []string{"", "true", "false"}},
		{"allow_remote", c.allowRemote, []string{"", "true", "false"}},
	} {
		if !slices.Contains(one.may, one.value) {
			return fmt.Errorf("%s is %q, want %q or %q", one.key, one.value, one.may[1], one.may[2])
		}
	}
	if (c.state == "") != (c.volatile == "true") {
		return errors.New(`a host has a state folder (state), or says "volatile: true" and forgets everything at its end`)
	}
	if _, err := c.age(); err != nil {
		return err
	}
	_, err := c.addresses("")
	return err
}

// settings of the host that runs by this configuration.
func (c *config) hostSettings(directives string, tell func(string)) hostrun.Settings {
	return hostrun.Settings{
		Fleet: c.fleet, Name: c.host, Services: list(c.services), Policy: c.policy, RootSHA256: c.rootSHA256, State: c.state,
		Etcd: list(c.etcd), File: c.file, Directives: directives, StateFile: c.stateFile, EnvFile: c.envFile,
		RequireSync: c.clock == clockRequire, Drill: c.realm == realmDrill, Tell: tell,
	}
}

func (c *config) age() (time.Duration, error) {
	if c.maxAge == "" {
		return hostrun.DefaultMaxAge, nil
	}
	d, err := model.ParseDuration(c.maxAge)
	if err == nil && d < model.Duration(time.Second) {
		err = errors.New("at least one second")
	}
	if err != nil {
		return 0, fmt.Errorf("max_age: %w", err)
	}
	return d.Std(), nil
}

// list splits what is separated by commas.
func list(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func readConfig(path string) (config, error) {
	info, err := os.Stat(path)
	if err != nil {
		return config{}, fmt.Errorf("read configuration: %w", err)
	}
	if info.Size() > maxConfig {
		return config{}, fmt.Errorf("read configuration %s: %d bytes, at most %d", path, info.Size(), maxConfig)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return config{}, fmt.Errorf("read configuration: %w", err)
	}
	return parseConfig(path, raw)
}

// parseConfig takes keys with one text each, and nothing that it does not know.
func parseConfig(path string, raw []byte) (config, error) {
	var c config
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	if len(doc.Content) == 0 {
		return c, nil
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return c, fmt.Errorf("%s:%d:%d: want keys and values, like \"fleet: shop\"", path, top.Line, top.Column)
	}
	known, seen := settings(), map[string]bool{}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		at := slices.IndexFunc(known, func(s setting) bool { return s.key == key.Value })
		switch {
		case at < 0:
			return c, fmt.Errorf("%s:%d:%d: unknown key %q", path, key.Line, key.Column, key.Value)
		case seen[key.Value]:
			return c, fmt.Errorf("%s:%d:%d: key %q stands twice", path, key.Line, key.Column, key.Value)
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			return c, fmt.Errorf("%s:%d:%d: %s wants one text", path, value.Line, value.Column, key.Value)
		}
		seen[key.Value] = true
		text := value.Value
		if known[at].path && text != "" && !filepath.IsAbs(text) {
			text = filepath.Join(filepath.Dir(path), text)
		}
		*known[at].into(&c) = text
	}
	return c, nil
}
