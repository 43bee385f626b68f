package runbooks_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/runbooks"
	"golang.org/x/crypto/ssh"
)

// desk is a folder with one runbook in it, and the policy that says who signs.
type desk struct {
	t      *testing.T
	dir    string
	bundle *policy.Bundle
	keys   map[string]ssh.Signer
	text   []byte
}

const file = "payment-risk-down.md"

func newDesk(t *testing.T) *desk {
	_, bundle, keys := policytest.Shop(t)
	d := &desk{t: t, dir: t.TempDir(), bundle: bundle, keys: keys}
	d.write([]byte(base))
	return d
}

func (d *desk) write(text []byte) {
	d.t.Helper()
	d.text = text
	if err := os.WriteFile(filepath.Join(d.dir, file), text, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) sign(person string, key ssh.Signer, realm directive.Realm, fleet string) {
	d.t.Helper()
	if err := runbooks.SignFile(d.dir, file, person, d.text, key, policytest.Rand(), realm, fleet); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) judge() runbooks.Signature {
	return runbooks.Judge(os.DirFS(d.dir), file, d.text, d.bundle, directive.Production, d.bundle.Root.Fleet)
}

// signers are the people of the group, in order.
func (d *desk) signers() []string {
	var out []string
	for person := range d.bundle.Root.People {
		if d.bundle.Root.InGroup(runbooks.Group(d.bundle.Root), person) {
			out = append(out, person)
		}
	}
	slices.Sort(out)
	return out
}

func (d *desk) signByAll(fleet string) {
	for _, person := range d.signers() {
		d.sign(person, d.keys[person], directive.Production, fleet)
	}
}

func TestTheGroupThatSignsTheRightsSignsRunbooks(t *testing.T) {
	d := newDesk(t)
	fleet := d.bundle.Root.Fleet
	if s := d.judge(); s.State != runbooks.Unsigned || s.Group != d.bundle.Root.Domains[policy.Rights].Group || !strings.Contains(s.Why, s.Group) {
		t.Errorf("without a signature: %+v", s)
	}
	d.signByAll(fleet)
	if s := d.judge(); s.State != runbooks.Signed || !slices.Equal(s.By, d.signers()) || s.Why != "" || len(s.Notes) > 0 {
		t.Errorf("signed: %+v", s)
	}
	// A blank at the end of a line is another runbook.
	d.write(append(slices.Clone(d.text), ' '))
	if s := d.judge(); s.State != runbooks.Changed || !slices.Equal(s.Changed, d.signers()) || len(s.By) > 0 {
		t.Errorf("changed since: %+v", s)
	}
}

func TestASignatureThatDoesNotCountSaysWhy(t *testing.T) {
	fleet, shop := policytest.Params().Fleet, newDesk(t)
	for name, c := range map[string]struct {
		do   func(d *desk, signer string)
		want runbooks.SignState
		note string
	}{
		"of a drill":             {func(d *desk, s string) { d.sign(s, d.keys[s], directive.Drill, fleet) }, runbooks.Changed, ""},
		"for another fleet":      {func(d *desk, s string) { d.sign(s, d.keys[s], directive.Production, "bank") }, runbooks.Changed, ""},
		"by a stranger":          {func(d *desk, s string) { d.sign(s, policytest.Key("stranger"), directive.Production, fleet) }, runbooks.Unsigned, "in the trust root"},
		"under another's name":   {func(d *desk, s string) { d.sign("mallory", d.keys[s], directive.Production, fleet) }, runbooks.Unsigned, "is not mallory's"},
		"of a file of no person": {func(d *desk, s string) { d.put("Not A Name.sig", []byte("x")) }, runbooks.Unsigned, "named <person>.sig"},
		"of garbage":             {func(d *desk, s string) { d.put(s+".sig", []byte("-----BEGIN\n")) }, runbooks.Unsigned, "does not count"},
	} {
		d := &desk{t: t, dir: t.TempDir(), bundle: shop.bundle, keys: shop.keys}
		d.write([]byte(base))
		c.do(d, d.signers()[0])
		s := d.judge()
		if s.State != c.want || c.note != "" && !strings.Contains(strings.Join(s.Notes, "\n"), c.note) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func (d *desk) put(name string, text []byte) {
	folder := filepath.Join(d.dir, file+".sig")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func TestSomebodyOutsideTheGroupDoesNotMakeItSigned(t *testing.T) {
	d := newDesk(t)
	for person := range d.bundle.Root.People {
		if !slices.Contains(d.signers(), person) {
			d.sign(person, d.keys[person], directive.Production, d.bundle.Root.Fleet)
		}
	}
	if s := d.judge(); s.State != runbooks.Short || len(s.By) == 0 {
		t.Errorf("signed by others only: %+v", s)
	}
}

func TestStockToolsCheckASignedRunbook(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Fatal("ssh-keygen belongs to what this is developed with")
	}
	d := newDesk(t)
	d.signByAll(d.bundle.Root.Fleet)
	person := d.signers()[0]
	allowed := filepath.Join(d.dir, "allowed")
	if err := os.WriteFile(allowed, append([]byte(person+" "), ssh.MarshalAuthorizedKey(d.keys[person].PublicKey())...), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, good := range map[string]bool{base: true, base + " ": false} {
		cmd := exec.CommandContext(t.Context(), keygen, "-Y", "verify", "-f", allowed, "-I", person, "-n", "ic-runbook-v1@"+d.bundle.Root.Fleet, "-s", filepath.Join(d.dir, file+".sig", person+".sig"))
		cmd.Stdin = bytes.NewReader([]byte(text))
		if out, err := cmd.CombinedOutput(); (err == nil) != good {
			t.Errorf("ssh-keygen: %v %s", err, out)
		}
	}
}

func TestTheListOfOriginsIsReadStrictly(t *testing.T) {
	got, err := runbooks.ParseOrigins("origins.txt", []byte("# health pages\nhttps://shop.example\n\nhttp://10.0.0.7:8080\nhttp://[fd00::1]:8080\n"))
	if want := []string{"https://shop.example", "http://10.0.0.7:8080", "http://[fd00::1]:8080"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v", got, err)
	}
	for text, sentence := range map[string]string{
		"\nhttps://shop.example/":     "origins.txt:2:1: \"https://shop.example/\": write it as https://shop.example",
		"https://shop.example:443":    "write it as https://shop.example",
		"https://Shop.example":        "write it as https://shop.example",
		"shop.example":                "is no origin",
		"*":                           "is no origin",
		"https://u:p@shop.example":    "is no origin",
		"https://shop.example\r\n":    "carriage return",
		"file:///etc":                 "is no origin",
		strings.Repeat("x", 300*1024): "the file has",
	} {
		if got, err := runbooks.ParseOrigins("origins.txt", []byte(text)); err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%.40q: %v %v", text, got, err)
		}
	}
}

func TestAFolderListsItsRunbooksOnly(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"README.md", ".hidden.md", "origins.txt", "a.md"} {
		if err := os.WriteFile(filepath.Join(d.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.put("x.sig", nil)
	if got, err := runbooks.Names(os.DirFS(d.dir)); err != nil || !slices.Equal(got, []string{"a.md", file}) {
		t.Errorf("%v %v", got, err)
	}
}
