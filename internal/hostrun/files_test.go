package hostrun_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/model"
)

// stateFile reads what an agent has written; a file that is not whole JSON fails
// the test, since it is replaced as a whole.
func stateFile(t *testing.T, path string) (s hostrun.State) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return s
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
}

func TestFilesSayWhatIsInForceFromTheStartAndAtEveryChange(t *testing.T) {
	s := newShop(t)
	dir := t.TempDir()
	_, token := s.bypass()
	cfg := s.config()
	cfg.Env, cfg.StateFile, cfg.EnvFile = token, filepath.Join(dir, "state.json"), filepath.Join(dir, "ic.env")
	r := s.start(cfg)

	// Both are there when Start returns.
	if got := stateFile(t, cfg.StateFile); got.V != 1 || got.Services["checkout"].Tier != 0 || len(got.Bypasses) != 1 || got.Posture != r.Report().Posture {
		t.Errorf("at the start: %+v", got)
	}
	if got := lines(t, cfg.EnvFile); !slices.Contains(got, "IC_TIER_CHECKOUT=0") || !slices.Contains(got, "IC_OFF_REVIEWS=0") {
		t.Errorf("at the start: %q", got)
	}

	_, shedding := s.shed(2)
	r.Engine().Offer("test", shedding, r.Now())
	s.wait("the tier in both files", func() bool {
		return stateFile(t, cfg.StateFile).Services["checkout"].Tier == 2 && slices.Contains(lines(t, cfg.EnvFile), "IC_TIER_CHECKOUT=2")
	})
	if got := lines(t, cfg.EnvFile); !slices.Contains(got, "IC_OFF_REVIEWS=1") || !slices.Contains(got, "IC_OFF_PLACE_ORDER=0") || !slices.IsSorted(got) {
		t.Errorf("at tier 2: %q", got)
	}
	if text := strings.Join(lines(t, cfg.EnvFile), "\n"); strings.Contains(text, "BYPASS") || strings.Contains(text, "PAYMENT") {
		t.Errorf("a variable, which nothing ends, opens something:\n%s", text)
	}

	s.clock.pass(15 * time.Minute)
	s.wait("the end of the bypass in the file", func() bool { return len(stateFile(t, cfg.StateFile).Bypasses) == 0 })
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 2 {
		t.Errorf("in the folder are %v (%v)", left, err)
	}
	for _, path := range []string{cfg.StateFile, cfg.EnvFile} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestAQuietAgentKeepsItsFilesYoung(t *testing.T) {
	s := newShop(t)
	cfg := s.config()
	cfg.StateFile = filepath.Join(t.TempDir(), "state.json")
	cfg.File = filepath.Join(t.TempDir(), "ic.directives")
	s.start(cfg)
	s.wait("the file as a source", func() bool { return stateFile(t, cfg.StateFile).AgeS == 0 })
	s.clock.pass(11 * time.Second)
	s.wait("a younger file", func() bool {
		got := stateFile(t, cfg.StateFile)
		return got.At.Equal(s.clock.Now().Wall) && got.AsOf.Equal(got.At.Add(-time.Duration(got.AgeS)*time.Second))
	})
}

func TestAStateThatNobodyHasHeardOfSaysSo(t *testing.T) {
	s := newShop(t)
	cfg := s.config()
	cfg.StateFile, cfg.EnvFile = filepath.Join(t.TempDir(), "state.json"), filepath.Join(t.TempDir(), "ic.env")
	cfg.Etcd = []string{deadEndpoint(t)}
	s.start(cfg)
	s.wait("the dead source with its reason", func() bool {
		got := stateFile(t, cfg.StateFile)
		return got.AgeS == -1 && got.AsOf.IsZero() && len(got.Sources) == 1 && got.Sources[0].Name == hostrun.FromEtcd && got.Sources[0].AgeS == -1 && strings.Contains(got.Sources[0].Error, "unreachable")
	})
	if got := strings.Join(lines(t, cfg.EnvFile), "\n"); strings.Contains(got, "IC_AS_OF") || !strings.Contains(got, "IC_CONDITION=ok") {
		t.Errorf("env file:\n%s", got)
	}
}

func TestAFileThatCannotBeWrittenIsToldAndTriedAgain(t *testing.T) {
	s := newShop(t)
	dir := filepath.Join(t.TempDir(), "run")
	cfg := s.config()
	cfg.StateFile = filepath.Join(dir, "state.json")
	s.start(cfg)
	s.hears("write " + cfg.StateFile)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.hears("works again")
	stateFile(t, cfg.StateFile)
}

func TestAFileIsNotWrittenThroughSomebodysLink(t *testing.T) {
	s := newShop(t)
	dir := t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	cfg := s.config()
	cfg.StateFile = filepath.Join(dir, "state.json")
	for _, name := range []string{"state.json", "state.json.next"} {
		if err := os.Symlink(victim, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.start(cfg)
	stateFile(t, cfg.StateFile)
	if _, err := os.Lstat(victim); err == nil {
		t.Error("the agent has written where a link led")
	}
}

func TestNamesThatLookTheSameAsVariablesShareTheTighterValue(t *testing.T) {
	s := newShop(t)
	cfg := s.config()
	cfg.Engine.Services = []string{"check.out", "check-out", "checkout"}
	_, token := s.sign(model.Directive{Kind: model.Shed, Scope: "check-out", Tier: 2, Right: "shed"}, "ines")
	cfg.Env = token
	r := s.start(cfg)
	if got := r.Environment(); !slices.Contains(got, "IC_TIER_CHECK_OUT=2") || !slices.Contains(got, "IC_TIER_CHECKOUT=0") {
		t.Errorf("%q; refused %+v", got, r.Report().Refused)
	}
}

func TestAShellReadsTheEnvFile(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal("this system has no shell: ", err)
	}
	s := newShop(t)
	cfg := s.config()
	cfg.EnvFile = filepath.Join(t.TempDir(), "ic.env")
	_, cfg.Env = s.shed(2)
	s.start(cfg)
	out, err := exec.Command(sh, "-euc", `. "$1"; echo "$IC_TIER_CHECKOUT $IC_OFF_REVIEWS $IC_OFF_SIGN_IN $IC_CONDITION"`, "sh", cfg.EnvFile).CombinedOutput()
	if err != nil || string(out) != "2 1 0 ok\n" {
		t.Errorf("%v: %s", err, out)
	}
}
