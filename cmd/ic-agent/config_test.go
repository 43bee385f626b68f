package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const complete = "fleet: shop\nhost: checkout-01\nservices: checkout, edge\nroot_sha256: abc\npolicy: policy\nstate: /var/lib/ic\n"

func TestSettingsComeFromFileEnvironmentAndFlagsInThatOrder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(path, []byte(complete+"max_age: 90s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"IC_AGENT_CONFIG": path, "IC_HOST": "checkout-02", "IC_STATE_DIR": "/srv/ic"}
	a, err := readArgs([]string{"-host", "checkout-03", "--etcd", "http://a:1,http://b:2", "--", "serve", "-host", "x"}, func(k string) string { return env[k] }, &bytes.Buffer{})
	c := a.config
	if err != nil {
		t.Fatal(err)
	}
	if c.fleet != "shop" || c.host != "checkout-03" || c.state != "/srv/ic" || c.policy != filepath.Join(dir, "policy") || !slices.Equal(a.command, []string{"serve", "-host", "x"}) {
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
		"everybody may ask":    {complete + "listen: 0.0.0.0:7420\n", "others than this machine would reach it"},
		"everybody, briefly":   {complete + "listen: :7420\n", "others than this machine would reach it"},
		"a name":               {complete + "listen: checkout-01:7420\n", "allow_remote"},
		"one of two":           {complete + "listen: 127.0.0.1:7420, 192.0.2.7:7420\n", "listen 192.0.2.7:7420"},
		"no port":              {complete + "listen: 127.0.0.1\n", "missing port"},
		"a socket nowhere":     {complete + "listen: unix:agent.sock\n", "absolute path"},
		"many addresses":       {complete + "listen: " + strings.Repeat("127.0.0.1:1,", 9) + "\n", "at most 8"},
	} {
		path := filepath.Join(t.TempDir(), "agent.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := run([]string{"-config", path}, process{}, &out, &errs)
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
		"version":          {[]string{"version"}, exitDone, "ic-agent ", ""},
		"version, as JSON": {[]string{"version", "--json"}, exitDone, `{"engine":1,"version":"`, ""},
		"version of what":  {[]string{"version", "all"}, exitUsage, "", `"all"`},
		"help":             {[]string{"-h"}, exitDone, "-root-sha256 (IC_ROOT_SHA256", ""},
		"help of exec":     {[]string{"exec", "--help"}, exitDone, "exec [flags] -- CMD", ""},
		"help as a word":   {[]string{"help"}, exitDone, "Exit codes", ""},
		"a page":           {[]string{"man"}, exitDone, ".SH EXIT STATUS", ""},
		"a command":        {[]string{"push"}, exitUsage, "", `no command "push"`},
		"an unknown flag":  {[]string{"-force"}, exitUsage, "", "force"},
		"no such file":     {[]string{"-config", "/nowhere/agent.yaml"}, exitUsage, "", "no such file"},
		"exec without CMD": {[]string{"exec", "-config", "CONFIG"}, exitUsage, "", "exec runs a program"},
		"exec without --":  {[]string{"exec", "-config", "CONFIG", "true"}, exitUsage, "", `no command "true"`},
		"CMD without exec": {[]string{"-config", "CONFIG", "--", "true"}, exitUsage, "", "say exec"},
	} {
		path := filepath.Join(t.TempDir(), "agent.yaml")
		if err := os.WriteFile(path, []byte(complete), 0o600); err != nil {
			t.Fatal(err)
		}
		for i, arg := range c.args {
			if arg == "CONFIG" {
				c.args[i] = path
			}
		}
		var out, errs bytes.Buffer
		code := run(c.args, process{}, &out, &errs)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) ||
			(code == exitDone) != (errs.Len() == 0) || (code == exitDone) != (out.Len() > 0) {
			t.Errorf("%s: code %d, out %q, said %q", name, code, out.String(), errs.String())
		}
	}
}

func TestWhatIsHelpedWithIsWhatThereIs(t *testing.T) {
	var help, page bytes.Buffer
	writeHelp(&help)
	writeMan(&page, "v1")
	for _, s := range settings() {
		if !strings.Contains(help.String(), "-"+s.flag()+" ("+s.env()) || !strings.Contains(page.String(), roff("-"+s.flag())+"\n") {
			t.Errorf("nothing helps with %s", s.key)
		}
	}
	for i, line := range strings.Split(help.String(), "\n") {
		if len(line) > helpWidth {
			t.Errorf("line %d of the help has %d bytes", i+1, len(line))
		}
	}
	if roff(`.x\y-z`) != `\&.x\ey\-z` {
		t.Errorf("roff gives a text a meaning: %s", roff(`.x\y-z`))
	}
}

func TestOthersAreReachedOnlyWhenThatWasAllowed(t *testing.T) {
	c := config{listen: "0.0.0.0:7420, [::1]:7420, localhost:7421, unix:/run/ic/agent.sock", allowRemote: "true"}
	all, err := c.addresses("")
	if err != nil || len(all) != 4 || all[3] != (address{"unix", "/run/ic/agent.sock"}) {
		t.Errorf("%v, %v", all, err)
	}
	c = config{}
	if all, err := c.addresses(defaultListen); err != nil || len(all) != 1 || all[0].String() != "http://127.0.0.1:7420" {
		t.Errorf("%v, %v", all, err)
	}
}

func TestAProgramIsToldTheNearestAddress(t *testing.T) {
	for _, c := range []struct{ answers, want string }{
		{"http://127.0.0.1:1", "http://127.0.0.1:1"},
		{"http://127.0.0.1:1 unix:/run/a.sock", "unix:/run/a.sock"},
		{"http://192.0.2.7:1 http://[::1]:2", "http://[::1]:2"},
		{"http://[::]:7420", "http://127.0.0.1:7420"},
		{"http://192.0.2.7:1", ""},
	} {
		if got := nearest(strings.Fields(c.answers)); got != c.want {
			t.Errorf("of %s it is told %q, want %q", c.answers, got, c.want)
		}
	}
}

func TestOnlyTheAgentSpeaksForDirectives(t *testing.T) {
	got := withoutOurs([]string{"PATH=/bin", "IC_TIER_CHECKOUT=0", "IC_OFF_REVIEWS=0", "IC_AGENT=http://evil", "IC_CONDITION=ok", "IC_DIRECTIVES=ic1.a.b", "IC_HOST=x", "IC_AS_OF=now"})
	if want := []string{"PATH=/bin", "IC_DIRECTIVES=ic1.a.b", "IC_HOST=x"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
