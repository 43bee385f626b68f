package policy_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

// folder is a policy folder in memory that tests bend.
type folder struct {
	t     testing.TB
	files fstest.MapFS
	root  *policy.Root
	opts  policy.LoadOptions
}

// signedShop makes the files of shop once: signing is what takes time.
var signedShop = sync.OnceValue(func() fstest.MapFS {
	files, err := templates.Shop(policytest.Params())
	if err != nil {
		panic(err)
	}
	f := &folder{t: panicker{}, files: fstest.MapFS{}}
	for name, content := range files {
		f.write(name, content)
	}
	f.trust()
	for name := range files {
		f.signAll(name)
	}
	f.manifest(1)
	return f.files
})

// panicker stands in for a test where there is none.
type panicker struct{ testing.TB }

func (panicker) Helper()           {}
func (panicker) Fatal(args ...any) { panic(args) }

// shop is the example policy, complete and signed by everybody who has to.
func shop(t testing.TB) *folder {
	t.Helper()
	f := &folder{t: t, files: maps.Clone(signedShop())}
	f.opts = policy.LoadOptions{Fleet: policytest.Fleet, Realm: directive.Production, Now: policytest.Now()}
	f.trust()
	return f
}

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

// trust pins the first root as it is now and takes the newest for its rules.
func (f *folder) trust() {
	f.t.Helper()
	f.opts.RootSHA256 = sum(f.read("roots/1.yaml"))
	f.root = f.rootOf(f.newestRoot())
}

func (f *folder) newestRoot() string {
	if _, ok := f.files["roots/2.yaml"]; ok {
		return "roots/2.yaml"
	}
	return "roots/1.yaml"
}

func (f *folder) read(name string) []byte {
	f.t.Helper()
	file, ok := f.files[name]
	if !ok {
		f.t.Fatalf("there is no %s", name)
	}
	return bytes.Clone(file.Data)
}

func (f *folder) write(name string, content []byte) { f.files[name] = &fstest.MapFile{Data: content} }

func word(name string) string {
	switch {
	case name == "manifest.yaml":
		return "manifest"
	case strings.HasPrefix(name, "roots/"):
		return "root"
	}
	return "policy"
}

// sign adds the signatures of people, each with his own key.
func (f *folder) sign(name string, people ...string) {
	f.t.Helper()
	for _, person := range people {
		f.signAs(name, person, policytest.Key(person), directive.Production.Namespace(word(name), policytest.Fleet))
	}
}

// signAs signs with any key in any namespace and files it under person.
func (f *folder) signAs(name, person string, key ssh.Signer, namespace string) {
	f.t.Helper()
	sig, err := sshsig.Sign(key, policytest.Rand(), f.read(name), namespace)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(name+".sig/"+person+".sig", sshsig.Armor(sig.Blob))
}

// signAll signs with everybody of the group that has to.
func (f *folder) signAll(name string) {
	f.t.Helper()
	for _, person := range templates.ShopPeople() {
		if f.root.InGroup(f.root.GroupFor(name), person) {
			f.sign(name, person)
		}
	}
}

func (f *folder) strip(name, person string) { delete(f.files, name+".sig/"+person+".sig") }

// change replaces text in a document, has it signed again by everybody, and
// publishes a manifest of the same version.
func (f *folder) change(name, old, new string) *folder {
	f.t.Helper()
	before := string(f.read(name))
	if !strings.Contains(before, old) {
		f.t.Fatalf("%s does not hold %q", name, old)
	}
	f.write(name, []byte(strings.ReplaceAll(before, old, new)))
	if strings.HasPrefix(name, "roots/") {
		f.trust()
	}
	f.signAll(name)
	f.manifest(1)
	return f
}

// manifest makes and signs a manifest of what is there.
func (f *folder) manifest(version int64) {
	f.t.Helper()
	m := policy.Manifest{V: 1, Fleet: policytest.Fleet, Version: version, Files: map[string]policy.ManifestFile{}}
	for name := range f.files {
		if strings.Contains(name, "/") && name != f.newestRoot() || name == "manifest.yaml" {
			continue
		}
		m.Files[name] = policy.ManifestFile{Version: versionIn(f.read(name)), SHA256: sum(f.read(name))}
	}
	f.write("manifest.yaml", policy.Canonical(&m))
	f.signAll("manifest.yaml")
}

func versionIn(content []byte) int64 {
	for line := range strings.Lines(string(content)) {
		if digit, ok := strings.CutPrefix(line, "version: "); ok {
			return int64(digit[0] - '0')
		}
	}
	return 0
}

func (f *folder) load() (*policy.Bundle, policy.Highest, error) { return policy.Load(f.files, f.opts) }

// active loads and wants no error.
func (f *folder) active() map[policy.Domain]policy.DomainState {
	f.t.Helper()
	b, _, err := f.load()
	if err != nil {
		f.t.Fatal(err)
	}
	return b.Domains
}

// inactive wants exactly one domain to have fallen, with a sentence that holds
// the words.
func (f *folder) inactive(domain policy.Domain, words ...string) {
	f.t.Helper()
	for name, state := range f.active() {
		if name != domain {
			if !state.Active {
				f.t.Errorf("%s fell too: %s", name, state.Why)
			}
			continue
		}
		if state.Active {
			f.t.Errorf("%s is active", domain)
		}
		for _, w := range words {
			if !strings.Contains(state.Why, w) {
				f.t.Errorf("%s fell because %q, which does not say %q", domain, state.Why, w)
			}
		}
	}
}

func (f *folder) rootOf(name string) *policy.Root {
	f.t.Helper()
	var root policy.Root
	if err := policy.ParseForTest(name, f.read(name), &root); err != nil {
		f.t.Fatal(err)
	}
	return &root
}

// replaceRoot makes a changed first root the trusted one and has everything
// signed again.
func (f *folder) replaceRoot(root *policy.Root) {
	f.t.Helper()
	f.write("roots/1.yaml", policy.Canonical(root))
	f.trust()
	f.sign("roots/1.yaml", templates.ShopPeople()...)
	f.manifest(1)
}

// rewriteManifest changes the manifest alone and has it signed again.
func (f *folder) rewriteManifest(old, new string) {
	f.t.Helper()
	text := string(f.read("manifest.yaml"))
	if !strings.Contains(text, old) {
		f.t.Fatalf("the manifest does not hold %q", old)
	}
	f.write("manifest.yaml", []byte(strings.Replace(text, old, new, 1)))
	f.signAll("manifest.yaml")
}

func authorized(key ssh.Signer) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
}

func fingerprint(key ssh.Signer) string { return ssh.FingerprintSHA256(key.PublicKey()) }
