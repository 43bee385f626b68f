package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/xpty"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/drill/world"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"
)

// The scripts in testdata are sessions at a shell. Besides ic itself they know
//
//	exits CODE PROGRAM...           run it and want this exit code, or one of several: 0,4
//	until SECONDS PATTERN PROGRAM   run it again and again until what it prints matches,
//	                                or, with exit=CODE, until it ends with this code or one of several
//	terminal ANSWER CODE PROGRAM    run it in a terminal, type ANSWER, want this exit code;
//	                                \n in it is Enter
//	isjson [-lines]                 the last output is one JSON value, or one in each line
//	keep NAME PATTERN               put what the group of PATTERN finds in the last output into $NAME
//	grab FILE PATTERN               write it into a file
//	flip FILE SHARE                 change one bit of the byte that stands at SHARE % of the file
//	swap FILE OLD NEW               put NEW in the place of OLD, which stands there once;
//	                                \n in them is the end of a line
//	promql QUERY                    a program: what the demo's Prometheus answers
//	holders ID                      a program: how many of the demo's hosts report a directive in force
//
// $WORK/seat is a seat before a production fleet: a signed policy, five keys, no
// flag service, no hosts. $WORK/shop is the same policy with the hosts in it.
// $SPEED is how fast a demo may run on this machine; $TODAY is the last midnight
// and $SOON the one in three months.
func TestSessions(t *testing.T) {
	seat, whole := t.TempDir(), t.TempDir()
	expires := time.Now().AddDate(1, 0, 0) // the same for both: one root
	writeSeat(t, seat, expires)
	today := time.Now().UTC().Truncate(24 * time.Hour)
	params := policytest.Params()
	params.Expires, params.Reviewed = expires, today
	policytest.Write(t, whole, params)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			// Nobody's own keyring is touched.
			env.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(env.WorkDir, "no-bus"))
			env.Setenv("SPEED", storySpeed)
			env.Setenv("TODAY", today.Format(time.RFC3339))
			env.Setenv("SOON", today.AddDate(0, 3, 0).Format(time.RFC3339))
			env.Defer(func() { endWorlds(env) })
			return errors.Join(copySeat(filepath.Join(env.WorkDir, "seat"), seat), os.CopyFS(filepath.Join(env.WorkDir, "shop"), os.DirFS(whole)))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "until": until, "terminal": terminal, "isjson": isJSON, "keep": keep, "grab": grab, "flip": flip, "swap": swap,
		},
	})
}

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ic":      main,
		"promql":  func() { program(promql) },
		"holders": func() { program(holders) },
	})
}

// scriptPatience bounds what a script starts, in real time.
const scriptPatience = 60 * time.Second

// writeSeat writes a state folder: configuration, keys, and a signed policy of a
// production fleet without hosts.
func writeSeat(t *testing.T, dir string, expires time.Time) {
	t.Helper()
	params := policytest.Params()
	params.Hosts, params.Expires = []policy.InventoryHost{}, expires
	opts := policytest.Write(t, filepath.Join(dir, "policy"), params)
	if err := os.Mkdir(filepath.Join(dir, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(templates.ShopPeople(), "stranger", templates.LadderController) {
		block, err := ssh.MarshalPrivateKey(policytest.PrivateKey(name), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "keys", name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := fmt.Sprintf("fleet: %s\nroot_sha256: %s\npolicy: policy\nperson: ines\nkey: keys/ines\n", opts.Fleet, opts.RootSHA256)
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// copySeat gives a script a seat of its own; a copy of a key would be open to
// everybody.
func copySeat(to, from string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	keys, err := filepath.Glob(filepath.Join(to, "keys", "*"))
	for _, key := range keys {
		err = errors.Join(err, os.Chmod(key, 0o600))
	}
	return err
}

// endWorlds ends every demo that a script has left behind, however it ended.
func endWorlds(env *testscript.Env) {
	found, err := filepath.Glob(filepath.Join(env.WorkDir, "*", world.InfoFile))
	if err != nil {
		env.T().Fatal(err)
	}
	for _, path := range found {
		state := filepath.Dir(path)
		info, err := world.ReadInfo(state)
		if err != nil || info == nil {
			continue
		}
		cmd := exec.Command("ic", "demo", "stop", "--state", state)
		cmd.Env = env.Vars
		if out, err := cmd.CombinedOutput(); err != nil {
			env.T().Log(fmt.Sprintf("ic demo stop: %v: %s: ended by force", err, out))
			_ = syscall.Kill(info.PID, syscall.SIGKILL)
		}
	}
}

// codeAfter runs a program for a script and returns its exit code; its output is
// what stdout and stderr then look at.
func codeAfter(ts *testscript.TestScript, args []string) int {
	if len(args) == 0 {
		ts.Fatalf("which program?")
	}
	err := ts.Exec(args[0], args[1:]...)
	var failed *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failed):
		return failed.ExitCode()
	}
	ts.Fatalf("%v", err)
	return -1
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM...")
	}
	if got := strconv.Itoa(codeAfter(ts, args[1:])); !slices.Contains(strings.Split(args[0], ","), got) {
		ts.Fatalf("%s: exit code %s, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: until SECONDS PATTERN PROGRAM...")
	}
	seconds, err := strconv.Atoi(args[0])
	ts.Check(err)
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	wanted, byCode := strings.CutPrefix(args[1], "exit=") // one code or several: 0,4
	deadline, tick := time.After(time.Duration(seconds)*time.Second), time.NewTicker(150*time.Millisecond)
	defer tick.Stop()
	for {
		code := codeAfter(ts, args[2:])
		if byCode && slices.Contains(strings.Split(wanted, ","), strconv.Itoa(code)) || !byCode && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%s: not %s within %s s; it ended with %d:\n%s%s", strings.Join(args[2:], " "), args[1], args[0],
				code, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
		}
	}
}

// terminal runs a program as a person does, and shows the screen when that was
// not what was wanted.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: terminal ANSWER CODE PROGRAM...")
	}
	path, err := exec.LookPath(args[2])
	ts.Check(err)
	tty, err := xpty.NewPty(120, 40)
	ts.Check(err)
	defer tty.Close()
	cmd := exec.Command(path, args[3:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environ(ts)
	ts.Check(tty.Start(cmd))
	screen := make(chan string, 1)
	go func() {
		var seen bytes.Buffer
		_, _ = io.Copy(&seen, tty) // ends with an error when the program is gone
		screen <- seen.String()
	}()
	_, err = io.WriteString(tty, strings.ReplaceAll(args[0], `\n`, "\r")+"\r")
	ts.Check(err)
	timer := time.AfterFunc(scriptPatience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait() // the exit code is looked at below
	tty.Close()
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("exit code %s, want %s; the screen:\n%s", got, args[1], <-screen)
	}
	ts.Logf("%s", <-screen)
}

// environ is the environment of a script, for a program that it does not start
// itself.
func environ(ts *testscript.TestScript) []string {
	var out []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "IC_STATE_DIR", "IC_PERSON", "IC_KEY", "DBUS_SESSION_BUS_ADDRESS"} {
		if v := ts.Getenv(name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	return append(out, "TERM=xterm-256color")
}

func isJSON(ts *testscript.TestScript, neg bool, args []string) {
	lines := len(args) == 1 && args[0] == "-lines"
	if neg || len(args) > 0 && !lines {
		ts.Fatalf("usage: isjson [-lines]")
	}
	text := ts.ReadFile("stdout")
	dec := json.NewDecoder(strings.NewReader(text))
	values := 0
	for {
		var v any
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			ts.Fatalf("this is no JSON: %v\n%s", err, text)
		}
		if key := untagged(v); key != "" {
			ts.Fatalf("the key %q is a name of Go, not of the format", key)
		}
		values++
	}
	switch {
	case !lines && values != 1:
		ts.Fatalf("%d JSON values, want 1:\n%s", values, text)
	case lines && (values == 0 || values != strings.Count(text, "\n")):
		ts.Fatalf("%d JSON values in %d lines:\n%s", values, strings.Count(text, "\n"), text)
	}
}

// untagged finds a key of JSON that looks like the name of a Go field.
func untagged(v any) string {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if key := untagged(e); key != "" {
				return key
			}
		}
	case map[string]any:
		for key, e := range v {
			if len(key) > 1 && key[0] >= 'A' && key[0] <= 'Z' && key != strings.ToUpper(key) {
				return key
			}
			if key := untagged(e); key != "" {
				return key
			}
		}
	}
	return ""
}

// found is what the only group of a pattern finds in the last output.
func found(ts *testscript.TestScript, pattern string) string {
	re, err := regexp.Compile("(?m)" + pattern)
	ts.Check(err)
	text := ts.ReadFile("stdout")
	match := re.FindStringSubmatch(text)
	if len(match) != 2 {
		ts.Fatalf("%s finds nothing, or has not one group, in:\n%s", pattern, text)
	}
	return match[1]
}

func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keep NAME PATTERN")
	}
	ts.Setenv(args[0], found(ts, args[1]))
}

func grab(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: grab FILE PATTERN")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(found(ts, args[1])+"\n"), 0o600))
}

func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flip FILE SHARE")
	}
	share, err := strconv.Atoi(args[1])
	ts.Check(err)
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) != 1 || share < 0 || share > 100 {
		ts.Fatalf("flip %v: want one file and a share from 0 to 100; files: %v", args, files)
	}
	raw, err := os.ReadFile(files[0])
	ts.Check(err)
	raw[(len(raw)-1)*share/100] ^= 1
	ts.Check(os.WriteFile(files[0], raw, 0o600))
}

func swap(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: swap FILE OLD NEW")
	}
	lines := strings.NewReplacer(`\n`, "\n")
	text, old, new := ts.ReadFile(args[0]), lines.Replace(args[1]), lines.Replace(args[2])
	if n := strings.Count(text, old); n != 1 {
		ts.Fatalf("%q stands %d times in %s", old, n, args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, old, new, 1)), 0o600))
}

// program is the main function of a small program for scripts.
func program(run func(info *world.Info, args []string) (string, error)) {
	info, err := world.ReadInfo(os.Getenv("IC_STATE_DIR"))
	if err == nil && info == nil {
		err = errors.New("no demo is running")
	}
	text := ""
	if err == nil {
		text, err = run(info, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(text)
}

func promql(info *world.Info, args []string) (string, error) {
	client, err := api.NewClient(api.Config{Address: info.Prometheus})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
	defer cancel()
	value, _, _, err := promv1.NewAPI(client).Query(ctx, strings.Join(args, " "), time.Time{})
	if err != nil {
		return "", err
	}
	return value.String(), nil
}

// holders counts the hosts that report a directive in force; every host has to
// answer.
func holders(info *world.Info, args []string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("usage: holders ID")
	}
	holding, all := 0, shop.Fleet(60)
	for _, spec := range all {
		resp, err := http.Get(info.Control + "/hosts/" + spec.Name + "/report")
		if err != nil {
			return "", err
		}
		var r model.Report
		err = json.NewDecoder(resp.Body).Decode(&r)
		resp.Body.Close()
		if err != nil {
			return "", fmt.Errorf("%s: %w", spec.Name, err)
		}
		for _, l := range r.Live {
			if l.ID == args[0] {
				holding++
			}
		}
	}
	return fmt.Sprintf("%d of %d", holding, len(all)), nil
}
