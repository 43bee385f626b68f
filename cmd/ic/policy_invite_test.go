package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/policy"
)

// stock finds a program of the system. Under IC_INTEGRATION=1 a missing one is a
// failure.
func stock(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("IC_INTEGRATION") == "1" {
		t.Fatalf("%s is not installed", program)
	}
	t.Skipf("%s is not installed", program)
}

// atSeat runs a command of ic in a state folder and returns what it printed.
func atSeat(t *testing.T, state string, args ...string) string {
	t.Helper()
	a, out, said := quiet("")
	if code := run(t.Context(), append(args, "--state", state), a); code != exitDone {
		t.Fatalf("ic %s: exit code %d: %s%s", strings.Join(args, " "), code, out, said)
	}
	return out.String()
}

// Somebody with OpenSSH and nothing else types what was printed, letter for
// letter, and the signature counts.
func TestTheInvitationWorksWithStockOpenSSH(t *testing.T) {
	stock(t, "ssh-keygen")
	state, home, mail := t.TempDir(), t.TempDir(), t.TempDir()
	writeSeat(t, state, time.Now().AddDate(1, 0, 0))
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	// typed is what a person types at a shell, with the passphrase that is asked for.
	typed := func(line string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.SysProcAttr = ownSession() // without a terminal the passphrase comes from standard input
		cmd.Dir, cmd.Env = mail, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		cmd.Stdin = strings.NewReader("correct horse\ncorrect horse\n")
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s%s", line, err, out, said.String())
		}
		return strings.TrimSpace(string(out))
	}
	var there invitation
	read := func(args ...string) {
		t.Helper()
		there = invitation{}
		if err := json.Unmarshal([]byte(atSeat(t, state, append(args, "--json")...)), &there); err != nil {
			t.Fatal(err)
		}
	}

	// Kim comes into the root.
	read("policy", "invite", "kim")
	typed(there.Make)
	line := typed(there.Show)
	atSeat(t, state, "policy", "invite", "kim", "--add", line, "--group", "finance", "--group", "everyone", "--reach", "by phone")

	// What waits for Kim is named, each file in its own namespace, and signed.
	read("policy", "invite", "kim")
	var files []string
	for _, s := range there.Sign {
		files = append(files, s.File)
		sent := filepath.Join(mail, filepath.Base(s.File))
		raw, err := os.ReadFile(filepath.Join(state, "policy.staged", s.File))
		if err := errors.Join(err, os.WriteFile(sent, raw, 0o600)); err != nil {
			t.Fatal(err)
		}
		typed(s.There)
		here := strings.Fields(strings.Replace(s.Here, "--signature ", "--signature "+mail+"/", 1))
		atSeat(t, state, here[1:]...)
		if err := os.Remove(sent); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(files, " "); got != "payments.yaml roots/2.yaml" {
		t.Errorf("waiting for kim: %s", got)
	}
	if there.Add != "" {
		t.Errorf("kim is in the next root already: %s", there.Add)
	}

	// Nobody else's signature is needed for what Kim signed as the third.
	for _, person := range []string{"ines", "dev", "fiona"} {
		atSeat(t, state, "policy", "sign", "roots/2.yaml", "--as", person, "--key", filepath.Join(state, "keys", person))
	}
	atSeat(t, state, "policy", "sign", "manifest.yaml")
	atSeat(t, state, "policy", "apply")
	root, err := policy.NewestRoot(filepath.Join(state, "policy"))
	if err != nil || !root.InGroup("finance", "kim") || !strings.HasPrefix(line, root.People["kim"].Keys[0]) {
		t.Errorf("root %+v, %v", root, err)
	}
	if out := atSeat(t, state, "policy", "inspect"); !strings.Contains(out, "fiona, kim, ravi") {
		t.Errorf("payments.yaml is not signed by kim:\n%s", out)
	}
}
