package policy_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
)

// succeed adds a second root, bent as the test wants, and signs it with people.
func (f *folder) succeed(bend func(*policy.Root), people ...string) {
	f.t.Helper()
	root := f.rootOf("roots/1.yaml")
	root.Version = 2
	bend(root)
	f.write("roots/2.yaml", policy.Canonical(root))
	f.sign("roots/2.yaml", people...)
	f.trust()
	f.manifest(1)
}

func same(*policy.Root) {}

func TestANewRootTakesOver(t *testing.T) {
	f := shop(t)
	f.succeed(func(r *policy.Root) { r.Revoked = []string{fingerprint(policytest.Key("ravi"))} }, "dev", "ines", "fiona")
	b, highest, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	if b.Root.Version != 2 || highest.Root.Version != 2 {
		t.Errorf("root %d is in force, root %d is remembered", b.Root.Version, highest.Root.Version)
	}
	if state := b.Domains[templates.PaymentsDomain]; state.Active {
		t.Error("a key that the new root revoked still counts")
	}
}

func TestTheChainOfRoots(t *testing.T) {
	for _, c := range []struct {
		what string
		bend func(f *folder)
		why  string
	}{
		{"the first is not the pinned one", func(f *folder) { f.opts.RootSHA256 = sum(nil) }, "pinned is " + sum(nil)},
		{"nothing is pinned", func(f *folder) { f.opts.RootSHA256 = "" }, "pinned is "},
		{"the first lacks its own signatures", func(f *folder) {
			for _, p := range []string{"dev", "ines", "fiona"} {
				f.strip("roots/1.yaml", p)
			}
		}, "everyone wants 3 of dev, fiona, ines, priya, ravi; signed by priya, ravi"},
		{"the first is of another fleet", func(f *folder) { f.opts.Fleet = "other" }, ""},
		{"the second lacks a signature", func(f *folder) { f.succeed(same, "dev", "ines") }, "its own group everyone wants 3"},
		{"the second is signed by its own people only", func(f *folder) {
			f.succeed(func(r *policy.Root) {
				r.Groups["everyone"] = policy.Group{Any: 1, Of: []string{"priya"}}
			}, "priya")
		}, "of the root before it, group everyone wants 3 of dev, fiona, ines, priya, ravi; signed by priya"},
		{"the second is signed by the first's people only", func(f *folder) {
			f.succeed(func(r *policy.Root) {
				r.Groups["everyone"] = policy.Group{Any: 4, Of: []string{"dev", "fiona", "ines", "priya", "ravi"}}
			}, "dev", "ines", "fiona")
		}, "its own group everyone wants 4"},
		{"a new key under an old name, for both roots", func(f *folder) {
			f.succeed(func(r *policy.Root) {
				for name, p := range r.People {
					p.Keys = []string{authorized(policytest.Key(name + "-new"))}
					r.People[name] = p
				}
			})
			for _, p := range []string{"dev", "ines", "fiona"} {
				f.signAs("roots/2.yaml", p, policytest.Key(p+"-new"), "ic-root-v1@shop-demo")
			}
		}, "of the root before it, group everyone wants 3"},
		{"the second says version 3", func(f *folder) { f.succeed(func(r *policy.Root) { r.Version = 3 }, templates.ShopPeople()...) }, "version 3; it has to be"},
		{"the second is not canonical", func(f *folder) {
			f.succeed(same)
			f.write("roots/2.yaml", append(f.read("roots/2.yaml"), '\n'))
			f.sign("roots/2.yaml", templates.ShopPeople()...)
		}, "not canonical"},
		{"the second is not valid", func(f *folder) { f.succeed(func(r *policy.Root) { r.Publish = "nobody" }, templates.ShopPeople()...) }, `group "nobody" is used and not defined`},
		{"a gap", func(f *folder) {
			f.succeed(same, templates.ShopPeople()...)
			f.files["roots/3.yaml"] = f.files["roots/2.yaml"]
			delete(f.files, "roots/2.yaml")
		}, "roots/2.yaml is missing and roots/3.yaml is there"},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := shop(t)
			c.bend(f)
			if _, _, err := f.load(); !errors.Is(err, policy.ErrRoot) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want %q", err, c.why)
			}
		})
	}
}

// Keys are replaced by a root that the old and the new keys sign, each person in
// one file: whoever has both signs with the old one for the group before.
func TestKeysAreReplacedByThoseWhoKeepTheirs(t *testing.T) {
	f := shop(t)
	f.succeed(func(r *policy.Root) {
		ines := r.People["ines"]
		ines.Keys = []string{authorized(policytest.Key("ines-new"))}
		r.People["ines"] = ines
	}, "dev", "fiona", "priya")
	f.strip("manifest.yaml", "ines")
	b, _, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	if got := b.FingerprintsOf("ines"); len(got) != 1 || got[0] != fingerprint(policytest.Key("ines-new")) {
		t.Errorf("the keys of ines are %v", got)
	}
}

// Cutting off the newest root would bring back the keys it revoked: the manifest
// names the root it was made under.
func TestARootThatWasCutOff(t *testing.T) {
	f := shop(t)
	f.succeed(same, templates.ShopPeople()...)
	delete(f.files, "roots/2.yaml")
	if _, _, err := f.load(); !errors.Is(err, policy.ErrManifest) {
		t.Errorf("got %v", err)
	}
	old := shop(t)
	f = shop(t)
	f.succeed(same, templates.ShopPeople()...)
	_, highest, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	highest.Manifest, old.opts.State = policy.Mark{}, &highest
	if _, _, err := old.load(); !errors.Is(err, policy.ErrRolledBack) || !strings.Contains(err.Error(), "roots/1.yaml") {
		t.Errorf("got %v", err)
	}
}

// A root that rotates in a hurry needs no new manifest.
func TestANewerRootThanTheManifestsIsFine(t *testing.T) {
	f := shop(t)
	manifest, signature := f.files["manifest.yaml"], f.files["manifest.yaml.sig/ines.sig"]
	f.succeed(same, templates.ShopPeople()...)
	f.files["manifest.yaml"], f.files["manifest.yaml.sig/ines.sig"] = manifest, signature
	b, _, err := f.load()
	if err != nil || b.Root.Version != 2 {
		t.Errorf("got %v", err)
	}
}

func TestAnExpiredRootIsFollowed(t *testing.T) {
	f := shop(t)
	root := f.rootOf("roots/1.yaml")
	root.Expires = root.Expires.AddDate(-10, 0, 0)
	f.replaceRoot(root)
	f.succeed(func(r *policy.Root) { r.Expires = policytest.Expires() }, templates.ShopPeople()...)
	if b, _, err := f.load(); err != nil || !b.Root.Expires.Equal(policytest.Expires()) {
		t.Errorf("an expired root blocks its own successor: %v", err)
	}
}

func TestARootHasToBeValid(t *testing.T) {
	key := func(name string) []string { return []string{authorized(policytest.Key(name))} }
	for _, c := range []struct {
		what string
		bend func(r *policy.Root)
		why  string
	}{
		{"another format", func(r *policy.Root) { r.V = 2 }, "v is 1"},
		{"no expiry", func(r *policy.Root) { r.Expires = time.Time{} }, "expires a time"},
		{"a fleet that is no name", func(r *policy.Root) { r.Fleet = "Shop Demo" }, "fleet a name"},
		{"a threshold of 0", func(r *policy.Root) { r.Groups["finance"] = policy.Group{Any: 0, Of: []string{"fiona"}} }, "group finance wants 0 of 1"},
		{"a negative threshold", func(r *policy.Root) { r.Groups["finance"] = policy.Group{Any: -1, Of: []string{"fiona"}} }, "wants -1 of 1"},
		{"an empty group", func(r *policy.Root) { r.Groups["finance"] = policy.Group{Any: 0} }, "wants 0 of 0"},
		{"a threshold over the members", func(r *policy.Root) { r.Groups["finance"] = policy.Group{Any: 3, Of: []string{"fiona", "ravi"}} }, "wants 3 of 2"},
		{"one person twice in a group", func(r *policy.Root) {
			r.Groups["finance"] = policy.Group{Any: 2, Of: []string{"fiona", "fiona"}}
		}, "fiona is in group finance by two ways"},
		{"one person by way of a nested group", func(r *policy.Root) {
			r.Groups["finance"] = policy.Group{Any: 2, Of: []string{"fiona", "business"}}
		}, "fiona is in group finance by two ways"},
		{"a group twice in a group", func(r *policy.Root) {
			r.Groups["rights-owners"] = policy.Group{Any: 2, Of: []string{"product", "product"}}
		}, "by two ways"},
		{"a group in itself", func(r *policy.Root) { r.Groups["finance"] = policy.Group{Any: 1, Of: []string{"finance"}} }, "nested deeper than"},
		{"a person and a group of one name", func(r *policy.Root) { r.Groups["fiona"] = policy.Group{Any: 1, Of: []string{"ravi"}} }, `"fiona" is a person and a group`},
		{"a member that nobody is", func(r *policy.Root) { r.Groups["finance"] = policy.Group{Any: 1, Of: []string{"bob"}} }, `"bob", who is neither a person nor a group`},
		{"a machine in a group", func(r *policy.Root) {
			r.Groups["finance"] = policy.Group{Any: 1, Of: []string{templates.LadderController}}
		}, "neither a person nor a group"},
		{"one key under two names", func(r *policy.Root) { r.People["bob"] = policy.Person{Keys: key("fiona")} }, "one key is listed for bob and for fiona"},
		{"one key for a person and a machine", func(r *policy.Root) { r.Machines["bot"] = policy.Machine{Keys: key("fiona")} }, "one key is listed for fiona and for bot"},
		{"a person without a key", func(r *policy.Root) { r.People["bob"] = policy.Person{} }, "bob has no key"},
		{"a machine without a key", func(r *policy.Root) { r.Machines["bot"] = policy.Machine{} }, "bot has no key"},
		{"a key that is none", func(r *policy.Root) { r.People["bob"] = policy.Person{Keys: []string{"ssh-ed25519 hello"}} }, "not an OpenSSH public key"},
		{"a key with a comment", func(r *policy.Root) { r.People["bob"] = policy.Person{Keys: []string{key("bob")[0] + " bob@laptop"}} }, "without options or comment"},
		{"a key with options", func(r *policy.Root) { r.People["bob"] = policy.Person{Keys: []string{"no-pty " + key("bob")[0]}} }, "without options or comment"},
		{"a domain that no group signs", func(r *policy.Root) { r.Domains["stock"] = policy.DomainRule{Group: "stock"} }, `group "stock" is used and not defined`},
		{"a role without members", func(r *policy.Root) { r.Roles["nobody"] = policy.Role{} }, "role nobody has no members"},
		{"a role of somebody unknown", func(r *policy.Root) { r.Roles["x"] = policy.Role{Members: []string{"bob"}} }, `role x lists "bob"`},
		{"a role of an unknown machine", func(r *policy.Root) { r.Roles["x"] = policy.Role{Machines: []string{"bot"}} }, `role x lists machine "bot"`},
	} {
		root := shop(t).root
		c.bend(root)
		if err := root.Validate(); !errors.Is(err, policy.ErrRoot) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: got %v, want %q", c.what, err, c.why)
		}
	}
}

func TestNestedGroupsCountPeople(t *testing.T) {
	root := shop(t).root
	for _, c := range []struct {
		group  string
		signed []string
		want   bool
	}{
		{"rights-owners", []string{"ines", "priya"}, true},
		{"rights-owners", []string{"ines", "dev"}, false}, // reliability counts once
		{"finance", []string{"fiona"}, false},
		{"finance", []string{"fiona", "ravi"}, true},
		{"unheard-of", []string{"fiona", "ravi"}, false},
	} {
		signed := map[string]bool{}
		for _, p := range c.signed {
			signed[p] = true
		}
		if got := root.Satisfied(c.group, signed); got != c.want {
			t.Errorf("%s with %v: %v", c.group, c.signed, got)
		}
	}
	if !root.HasRole("incident-commander", policy.Signer{Name: "ines"}) || root.HasRole("incident-commander", policy.Signer{Name: "ines", Machine: true}) ||
		root.HasRole("unheard-of", policy.Signer{Name: "ines"}) {
		t.Error("roles are confused")
	}
}
