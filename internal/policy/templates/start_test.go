package templates_test

import (
	"fmt"
	"maps"
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
	"golang.org/x/crypto/ssh"
)

const solo = "sam"

func startOf(template string) templates.StartParams {
	return templates.StartParams{Template: template, Fleet: "acme", Person: solo, Key: policytest.Key(solo).PublicKey(), Now: policytest.Now(), Expires: policytest.Now().AddDate(1, 0, 0)}
}

func start(t *testing.T, template string) templates.Starter {
	t.Helper()
	s, err := templates.Start(startOf(template))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lint(t *testing.T, files map[string][]byte) []policy.Finding {
	t.Helper()
	folder := fstest.MapFS{}
	for name, content := range files {
		folder[name] = &fstest.MapFile{Data: content}
	}
	found, err := policy.LintFolder(folder, policy.Names{Bundled: []string{"git", "hostfile"}, Now: policytest.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// What lint says of a company that has just started is true: one person, no game
// day yet, no hosts. It says nothing else.
func TestAStartedPolicyLints(t *testing.T) {
	for _, name := range templates.Names() {
		for _, f := range lint(t, start(t, name).Files) {
			if f.Severity == policy.LintError || !slices.Contains([]string{"game-day", "inventory-empty", "alone-may-grant"}, f.Code) {
				t.Errorf("%s: %s", name, f)
			}
		}
	}
}

func TestAStartedPolicyIsInForceWithOneSignature(t *testing.T) {
	for _, name := range templates.Names() {
		s := start(t, name)
		dir := t.TempDir()
		pin, err := templates.Sign(dir, s.Files, templates.Signing{
			Signers: map[string]ssh.Signer{solo: policytest.Key(solo)}, Rand: policytest.Rand(), Realm: directive.Production, Fleet: "acme", Version: 1,
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b, _, err := policy.LoadDir(dir, policy.LoadOptions{Fleet: "acme", RootSHA256: pin, Realm: directive.Production})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, state := range b.Domains {
			if !state.Active {
				t.Errorf("%s: %s is not in force: %s", name, state.Domain, state.Why)
			}
		}
		if n := len(b.Tiers); n < 3 || n > 5 {
			t.Errorf("%s has %d tiers", name, n)
		}
		for _, right := range b.RightNames() {
			r, _, _ := b.Right(right)
			if r.Advice == "" && r.Kind != model.Ping {
				t.Errorf("%s: nobody says how %s is done by hand", name, right)
			}
			if r.Cosign.Count > 0 {
				t.Errorf("%s: %s wants somebody besides the only one", name, right)
			}
		}
	}
}

// With a second person the rest of the template can be signed.
func TestWhatComesLaterLintsWithASecondPerson(t *testing.T) {
	for _, name := range templates.Names() {
		s := start(t, name)
		files := maps.Clone(s.Files)
		maps.Copy(files, s.Later)
		root := string(files["roots/1.yaml"])
		key := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(policytest.Key("fiona").PublicKey())))
		root = strings.Replace(root, "people:\n", fmt.Sprintf("people:\n  fiona:\n    name: fiona\n    reach: \"by phone\"\n    keys: [%q]\n", key), 1)
		root = strings.ReplaceAll(root, "    of: [sam]\n", "    of: [fiona, sam]\n")
		files["roots/1.yaml"] = []byte(root)
		for _, f := range lint(t, files) {
			if f.Severity == policy.LintError || !slices.Contains([]string{"game-day", "alone-may-grant"}, f.Code) {
				t.Errorf("%s: %s", name, f)
			}
		}
		for _, file := range []string{"rights.yaml", "backends.yaml"} {
			if s.Later[file] == nil {
				t.Errorf("%s has no later %s", name, file)
			}
		}
	}
}

func TestOnlyMoneyAndCapacityEverOpen(t *testing.T) {
	files := string(start(t, "payments").Files["access.yaml"])
	if !strings.Contains(files, "protects: authorization\n    fails: closed") || !strings.Contains(files, "rights: {}") {
		t.Errorf("access.yaml: %s", files)
	}
	if files := string(start(t, "api").Files["capacity.yaml"]); !strings.Contains(files, "protects: capacity\n    fails: open") {
		t.Errorf("capacity.yaml: %s", files)
	}
}

func TestNobodyOfTheExampleStaysInAStartedPolicy(t *testing.T) {
	for _, name := range templates.Names() {
		s := start(t, name)
		for _, files := range []map[string][]byte{s.Files, s.Later} {
			for file, content := range files {
				for _, person := range append(templates.ShopPeople(), templates.LadderController) {
					if strings.Contains(string(content), " "+person+"\n") || strings.Contains(string(content), "["+person) {
						t.Errorf("%s of %s names %s", file, name, person)
					}
				}
			}
		}
	}
}

func TestAStartThatCannotBe(t *testing.T) {
	for why, bend := range map[string]func(*templates.StartParams){
		`no template "bank"`:   func(p *templates.StartParams) { p.Template = "bank" },
		"lower-case letters":   func(p *templates.StartParams) { p.Person = "Sam; rm" },
		`fleet "A fleet"`:      func(p *templates.StartParams) { p.Fleet = "A fleet" },
		"starts with a key":    func(p *templates.StartParams) { p.Key = nil },
		"after it has begun":   func(p *templates.StartParams) { p.Expires = p.Now },
		"and expires after it": func(p *templates.StartParams) { p.Now = time.Time{} },
	} {
		p := startOf("shop")
		bend(&p)
		if _, err := templates.Start(p); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("want %q, got %v", why, err)
		}
	}
}

// The shop with its five people is an example without a blemish.
func TestTheWholeShopLintsClean(t *testing.T) {
	files, err := templates.Shop(policytest.Params())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range lint(t, files) {
		t.Error(f)
	}
}
