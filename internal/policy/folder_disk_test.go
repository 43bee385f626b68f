package policy_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
)

func TestLinksInAPolicyFolderAreRefused(t *testing.T) {
	clean := t.TempDir()
	opts := policytest.Write(t, clean, policytest.Params())
	for _, c := range []struct {
		name string
		want string // of the error; "" means that payments alone is inactive
	}{
		{"manifest.yaml", "it is a link or a device"},
		{"roots", "it is a link or a device"},
		{"roots/1.yaml", "it is a link or a device"},
		{"payments.yaml", ""},
		{"payments.yaml.sig", ""},
		{"payments.yaml.sig/ravi.sig", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, away := copyOf(t, clean), filepath.Join(t.TempDir(), "away")
			path := filepath.Join(dir, filepath.FromSlash(c.name))
			if err := os.Rename(path, away); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(away, path); err != nil {
				t.Fatal(err)
			}
			b, _, err := policy.LoadDir(dir, opts)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || b.Domains["payments"].Active || !b.Domains["rights"].Active {
				t.Errorf("got %v, payments %+v", err, b.Domains["payments"])
			}
		})
	}
}

func TestAFileOverTheLimitIsNotRead(t *testing.T) {
	dir := t.TempDir()
	opts := policytest.Write(t, dir, policytest.Params())
	if err := os.WriteFile(filepath.Join(dir, "payments.yaml"), make([]byte, policy.MaxDocument+1), 0o644); err != nil {
		t.Fatal(err)
	}
	b, _, err := policy.LoadDir(dir, opts)
	if err != nil || !strings.Contains(b.Domains["payments"].Why, "more than 1048576 bytes") {
		t.Errorf("got %v, %q", err, b.Domains["payments"].Why)
	}
}

func TestAFolderThatIsNotThere(t *testing.T) {
	if _, _, err := policy.LoadDir(filepath.Join(t.TempDir(), "none"), policy.LoadOptions{}); err == nil {
		t.Error("it loads")
	}
	if _, err := policy.Inspect(filepath.Join(t.TempDir(), "none"), policy.LoadOptions{}); err == nil {
		t.Error("it can be inspected")
	}
	if _, err := policy.NewestRoot(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("it has a root")
	}
}

func TestHighestIsRemembered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "highest.json")
	if h, err := policy.ReadHighest(path); h != nil || err != nil {
		t.Fatalf("before anything was obeyed: %v, %v", h, err)
	}
	_, want, err := shop(t).load()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // it replaces what is there
		if err := policy.WriteHighest(path, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := policy.ReadHighest(path)
	if err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("read %+v, %v", got, err)
	}
	if names, _ := os.ReadDir(filepath.Dir(path)); len(names) != 1 {
		t.Errorf("something was left behind: %v", names)
	}
}

// A host leaves a memory aside that is an error, and starts; one that is wrong would
// keep it from starting, or make it obey what is old.
func TestAFlippedBitOfTheMemoryIsAnErrorOrChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "highest.json")
	_, want, err := shop(t).load()
	if err == nil {
		err = policy.WriteHighest(path, want)
	}
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	noticed, tried := 0, 0
	for bit := 0; bit < 8*len(good); bit += 7 {
		tried++
		damaged := bytes.Clone(good)
		damaged[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		switch got, err := policy.ReadHighest(path); {
		case err != nil:
			noticed++
		case !reflect.DeepEqual(*got, want):
			t.Errorf("bit %d of byte %d: read %+v", bit%8, bit/8, got)
		}
	}
	t.Logf("%d of %d single bits noticed, the others change nothing", noticed, tried)
}

// A memory that cannot be read is not an empty memory.
func TestADamagedMemoryIsAnError(t *testing.T) {
	for _, content := range []string{"", "{}", `{"v":2}`, "null", `{"v":1,"x":1}`, "hello"} {
		path := filepath.Join(t.TempDir(), "highest.json")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if h, err := policy.ReadHighest(path); err == nil || h != nil {
			t.Errorf("%q was taken for a memory: %+v", content, h)
		}
	}
	dir := t.TempDir()
	if _, err := policy.ReadHighest(dir); err == nil {
		t.Error("a folder was taken for a memory")
	}
	if err := policy.WriteHighest(filepath.Join(dir, "none", "highest.json"), policy.Highest{}); err == nil {
		t.Error("it was written into a folder that does not exist")
	}
	if err := policy.WriteHighest(dir, policy.Highest{}); err == nil {
		t.Error("a folder was replaced")
	}
}

func TestInspect(t *testing.T) {
	dir := t.TempDir()
	opts := policytest.Write(t, dir, policytest.Params())
	if err := os.Remove(filepath.Join(dir, "payments.yaml.sig", "ravi.sig")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.yaml"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "journeys.yaml")); err != nil {
		t.Fatal(err)
	}
	r, err := policy.Inspect(dir, opts)
	if err != nil || r.Error != "" {
		t.Fatal(err, r.Error)
	}
	byFile := map[string]policy.FileReport{}
	for _, d := range r.Domains {
		byFile[d.File] = d
	}
	payments := byFile["payments.yaml"]
	payments.SHA256 = ""
	if want := (policy.FileReport{File: "payments.yaml", Version: 1, Why: "signatures are missing: finance wants 2 of fiona, ravi; signed by fiona",
		Group: "finance", Signed: []string{"fiona"}, Missing: []string{"ravi"}, Needs: 1}); !reflect.DeepEqual(payments, want) {
		t.Errorf("payments: %+v", payments)
	}
	if rights := byFile["rights.yaml"]; !rights.Active || rights.Needs != 0 || rights.DaysLeft != 364 || len(rights.Signed) != 3 {
		t.Errorf("rights: %+v", rights)
	}
	if journeys := byFile["journeys.yaml"]; journeys.Active || journeys.Why != "journeys.yaml is missing" || journeys.Needs != 1 {
		t.Errorf("journeys: %+v", journeys)
	}
	if !r.Manifest.Active || r.Manifest.Version != 1 || len(r.Manifest.Signed) != 2 || len(r.Roots) != 1 || len(r.Roots[0].Signers) != 5 || r.Highest.Manifest.Version != 1 {
		t.Errorf("manifest %+v, roots %+v", r.Manifest, r.Roots)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "notes.yaml") {
		t.Errorf("notes: %q", r.Notes)
	}
	if text, err := json.Marshal(r); err != nil || strings.Contains(string(text), "null") {
		t.Errorf("%v, %s", err, text)
	}
}

func TestInspectDescribesWhatMayNotBeObeyed(t *testing.T) {
	dir := t.TempDir()
	opts := policytest.Write(t, dir, policytest.Params())
	for _, person := range []string{"ines", "dev"} {
		if err := os.Remove(filepath.Join(dir, "manifest.yaml.sig", person+".sig")); err != nil {
			t.Fatal(err)
		}
	}
	r, err := policy.Inspect(dir, opts)
	if err != nil || !strings.Contains(r.Error, "signed by nobody") || r.Manifest.Active || len(r.Manifest.Missing) != 2 || r.Manifest.Needs != 1 || len(r.Roots) != 1 {
		t.Errorf("%v, %+v", err, r)
	}
	opts.RootSHA256 = ""
	if r, err = policy.Inspect(dir, opts); err != nil || !strings.Contains(r.Error, "pinned") || len(r.Roots) != 0 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestDaysLeft(t *testing.T) {
	dir := t.TempDir()
	opts := policytest.Write(t, dir, policytest.Params())
	for _, c := range []struct {
		before time.Duration
		want   int
	}{{48 * time.Hour, 2}, {47 * time.Hour, 1}, {time.Hour, 0}, {-time.Second, -1}, {-25 * time.Hour, -2}} {
		opts.Now = policytest.Expires().Add(-c.before)
		r, err := policy.Inspect(dir, opts)
		if err != nil || r.Domains[0].DaysLeft != c.want {
			t.Errorf("%s before: %d days, want %d (%v)", c.before, r.Domains[0].DaysLeft, c.want, err)
		}
	}
}
