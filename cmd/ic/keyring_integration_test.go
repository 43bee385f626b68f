//go:build integration

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts in testdata/keyring are sessions in a desktop that has D-Bus and
// gnome-keyring. $BUS is the configuration of a bus that starts nothing by itself,
// $HOME is short enough for sockets.
//
//	IC_INTEGRATION=1 go test -tags integration ./cmd/ic -run Keyring
func TestKeyringSessions(t *testing.T) {
	for _, program := range []string{"dbus-run-session", "dbus-send", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if os.Getenv("IC_INTEGRATION") == "1" {
			t.Fatalf("%s is not on PATH, and IC_INTEGRATION=1 wants it: install %s", program, program)
		}
		t.Skipf("%s is not on PATH: install %s to run this test", program, program)
	}
	seat := t.TempDir()
	writeKeysSeat(t, seat)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "keyring"),
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			home, err := os.MkdirTemp("", "ic")
			if err != nil {
				return err
			}
			env.Defer(func() { os.RemoveAll(home) })
			env.Setenv("HOME", home)
			env.Setenv("XDG_DATA_HOME", filepath.Join(home, "data"))
			env.Setenv("XDG_RUNTIME_DIR", home)
			env.Setenv("IC_STATE_DIR", filepath.Join(env.WorkDir, "seat"))
			env.Setenv("BUS", filepath.Join(home, "bus.conf"))
			config := fmt.Sprintf("<busconfig><type>session</type><listen>unix:dir=%s</listen><auth>EXTERNAL</auth>"+
				"<policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>\n", home)
			if err := os.WriteFile(env.Getenv("BUS"), []byte(config), 0o600); err != nil {
				return err
			}
			return copySeat(filepath.Join(env.WorkDir, "seat"), seat)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "nowhere": nowhere},
	})
}
