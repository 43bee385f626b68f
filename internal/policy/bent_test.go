package policy_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

// What bent other systems by way of signatures, roots and versions.
// docs/explanation/attacks.md lists them all.

// "0 of these" and "1 of nobody" are satisfied by no signature at all. The
// folder is refused as a whole, whoever signed it.
func TestBentAThresholdOfZeroOrAnEmptyGroupIsNoPermission(t *testing.T) {
	for what, group := range map[string]policy.Group{
		"0 of 2":     {Any: 0, Of: []string{"fiona", "ravi"}},
		"-1 of 2":    {Any: -1, Of: []string{"fiona", "ravi"}},
		"0 of none":  {Any: 0},
		"1 of none":  {Any: 1},
		"3 of 2":     {Any: 3, Of: []string{"fiona", "ravi"}},
		"2 of 1 + 1": {Any: 2, Of: []string{"fiona", "fiona"}},
	} {
		t.Run(what, func(t *testing.T) {
			f := shop(t)
			root := f.rootOf("roots/1.yaml")
			root.Groups["finance"] = group
			f.write("roots/1.yaml", policy.Canonical(root))
			f.opts.RootSHA256 = sum(f.read("roots/1.yaml"))
			f.sign("roots/1.yaml", templates.ShopPeople()...)
			if _, _, err := f.load(); !errors.Is(err, policy.ErrRoot) {
				t.Errorf("got %v", err)
			}
			if group.Any <= 0 && (root.Satisfied("finance", nil) || root.Satisfied("finance", map[string]bool{"fiona": true, "ravi": true})) {
				t.Error("a root that nobody validated is satisfied by nobody")
			}
		})
	}
	t.Run("a group that is not there", func(t *testing.T) {
		if root := shop(t).root; root.Satisfied("", nil) || root.Satisfied("nobody", map[string]bool{"fiona": true}) {
			t.Error("a group that is not there is satisfied")
		}
	})
}

// An empty list revokes nobody and says so; a list that is missing, or that
// names keys in a way that matches none, must not look the same.
func TestBentARevocationListRevokesOrIsRefused(t *testing.T) {
	ravi := fingerprint(policytest.Key("ravi"))
	for _, c := range []struct {
		what, revoked, why string
		active             bool
	}{
		{"an empty list", "revoked: []\n", "", true},
		{"no list", "", `"revoked" is missing`, false},
		{"a list without a value", "revoked:\n", "there is no value here", false},
		{"nothing", "revoked: ~\n", "there is no value here", false},
		{"the key", `revoked: ["` + ravi + "\"]\n", "", false},
		{"another key", `revoked: ["` + fingerprint(policytest.Key("stranger")) + "\"]\n", "", true},
		{"an empty word", `revoked: [""]` + "\n", "is no fingerprint and would revoke nothing", false},
		{"the fingerprint in small letters", `revoked: ["` + strings.ToLower(ravi) + "\"]\n", "is no fingerprint", false},
		{"the fingerprint with padding", `revoked: ["` + ravi + "=\"]\n", "is no fingerprint", false},
		{"the fingerprint with a space", `revoked: ["` + ravi + " \"]\n", "is no fingerprint", false},
		{"the fingerprint cut short", `revoked: ["` + ravi[:40] + "\"]\n", "is no fingerprint", false},
		{"the fingerprint of MD5", `revoked: ["MD5:16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48"]` + "\n", "is no fingerprint", false},
		{"the key itself", `revoked: ["` + authorized(policytest.Key("ravi")) + "\"]\n", "is no fingerprint", false},
		{"the person", "revoked: [ravi]\n", "is no fingerprint", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := shop(t)
			f.write("roots/1.yaml", []byte(strings.Replace(string(f.read("roots/1.yaml")), "revoked: []\n", c.revoked, 1)))
			f.opts.RootSHA256 = sum(f.read("roots/1.yaml"))
			f.sign("roots/1.yaml", templates.ShopPeople()...)
			f.manifest(1)
			b, _, err := f.load()
			switch {
			case c.why != "":
				if !errors.Is(err, policy.ErrRoot) || !strings.Contains(err.Error(), c.why) {
					t.Errorf("got %v, want %q", err, c.why)
				}
			case err != nil:
				t.Error(err)
			case b.Domains[templates.PaymentsDomain].Active != c.active:
				t.Errorf("payments, which needs ravi, is %+v", b.Domains[templates.PaymentsDomain])
			}
		})
	}
}

// A certificate says that some authority vouches for a key: no root may list one.
// One that stands in a signature in the place of its key is a case of
// docs/sshsig-comparison.md.
func TestBentACertificateIsNoKey(t *testing.T) {
	ca, key := policytest.Key("authority"), policytest.Key("ravi")
	cert := &ssh.Certificate{Key: key.PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"ravi"}, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(strings.NewReader(strings.Repeat("x", 64)), ca); err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(cert)))
	for what, keys := range map[string][]string{
		"alone":                  {text},
		"beside its key":         {authorized(key), text},
		"an authority's line":    {"cert-authority " + authorized(ca)},
		"a key with a principal": {`principals="ravi" ` + authorized(key)},
		"a key with a date":      {`valid-before="20270101" ` + authorized(key)},
	} {
		root := shop(t).root
		root.People["ravi"] = policy.Person{Name: "Ravi", Keys: keys}
		if err := root.Validate(); !errors.Is(err, policy.ErrRoot) || !strings.Contains(err.Error(), "key of ravi") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// One file is one signature: what stands around it was signed by nobody, and of
// two signatures tools read the first, or the last, or both.
func TestBentAnArmorHoldsOneSignatureAndNothingElse(t *testing.T) {
	const file = "payments.yaml.sig/ravi.sig"
	good, fiona := string(shop(t).read(file)), string(shop(t).read("payments.yaml.sig/fiona.sig"))
	for what, armor := range map[string]string{
		"two signatures":             good + fiona,
		"two signatures, turned":     fiona + good,
		"the same one twice":         good + good,
		"text before":                "From: ravi\n" + good,
		"text behind":                good + "and I approve version 2 as well\n",
		"an empty line behind":       good + "\n",
		"a NUL behind":               good + "\x00",
		"CRLF":                       strings.ReplaceAll(good, "\n", "\r\n"),
		"no newline at the end":      strings.TrimSuffix(good, "\n"),
		"one long line":              strings.Replace(good, "\n", "", 2),
		"a byte behind the blob":     string(sshsig.Armor(append(unarmored(t, good), 0))),
		"two blobs in one armor":     string(sshsig.Armor(append(unarmored(t, good), unarmored(t, fiona)...))),
		"another's signature inside": fiona,
	} {
		t.Run(what, func(t *testing.T) {
			f := shop(t)
			f.write(file, []byte(armor))
			f.inactive(templates.PaymentsDomain, "finance wants 2 of fiona, ravi; signed by fiona")
		})
	}
}

func unarmored(t *testing.T, text string) []byte {
	t.Helper()
	blob, err := sshsig.Unarmor([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return blob
}

// A signature says what it was made for. Every word is tried where another is
// wanted, with the right person, key and bytes.
func TestBentASignatureForAnotherNamespaceIsNone(t *testing.T) {
	words := []string{"root", "policy", "manifest", "directive", "session", "lease", "runbook", "signoff"}
	files := map[string]string{"roots/1.yaml": "root", "manifest.yaml": "manifest", "payments.yaml": "policy"}
	spaces := func(word string) []string {
		return []string{
			directive.Production.Namespace(word, policytest.Fleet), directive.Drill.Namespace(word, policytest.Fleet),
			directive.Production.Namespace(word, "other"), "file", "git",
		}
	}
	for file, want := range files {
		for _, word := range words {
			for _, space := range spaces(word) {
				f := shop(t)
				for _, person := range templates.ShopPeople() {
					f.signAs(file, person, policytest.Key(person), space)
				}
				b, _, err := f.load()
				active := err == nil && b.Domains[templates.PaymentsDomain].Active
				if right := space == directive.Production.Namespace(want, policytest.Fleet); active != right {
					t.Errorf("%s signed in %s: active %v (%v)", file, space, active, err)
				}
			}
		}
	}
}

// A signature under a policy file must not carry a directive, however its bytes
// read, and no payload of a directive is a document.
func TestBentAPolicySignatureCarriesNoDirective(t *testing.T) {
	b := loaded(t)
	d := shed(b, "shed", 3)
	d.ID, d.Incident, d.Reason, d.Right = "01JDZ9A0000000000000000000", "inc-1", "a drill that is none", "shed"
	d.Log = model.LogHead{Origin: policytest.Fleet + "/inc-1/ines-1", Root: strings.Repeat("00", 32)}
	payload, err := directive.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, realm := range []directive.Realm{directive.Production, directive.Drill} {
		for _, word := range []string{"directive", "policy", "root", "manifest", "session", "lease", "runbook", "signoff"} {
			for _, fleet := range []string{policytest.Fleet, "other"} {
				sig, err := sshsig.Sign(policytest.Key("ines"), policytest.Rand(), payload, realm.Namespace(word, fleet))
				if err != nil {
					t.Fatal(err)
				}
				token, err := directive.Token(payload, sig)
				if err != nil {
					t.Fatal(err)
				}
				_, err = directive.Verify(token, directive.Production, policytest.Fleet)
				right := realm == directive.Production && word == "directive" && fleet == policytest.Fleet
				if (err == nil) != right || !right && directive.CodeOf(err) != model.CodeBadSignature {
					t.Errorf("signed in %s: %v", realm.Namespace(word, fleet), err)
				}
			}
		}
	}
	for _, file := range kinds {
		if _, err := policy.Fmt(file, payload); err == nil {
			t.Errorf("the payload of a directive is a document like %s", file)
		}
	}
}

func loaded(t *testing.T) *policy.Bundle {
	t.Helper()
	b, _, err := shop(t).load()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// domainFiles are the documents of the example.
var domainFiles = []string{"backends.yaml", "features.yaml", "journeys.yaml", "ladder.yaml", "payments.yaml", "rights.yaml"}

// raised is the example with every document at version 2, under manifest 2.
func raised(t *testing.T) *folder {
	t.Helper()
	f := shop(t)
	for _, file := range domainFiles {
		f.write(file, []byte(strings.Replace(string(f.read(file)), "\nversion: 1\n", "\nversion: 2\n", 1)))
		f.signAll(file)
	}
	f.manifest(2)
	return f
}

// Two states, each signed by everybody, mixed in every way: what is active is
// all of one state, the manifest's, and never of both.
func TestBentMixAndMatchNeverActivatesTwoStates(t *testing.T) {
	older, newer := shop(t), raised(t)
	for manifest, from := range map[int64]*folder{1: older, 2: newer} {
		for mix := range 1 << len(domainFiles) {
			f := &folder{t: t, files: maps.Clone(from.files), opts: older.opts}
			for i, file := range domainFiles {
				part := older
				if mix>>i&1 == 1 {
					part = newer
				}
				for name := range part.files {
					if name == file || strings.HasPrefix(name, file+".sig/") {
						f.files[name] = part.files[name]
					}
				}
			}
			states := f.active()
			for i, file := range domainFiles {
				state := states[policy.Domain(strings.TrimSuffix(file, ".yaml"))]
				version := int64(mix>>i&1) + 1
				if state.Active != (version == manifest) || state.Version != manifest {
					t.Fatalf("manifest %d with %s of version %d: %+v", manifest, file, version, state)
				}
			}
		}
	}
}

// Who has obeyed version 2 obeys no part of version 1 again.
func TestBentRollbackOfAnyFileIsRefused(t *testing.T) {
	newer := raised(t)
	_, highest, err := newer.load()
	if err != nil {
		t.Fatal(err)
	}
	older := shop(t)
	older.opts.State = &highest
	if _, _, err := older.load(); !errors.Is(err, policy.ErrRolledBack) {
		t.Errorf("everything old: %v", err)
	}
	for _, file := range domainFiles {
		f := raised(t)
		f.opts.State = &highest
		for name := range older.files {
			if name == file || strings.HasPrefix(name, file+".sig/") {
				f.files[name] = older.files[name]
			}
		}
		if state := f.active()[policy.Domain(strings.TrimSuffix(file, ".yaml"))]; state.Active {
			t.Errorf("an old %s under the manifest of the new one is active", file)
		}
		f.manifest(3) // whoever may publish helps
		if _, _, err := f.load(); !errors.Is(err, policy.ErrRolledBack) || !strings.Contains(err.Error(), file) {
			t.Errorf("an old %s under a manifest that names it: %v", file, err)
		}
	}
}

// What has run out still counts for the signing of what follows it.
func TestBentAnExpiredFileDoesNotBlockItsRenewal(t *testing.T) {
	t.Run("a document", func(t *testing.T) {
		dir := t.TempDir()
		opts := policytest.Write(t, dir, policytest.Params())
		for _, year := range []string{"2020", "2028"} { // run out, then renewed
			edit(t, dir, "payments.yaml", "expires: "+map[string]string{"2020": "2027", "2028": "2020"}[year], "expires: "+year)
			version := map[string]int64{"2020": 2, "2028": 3}[year]
			edit(t, dir, "payments.yaml", fmt.Sprintf("version: %d", version-1), fmt.Sprintf("version: %d", version))
			for _, person := range []string{"fiona", "ravi"} {
				if err := signFile(dir, "payments.yaml", person, person); err != nil {
					t.Fatal(err)
				}
			}
			publish(t, dir, version)
		}
		b, _, err := policy.LoadDir(dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		if state := b.Domains[templates.PaymentsDomain]; !state.Active || state.Version != 3 || state.Expires.Year() != 2028 {
			t.Errorf("payments is %+v", state)
		}
		d := smallBypass(b)
		if code := b.Admit(&d, fingerprints("ines"), policytest.Now()); code != "" {
			t.Errorf("a bypass after the renewal: %q", code)
		}
	})
	t.Run("the root", func(t *testing.T) {
		f := shop(t)
		root := f.rootOf("roots/1.yaml")
		root.Expires = root.Expires.AddDate(-10, 0, 0)
		f.replaceRoot(root)
		b, _, err := f.load()
		if err != nil {
			t.Fatalf("an expired root is not followed: %v", err)
		}
		d := shed(b, "shed", 3)
		if code := b.Admit(&d, fingerprints("ines"), policytest.Now()); code != "" {
			t.Errorf("under an expired root nobody can shed: %q", code)
		}
		f.succeed(func(r *policy.Root) { r.Expires = policytest.Expires() }, templates.ShopPeople()...)
		if b, _, err := f.load(); err != nil || !b.Expires().Equal(policytest.Expires()) {
			t.Errorf("its successor: %v", err)
		}
	})
}

// publish makes and signs a manifest of what is in dir.
func publish(t *testing.T, dir string, version int64) {
	t.Helper()
	manifest, err := policy.BuildManifest(dir, version)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, policy.ManifestFileName), manifest, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := signFile(dir, policy.ManifestFileName, "ines", "ines"); err != nil {
		t.Fatal(err)
	}
}

// Whoever can delete a signature can take a domain away, any of them in any
// combination; he can never take shedding away, and he never opens anything.
func TestBentStrippedSignaturesStopNoSheddingAndOpenNothing(t *testing.T) {
	for stripped := range 1 << len(domainFiles) {
		f := shop(t)
		var gone []string
		for i, file := range domainFiles {
			if stripped>>i&1 == 0 {
				continue
			}
			gone = append(gone, file)
			for _, person := range templates.ShopPeople() {
				f.strip(file, person)
			}
		}
		b, _, err := f.load()
		if err != nil {
			t.Fatalf("without the signatures of %v nothing loads: %v", gone, err)
		}
		for tier := 1; tier <= 3; tier++ {
			d := shed(b, "shed", tier)
			if code := b.Admit(&d, fingerprints("ines"), policytest.Now()); code != "" {
				t.Errorf("without the signatures of %v nobody sheds to tier %d: %q", gone, tier, code)
			}
		}
		closed := off(b, templates.PaymentRisk)
		if code := b.Admit(&closed, fingerprints("ines"), policytest.Now()); code == "" {
			t.Errorf("without the signatures of %v a control is switched off as a feature", gone)
		}
		open := smallBypass(b)
		if code := b.Admit(&open, fingerprints("ines"), policytest.Now()); (code == "") != b.Domains[templates.PaymentsDomain].Active {
			t.Errorf("without the signatures of %v a bypass: %q", gone, code)
		}
	}
}
