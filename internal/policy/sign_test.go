package policy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/sshsig"
)

func signFile(dir, file, person, key string) error {
	return policy.SignFile(dir, file, person, policytest.Key(key), policytest.Rand(), directive.Production, policytest.Fleet)
}

// edit replaces text in a file of a folder on disk.
func edit(t testing.TB, dir, file, old, new string) {
	t.Helper()
	path := filepath.Join(dir, file)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(content, []byte(old)) {
		t.Fatalf("%s does not hold %q", file, old)
	}
	if err := os.WriteFile(path, bytes.Replace(content, []byte(old), []byte(new), 1), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A change of the policy from the edit to the folder that loads again.
func TestAChangeIsSignedAndPublished(t *testing.T) {
	dir := t.TempDir()
	opts := policytest.Write(t, dir, policytest.Params())
	_, highest, err := policy.LoadDir(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	opts.State = &highest
	edit(t, dir, "payments.yaml", `under: "50.00 USD"`, `under: "40.00 USD"`)
	edit(t, dir, "payments.yaml", "version: 1", "version: 2")
	for _, person := range []string{"fiona", "ravi"} {
		if err := signFile(dir, "payments.yaml", person, person); err != nil {
			t.Fatal(err)
		}
	}
	manifest, err := policy.BuildManifest(dir, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, policy.ManifestFileName), manifest, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := signFile(dir, policy.ManifestFileName, "ines", "ines"); err != nil {
		t.Fatal(err)
	}
	b, after, err := policy.LoadDir(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	if right, _, _ := b.Right("risk-bypass-small-orders"); right.Bypass.Under.Minor != 40_00 || b.Ref.Version != 2 || after.Domains["payments"].Version != 2 {
		t.Errorf("in force: %+v at manifest version %d", right.Bypass, b.Ref.Version)
	}
}

func TestSigningIsRefused(t *testing.T) {
	clean, _, _ := policytest.Shop(t)
	for _, c := range []struct {
		what        string
		bend        func(dir string)
		file        string
		person, key string
		why         string
	}{
		{"with another person's key", func(string) {}, "payments.yaml", "fiona", "ravi", "is not fiona's in the trust root"},
		{"with a key that the root does not know", func(string) {}, "payments.yaml", "fiona", "stranger", "is not fiona's"},
		{"as somebody who does not exist", func(string) {}, "payments.yaml", "bob", "fiona", "is not bob's"},
		{"as a machine", func(string) {}, "payments.yaml", templates.LadderController, templates.LadderController, "is not ladder-controller's"},
		{"a file that is not canonical", func(dir string) { edit(t, dir, "payments.yaml", "v: 1", "v:  1") }, "payments.yaml", "fiona", "fiona", "not canonical"},
		{"a file with a comment", func(dir string) { edit(t, dir, "payments.yaml", "controls:", "# all\ncontrols:") }, "payments.yaml", "fiona", "fiona", "say it in a why: field"},
		{"a file of another fleet", func(dir string) { edit(t, dir, "payments.yaml", "fleet: shop-demo", "fleet: other") }, "payments.yaml", "fiona", "fiona", `it is for fleet "other"`},
		{"a manifest of another fleet", func(dir string) { edit(t, dir, "manifest.yaml", "fleet: shop-demo", "fleet: other") }, "manifest.yaml", "ines", "ines", `it is for fleet "other"`},
		{"a file that is not there", func(string) {}, "stock.yaml", "fiona", "fiona", "no such file"},
		{"a file outside the folder", func(string) {}, "../payments.yaml", "fiona", "fiona", "invalid"},
		{"without a root", func(dir string) {
			if err := os.Remove(filepath.Join(dir, "roots", "1.yaml")); err != nil {
				t.Fatal(err)
			}
		}, "payments.yaml", "fiona", "fiona", "read the trust root"},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := copyOf(t, clean)
			c.bend(dir)
			before := listing(t, dir)
			err := signFile(dir, c.file, c.person, c.key)
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want %q", err, c.why)
			}
			if after := listing(t, dir); !slices.Equal(before, after) {
				t.Errorf("the folder was changed: %v", after)
			}
		})
	}
}

func copyOf(t testing.TB, dir string) string {
	t.Helper()
	out := t.TempDir()
	if err := os.CopyFS(out, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return out
}

func listing(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		out = append(out, path+" "+sum(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A finance lead without ic signs with stock tools and mails the result.
func TestADetachedSignatureIsAdded(t *testing.T) {
	dir := t.TempDir()
	opts := policytest.Write(t, dir, policytest.Params())
	path := filepath.Join(dir, "payments.yaml.sig", "ravi.sig")
	armored, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	add := func(file, person string, armored []byte) error {
		return policy.AddDetached(dir, file, person, armored, directive.Production, policytest.Fleet)
	}
	for _, c := range []struct {
		what, file, person string
		armored            []byte
		why                string
	}{
		{"under another name", "payments.yaml", "fiona", armored, "is not fiona's"},
		{"for another file", "ladder.yaml", "ravi", armored, "does not match the content"},
		{"for a root", "roots/1.yaml", "ravi", armored, "another namespace"},
		{"garbage", "payments.yaml", "ravi", []byte("hello"), "not one exact armored"},
		{"for a file that is not there", "stock.yaml", "ravi", armored, "no such file"},
	} {
		if err := add(c.file, c.person, c.armored); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: got %v, want %q", c.what, err, c.why)
		}
	}
	if b, _, err := policy.LoadDir(dir, opts); err != nil || b.Domains[templates.PaymentsDomain].Active {
		t.Fatalf("payments is active without ravi (%v)", err)
	}
	if err := add("payments.yaml", "ravi", armored); err != nil {
		t.Fatal(err)
	}
	if b, _, err := policy.LoadDir(dir, opts); err != nil || !b.Domains[templates.PaymentsDomain].Active {
		t.Errorf("payments is not active with ravi (%v)", err)
	}
}

// The people of the old root and those of the new one sign a successor.
func TestARootIsSignedByBothSides(t *testing.T) {
	dir := t.TempDir()
	opts := policytest.Write(t, dir, policytest.Params())
	root, err := policy.NewestRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	root.Version = 2
	ines := root.People["ines"]
	ines.Keys = []string{authorized(policytest.Key("ines-new"))}
	root.People["ines"] = ines
	if err := os.WriteFile(filepath.Join(dir, "roots", "2.yaml"), policy.Canonical(root), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, person := range []string{"dev", "fiona", "priya"} {
		if err := signFile(dir, "roots/2.yaml", person, person); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"ines", "ines-new"} { // the old root knows the one, the new root the other
		if err := signFile(dir, "roots/2.yaml", "ines", key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if err := signFile(dir, "payments.yaml", "ines", "ines"); err == nil {
		t.Error("a key that the newest root dropped may still sign a document")
	}
	b, _, err := policy.LoadDir(dir, opts)
	if err != nil || b.Root.Version != 2 {
		t.Errorf("got %v", err)
	}
}

func TestBuildManifestWantsReadableFiles(t *testing.T) {
	clean, _, _ := policytest.Shop(t)
	for _, c := range []struct {
		what string
		bend func(dir string)
		why  string
	}{
		{"a document that is not canonical", func(dir string) { edit(t, dir, "ladder.yaml", "v: 1", "v:  1") }, "ladder.yaml:1:1: not canonical"},
		{"a root that is not valid", func(dir string) { edit(t, dir, "roots/1.yaml", "publish: reliability", "publish: nobody") }, `group "nobody"`},
		{"no root", func(dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "roots")); err != nil {
				t.Fatal(err)
			}
		}, "read the trust root"},
	} {
		dir := copyOf(t, clean)
		c.bend(dir)
		if _, err := policy.BuildManifest(dir, 2); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: got %v, want %q", c.what, err, c.why)
		}
	}
	if _, err := policy.BuildManifest(filepath.Join(t.TempDir(), "none"), 1); err == nil {
		t.Error("a folder that does not exist has a manifest")
	}
}

// Everybody can check a signature with stock ssh-keygen: the armor is stock and
// the namespace is in it.
func TestSignatureFilesAreStockArmor(t *testing.T) {
	dir, _, _ := policytest.Shop(t)
	armored, err := os.ReadFile(filepath.Join(dir, "payments.yaml.sig", "fiona.sig"))
	if err != nil {
		t.Fatal(err)
	}
	blob, err := sshsig.Unarmor(armored)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := sshsig.Parse(blob, sshsig.ForPolicy)
	if err != nil || sig.Namespace != "ic-policy-v1@shop-demo" {
		t.Errorf("namespace %q, %v", sig.Namespace, err)
	}
}
