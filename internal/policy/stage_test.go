package policy_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
)

// desk is a policy folder on disk that is in force, and what a console knows of
// it.
type desk struct {
	t    testing.TB
	dir  string
	opts policy.LoadOptions
}

func inForce(t testing.TB) *desk {
	t.Helper()
	d := &desk{t: t, dir: filepath.Join(t.TempDir(), "policy")}
	d.opts = policytest.Write(t, d.dir, policytest.Params())
	d.remember()
	return d
}

// remember loads as a console does: what it has obeyed it keeps.
func (d *desk) remember() *policy.Bundle {
	d.t.Helper()
	b, highest, err := policy.LoadDir(d.dir, d.opts)
	if err != nil {
		d.t.Fatal(err)
	}
	d.opts.State = &highest
	return b
}

func (d *desk) staged() string { return d.dir + ".staged" }

func (d *desk) try(files map[string][]byte) (policy.Staging, error) {
	return policy.Stage(d.dir, policy.StageOptions{Load: d.opts, Names: names(), Files: files})
}

func (d *desk) stage(files map[string][]byte) policy.Staging {
	d.t.Helper()
	s, err := d.try(files)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// edited is a document of the live folder with one text replaced.
func (d *desk) edited(file, old, new string) map[string][]byte {
	d.t.Helper()
	text := string(d.read(filepath.Join(d.dir, file)))
	if !strings.Contains(text, old) {
		d.t.Fatalf("%s does not hold %q", file, old)
	}
	return map[string][]byte{file: []byte(strings.Replace(text, old, new, 1))}
}

func (d *desk) read(path string) []byte {
	d.t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	return raw
}

func (d *desk) sign(file string, people ...string) {
	d.t.Helper()
	for _, person := range people {
		if err := policy.SignFile(d.staged(), file, person, policytest.Key(person), policytest.Rand(), directive.Production, policytest.Fleet); err != nil {
			d.t.Fatal(err)
		}
	}
}

// signWanted has everybody sign who has to.
func (d *desk) signWanted(s policy.Staging) {
	d.t.Helper()
	for _, w := range s.Wanted {
		if w.Needs > 0 {
			d.sign(w.File, w.Missing...)
		}
	}
}

func (d *desk) apply(allowed ...policy.Domain) (policy.Applied, error) {
	return policy.Apply(d.dir, policy.ApplyOptions{Load: d.opts, AllowInactive: allowed})
}

// roll stages, has everybody sign, and applies.
func (d *desk) roll(files map[string][]byte) policy.Applied {
	d.t.Helper()
	d.signWanted(d.stage(files))
	a, err := d.apply()
	if err != nil {
		d.t.Fatal(err)
	}
	d.remember()
	return a
}

// folderOf is everything in a folder, by name.
func folderOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, dir+"/")] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func lowerCap(d *desk) map[string][]byte {
	return d.edited("payments.yaml", `under: "50.00 USD"`, `under: "40.00 USD"`)
}

func TestStagingRaisesWhatChangedAndKeepsTheRest(t *testing.T) {
	d := inForce(t)
	before := folderOf(t, d.dir)
	s := d.stage(lowerCap(d))
	if !slices.Equal(s.Changed, []string{"payments.yaml", "manifest.yaml"}) || s.Live != 1 || s.Version != 2 || len(s.Removed) > 0 {
		t.Errorf("staged: %+v", s)
	}
	text := string(d.read(filepath.Join(d.staged(), "payments.yaml")))
	if !strings.Contains(text, "version: 2\n") || !strings.Contains(text, `"40.00 USD"`) {
		t.Errorf("payments.yaml: %s", text)
	}
	for _, file := range []string{"payments.yaml.sig", "manifest.yaml.sig"} {
		if entries, _ := os.ReadDir(filepath.Join(d.staged(), file)); len(entries) > 0 {
			t.Errorf("%s kept %v over other bytes", file, entries)
		}
	}
	if _, err := os.Stat(filepath.Join(d.staged(), "rights.yaml.sig", "priya.sig")); err != nil {
		t.Errorf("a signature over the same bytes is gone: %v", err)
	}
	var wanted []string
	for _, w := range s.Wanted {
		wanted = append(wanted, w.File+" by "+w.Group+" "+strings.Join(w.Missing, "+"))
	}
	if !slices.Equal(wanted, []string{"payments.yaml by finance fiona+ravi", "manifest.yaml by reliability dev+ines"}) {
		t.Errorf("wanted: %q", wanted)
	}
	if !maps.Equal(before, folderOf(t, d.dir)) {
		t.Error("the live folder was touched")
	}
}

func TestStagingAgainChangesNothing(t *testing.T) {
	d := inForce(t)
	s := d.stage(lowerCap(d))
	d.sign("payments.yaml", "fiona")
	before := folderOf(t, d.staged())
	again := d.stage(nil)
	if !maps.Equal(before, folderOf(t, d.staged())) {
		t.Error("the staged folder is another one")
	}
	if again.Version != s.Version || again.Wanted[0].Needs != 1 || !slices.Equal(again.Wanted[0].Signed, []string{"fiona"}) {
		t.Errorf("again: %+v", again)
	}
	// Nor does the same edit once more.
	d.stage(lowerCap(d))
	if !maps.Equal(before, folderOf(t, d.staged())) {
		t.Error("the same edit made another folder")
	}
}

func TestAnEditInTheStagedFolderIsStagedByItself(t *testing.T) {
	d := inForce(t)
	if s := d.stage(nil); len(s.Changed) > 0 || s.Version != 1 || len(s.Wanted) > 0 {
		t.Fatalf("nothing was changed: %+v", s)
	}
	edit(t, d.staged(), "payments.yaml", "per_day: 4", "per_day:   3")
	s := d.stage(nil)
	if !slices.Contains(s.Changed, "payments.yaml") || !strings.Contains(string(d.read(filepath.Join(d.staged(), "payments.yaml"))), "per_day: 3\n") {
		t.Errorf("staged: %+v", s)
	}
	// Taken back, the file is again the one in force, with its signatures.
	edit(t, d.staged(), "payments.yaml", "per_day: 3", "per_day: 4")
	if s := d.stage(nil); len(s.Changed) > 0 || s.Version != 1 {
		t.Errorf("staged: %+v", s)
	}
	if _, err := os.Stat(filepath.Join(d.staged(), "payments.yaml.sig", "fiona.sig")); err != nil {
		t.Error(err)
	}
}

func TestASignatureOverOtherBytesIsDropped(t *testing.T) {
	d := inForce(t)
	d.stage(lowerCap(d))
	d.sign("payments.yaml", "fiona", "ravi")
	d.stage(d.edited("payments.yaml", `under: "50.00 USD"`, `under: "45.00 USD"`))
	if entries, _ := os.ReadDir(filepath.Join(d.staged(), "payments.yaml.sig")); len(entries) > 0 {
		t.Errorf("still there: %v", entries)
	}
}

func TestErrorsOfLintAreNotStaged(t *testing.T) {
	d := inForce(t)
	d.stage(lowerCap(d))
	before := folderOf(t, d.staged())
	s, err := d.try(d.edited("payments.yaml", "per_day: 4", "per_day: 0"))
	if !errors.Is(err, policy.ErrLint) || !slices.ContainsFunc(s.Findings, func(f policy.Finding) bool { return f.Code == "bypass-without-cap" }) {
		t.Errorf("%v, %v", err, s.Findings)
	}
	if !maps.Equal(before, folderOf(t, d.staged())) {
		t.Error("what was staged before is gone")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(d.dir), ".policy.stage-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWhatCannotBeStaged(t *testing.T) {
	d := inForce(t)
	root := d.read(filepath.Join(d.dir, "roots/1.yaml"))
	for what, c := range map[string]struct {
		files map[string][]byte
		why   string
	}{
		"a manifest":       {map[string][]byte{"manifest.yaml": nil}, "made by staging"},
		"a folder":         {map[string][]byte{"../payments.yaml": nil}, "no file of a policy"},
		"a text":           {map[string][]byte{"README.md": nil}, "no file of a policy"},
		"an unknown field": {map[string][]byte{"payments.yaml": []byte("colour: red\n")}, `unknown field "colour"`},
		"an invalid root":  {map[string][]byte{"root.yaml": bytes.Replace(root, []byte("any: 3"), []byte("any: 0"), 1)}, "a threshold is at least 1"},
	} {
		if _, err := d.try(c.files); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", what, err)
		}
		if _, staged := policy.IsStaged(d.dir); staged {
			t.Fatalf("%s was staged", what)
		}
	}
	if _, err := policy.Stage(filepath.Join(t.TempDir(), "none"), policy.StageOptions{Load: d.opts}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if err := os.Mkdir(filepath.Join(d.dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := d.try(nil); err == nil || !strings.Contains(err.Error(), "a repository of its own") {
		t.Errorf("a repository: %v", err)
	}
}

// Somebody else may apply while a version is being staged.
func TestTwoPeopleStageAtOnce(t *testing.T) {
	d := inForce(t)
	d.stage(lowerCap(d))
	other := func(file, old, new string) {
		t.Helper()
		elsewhere := &desk{t: t, dir: filepath.Join(t.TempDir(), "policy"), opts: d.opts}
		if err := os.CopyFS(elsewhere.dir, os.DirFS(d.dir)); err != nil {
			t.Fatal(err)
		}
		elsewhere.roll(elsewhere.edited(file, old, new))
		if err := errors.Join(os.RemoveAll(d.dir), os.CopyFS(d.dir, os.DirFS(elsewhere.dir))); err != nil {
			t.Fatal(err)
		}
		d.remember()
	}
	other("journeys.yaml", "find a product and look at it", "find a product")
	s := d.stage(nil)
	if !slices.Equal(s.Changed, []string{"payments.yaml", "manifest.yaml"}) || s.Version != 3 {
		t.Errorf("the other's journeys would be undone: %+v", s)
	}
	other("payments.yaml", "per_day: 4", "per_day: 3")
	if _, err := d.try(nil); !errors.Is(err, policy.ErrConflict) || !strings.Contains(err.Error(), "payments.yaml") {
		t.Errorf("both changed payments.yaml: %v", err)
	}
	// Who names the file has decided.
	if s := d.stage(lowerCap(d)); s.Version != 4 || !strings.Contains(string(d.read(filepath.Join(d.staged(), "payments.yaml"))), "version: 3\n") {
		t.Errorf("staged: %+v", s)
	}
}

// The way back is forward: the old content under a new version.
func TestAnOldVersionComesBackAsANewOne(t *testing.T) {
	d := inForce(t)
	first := d.roll(lowerCap(d))
	if first.Previous != d.dir+".previous/1" {
		t.Fatalf("kept in %s", first.Previous)
	}
	s, err := policy.Stage(d.dir, policy.StageOptions{Load: d.opts, Names: names(), From: first.Previous})
	if err != nil || !slices.Equal(s.Changed, []string{"payments.yaml", "manifest.yaml"}) {
		t.Fatalf("%+v, %v", s, err)
	}
	d.signWanted(s)
	a, err := d.apply()
	if err != nil || a.Version != 3 || a.From != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	b := d.remember()
	if right, _, _ := b.Right("risk-bypass-small-orders"); right.Bypass.Under.Minor != 50_00 || b.Domains["payments"].Version != 3 {
		t.Errorf("in force: %+v", right.Bypass)
	}
	if _, err := policy.Stage(d.dir, policy.StageOptions{Load: d.opts, From: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "no document") {
		t.Errorf("from an empty folder: %v", err)
	}
}

func TestANewRootIsSignedByBothSides(t *testing.T) {
	d := inForce(t)
	text := strings.Replace(string(d.read(filepath.Join(d.dir, "roots/1.yaml"))), "pager platform", "pager 2", 1)
	s := d.stage(map[string][]byte{"root.yaml": []byte(text)})
	if !slices.Equal(s.Changed, []string{"roots/2.yaml", "manifest.yaml"}) || len(s.Wanted) != 3 || s.Wanted[1].Why == "" {
		t.Fatalf("staged: %+v", s)
	}
	d.sign("manifest.yaml", "ines")
	d.sign("roots/2.yaml", "ines", "dev")
	if _, err := d.apply(); !errors.Is(err, policy.ErrRoot) {
		t.Errorf("two of three signed: %v", err)
	}
	d.sign("roots/2.yaml", "fiona")
	if _, err := d.apply(); err != nil {
		t.Fatal(err)
	}
	if b := d.remember(); b.Root.Version != 2 || b.Root.People["dev"].Reach != "pager 2" {
		t.Errorf("in force: root %d", b.Root.Version)
	}
	// What is in force never changes, and nothing new is no new root.
	d.stage(nil)
	edit(t, d.staged(), "roots/2.yaml", "pager 2", "pager 3")
	if _, err := d.try(nil); err == nil || !strings.Contains(err.Error(), "write the next root into roots/3.yaml") {
		t.Errorf("an edit of the root in force: %v", err)
	}
	if err := os.RemoveAll(d.staged()); err != nil {
		t.Fatal(err)
	}
	if s := d.stage(map[string][]byte{"root.yaml": d.read(filepath.Join(d.dir, "roots/2.yaml"))}); len(s.Changed) > 0 {
		t.Errorf("the same root again: %+v", s)
	}
}

func TestSigningKeysAreThoseOfThePerson(t *testing.T) {
	d := inForce(t)
	got, err := policy.SigningKeys(d.dir, "payments.yaml", "fiona", policytest.Fleet)
	if err != nil || !slices.Equal(got, []string{fingerprint(policytest.Key("fiona"))}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := policy.SigningKeys(d.dir, "payments.yaml", templates.LadderController, policytest.Fleet); err != nil || len(got) > 0 {
		t.Errorf("a machine: %v, %v", got, err)
	}
}

func TestOnePersonMoreInTheNextRoot(t *testing.T) {
	d := inForce(t)
	kim := policy.NewPerson{Name: "kim", Full: "Kim, controller", Reach: "by phone", Key: authorized(policytest.Key("kim")) + " kim@home", Groups: []string{"finance"}, Roles: []string{"incident-commander"}}
	raw, err := policy.WithPerson(d.dir, kim)
	if err != nil {
		t.Fatal(err)
	}
	d.stage(map[string][]byte{"root.yaml": raw})
	root, err := policy.NewestRoot(d.staged())
	if err != nil || root.Version != 2 || root.Groups["finance"].Any != 2 || !root.InGroup("finance", "kim") ||
		!root.HasRole("incident-commander", policy.Signer{Name: "kim"}) || root.People["kim"].Keys[0] != authorized(policytest.Key("kim")) {
		t.Errorf("%+v, %v", root, err)
	}
	for why, bend := range map[string]func(*policy.NewPerson){
		"no name of a person":                        func(p *policy.NewPerson) { p.Name = "Kim" },
		"fiona is in root 1 already":                 func(p *policy.NewPerson) { p.Name = "fiona" },
		"not one line":                               func(p *policy.NewPerson) { p.Key += "\n" + p.Key },
		"in no group":                                func(p *policy.NewPerson) { p.Groups = nil },
		`no group "treasure"; the groups are busine`: func(p *policy.NewPerson) { p.Groups = []string{"treasure"} },
		`no role "king"; the roles are incident-com`: func(p *policy.NewPerson) { p.Roles = []string{"king"} },
		"one key is listed for":                      func(p *policy.NewPerson) { p.Key = authorized(policytest.Key("fiona")) },
	} {
		p := kim
		bend(&p)
		if _, err := policy.WithPerson(d.dir, p); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("want %q, got %v", why, err)
		}
	}
}

func TestWhatWaitsForAPerson(t *testing.T) {
	d := inForce(t)
	if got, err := policy.Unsigned(d.dir, "fiona", directive.Production, policytest.Fleet); err != nil || len(got) > 0 {
		t.Errorf("of what is in force: %v, %v", got, err)
	}
	d.stage(lowerCap(d))
	for person, want := range map[string][]string{"fiona": {"payments.yaml"}, "ines": {"manifest.yaml"}, "priya": nil, "nobody": nil} {
		if got, err := policy.Unsigned(d.staged(), person, directive.Production, policytest.Fleet); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", person, got, err)
		}
	}
	d.sign("payments.yaml", "fiona")
	if got, err := policy.Unsigned(d.staged(), "fiona", directive.Production, policytest.Fleet); err != nil || len(got) > 0 {
		t.Errorf("signed: %v, %v", got, err)
	}
}

func TestEveryKindOfFileHasItsNamespace(t *testing.T) {
	for file, want := range map[string]string{"roots/2.yaml": "ic-root-v1@acme", "manifest.yaml": "ic-manifest-v1@acme", "payments.yaml": "ic-policy-v1@acme"} {
		if got, err := policy.Namespace(file, directive.Production, "acme"); err != nil || got != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	for _, file := range []string{"", "payments", "../payments.yaml", "a b.yaml", "x/payments.yaml", "$(rm).yaml"} {
		if got, err := policy.Namespace(file, directive.Production, "acme"); !errors.Is(err, policy.ErrNoSuchFile) {
			t.Errorf("%q: %q, %v", file, got, err)
		}
	}
}
