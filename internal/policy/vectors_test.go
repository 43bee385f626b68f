package policy_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
)

// vectors is the frozen form of the policy files, for whoever reads them with
// another program: a folder that uses every field, and what to make of changes to
// it. It is written once, with -update; afterwards a difference is a break of the
// format.
var vectors = filepath.Join("..", "..", "testdata", "vectors", "policy")

// vector is one change to the bytes of the folder, and what has to become of it.
type vector struct {
	Name     string   `json:"name"`
	File     string   `json:"file"`
	Replace  string   `json:"replace,omitempty"` // "" with nothing in With: the file is removed
	With     string   `json:"with,omitempty"`
	Refused  bool     `json:"refused"`  // nothing of the folder may be obeyed
	Inactive []string `json:"inactive"` // domains that may not be obeyed
}

// printedVector is one text, and its canonical form; "" when it has none.
type printedVector struct {
	Name      string `json:"name"`
	File      string `json:"file"`
	In        string `json:"in"`
	Canonical string `json:"canonical"`
}

func vectorFolder(t *testing.T) *folder {
	t.Helper()
	f := &folder{t: t, files: fstest.MapFS{}}
	disk := os.DirFS(filepath.Join(vectors, "folder"))
	err := fs.WalkDir(disk, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(disk, name)
		f.write(name, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.opts = policy.LoadOptions{Fleet: policytest.Fleet, Realm: directive.Production, Now: policytest.Now()}
	f.opts.RootSHA256 = sum(f.read("roots/1.yaml"))
	return f
}

func TestVectorsOfThePolicyAreReadAsTheyWere(t *testing.T) {
	if *update {
		writeVectors(t)
	}
	f := vectorFolder(t)
	for domain, state := range f.active() {
		if !state.Active {
			t.Errorf("%s is not active: %s", domain, state.Why)
		}
	}
	for name := range f.files {
		if strings.HasSuffix(name, ".sig") {
			continue
		}
		out, err := policy.Fmt(name, f.read(name))
		if err != nil || !bytes.Equal(out, f.read(name)) {
			t.Errorf("%s is not printed as it is: %v", name, err)
		}
	}
}

func TestVectorsOfThePolicyUseEveryField(t *testing.T) {
	f := vectorFolder(t)
	var text strings.Builder
	for name, file := range f.files {
		if strings.HasSuffix(name, ".yaml") {
			text.Write(file.Data)
		}
	}
	text.WriteString(string(readVector(t, "query.yaml")))
	for name, spec := range structsOf(t, "documents*.go", "root.go") {
		for _, key := range keysOf(spec) {
			if !strings.Contains(text.String(), " "+key+":") && !strings.Contains(text.String(), "\n"+key+":") {
				t.Errorf("no vector has %s.%s", name, key)
			}
		}
	}
}

func TestVectorsOfChangesToAPolicy(t *testing.T) {
	var cases []vector
	if err := json.Unmarshal(readVector(t, "changes.json"), &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		f := vectorFolder(t)
		if got := outcomeOf(f, c); !reflect.DeepEqual(got, c) {
			t.Errorf("%s: refused %v, inactive %v; want %v, %v", c.Name, got.Refused, got.Inactive, c.Refused, c.Inactive)
		}
	}
}

func TestVectorsOfTheCanonicalForm(t *testing.T) {
	var cases []printedVector
	if err := json.Unmarshal(readVector(t, "canonical.json"), &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		out, err := policy.Fmt(c.File, []byte(c.In))
		if string(out) != c.Canonical || (err == nil) != (c.Canonical != "") {
			t.Errorf("%s: printed %q (%v), want %q", c.Name, out, err, c.Canonical)
		}
	}
}

// To a file of a later format the answer is that, not that its fields are unknown.
func TestALaterFormatIsNamed(t *testing.T) {
	_, err := policy.Fmt("journeys.yaml", []byte("v: 2\nfleet: shop-demo\njourneys: [new, shape]\n"))
	if err == nil || err.Error() != "journeys.yaml:1:4: v: the file is of format 2 and this ic reads format 1; a newer ic reads it" {
		t.Error(err)
	}
	_, err = policy.Fmt("journeys.yaml", []byte("v: 0\nfleet: shop-demo\n"))
	if err == nil || err.Error() != "journeys.yaml:1:4: v: there is no format 0; write v: 1" {
		t.Error(err)
	}
}

func readVector(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(vectors, name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// outcomeOf applies a change and says what became of it.
func outcomeOf(f *folder, c vector) vector {
	f.t.Helper()
	c.Refused, c.Inactive = false, []string{}
	if c.Replace == "" && c.With == "" {
		delete(f.files, c.File)
	} else {
		before := string(f.read(c.File))
		if !strings.Contains(before, c.Replace) {
			f.t.Fatalf("%s: %s does not hold %q", c.Name, c.File, c.Replace)
		}
		f.write(c.File, []byte(strings.Replace(before, c.Replace, c.With, 1)))
	}
	bundle, _, err := f.load()
	if err != nil {
		c.Refused = true
		return c
	}
	for _, domain := range slices.Sorted(maps.Keys(bundle.Domains)) {
		if !bundle.Domains[domain].Active {
			c.Inactive = append(c.Inactive, string(domain))
		}
	}
	return c
}

// writeVectors makes all vectors anew.
func writeVectors(t *testing.T) {
	t.Helper()
	f := everyField(t)
	for name, file := range f.files {
		put(t, filepath.Join("folder", filepath.FromSlash(name)), file.Data)
	}
	changes := []vector{
		{Name: "nothing", File: "payments.yaml", Replace: "v: 1", With: "v: 1"},
		{Name: "a cap is raised", File: "payments.yaml", Replace: "50.00 USD", With: "51.00 USD"},
		{Name: "a space is added", File: "ladder.yaml", Replace: "v: 1", With: "v:  1"},
		{Name: "a comment is added", File: "features.yaml", Replace: "v: 1\n", With: "v: 1\n# reviewed\n"},
		{Name: "one of two signatures is gone", File: "payments.yaml.sig/fiona.sig"},
		{Name: "the only signature is gone", File: "features.yaml.sig/priya.sig"},
		{Name: "one signature more than is wanted is gone", File: "ladder.yaml.sig/ines.sig"},
		{Name: "a later format", File: "journeys.yaml", Replace: "v: 1", With: "v: 2"},
		{Name: "another fleet", File: "backends.yaml", Replace: "fleet: shop-demo", With: "fleet: shop-test"},
		{Name: "a document is gone", File: "rights.yaml"},
		{Name: "the manifest is gone", File: "manifest.yaml"},
		{Name: "the manifest names another version", File: "manifest.yaml", Replace: "version: 1\n", With: "version: 2\n"},
		{Name: "the newest root is gone", File: "roots/2.yaml"},
		{Name: "the first root is not the pinned one", File: "roots/1.yaml", Replace: "any: 3", With: "any: 1"},
		{Name: "the second root is not signed by the first", File: "roots/2.yaml.sig/dev.sig"},
	}
	for i, c := range changes {
		changes[i] = outcomeOf(vectorFolder(t), c)
	}
	putJSON(t, "changes.json", changes)
	base := string(f.read("journeys.yaml"))
	printed := []printedVector{{Name: "already canonical", File: "journeys.yaml", In: base}}
	for _, edit := range []struct{ name, old, new string }{
		{"single quotes", "\"find a product and look at it\"", "'find a product and look at it'"},
		{"a block list", "      - [sign-in]\n", "      -\n        - sign-in\n"},
		{"fields in another order", "v: 1\nfleet: shop-demo\n", "fleet: shop-demo\nv: 1\n"},
		{"an octal number", "version: 1", "version: 05000"},
		{"a number in quotes", "version: 1", "version: \"1\""},
		{"sixty-based digits", "version: 1", "version: 1:30"},
		{"a truth value for a name", "fleet: shop-demo", "fleet: no"},
		{"a time without a zone", "2027-11-30T00:00:00Z", "2027-11-30T00:00:00"},
		{"a key twice", "v: 1\n", "v: 1\nv: 1\n"},
		{"an unknown key", "v: 1\n", "v: 1\nvv: 1\n"},
		{"a missing key", "version: 1\n", ""},
		{"an anchor", "fleet: shop-demo", "fleet: &f shop-demo"},
		{"a tag", "fleet: shop-demo", "fleet: !!str shop-demo"},
		{"a second document", "v: 1\n", "v: 1\n---\n"},
		{"U+2028 in a text", "find a product", "find\u2028a product"},
		{"a bare CR in a comment", "v: 1\n", "# x\rv: 1\nv: 1\n"},
		{"a byte order mark", "v: 1\n", "\ufeffv: 1\n"},
		{"a later format", "v: 1\n", "v: 2\n"},
	} {
		printed = append(printed, printedVector{Name: edit.name, File: "journeys.yaml", In: strings.Replace(base, edit.old, edit.new, 1)})
	}
	for i := range printed {
		out, _ := policy.Fmt(printed[i].File, []byte(printed[i].In))
		printed[i].Canonical = string(out)
	}
	putJSON(t, "canonical.json", printed)
}

func put(t *testing.T, name string, content []byte) {
	t.Helper()
	path := filepath.Join(vectors, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func putJSON(t *testing.T, name string, v any) {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	put(t, name, out.Bytes())
}

// everyField is the shop with a second root, and with every field that the format
// knows.
func everyField(t *testing.T) *folder {
	t.Helper()
	params := policytest.Params()
	params.Hosts = templates.ShopHosts(func(host string) string { return "http://" + host + ".shop.example:8700/report" })[:14]
	files, err := templates.Shop(params)
	if err != nil {
		t.Fatal(err)
	}
	f := &folder{t: t, files: fstest.MapFS{}, opts: policy.LoadOptions{Fleet: policytest.Fleet, Realm: directive.Production, Now: policytest.Now()}}
	for name, content := range files {
		f.write(name, content)
	}
	f.completeLadder()
	f.completeRights()
	f.completeBackends(t)
	f.write("roots/2.yaml", bytes.Replace(f.read("roots/1.yaml"), []byte("version: 1\n"), []byte("version: 2\n"), 1))
	f.trust()
	for name := range files {
		f.signAll(name)
	}
	f.sign("roots/1.yaml", templates.ShopPeople()...)
	f.sign("roots/2.yaml", templates.Dev, templates.Fiona, templates.Ines) // exactly as many as are wanted
	f.manifest(1)
	return f
}

func (f *folder) edit(name string, doc any, change func()) {
	f.t.Helper()
	if err := policy.ParseForTest(name, f.read(name), doc); err != nil {
		f.t.Fatal(err)
	}
	change()
	f.write(name, policy.Canonical(doc))
}

func (f *folder) completeLadder() {
	var doc policy.LadderDoc
	f.edit("ladder.yaml", &doc, func() {
		doc.Schedule = map[string]policy.Event{"black-friday": {
			Tier: 1, Scope: []string{templates.Catalog}, From: policytest.Now().AddDate(0, 0, 1).Truncate(time.Hour), Until: policytest.Now().AddDate(0, 0, 2).Truncate(time.Hour),
			Soak: model.Duration(10 * time.Minute), Why: "ten times the load for three hours",
		}}
		doc.Exceptions = map[string]policy.Exception{"game-day": {
			Code: "game-day-overdue", Path: "ladder.yaml services.payment-risk.game_day", Owner: templates.Ines,
			Since: policytest.Now().Truncate(time.Hour), Until: policytest.Now().AddDate(0, 3, 0).Truncate(time.Hour), Why: "the vendor moves to another region first",
		}}
	})
}

func (f *folder) completeRights() {
	var doc policy.RightsDoc
	f.edit("rights.yaml", &doc, func() {
		dim := doc.Rights["shed"]
		dim.Kind, dim.Tiers, dim.Text = model.Dimmer, nil, "dim optional work"
		dim.Dimmer = &policy.Dimmer{TargetMS: policy.Range{From: 200, To: 500}, Floor: 2, Ceiling: 100}
		doc.Rights["dim"] = dim
		blind := doc.Rights["recover-blind"]
		blind.RehearsedWithin, blind.Review, blind.Runbook, blind.Advice = model.Duration(92*24*time.Hour), "reliability", "recovery", "turn the tier down by hand"
		doc.Rights["recover-blind"] = blind
	})
	var root policy.Root
	f.edit("roots/1.yaml", &root, func() {
		rule := root.Domains[policy.Rights]
		rule.Grants = append(rule.Grants, model.Dimmer)
		root.Domains[policy.Rights] = rule
		root.Revoked = []string{"SHA256:" + strings.Repeat("A", 43)}
	})
}

func (f *folder) completeBackends(t *testing.T) {
	var doc policy.BackendsDoc
	f.edit("backends.yaml", &doc, func() {
		doc.Backends["own"] = policy.Backend{
			Path: "/opt/ic/own", SHA256: map[string]string{"linux/amd64": strings.Repeat("0a", 32)}, Config: map[string]string{},
			Targets: []string{templates.Checkout}, Dependencies: []string{"ssh-access"}, Secrets: []string{"own"}, Why: "our own pipeline",
		}
		other := doc
		other.Inventory = policy.Inventory{MaxAge: doc.Inventory.MaxAge, Query: `group by (host, service) (up{job="ic-agent"})`}
		put(t, "query.yaml", policy.Canonical(&other))
	})
}
