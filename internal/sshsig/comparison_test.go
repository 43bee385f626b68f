package sshsig_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/sshsig/sshsigtest"
	"golang.org/x/crypto/ssh"
)

// The same question for both: did ada sign this content in this namespace, with
// a key in good standing? Stock ssh-keygen reads an allowed_signers file and a
// revocation file, ours a policy folder whose root says the same.

// signedFor is the namespace that both are asked about unless a case says other.
const signedFor = "ic-policy-v1@shop"

// line is one line of an allowed_signers file; the root lists its key, as it
// stands behind the principals, for the person named by them.
type line struct {
	principals string
	options    string // besides namespaces, which the harness adds
	key        string // type, base64 and perhaps a comment
}

// revocation is the content of the file behind ssh-keygen -r, and what stands
// under revoked: in the root.
type revocation struct {
	file    []byte // nil: there is no such file
	entries []string
	absent  bool // the root has no revoked field at all
}

// question is asked of both.
type question struct {
	content   []byte
	file      []byte // the signature file
	lines     []line
	revoked   *revocation // nil: stock is not given -r, the root's list is empty
	person    string
	namespace string
	at        string // for ssh-keygen -O verify-time; "" for now
	zone      string // TZ of ssh-keygen; "" for UTC
	directive bool   // ours is asked as for a directive, not as for a policy file
}

// verdict of a pair of answers.
type verdict string

const (
	accept   verdict = "both accept"
	refuse   verdict = "both refuse"
	stricter verdict = "ours refuses"
)

// comparison is one case. A stricter one says why.
type comparison struct {
	name string
	want verdict
	why  string
	ask  func(t testing.TB, q *question)
	// retired: a later ssh-keygen refuses it too, and is then no less strict.
	retired bool
}

// asked is the plain question, which both answer with yes: one Ed25519 key, one
// line, one signature.
func asked(t testing.TB) *question {
	t.Helper()
	q := &question{content: []byte("v: 1\n"), person: "ada", namespace: signedFor}
	q.by(t, sshsigtest.Ed25519(t, 1))
	return q
}

// by has the content signed by signer and makes it ada's only key.
func (q *question) by(t testing.TB, signer ssh.Signer) {
	t.Helper()
	q.lines = []line{{principals: "ada", key: authorizedKey(signer.PublicKey())}}
	q.signed(t, signer, outer{Version: 1, Namespace: q.namespace, Hash: "sha512"})
}

// signed has the content signed honestly under any head.
func (q *question) signed(t testing.TB, signer ssh.Signer, head outer) {
	t.Helper()
	q.file = sshsig.Armor(forge(t, signer, head, hashed(head.Hash, q.content)))
}

// respelled changes the signature file without a key.
func (q *question) respelled(t testing.TB, edit func(*outer, *inner)) {
	t.Helper()
	q.file = sshsig.Armor(respell(t, q.blob(t), edit))
}

func (q *question) blob(t testing.TB) []byte {
	t.Helper()
	blob, err := sshsig.Unarmor(q.file)
	if err != nil {
		t.Fatal(err)
	}
	return blob
}

func authorizedKey(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// stock asks ssh-keygen; said is what it printed.
func (q *question) stock(t testing.TB, keygen string) (ok bool, said string) {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var allowed bytes.Buffer
	for _, l := range q.lines {
		options := `namespaces="` + q.namespace + `"`
		if l.options != "" {
			options += "," + l.options
		}
		fmt.Fprintf(&allowed, "%s %s %s\n", l.principals, options, l.key)
	}
	args := []string{"-Y", "verify", "-f", put("allowed_signers", allowed.Bytes()), "-I", q.person, "-n", q.namespace, "-s", put("content.sig", q.file)}
	if q.revoked != nil {
		path := filepath.Join(dir, "revoked")
		if q.revoked.file != nil {
			put("revoked", q.revoked.file)
		}
		args = append(args, "-r", path)
	}
	if q.at != "" {
		args = append(args, "-O", "verify-time="+q.at)
	}
	cmd := exec.CommandContext(t.Context(), keygen, args...)
	cmd.Stdin = bytes.NewReader(q.content)
	cmd.Env = append(os.Environ(), "TZ="+q.zone)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return err == nil, string(out)
}

// ours asks the policy's loader; said is what it has to say about the file.
func (q *question) ours(t testing.TB) (ok bool, said string) {
	t.Helper()
	if q.directive {
		return q.oursAsDirective(t)
	}
	root := policy.Root{
		V: 1, Fleet: "shop", Version: 1, Expires: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		People:  map[string]policy.Person{"founder": {Keys: []string{authorizedKey(sshsigtest.Ed25519(t, 200).PublicKey())}}},
		Groups:  map[string]policy.Group{"founders": {Any: 1, Of: []string{"founder"}}},
		Root:    "founders",
		Publish: "founders",
		Domains: map[policy.Domain]policy.DomainRule{policy.Journeys: {Group: "founders"}},
	}
	for _, l := range q.lines {
		p := root.People[l.principals]
		p.Keys = append(p.Keys, strings.TrimSpace(l.options+" "+l.key))
		root.People[l.principals] = p
	}
	if q.revoked != nil {
		root.Revoked = q.revoked.entries
	}
	printed := policy.Canonical(&root)
	if q.revoked != nil && q.revoked.absent {
		printed = bytes.Replace(printed, []byte("revoked: []\n"), nil, 1)
	}
	files := fstest.MapFS{}
	write := func(name string, content []byte) { files[name] = &fstest.MapFile{Data: content} }
	found := func(name, word string, content []byte) policy.ManifestFile {
		sig, err := sshsig.Sign(sshsigtest.Ed25519(t, 200), nil, content, directive.Production.Namespace(word, "shop"))
		if err != nil {
			t.Fatal(err)
		}
		write(name, content)
		write(name+".sig/founder.sig", sshsig.Armor(sig.Blob))
		sum := sha256.Sum256(content)
		return policy.ManifestFile{Version: 1, SHA256: hex.EncodeToString(sum[:])}
	}
	pin := found("roots/1.yaml", "root", printed)
	sum := sha256.Sum256(q.content)
	found("manifest.yaml", "manifest", policy.Canonical(&policy.Manifest{V: 1, Fleet: "shop", Version: 1, Files: map[string]policy.ManifestFile{
		"roots/1.yaml": pin, "journeys.yaml": {Version: 1, SHA256: hex.EncodeToString(sum[:])},
	}}))
	write("journeys.yaml", q.content)
	write("journeys.yaml.sig/"+q.person+".sig", q.file)
	bundle, _, err := policy.Load(files, policy.LoadOptions{Fleet: "shop", RootSHA256: pin.SHA256, Realm: directive.Production})
	if err != nil {
		return false, err.Error()
	}
	state := bundle.Domains[policy.Journeys]
	return slices.Contains(state.Signers, q.person), state.Why
}

// oursAsDirective asks as a host does for a signature of a token; whose the key
// is was asked by the cases about policy.
func (q *question) oursAsDirective(t testing.TB) (ok bool, said string) {
	t.Helper()
	sig, err := sshsig.Parse(q.blob(t), sshsig.ForDirective)
	if err == nil {
		err = sig.Verify(q.content, q.namespace)
	}
	return err == nil, fmt.Sprint(err)
}

func TestEveryVerdictEqualsStockOrIsStricterForAReason(t *testing.T) {
	keygen := stock(t, "ssh-keygen")
	for _, group := range comparisons() {
		for _, c := range group.cases {
			t.Run(group.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				q := asked(t)
				c.ask(t, q)
				theirs, theySaid := q.stock(t, keygen)
				ours, weSaid := q.ours(t)
				got := map[[2]bool]verdict{{true, true}: accept, {false, false}: refuse, {true, false}: stricter}[[2]bool{theirs, ours}]
				switch {
				case got == "":
					t.Errorf("ours accepts what stock ssh-keygen refuses\nstock: %s\nours: %s", theySaid, weSaid)
				case c.retired && !theirs && !ours:
				case got != c.want:
					t.Errorf("%s, want: %s\nstock: %s\nours: %s", got, c.want, theySaid, weSaid)
				}
			})
		}
	}
}
