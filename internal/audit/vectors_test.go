package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"golang.org/x/crypto/ssh"
)

var update = flag.Bool("update", false, "write testdata/vectors/log anew; only before the format is frozen")

// vectors is a state folder: the frozen form of the log.
var vectors = filepath.Join("..", "..", "testdata", "vectors", "log")

// writeVectors makes the log of the vectors: seeds and clock are fixed, so the
// same bytes come out every time. A fsync fails on the way, and the first
// attempt to go on in a new segment fails too, so that segment 2 never exists.
func writeVectors(t *testing.T) string {
	disk := newCrashFS()
	o := options(t, "laptop-7")
	o.FS = disk
	w := open(t, ".", o)
	b := bypass(ulid(1), w.Head())
	signer := sshKey(t, 0)
	sig, err := directive.Sign(signer, random(3), []byte(payload(t, b)), directive.Production, fleet)
	if err != nil {
		t.Fatal(err)
	}
	token, err := directive.Token([]byte(payload(t, b)), sig)
	if err != nil {
		t.Fatal(err)
	}
	ask := AskOf(&model.Request{Directive: b, Actor: person})
	mustAppend(t, w,
		IncidentOpen{Title: "payment-risk is down"},
		LeaseAct{Action: LeaseTake, Lease: model.Lease{Holder: person, From: noon, Until: noon.Add(3 * time.Hour)}},
		Intent{Payload: payload(t, b), Request: ask, Asked: true,
			Verdict: model.Verdict{Outcome: model.Permitted, Direction: model.Loosen, Assurance: model.HostHeld, Reasons: []model.Reason{}}},
		Signed{ID: b.ID, Token: token, Signers: []string{person}},
		Outcome{ID: b.ID, Carrier: "etcd", State: StateCarried, Detail: "revision 7"},
		Note{Text: "seen by eye: \x1b[31mred\u202e, Grüße"},
	)
	disk.failing(func(op, path string, size int) (int, error) {
		if op == "sync" && filepath.Base(path) == "laptop-7.jsonl" || op == "create" {
			return 0, syscall.EIO
		}
		return size, nil
	})
	if r, err := w.AppendOrReceipt(Denied{Request: ask, Reasons: []model.Reason{{Code: model.CodeOverTier, N: 3}}}); r == nil || err != nil {
		t.Fatalf("receipt %v, error %v", r, err)
	}
	disk.failing(nil)
	mustAppend(t, w, Note{Text: "the disk is back"})
	if err := w.Close("quit"); err != nil {
		t.Fatal(err)
	}
	return disk.losePower(t, everything)
}

func TestVectorsAreWhatTheWriterWrites(t *testing.T) {
	made := writeVectors(t)
	r, err := Verify(trusting(t), Folder(made, incident))
	if err != nil {
		t.Fatal(err)
	}
	sessions := mustRead(t, made)
	var heads []model.LogHead
	for _, s := range sessions {
		c := newChain(s.Name, s.Segment)
		data, err := os.ReadFile(s.File)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			if i%2 == 0 && len(line) > 0 {
				if err := c.add(line); err != nil {
					t.Fatal(err)
				}
				heads = append(heads, c.head())
			}
		}
	}
	if len(r.Files) != 2 || int64(len(heads)) != r.Entries {
		t.Fatalf("%d files, %d entries, %d heads", len(r.Files), r.Entries, len(heads))
	}
	out, err := json.MarshalIndent(heads, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	key := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(sshKey(t, 0).PublicKey())))
	files := map[string][]byte{
		"heads.json":      append(out, '\n'),
		"allowed_signers": fmt.Appendf(nil, "%s namespaces=\"ic-session-v1@%s\" %s\n", person, fleet, key),
	}
	for _, s := range sessions {
		data, err := os.ReadFile(s.File)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Join("incidents", incident, filepath.Base(s.File))] = data
	}
	for name, want := range files {
		path := filepath.Join(vectors, name)
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the writer writes now; the format is frozen", name)
		}
	}
}

func TestVectorsVerify(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(vectors, "heads.json"))
	if err != nil {
		t.Fatal(err)
	}
	v := trusting(t)
	if err := json.Unmarshal(raw, &v.Heads); err != nil {
		t.Fatal(err)
	}
	r := mustVerify(t, v, vectors)
	if got := r.Heads(); len(got) != 2 || got[0] != v.Heads[7] || got[1] != v.Heads[11] {
		t.Errorf("the logs end at %+v", got)
	}
	met := 0
	for _, f := range r.Files {
		met += f.HeadsMet
	}
	// Every head of the list, the one in the directive (twice, in its intent and
	// in its token), and the one that the second segment continues.
	if met != len(v.Heads)+3 || r.Files[0].Unclaimed != 1 {
		t.Errorf("%d heads met of %d kept, %d entries unclaimed; want 3 more, and the one whose fsync failed", met, len(v.Heads), r.Files[0].Unclaimed)
	}
	state := Fold(mustRead(t, vectors))
	if len(state.Issued) != 1 || state.Issued[0].Outcome != StateCarried || !state.IsOpen() {
		t.Errorf("the state of the vectors: %+v", state)
	}
	if _, err := directive.Verify(state.Issued[0].Token, directive.Production, fleet); err != nil {
		t.Errorf("the token in the vectors: %v", err)
	}
}

// The rest of this file checks the vectors without this package, as anybody
// could in another language: docs/log-format.md in Go.

func TestVectorsCheckWithoutThisPackage(t *testing.T) {
	allowed, err := os.ReadFile(filepath.Join(vectors, "allowed_signers"))
	if err != nil {
		t.Fatal(err)
	}
	_, allowedKey, _ := strings.Cut(string(allowed), "\" ")
	operator, _, _, _, err := ssh.ParseAuthorizedKey([]byte(allowedKey))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(vectors, "heads.json"))
	if err != nil {
		t.Fatal(err)
	}
	var heads []struct {
		Origin, Root string
		Size         int
	}
	if err := json.Unmarshal(raw, &heads); err != nil {
		t.Fatal(err)
	}
	for _, origin := range []string{"shop-demo/inc-7/laptop-7", "shop-demo/inc-7/laptop-7.3"} {
		data, err := os.ReadFile(filepath.Join(vectors, "incidents", "inc-7", filepath.Base(origin)+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		public := certifiedKey(t, lines[0], operator)
		prev := strings.Repeat("0", 64)
		var leaves [][]byte
		for i := 0; i < len(lines); i += 2 {
			var entry struct {
				Seq  int
				Prev string
			}
			var line struct{ Checkpoint string }
			if err := json.Unmarshal([]byte(lines[i]), &entry); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(lines[i+1]), &line); err != nil {
				t.Fatal(err)
			}
			if entry.Seq != i/2+1 || entry.Prev != prev {
				t.Errorf("%s line %d: seq %d prev %s", origin, i+1, entry.Seq, entry.Prev)
			}
			sum := sha256.Sum256([]byte(lines[i] + "\n" + lines[i+1] + "\n"))
			prev = hex.EncodeToString(sum[:])
			leaves = append(leaves, []byte(lines[i]))
			root := merkle(leaves)
			text, signature, _ := strings.Cut(line.Checkpoint, "\n\n")
			if want := fmt.Sprintf("%s\n%d\n%s", origin, entry.Seq, base64.StdEncoding.EncodeToString(root)); text != want {
				t.Errorf("%s line %d: the checkpoint says %q, want %q", origin, i+2, text, want)
			}
			sig, err := base64.StdEncoding.DecodeString(strings.TrimSpace(signature[strings.LastIndex(signature, " "):]))
			if err != nil || !ed25519.Verify(public, []byte(text+"\n"), sig[4:]) {
				t.Errorf("%s line %d: the signature does not verify: %v", origin, i+2, err)
			}
			found := false
			for _, h := range heads {
				found = found || h.Origin == origin && h.Size == entry.Seq && h.Root == hex.EncodeToString(root)
			}
			if !found {
				t.Errorf("%s at %d: heads.json lacks %x", origin, entry.Seq, root)
			}
		}
	}
}

// merkle is the tree hash of RFC 6962, section 2.1, as it is written there.
func merkle(leaves [][]byte) []byte {
	if len(leaves) == 1 {
		sum := sha256.Sum256(append([]byte{0}, leaves[0]...))
		return sum[:]
	}
	k := 1
	for k*2 < len(leaves) {
		k *= 2
	}
	sum := sha256.Sum256(append(append([]byte{1}, merkle(leaves[:k])...), merkle(leaves[k:])...))
	return sum[:]
}

// certifiedKey checks the SSHSIG in the first entry and returns the checkpoint
// key that it certifies.
func certifiedKey(t *testing.T, first string, operator ssh.PublicKey) ed25519.PublicKey {
	t.Helper()
	var entry struct {
		Body struct {
			Statement   string
			Certificate []byte
		}
	}
	var statement struct{ Key string }
	if err := json.Unmarshal([]byte(first), &entry); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(entry.Body.Statement), &statement); err != nil {
		t.Fatal(err)
	}
	var blob struct {
		Magic                     [6]byte
		Version                   uint32
		Key                       []byte
		Namespace, Reserved, Hash string
		Signature                 []byte
	}
	if err := ssh.Unmarshal(entry.Body.Certificate, &blob); err != nil {
		t.Fatal(err)
	}
	var signature ssh.Signature
	if err := ssh.Unmarshal(blob.Signature, &signature); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512([]byte(entry.Body.Statement))
	signed := append([]byte("SSHSIG"), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{"ic-session-v1@shop-demo", "", "sha512", sum[:]})...)
	if !bytes.Equal(blob.Key, operator.Marshal()) {
		t.Fatal("certified by another key than the operator's")
	}
	if err := operator.Verify(signed, &signature); err != nil {
		t.Fatalf("the session's certificate: %v", err)
	}
	key, err := base64.StdEncoding.DecodeString(statement.Key[strings.LastIndex(statement.Key[:len("shop-demo/inc-7/laptop-7+00000000+")], "+")+1:])
	if err != nil || len(key) != 33 || key[0] != 1 {
		t.Fatalf("the checkpoint key %q: %v", statement.Key, err)
	}
	return ed25519.PublicKey(key[1:])
}
