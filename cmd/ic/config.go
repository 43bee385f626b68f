package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxConfig bounds a configuration file in bytes: nine keys fit a thousand times.
const maxConfig = 64 << 10

// config is everything a console has to be told. Every key can stand in the
// file, in the environment as IC_<KEY>, and as a flag, in that order of
// increasing weight.
type config struct {
	Fleet      string
	RootSHA256 string
	Policy     string // folder
	State      string // folder
	Person     string
	Key        string // private key file, or "agent"
	Etcd       string // endpoints, separated by commas
	Prometheus string // URL
	Inventory  string // file; "" takes the inventory of the policy
	Tokens     string // age file that a person has chosen; "" has the keyring only
}

// setting is one key of the configuration and where it lands.
type setting struct {
	key, help string
	path      bool // relative to the file it stands in
	into      func(*config) *string
}

var settings = []setting{
	{"fleet", "fleet whose directives are given here", false, func(c *config) *string { return &c.Fleet }},
	{"root_sha256", "SHA-256 of the first trust root, in hex", false, func(c *config) *string { return &c.RootSHA256 }},
	{"policy", "policy folder", true, func(c *config) *string { return &c.Policy }},
	{"state", "state folder: logs, sessions", true, func(c *config) *string { return &c.State }},
	{"person", "your name in the trust root", false, func(c *config) *string { return &c.Person }},
	{"key", `private key file, or "agent" for ssh-agent`, true, func(c *config) *string { return &c.Key }},
	{"etcd", "endpoints of the flag service, separated by commas", false, func(c *config) *string { return &c.Etcd }},
	{"prometheus", "URL of Prometheus", false, func(c *config) *string { return &c.Prometheus }},
	{"inventory", "inventory file, instead of the one in the policy", true, func(c *config) *string { return &c.Inventory }},
	{"tokens", "age file that keeps tokens where there is no keyring", true, func(c *config) *string { return &c.Tokens }},
}

func (s setting) env() string {
	if s.key == "state" {
		return "IC_STATE_DIR"
	}
	return "IC_" + strings.ToUpper(s.key)
}

func (s setting) flag() string { return strings.ReplaceAll(s.key, "_", "-") }

// agentKey is the value of key that means ssh-agent.
const agentKey = "agent"

// readConfig reads a configuration file. A missing file is not an error unless
// it was named: the environment and the flags may say everything.
func readConfig(path string, named bool) (config, error) {
	var c config
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read configuration: %w", err)
	}
	if info.Size() > maxConfig {
		return c, fmt.Errorf("read configuration %s: %d bytes, at most %d", path, info.Size(), maxConfig)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("read configuration: %w", err)
	}
	return parseConfig(path, raw)
}

func parseConfig(path string, raw []byte) (config, error) {
	var c config
	var doc, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return c, nil // empty, or nothing but comments
	case err != nil:
		return c, fmt.Errorf("%s: %w", path, err)
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		return c, fmt.Errorf("%s:%d:%d: a second document: a configuration is one", path, more.Line, more.Column)
	case !errors.Is(err, io.EOF):
		return c, fmt.Errorf("%s: %w", path, err)
	}
	top := doc.Content[0]
	if top.Tag == "!!null" {
		return c, nil
	}
	if top.Kind != yaml.MappingNode {
		return c, fmt.Errorf("%s:%d:%d: want keys and values, like \"fleet: shop\"", path, top.Line, top.Column)
	}
	var seen []string
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		at := slices.IndexFunc(settings, func(s setting) bool { return s.key == key.Value })
		switch {
		case at < 0:
			return c, fmt.Errorf("%s:%d:%d: unknown key %q; known are %s", path, key.Line, key.Column, key.Value, knownKeys())
		case slices.Contains(seen, key.Value):
			return c, fmt.Errorf("%s:%d:%d: key %q stands twice", path, key.Line, key.Column, key.Value)
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			return c, fmt.Errorf("%s:%d:%d: %s wants one text", path, value.Line, value.Column, key.Value)
		}
		seen = append(seen, key.Value)
		text := value.Value
		if settings[at].path && text != agentKey && text != "" && !filepath.IsAbs(text) {
			text = filepath.Join(filepath.Dir(path), text)
		}
		*settings[at].into(&c) = text
	}
	return c, nil
}

func knownKeys() string {
	names := make([]string, len(settings))
	for i, s := range settings {
		names[i] = s.key
	}
	return strings.Join(names, ", ")
}

// overlay puts the values of the environment and of flags over a file's.
func (c *config) overlay(getenv func(string) string, flags map[string]string) {
	for _, s := range settings {
		if v := getenv(s.env()); v != "" {
			*s.into(c) = v
		}
		if v, ok := flags[s.key]; ok {
			*s.into(c) = v
		}
	}
}

// defaultState is the state folder when none was named: under XDG_STATE_HOME,
// else ~/.local/state.
func defaultState(getenv func(string) string) string {
	if base := getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "ic")
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "ic")
	}
	return ""
}
