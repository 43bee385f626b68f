package policy_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
)

func TestApplyTakesTheStagedVersionAndKeepsTheOld(t *testing.T) {
	d := inForce(t)
	old := folderOf(t, d.dir)
	d.signWanted(d.stage(lowerCap(d)))
	next := folderOf(t, d.staged())
	delete(next, ".base")
	a, err := d.apply()
	if err != nil || a.From != 1 || a.Version != 2 || !slices.Equal(a.Changed, []string{"payments.yaml"}) || len(a.Inactive) > 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	if !maps.Equal(next, folderOf(t, d.dir)) || !maps.Equal(old, folderOf(t, a.Previous)) {
		t.Error("live is not what was staged, or kept is not what was live")
	}
	if _, staged := policy.IsStaged(d.dir); staged {
		t.Error("something is still staged")
	}
	if b := d.remember(); b.Ref.Version != 2 || a.Highest.Manifest.Version != 2 {
		t.Errorf("version %d in force, %d to be remembered", b.Ref.Version, a.Highest.Manifest.Version)
	}
	if _, err := d.apply(); !errors.Is(err, policy.ErrNothingStaged) {
		t.Errorf("once more: %v", err)
	}
}

func TestApplyIsRefused(t *testing.T) {
	for _, c := range []struct {
		what string
		bend func(d *desk)
		is   error
		why  string
	}{
		{"signatures are short", func(d *desk) {
			d.stage(lowerCap(d))
			d.sign("manifest.yaml", "ines")
			d.sign("payments.yaml", "fiona")
		}, policy.ErrInactive, "finance wants 2 of fiona, ravi; signed by fiona"},
		{"nobody published it", func(d *desk) {
			d.stage(lowerCap(d))
			d.sign("payments.yaml", "fiona", "ravi")
		}, policy.ErrManifest, "reliability wants 1"},
		{"nothing changed", func(d *desk) { d.stage(nil) }, policy.ErrNotForward, "version 1 is in force"},
		{"an edit after signing", func(d *desk) {
			d.signWanted(d.stage(lowerCap(d)))
			edit(d.t, d.staged(), "payments.yaml", `"40.00 USD"`, `"49.00 USD"`)
		}, policy.ErrInactive, "payments.yaml is not the file that the manifest names"},
		{"a file of an older version mixed in", func(d *desk) {
			d.roll(lowerCap(d))
			d.signWanted(d.stage(d.edited("journeys.yaml", "find a product and look at it", "find a product")))
			for _, name := range []string{"payments.yaml", "payments.yaml.sig"} {
				if err := errors.Join(os.RemoveAll(filepath.Join(d.staged(), name)), copyInto(d.staged(), d.dir+".previous/1", name)); err != nil {
					d.t.Fatal(err)
				}
			}
		}, policy.ErrInactive, "payments.yaml is not the file that the manifest names"},
		{"an older version as it was", func(d *desk) {
			d.roll(lowerCap(d))
			if err := os.CopyFS(d.staged(), os.DirFS(d.dir+".previous/1")); err != nil {
				d.t.Fatal(err)
			}
		}, policy.ErrRolledBack, "version 1, version 2 was in force"},
		{"an older version published anew", func(d *desk) {
			d.roll(lowerCap(d))
			if err := os.CopyFS(d.staged(), os.DirFS(d.dir+".previous/1")); err != nil {
				d.t.Fatal(err)
			}
			manifest, err := policy.BuildManifest(d.staged(), 9)
			if err := errors.Join(err, os.WriteFile(filepath.Join(d.staged(), policy.ManifestFileName), manifest, 0o644)); err != nil {
				d.t.Fatal(err)
			}
			d.sign("manifest.yaml", "ines")
		}, policy.ErrRolledBack, "payments.yaml"},
		{"a document is gone", func(d *desk) {
			d.stage(nil)
			if err := os.Remove(filepath.Join(d.staged(), "journeys.yaml")); err != nil {
				d.t.Fatal(err)
			}
			d.signWanted(d.stage(nil))
		}, policy.ErrInactive, "journeys.yaml is not in the manifest"},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := inForce(t)
			c.bend(d)
			live, staged := folderOf(t, d.dir), folderOf(t, d.staged())
			if _, err := d.apply(); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want %q", err, c.why)
			}
			if !maps.Equal(live, folderOf(t, d.dir)) || !maps.Equal(staged, folderOf(t, d.staged())) {
				t.Error("something was changed all the same")
			}
		})
	}
}

func copyInto(dir, from, name string) error {
	info, err := os.Stat(filepath.Join(from, name))
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(from, name)))
	}
	raw, err := os.ReadFile(filepath.Join(from, name))
	return errors.Join(err, os.WriteFile(filepath.Join(dir, name), raw, 0o644))
}

// A domain leaves force only by its name.
func TestADomainGoesOutOfForceOnlyByName(t *testing.T) {
	d := inForce(t)
	d.stage(lowerCap(d))
	d.sign("manifest.yaml", "ines")
	if _, err := d.apply(policy.Journeys); !errors.Is(err, policy.ErrInactive) {
		t.Errorf("another domain was allowed: %v", err)
	}
	a, err := d.apply("payments")
	if err != nil || len(a.Inactive) != 1 || a.Inactive[0].File != "payments.yaml" {
		t.Fatalf("%+v, %v", a, err)
	}
	// From then on it is out of force as before, and stands in nobody's way.
	d.signWantedOf(d.stage(d.edited("journeys.yaml", "find a product and look at it", "find a product")), "payments.yaml")
	if a, err = d.apply(); err != nil || len(a.Inactive) != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
}

// signWantedOf signs everything but one file.
func (d *desk) signWantedOf(s policy.Staging, but string) {
	d.t.Helper()
	s.Wanted = slices.DeleteFunc(s.Wanted, func(w policy.FileReport) bool { return w.File == but })
	d.signWanted(s)
}

// Two of many files are renewed while all of them, and the root, have expired:
// what nobody has renewed yet is still named by lint and stops nothing.
func TestAnExpiredPolicyNeverBlocksItsRenewal(t *testing.T) {
	d := inForce(t)
	d.opts.Now = policytest.Expires().AddDate(3, 0, 0)
	files := map[string][]byte{}
	for _, file := range []string{"payments.yaml", "rights.yaml"} {
		maps.Copy(files, d.edited(file, "\nexpires: 2027-11-30T00:00:00Z", "\nexpires: 2032-01-01T00:00:00Z"))
	}
	known := names()
	known.Now = d.opts.Now
	s, err := policy.Stage(d.dir, policy.StageOptions{Load: d.opts, Names: known, Files: files})
	if err != nil || !slices.ContainsFunc(s.Findings, func(f policy.Finding) bool { return f.Code == "expired" && f.File == "ladder.yaml" }) {
		t.Fatalf("%v, %v", s.Findings, err)
	}
	d.signWanted(s)
	if _, err := d.apply(); err != nil {
		t.Fatal(err)
	}
	if b := d.remember(); !b.Domains["payments"].Expires.Equal(time.Date(2032, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("in force until %s", b.Domains["payments"].Expires)
	}
}

func TestABrokenPolicyNeverBlocksItsRepair(t *testing.T) {
	for what, bend := range map[string]func(dir string) error{
		"the manifest is damaged": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, policy.ManifestFileName), []byte("v: 1\n"), 0o644)
		},
		"its signatures are gone": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "manifest.yaml.sig")) },
		"a document is damaged":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "payments.yaml"), []byte("?"), 0o644) },
	} {
		t.Run(what, func(t *testing.T) {
			d := inForce(t)
			files := lowerCap(d)
			if err := bend(d.dir); err != nil {
				t.Fatal(err)
			}
			d.signWanted(d.stage(files))
			if _, err := d.apply(); err != nil {
				t.Fatal(err)
			}
			if b := d.remember(); !b.Domains["payments"].Active || b.Ref.Version != 2 {
				t.Errorf("in force: %+v", b.Domains["payments"])
			}
		})
	}
}

func TestOnlyOneProcessStagesOrApplies(t *testing.T) {
	d := inForce(t)
	d.signWanted(d.stage(lowerCap(d)))
	unlock, err := policy.LockForTest(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.apply(); !errors.Is(err, policy.ErrBusy) {
		t.Errorf("apply: %v", err)
	}
	if _, err := d.try(nil); !errors.Is(err, policy.ErrBusy) {
		t.Errorf("stage: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.apply(); err != nil {
		t.Error(err)
	}
}

// At whatever step the power goes or the disk fails, the old or the new policy is
// there as a whole, and nothing that people made is lost.
func TestApplyMayBeInterruptedAnywhere(t *testing.T) {
	base := inForce(t)
	base.signWanted(base.stage(lowerCap(base)))
	old, next := folderOf(t, base.dir), folderOf(t, base.staged())
	delete(next, ".base")
	for _, swap := range []bool{true, false} {
		for _, dead := range []bool{true, false} {
			for n := 0; ; n++ {
				d := &desk{t: t, dir: filepath.Join(t.TempDir(), "policy"), opts: base.opts}
				if err := errors.Join(os.CopyFS(d.dir, os.DirFS(base.dir)), os.CopyFS(d.staged(), os.DirFS(base.staged()))); err != nil {
					t.Fatal(err)
				}
				reached, err := policy.ApplyWithFaultForTest(d.dir, policy.ApplyOptions{Load: d.opts}, n, dead, swap)
				if !reached {
					if err != nil || n < 6 {
						t.Fatalf("no step %d: %v", n, err)
					}
					break
				}
				d.wholeAfterCrash(fmt.Sprintf("step %d, dead %v, swap %v", n, dead, swap), old, next, swap, err)
			}
		}
	}
}

func (d *desk) wholeAfterCrash(what string, old, next map[string]string, swap bool, err error) {
	d.t.Helper()
	if !errors.Is(err, policy.ErrPowerCut) {
		d.t.Errorf("%s: %v", what, err)
	}
	if _, err := os.Stat(d.dir); err != nil && swap {
		d.t.Errorf("%s: nothing is in force before anything was put right: %v", what, err)
	}
	if err := policy.Recover(d.dir); err != nil {
		d.t.Errorf("%s: recover: %v", what, err)
		return
	}
	now := folderOf(d.t, d.dir)
	switch {
	case maps.Equal(now, old):
		staged := folderOf(d.t, d.staged())
		delete(staged, ".base")
		if !maps.Equal(staged, next) {
			d.t.Errorf("%s: the old policy is in force and the staged one is lost", what)
		}
	case maps.Equal(now, next):
		if !maps.Equal(folderOf(d.t, d.dir+".previous/1"), old) {
			d.t.Errorf("%s: the new policy is in force and the old one is lost", what)
		}
	default:
		d.t.Errorf("%s: half a policy is in force", what)
	}
	if _, _, err := policy.LoadDir(d.dir, d.opts); err != nil {
		d.t.Errorf("%s: %v", what, err)
	}
	if _, err := os.Stat(d.dir + ".next"); err == nil {
		d.t.Errorf("%s: something is left on the way", what)
	}
}
