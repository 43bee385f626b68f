package incident

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

// LeaseLasts is how long command is held without being taken again.
const LeaseLasts = 3 * time.Hour

const (
	leaseVersion = "icl1"
	maxLease     = 4096 // bytes of a signed lease
)

// signedLease is the statement that is signed: who commands, from when to when,
// and the digest of the lease before it.
type signedLease struct {
	V         int    `json:"v"`
	Fleet     string `json:"fleet"`
	Incident  string `json:"incident"`
	Holder    string `json:"holder"`
	Deputy    string `json:"deputy"`
	OfferedTo string `json:"offered_to"`
	From      string `json:"from"`
	Until     string `json:"until"`
	Prev      string `json:"prev"`
}

var errLease = errors.New("not a lease")

// encodeLease makes the signed text of a lease; previous is the text it follows.
func (d *Desk) encodeLease(ctx context.Context, incident string, l model.Lease, previous string) (string, error) {
	prev := ""
	if previous != "" {
		sum := sha256.Sum256([]byte(previous))
		prev = hex.EncodeToString(sum[:])
	}
	payload, err := json.Marshal(signedLease{
		V: 1, Fleet: d.o.Fleet, Incident: incident, Holder: l.Holder, Deputy: l.Deputy, OfferedTo: l.OfferedTo,
		From: l.From.UTC().Format(time.RFC3339), Until: l.Until.UTC().Format(time.RFC3339), Prev: prev,
	})
	if err != nil {
		return "", err
	}
	sig, err := d.withKey(ctx, func(key ssh.Signer) (sshsig.Signature, error) {
		return sshsig.Sign(key, d.o.Rand, payload, d.o.Realm.Namespace("lease", d.o.Fleet))
	})
	if err != nil {
		return "", fmt.Errorf("sign the lease: %w", err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	return leaseVersion + "." + b64(payload) + "." + b64(sig.Blob), nil
}

// leaseRead is a text and what it says.
type leaseRead struct {
	text, incident string
	lease          model.Lease
	err            error
}

// readLease reads a signed lease of this fleet. The same text stands on the board
// for hours and says the same each time: it is verified once.
func (d *Desk) readLease(text string) (incident string, l model.Lease, err error) {
	known := d.leaseRead.Load()
	if known == nil || known.text != text {
		known = &leaseRead{text: text}
		known.incident, known.lease, known.err = d.verifyLease(text)
		d.leaseRead.Store(known)
	}
	return known.incident, known.lease, known.err
}

// verifyLease says what a signed lease says. Who signed has to be somebody of
// the trust root who may act at all, and its holder or the one who offered it.
func (d *Desk) verifyLease(text string) (incident string, l model.Lease, err error) {
	parts := strings.Split(text, ".")
	if len(text) > maxLease || len(parts) != 3 || parts[0] != leaseVersion {
		return "", l, errLease
	}
	payload, err1 := base64.RawURLEncoding.Strict().DecodeString(parts[1])
	blob, err2 := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err1 != nil || err2 != nil {
		return "", l, errLease
	}
	sig, err := sshsig.Parse(blob, sshsig.ForDirective)
	if err != nil {
		return "", l, err
	}
	if err := sig.Verify(payload, d.o.Realm.Namespace("lease", d.o.Fleet)); err != nil {
		return "", l, err
	}
	var s signedLease
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil || s.V != 1 || s.Fleet != d.o.Fleet {
		return "", l, errLease
	}
	who, known := d.o.Bundle.SignerOf(sig.Fingerprint)
	if !known || who.Revoked || who.Name != s.Holder || !d.mayCommand(who.Name) {
		return "", l, fmt.Errorf("%w: it was not signed by its holder", errLease)
	}
	from, err1 := time.Parse(time.RFC3339, s.From)
	until, err2 := time.Parse(time.RFC3339, s.Until)
	if err1 != nil || err2 != nil || until.Sub(from) > LeaseLasts {
		return "", l, fmt.Errorf("%w: its time is not within %s", errLease, LeaseLasts)
	}
	return s.Incident, model.Lease{Holder: s.Holder, Deputy: s.Deputy, OfferedTo: s.OfferedTo, From: from, Until: until}, nil
}

// runs: one that was given back has no length, also where the clock is behind that
// of whoever gave it back.
func runs(l model.Lease, now time.Time) bool { return l.From.Before(l.Until) && now.Before(l.Until) }

// mayCommand: whoever holds no role could not use command for anything, and other
// consoles do not believe such a lease.
func (d *Desk) mayCommand(person string) bool {
	_, known := d.o.Bundle.Root.People[person]
	return known && len(d.o.Bundle.Root.RolesOf(policy.Signer{Name: person})) > 0
}

// leaseOf is the lease in force: the later of the one in our log and the one on
// the board. Only one that stands on the board is confirmed.
func (d *Desk) leaseOf(incident string, logged model.Lease, h *heard) model.Lease {
	logged.Confirmed = false
	if h.board.Value == "" {
		return logged
	}
	of, board, err := d.readLease(h.board.Value)
	if err != nil || of != incident {
		return logged
	}
	if board.From.Before(logged.From) {
		return logged
	}
	board.Confirmed = true
	return board
}
