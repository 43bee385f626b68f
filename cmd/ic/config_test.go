package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAConfigurationIsReadWithPathsFromWhereItStands(t *testing.T) {
	got, err := parseConfig("/etc/ic/config.yaml", []byte(`# of the shop
fleet: shop
root_sha256: "0123456789"
policy: policy
state: /var/lib/ic
person: ines
key: agent
etcd: http://a:2379,http://b:2379
prometheus: http://p:9090
inventory: ../hosts.yaml
`))
	want := config{
		Fleet: "shop", RootSHA256: "0123456789", Policy: "/etc/ic/policy", State: "/var/lib/ic", Person: "ines", Key: "agent",
		Etcd: "http://a:2379,http://b:2379", Prometheus: "http://p:9090", Inventory: "/etc/hosts.yaml",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// A digest may look like a number and a name like a boolean: what was written is
// taken as it stands.
func TestAScalarIsTextWhateverItLooksLike(t *testing.T) {
	got, err := parseConfig("c", []byte("fleet: on\nperson: 007\nroot_sha256: 1234e5678\n"))
	if want := (config{Fleet: "on", Person: "007", RootSHA256: "1234e5678"}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAConfigurationThatIsNotUnderstoodSaysWhere(t *testing.T) {
	for text, want := range map[string]string{
		"fleet: a\nflet: b\n":         `c:2:1: unknown key "flet"; known are fleet, `,
		"fleet: a\nfleet: a\n":        `c:2:1: key "fleet" stands twice`,
		"fleet:\n  name: a\n":         "c:2:3: fleet wants one text",
		"etcd: [a, b]\n":              "c:1:7: etcd wants one text",
		"fleet:\n":                    "fleet wants one text",
		"- fleet\n":                   "c:1:1: want keys and values",
		"fleet: a\n---\nfleet: b\n":   "c:2:1: a second document",
		"fleet: \"a\n":                "c: yaml: ",
		"fleet: a\n---\nfleet: \"b\n": "c: yaml: ",
	} {
		if got, err := parseConfig("c", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "\n", "# nothing yet\n", "---\n# nothing\n"} {
		if got, err := parseConfig("c", []byte(text)); err != nil || got != (config{}) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestAMissingFileIsAnErrorOnlyWhenItWasNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if c, err := readConfig(path, false); err != nil || c != (config{}) {
		t.Errorf("not named: %+v, %v", c, err)
	}
	if _, err := readConfig(path, true); err == nil {
		t.Error("a file that was named is missing, and nobody is told")
	}
	if err := os.WriteFile(path, make([]byte, maxConfig+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readConfig(path, false); err == nil || !strings.Contains(err.Error(), "at most 65536") {
		t.Errorf("a file that is too long: %v", err)
	}
}

func TestTheEnvironmentWeighsMoreThanTheFileAndAFlagMore(t *testing.T) {
	for _, s := range settings {
		c := config{}
		*s.into(&c) = "file"
		c.overlay(environment(nil), nil)
		if got := *s.into(&c); got != "file" {
			t.Errorf("%s: nothing said replaces the file's value by %q", s.key, got)
		}
		c.overlay(environment(map[string]string{s.env(): "env"}), nil)
		if got := *s.into(&c); got != "env" {
			t.Errorf("%s: over %s stands %q", s.key, s.env(), got)
		}
		c.overlay(environment(map[string]string{s.env(): "env"}), map[string]string{s.key: "flag"})
		if got := *s.into(&c); got != "flag" {
			t.Errorf("%s: over --%s stands %q", s.key, s.flag(), got)
		}
	}
}

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestTheStateFolderIsTheUsersOwn(t *testing.T) {
	for _, c := range []struct {
		vars map[string]string
		want string
	}{
		{map[string]string{"XDG_STATE_HOME": "/state", "HOME": "/home/ines"}, "/state/ic"},
		{map[string]string{"XDG_STATE_HOME": "relative", "HOME": "/home/ines"}, "/home/ines/.local/state/ic"},
		{map[string]string{"HOME": "/home/ines"}, "/home/ines/.local/state/ic"},
		{nil, ""},
	} {
		if got := defaultState(environment(c.vars)); got != c.want {
			t.Errorf("%v: %q, want %q", c.vars, got, c.want)
		}
	}
}
