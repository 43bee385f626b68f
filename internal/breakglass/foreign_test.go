package breakglass

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/degradedmode/ic/plugins/hostfile"
	"github.com/degradedmode/ic/plugins/sdk"
)

// foreignPrefix starts the name under which this test binary is a foreign
// backend; the rest says which one.
const foreignPrefix = "foreign-"

const escapes = "\x1b[2J\x1b]0;title\x07\u202etxet\u200b\u009b31m"

func serveForeign(kind string) {
	switch kind {
	case "good":
		sdk.Serve(hostfile.New())
	case "chatty":
		fmt.Println("starting up" + escapes)
		sdk.Serve(hostfile.New())
	case "endless":
		for {
			fmt.Print("no newline ever ")
		}
	case "future":
		fmt.Println("1|9|unix|/nowhere|grpc|")
	case "hanging":
		leaveBehind()
		select {}
	case "waiting":
		select {}
	case "failing":
		fmt.Fprintln(os.Stderr, "no licence"+escapes)
		os.Exit(3)
	case "rude":
		sdk.Serve(&fake{say: escapes})
	case "dying":
		sdk.Serve(&fake{apply: func(context.Context) error { leaveBehind(); os.Exit(7); return nil }})
	case "silent":
		sdk.Serve(&fake{apply: func(context.Context) error { select {} }})
	case "panicking":
		sdk.Serve(&fake{apply: func(context.Context) error { panic("nil map" + escapes) }})
	case "stubborn":
		sdk.Serve(&fake{stop: func() { leaveBehind(); select {} }})
	case "lying":
		sdk.Serve(&fake{after: "something else"})
	}
	os.Exit(0)
}

// leaveBehind starts a child that would outlive us and holds our output open.
func leaveBehind() {
	cmd := exec.Command("sleep", "1000")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
}

// fake is a backend that carries nothing.
type fake struct {
	say   string // put into everything it says
	after string // what it plans instead of the value
	apply func(context.Context) error
	stop  func()
}

func (f *fake) Describe() sdk.Description {
	return sdk.Description{Name: "fake" + f.say, Version: "1" + f.say, Carrier: sdk.File, CanUndo: true, Dependencies: []string{"dep" + f.say}}
}
func (f *fake) Configure(context.Context, map[string]string, map[string]string) error { return nil }
func (f *fake) Check(context.Context) ([]sdk.Finding, error) {
	fmt.Println("checking" + f.say)
	return []sdk.Finding{{Name: "reach" + f.say, Detail: "detail" + f.say}}, nil
}

func (f *fake) Plan(_ context.Context, value string, targets []string) (sdk.Plan, error) {
	if f.after != "" {
		value = f.after
	}
	return sdk.Plan{Changes: []sdk.Change{{Target: "t" + f.say, Hosts: targets, Before: "b" + f.say, After: value, Owner: "o" + f.say}}}, nil
}

func (f *fake) Apply(ctx context.Context, _ sdk.Application, report sdk.Report) error {
	if err := report(sdk.Progress{Phase: sdk.Writing, Target: "t" + f.say, Owner: "o" + f.say, RemoteID: "r" + f.say, Message: "m" + f.say}); err != nil {
		return err
	}
	if f.apply != nil {
		return f.apply(ctx)
	}
	return sdk.Refuse(sdk.CodeDenied, "no%s", f.say)
}

func (f *fake) Observe(context.Context, string, sdk.Report) error {
	return sdk.Refuse(sdk.CodeOperationUnknown, "none")
}
func (f *fake) Undo(context.Context, string, sdk.Report) error { return nil }
func (f *fake) Stop(context.Context) error {
	if f.stop != nil {
		f.stop()
	}
	return nil
}

// programs is a folder with this test binary under many names.
type programs struct{ dir, binary, sum string }

func newPrograms(t *testing.T) *programs {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	text, err := os.ReadFile(self)
	must(t, err)
	sum := sha256.Sum256(text)
	p := &programs{dir: t.TempDir(), sum: hex.EncodeToString(sum[:])}
	p.binary = filepath.Join(p.dir, "binary")
	must(t, os.WriteFile(p.binary, text, 0o755))
	return p
}

func (p *programs) spec(t *testing.T, kind string) Spec {
	t.Helper()
	path := filepath.Join(p.dir, foreignPrefix+kind)
	if _, err := os.Stat(path); err != nil {
		must(t, os.Link(p.binary, path))
	}
	return Spec{Name: kind, Foreign: &Foreign{Path: path, SHA256: p.sum}}
}
