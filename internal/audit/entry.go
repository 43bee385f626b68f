package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
)

// Limits of the format.
const (
	MaxLine    = 64 << 10       // bytes of one line: a hostile file costs no more memory than that
	MaxBody    = MaxLine - 4096 // bytes of one body: leaves room for the envelope and, once more, for that of a receipt
	MaxSegment = 64 << 20       // bytes of one file: a reader takes it whole; the writer goes on in the next one
	maxReceipt = 2048           // bytes that a receipt adds to the body it holds
	maxActor   = 64             // bytes of a person's or machine's name
	maxWhy     = 300            // bytes of a cause, which quotes an operating system
	maxPath    = 1024           // bytes of a file's name in an error
)

const (
	formatVersion = 1
	stampLayout   = "2006-01-02T15:04:05.000Z"
	noPrev        = "0000000000000000000000000000000000000000000000000000000000000000"
)

// ErrBody is wrapped by errors about an entry that the format cannot hold.
// Nothing was written and the log is as good as before.
var ErrBody = errors.New("not an entry of the log")

// Entry is one entry of a session's log, read back.
type Entry struct {
	Seq     int64 // 1 for the first: the size of the log with this entry
	Prev    string
	At      time.Time
	Boot    string
	MonoNS  int64
	Session string
	Actor   string
	Body    Body
}

// Receipt is an entry that no disk could take when it happened. Its text goes to
// the screen; the receipt itself is chained as a late entry as soon as a write
// succeeds.
type Receipt struct {
	At     string          `json:"at"`
	Boot   string          `json:"boot"`
	MonoNS int64           `json:"mono_ns"`
	Actor  string          `json:"actor"`
	Kind   Kind            `json:"kind"`
	Body   json.RawMessage `json:"body"`
	Why    string          `json:"why"`
}

// Digest is the SHA-256 of the receipt's canonical form, in hex.
func (r Receipt) Digest() string {
	raw, err := canonical(r)
	if err != nil {
		return noPrev // a receipt is made from an encoded body and reads back
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Text is the receipt for the screen: what a person photographs. The digest
// finds the late entry again.
func (r Receipt) Text() string {
	return fmt.Sprintf("RECEIPT %s %s by %s is not on disk yet: %s (sha256 %s)",
		r.At, r.Kind, r.Actor, r.Why, r.Digest())
}

type wireEntry struct {
	V       int             `json:"v"`
	Seq     int64           `json:"seq"`
	Prev    string          `json:"prev"`
	At      string          `json:"at"`
	Boot    string          `json:"boot"`
	MonoNS  int64           `json:"mono_ns"`
	Session string          `json:"session"`
	Actor   string          `json:"actor"`
	Kind    Kind            `json:"kind"`
	Body    json.RawMessage `json:"body"`
}

// draft is an entry that has no place in a log yet.
type draft struct {
	now   model.Instant
	actor string
	kind  Kind
	body  []byte // canonical
}

// newDraft encodes body and reads it back: what our own reader would refuse must
// not get into the log.
func newDraft(now model.Instant, actor string, body Body) (draft, error) {
	d := draft{now: now, actor: actor, kind: body.Kind()}
	if _, foreign := body.(Foreign); foreign {
		return d, fmt.Errorf("%w: kind %q is not known to this version", ErrBody, body.Kind())
	}
	raw, err := canonical(body)
	if err != nil {
		return d, fmt.Errorf("%w: %s: %w", ErrBody, d.kind, err)
	}
	limit := MaxBody
	if d.kind == KindLate {
		limit += maxReceipt
	}
	if len(raw) > limit {
		return d, fmt.Errorf("%w: %s has %d bytes, at most %d", ErrBody, d.kind, len(raw), limit)
	}
	if _, err := readBody(d.kind, raw); err != nil {
		return d, fmt.Errorf("%w: %s does not read back: %w", ErrBody, d.kind, err)
	}
	d.body = raw
	return d, nil
}

// line is the entry at its place, without a newline.
func (d draft) line(session string, seq int64, prev string) ([]byte, error) {
	return canonical(wireEntry{
		V: formatVersion, Seq: seq, Prev: prev, At: stamp(d.now.Wall), Boot: d.now.BootID, MonoNS: int64(d.now.Boot),
		Session: session, Actor: d.actor, Kind: d.kind, Body: d.body,
	})
}

func (d draft) receipt(why error) Receipt {
	return Receipt{At: stamp(d.now.Wall), Boot: d.now.BootID, MonoNS: int64(d.now.Boot),
		Actor: d.actor, Kind: d.kind, Body: d.body, Why: cause(why)}
}

// readBody decodes a body and insists on its canonical form.
func readBody(kind Kind, raw []byte) (Body, error) {
	body, err := decodeBody(kind, raw)
	if err != nil {
		return nil, err
	}
	if _, foreign := body.(Foreign); foreign {
		return body, nil
	}
	if late, ok := body.(Late); ok {
		if late.Receipt.Kind == KindLate {
			return nil, errors.New("a receipt of a receipt")
		}
		if _, err := readBody(late.Receipt.Kind, late.Receipt.Body); err != nil {
			return nil, fmt.Errorf("receipt of %s: %w", late.Receipt.Kind, err)
		}
		if _, err := unstamp(late.Receipt.At); err != nil {
			return nil, err
		}
	}
	again, err := canonical(body)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, raw) {
		return nil, errors.New("the bytes are not canonical")
	}
	return body, nil
}

// readEntry reads one line without its newline.
func readEntry(line []byte) (Entry, error) {
	var w wireEntry
	if err := strict(line, &w); err != nil {
		return Entry{}, err
	}
	if w.V != formatVersion {
		return Entry{}, fmt.Errorf("version %d, this software reads %d", w.V, formatVersion)
	}
	at, err := unstamp(w.At)
	if err != nil {
		return Entry{}, err
	}
	again, err := canonical(w)
	if err != nil {
		return Entry{}, err
	}
	if !bytes.Equal(again, line) {
		return Entry{}, errors.New("the bytes are not canonical")
	}
	body, err := readBody(w.Kind, w.Body)
	if err != nil {
		return Entry{}, fmt.Errorf("%s: %w", untrusted.Text(string(w.Kind), maxActor), err)
	}
	return Entry{Seq: w.Seq, Prev: w.Prev, At: at, Boot: w.Boot, MonoNS: w.MonoNS,
		Session: w.Session, Actor: w.Actor, Body: body}, nil
}

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

func unstamp(s string) (time.Time, error) {
	t, err := time.Parse(stampLayout, s)
	if err != nil || stamp(t) != s {
		return time.Time{}, fmt.Errorf("%q is not a time like 2026-11-30T03:17:00.000Z", untrusted.Text(s, maxActor))
	}
	return t, nil
}

// cause is an error for the log and the screen: one line of bounded length.
func cause(err error) string {
	if err == nil {
		return ""
	}
	return untrusted.Text(err.Error(), maxWhy)
}
