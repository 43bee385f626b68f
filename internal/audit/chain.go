package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/degradedmode/ic/internal/model"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// sizeOfSignature is the length of a note's signature in base64: four bytes of
// key hash and 64 of Ed25519.
const sizeOfSignature = 92

// tree is the RFC 6962 tree over the entry lines of one file. It grows by about
// two hashes per entry and never forgets one, so appending reads O(log n).
type tree struct {
	size   int64
	stored []tlog.Hash
}

// ReadHashes implements tlog.HashReader.
func (t *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		if at < 0 || at >= int64(len(t.stored)) {
			return nil, fmt.Errorf("hash %d of a tree that holds %d", at, len(t.stored))
		}
		out[i] = t.stored[at]
	}
	return out, nil
}

// grow adds a leaf and returns the new root.
func (t *tree) grow(leaf []byte) (tlog.Hash, error) {
	added, err := tlog.StoredHashes(t.size, leaf, t)
	if err != nil {
		return tlog.Hash{}, err
	}
	t.stored = append(t.stored, added...)
	t.size++
	return tlog.TreeHash(t.size, t)
}

// chain is where a log stands: what the next entry has to name.
type chain struct {
	origin  string
	keyName string // name of the checkpoint key: the origin of the first segment
	prev    string
	tree    tree
	root    tlog.Hash
}

func newChain(session string, segment int) chain {
	origin := session
	if segment > 1 {
		dir, base := splitOrigin(session)
		origin = dir + segmentOf(base, segment)
	}
	return chain{origin: origin, keyName: session, prev: noPrev, root: emptyRoot()}
}

// emptyRoot is the root of a log without entries.
func emptyRoot() tlog.Hash { return tlog.Hash(sha256.Sum256(nil)) }

func splitOrigin(origin string) (dir, base string) {
	at := strings.LastIndexByte(origin, '/') + 1
	return origin[:at], origin[at:]
}

func (c *chain) head() model.LogHead {
	return model.LogHead{Origin: c.origin, Size: c.tree.size, Root: hex.EncodeToString(c.root[:])}
}

// add takes an entry line into the tree.
func (c *chain) add(line []byte) error {
	root, err := c.tree.grow(line)
	if err != nil {
		return err
	}
	c.root = root
	return nil
}

// close takes the whole write, both lines with their newlines, into the hash
// chain.
func (c *chain) close(block []byte) {
	sum := sha256.Sum256(block)
	c.prev = hex.EncodeToString(sum[:])
}

// text is the text of the checkpoint that belongs to the chain as it stands.
func (c *chain) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.origin, c.tree.size, c.root)
}

// frame is the checkpoint line around its signature. All but the signature is
// known from the entries, which is how a torn line is told from a changed one.
func (c *chain) frame() (before, after string, err error) {
	const mark = "?"
	line, err := canonical(checkpointLine{c.text() + "\n— " + c.keyName + " " + mark + "\n"})
	if err != nil {
		return "", "", err
	}
	at := bytes.LastIndex(line, []byte(mark))
	return string(line[:at]), string(line[at+len(mark):]), nil
}

type checkpointLine struct {
	Checkpoint string `json:"checkpoint"`
}

// checkpoint signs the chain as it stands and returns the line.
func (c *chain) checkpoint(signer note.Signer) ([]byte, error) {
	signed, err := note.Sign(&note.Note{Text: c.text()}, signer)
	if err != nil {
		return nil, err
	}
	return canonical(checkpointLine{string(signed)})
}

// verify checks a complete checkpoint line against the chain. Without a verifier
// only the signature itself stays unchecked.
func (c *chain) verify(line []byte, verifier note.Verifier) error {
	before, after, err := c.frame()
	if err != nil {
		return err
	}
	rest, ok := strings.CutPrefix(string(line), before)
	if !ok {
		return c.mismatch(line)
	}
	sig, ok := strings.CutSuffix(rest, after)
	if !ok || len(sig) != sizeOfSignature {
		return errors.New("the checkpoint is not one note with one signature")
	}
	// Strict: spare bits of base64 would let a changed byte pass.
	if _, err := base64.StdEncoding.Strict().DecodeString(sig); err != nil {
		return fmt.Errorf("the checkpoint's signature: %w", err)
	}
	if verifier == nil {
		return nil
	}
	var cp checkpointLine
	if err := json.Unmarshal(line, &cp); err != nil {
		return err
	}
	if _, err := note.Open([]byte(cp.Checkpoint), note.VerifierList(verifier)); err != nil {
		return fmt.Errorf("the checkpoint's signature: %w", err)
	}
	return nil
}

// mismatch says which part of the checkpoint differs from the entries.
func (c *chain) mismatch(line []byte) error {
	var cp checkpointLine
	if err := strict(line, &cp); err != nil {
		return fmt.Errorf("not a checkpoint: %w", err)
	}
	if strings.HasPrefix(cp.Checkpoint, fmt.Sprintf("%s\n%d\n", c.origin, c.tree.size)) {
		return errors.New("the entries do not hash to the root of the checkpoint")
	}
	return fmt.Errorf("the checkpoint is not that of %s with %d entries", c.origin, c.tree.size)
}

// torn reports whether line, cut short, could be the beginning of this chain's
// checkpoint.
func (c *chain) torn(line []byte) bool {
	before, after, err := c.frame()
	if err != nil {
		return false
	}
	if len(line) <= len(before) {
		return strings.HasPrefix(before, string(line))
	}
	sig, ok := bytes.CutPrefix(line, []byte(before))
	if !ok {
		return false
	}
	if len(sig) >= sizeOfSignature {
		rest := string(sig[sizeOfSignature:])
		sig = sig[:sizeOfSignature]
		if !strings.HasPrefix(after, rest) {
			return false
		}
	}
	return len(bytes.Trim(sig, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")) == 0
}
