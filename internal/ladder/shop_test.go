package ladder

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"golang.org/x/crypto/ssh"
)

// parts are what the ladder of a test is made of: the example shop's documents,
// with a second machine in the role of the first.
type parts struct {
	root   *policy.Root
	ladder *policy.LadderDoc
	rights *policy.RightsDoc
}

// shop is the example shop with changes. It is put together without signatures:
// they are not what is tested here.
func shop(t testing.TB, changes ...func(*parts)) *policy.Bundle {
	t.Helper()
	files, err := templates.Shop(policytest.Params())
	if err != nil {
		t.Fatal(err)
	}
	folder := fstest.MapFS{}
	for name, content := range files {
		folder[name] = &fstest.MapFile{Data: content}
	}
	docs, root, _, err := policy.ReadDrafts(folder)
	if err != nil {
		t.Fatal(err)
	}
	root.Machines["twin"] = policy.Machine{Keys: []string{strings.TrimSpace(string(ssh.MarshalAuthorizedKey(policytest.Key("twin").PublicKey())))}}
	role := root.Roles[robot]
	role.Machines = append(role.Machines, "twin")
	root.Roles[robot] = role
	p := &parts{root: root, ladder: docs.Ladder, rights: docs.Rights}
	for _, change := range changes {
		change(p)
	}
	states := map[policy.Domain]policy.DomainState{}
	for _, domain := range []policy.Domain{policy.Ladder, policy.Rights} {
		states[domain] = policy.DomainState{Domain: domain, Active: true, Expires: policytest.Expires()}
	}
	b, err := policy.NewBundle(p.root, model.PolicyRef{Version: 1}, states, policy.Documents{Ladder: p.ladder, Rights: p.rights})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// right changes one row.
func (p *parts) right(name string, change func(*policy.Right)) {
	r := p.rights.Rights[name]
	change(&r)
	p.rights.Rights[name] = r
}
