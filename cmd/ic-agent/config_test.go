package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const complete = "fleet: shop\nhost: checkout-01\nservices: checkout, edge\nroot_sha256: abc\npolicy: policy\nstate: /var/lib/ic\n"

func none(string) string { return "" }

func TestSettingsComeFromFileEnvironmentAndFlagsInThatOrder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(path, []byte(complete+"max_age: 90s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"IC_AGENT_CONFIG": path, "IC_HOST": "checkout-02", "IC_STATE_DIR": "/srv/ic"}
	c, err := readArgs([]string{"-host", "checkout-03", "-etcd", "http://a:1,http://b:2"}, func(k string) string { return env[k] }, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if c.fleet != "shop" || c.host != "checkout-03" || c.state != "/srv/ic" || c.policy != filepath.Join(dir, "policy") || c.listenOn() != defaultListen {
		t.Errorf("configuration: %+v", c)
	}
	if s := list(c.services); len(s) != 2 || s[0] != "checkout" || s[1] != "edge" || len(list(c.etcd)) != 2 {
		t.Errorf("lists: %q, %q", c.services, c.etcd)
	}
	if age, err := c.age(); err != nil || age != 90*time.Second {
		t.Errorf("max_age: %s, %v", age, err)
	}
}

func TestAConfigurationThatCannotBeMeantIsNamed(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an unknown key":       {complete + "stat: x\n", ":7:1: unknown key \"stat\""},
		"a key twice":          {complete + "host: x\n", ":7:1: key \"host\" stands twice"},
		"a list":               {complete + "etcd: [a]\n", ":7:7: etcd wants one text"},
		"nothing":              {complete + "etcd:\n", "etcd wants one text"},
		"no mapping":           {"- fleet\n", ":1:1: want keys"},
		"broken":               {"a: [\n", "yaml"},
		"no fleet":             {strings.Replace(complete, "fleet: shop\n", "", 1), "fleet is not set"},
		"no state":             {strings.Replace(complete, "state: /var/lib/ic\n", "", 1), "volatile: true"},
		"state and volatile":   {complete + "volatile: true\n", "volatile: true"},
		"another clock":        {complete + "clock: sundial\n", `clock is "sundial"`},
		"another realm":        {complete + "realm: test\n", `realm is "test"`},
		"an age without unit":  {complete + "max_age: 90\n", "max_age"},
		"no age":               {complete + "max_age: 0s\n", "max_age"},
		"volatile, said badly": {complete + "volatile: perhaps\n", `volatile is "perhaps"`},
	} {
		path := filepath.Join(t.TempDir(), "agent.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := run(context.Background(), []string{"-config", path}, none, &out, &errs)
		if code != exitUsage || !strings.Contains(errs.String(), c.want) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: code %d, said %q, want %q", name, code, errs.String(), c.want)
		}
	}
}

func TestWordsThatAreNoFlags(t *testing.T) {
	for name, c := range map[string]struct {
		args      []string
		code      int
		out, errs string
	}{
		"version":         {[]string{"version"}, exitDone, "ic-agent ", ""},
		"help":            {[]string{"-h"}, exitDone, "", "-root-sha256"},
		"a command":       {[]string{"push"}, exitUsage, "", `no command "push"`},
		"an unknown flag": {[]string{"-force"}, exitUsage, "", "force"},
		"no such file":    {[]string{"-config", "/nowhere/agent.yaml"}, exitUsage, "", "no such file"},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), c.args, none, &out, &errs); code != c.code ||
			!strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
			t.Errorf("%s: code %d, out %q, said %q", name, code, out.String(), errs.String())
		}
	}
}
