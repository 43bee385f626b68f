package directive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// Limits of the format.
const (
	MaxPayload = 2800 // payload in bytes; with one Ed25519 signature it fits MaxToken
	MaxIDs     = 48   // ids that one ending may list: 48 x 29 bytes fit the payload
	MaxName    = 64   // fleet, scope, right, feature, control, incident, origin part
	maxTier    = 6
)

// ErrPayload is wrapped by every error about a payload's form.
var ErrPayload = errors.New("not a directive")

// errVersion is wrapped, beside ErrPayload, when a payload says that it is of a
// later version.
var errVersion = errors.New("this software reads version 1")

type wire struct {
	V         int             `json:"v"`
	ID        string          `json:"id"`
	Fleet     string          `json:"fleet"`
	Incident  string          `json:"incident"`
	Scope     string          `json:"scope"`
	Kind      model.Kind      `json:"kind"`
	Body      json.RawMessage `json:"body"`
	IssuedAt  string          `json:"issued_at"`
	NotBefore string          `json:"not_before"`
	NotAfter  string          `json:"not_after,omitempty"`
	Right     string          `json:"right"`
	Policy    policyRef       `json:"policy"`
	Log       logHead         `json:"log"`
	Reason    string          `json:"reason"`
}

// The parts of a payload. They are written out although package model has the
// same: a field that model gains must not become a part of the frozen format.
type (
	policyRef struct {
		Version int64  `json:"version"`
		Digest  string `json:"digest"`
	}
	logHead struct {
		Origin string `json:"origin"`
		Size   int64  `json:"size"`
		Root   string `json:"root"`
	}
	caps struct {
		Under     model.Money `json:"under"`
		HostCount int64       `json:"host_count"`
		HostTotal model.Money `json:"host_total"`
		Total     model.Money `json:"total"`
	}
	shedBody struct {
		Tier int `json:"tier"`
	}
	offBody struct {
		Feature string `json:"feature"`
	}
	bypassBody struct {
		Control string `json:"control"`
		Caps    caps   `json:"caps"`
	}
	dimmerBody struct {
		TargetMS int `json:"target_ms"`
		Floor    int `json:"floor"`
		Ceiling  int `json:"ceiling"`
	}
	emptyBody struct{}
	endBody   struct {
		Ends model.Kind `json:"ends"`
		IDs  []string   `json:"ids"`
	}
	recoveryBody struct {
		Ends    model.Kind `json:"ends"`
		IDs     []string   `json:"ids"`
		From    int        `json:"from"`
		To      int        `json:"to"`
		Ramp    string     `json:"ramp"`
		Percent int        `json:"percent"`
	}
)

// Encode prints the canonical payload: one line, fixed field order, no space.
// It fails on a directive that Parse would not read back as it is, fields that
// do not belong to its kind included: what was judged is what gets signed.
func Encode(d model.Directive) ([]byte, error) {
	out, body, err := encode(&d)
	if err != nil {
		return nil, err
	}
	back := d
	if err := decodeBody(body, clearBody(&back)); err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(back, d) {
		return nil, fmt.Errorf("%w: it has fields that do not belong to a %s", ErrPayload, d.Kind)
	}
	return out, nil
}

func encode(d *model.Directive) (payload, body []byte, err error) {
	if err := check(d); err != nil {
		return nil, nil, err
	}
	if body, err = encodeBody(d); err != nil {
		return nil, nil, err
	}
	payload, err = compact(wire{
		V: 1, ID: d.ID, Fleet: d.Fleet, Incident: d.Incident, Scope: d.Scope, Kind: d.Kind, Body: body,
		IssuedAt: stamp(d.IssuedAt), NotBefore: stamp(d.NotBefore), NotAfter: stamp(d.NotAfter),
		Right: d.Right, Policy: policyRef(d.Policy), Log: logHead(d.Log), Reason: d.Reason,
	})
	if err != nil {
		return nil, nil, err
	}
	if len(payload) > MaxPayload {
		return nil, nil, fmt.Errorf("%w: %d bytes, at most %d", ErrPayload, len(payload), MaxPayload)
	}
	return payload, body, nil
}

// Parse reads a canonical payload. Bytes that do not encode back to themselves
// are refused: duplicate keys, unknown fields, spaces and other spellings.
func Parse(payload []byte) (model.Directive, error) {
	if len(payload) > MaxPayload {
		return model.Directive{}, fmt.Errorf("%w: %d bytes, at most %d", ErrPayload, len(payload), MaxPayload)
	}
	if d, ok := scan(payload); ok && check(&d) == nil {
		return d, nil
	}
	d, err := read(payload)
	if err != nil {
		return model.Directive{}, err
	}
	again, _, err := encode(&d)
	if err != nil {
		return model.Directive{}, err
	}
	if !bytes.Equal(again, payload) {
		return model.Directive{}, fmt.Errorf("%w: the bytes are not canonical", ErrPayload)
	}
	return d, nil
}

// read takes from any JSON what it says, or says what is wrong with it.
func read(payload []byte) (model.Directive, error) {
	var w wire
	if err := decode(payload, &w); err != nil {
		return model.Directive{}, laterVersion(payload, err)
	}
	if w.V != 1 {
		return model.Directive{}, laterVersion(payload, fmt.Errorf("%w: version %d", ErrPayload, w.V))
	}
	d := model.Directive{
		ID: w.ID, Fleet: w.Fleet, Incident: w.Incident, Scope: w.Scope, Kind: w.Kind,
		Right: w.Right, Policy: model.PolicyRef(w.Policy), Log: model.LogHead(w.Log), Reason: w.Reason,
	}
	var err error
	for _, t := range []struct {
		text string
		into *time.Time
	}{{w.IssuedAt, &d.IssuedAt}, {w.NotBefore, &d.NotBefore}, {w.NotAfter, &d.NotAfter}} {
		if *t.into, err = unstamp(t.text); err != nil {
			return model.Directive{}, err
		}
	}
	return d, decodeBody(w.Body, &d)
}

// laterVersion is err, or an error that says so if the payload claims a later
// version: a person has to know that a host is old, not that a token is broken.
func laterVersion(payload []byte, err error) error {
	var head struct{ V int }
	if json.Unmarshal(payload, &head) == nil && head.V > 1 {
		return fmt.Errorf("%w: version %d: %w", ErrPayload, head.V, errVersion)
	}
	return err
}

func encodeBody(d *model.Directive) ([]byte, error) {
	switch d.Kind {
	case model.Shed:
		return compact(shedBody{d.Tier})
	case model.Off:
		return compact(offBody{d.Feature})
	case model.Bypass:
		return compact(bypassBody{d.Control, caps(d.Caps)})
	case model.Freeze, model.Ping:
		return compact(emptyBody{})
	case model.Dimmer:
		return compact(dimmerBody{d.TargetMS, d.Floor, d.Ceiling})
	case model.End:
		if d.Ends == model.Shed {
			return compact(recoveryBody{d.Ends, d.IDs, d.From, d.To, d.Ramp, d.Percent})
		}
		return compact(endBody{d.Ends, d.IDs})
	default:
		return d.Raw, nil
	}
}

func decodeBody(raw []byte, d *model.Directive) error {
	switch d.Kind {
	case model.Shed:
		var b shedBody
		err := decode(raw, &b)
		d.Tier = b.Tier
		return err
	case model.Off:
		var b offBody
		err := decode(raw, &b)
		d.Feature = b.Feature
		return err
	case model.Bypass:
		var b bypassBody
		err := decode(raw, &b)
		d.Control, d.Caps = b.Control, model.Caps(b.Caps)
		return err
	case model.Freeze, model.Ping:
		return decode(raw, &emptyBody{})
	case model.Dimmer:
		var b dimmerBody
		err := decode(raw, &b)
		d.TargetMS, d.Floor, d.Ceiling = b.TargetMS, b.Floor, b.Ceiling
		return err
	case model.End:
		return decodeEnd(raw, d)
	default:
		d.Raw = bytes.Clone(raw)
		return nil
	}
}

// decodeEnd reads both forms of an ending; an end of sheds must have the steps
// of a recovery, any other must not.
func decodeEnd(raw []byte, d *model.Directive) error {
	var kind struct{ Ends model.Kind }
	if err := json.Unmarshal(raw, &kind); err != nil {
		return fmt.Errorf("%w: %v", ErrPayload, err)
	}
	if kind.Ends == model.Shed {
		var b recoveryBody
		err := decode(raw, &b)
		d.Ends, d.IDs, d.From, d.To, d.Ramp, d.Percent = b.Ends, b.IDs, b.From, b.To, b.Ramp, b.Percent
		return err
	}
	var b endBody
	err := decode(raw, &b)
	d.Ends, d.IDs = b.Ends, b.IDs
	return err
}

// clearBody sets every field that belongs to the body of some kind to zero.
func clearBody(d *model.Directive) *model.Directive {
	*d = model.Directive{
		ID: d.ID, Fleet: d.Fleet, Incident: d.Incident, Reason: d.Reason, Scope: d.Scope, Kind: d.Kind,
		IssuedAt: d.IssuedAt, NotBefore: d.NotBefore, NotAfter: d.NotAfter,
		Right: d.Right, Policy: d.Policy, Log: d.Log,
	}
	return d
}

func compact(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrPayload, err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func decode(raw []byte, into any) error {
	// Unknown fields, doubled keys and other spellings pass here and fail where
	// the bytes are compared with what Encode prints.
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%w: %v", ErrPayload, err)
	}
	return nil
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func unstamp(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse("2006-01-02T15:04:05Z", s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %q is not a time like 2026-11-30T03:17:00Z", ErrPayload, s)
	}
	return t, nil
}
