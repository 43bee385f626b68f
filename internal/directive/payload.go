package directive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/degradedmode/ic/internal/model"
	"github.com/oklog/ulid/v2"
)

// Limits of the format.
const (
	MaxPayload = 2800 // payload in bytes; with one signature it fits MaxToken
	MaxIDs     = 48   // ids that one ending may list: 48 x 29 bytes fit the payload
	MaxName    = 64   // fleet, scope, right, feature, control, incident, origin part
	maxTier    = 6
)

// ErrPayload is wrapped by every error about a payload's form.
var ErrPayload = errors.New("not a directive")

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
	Policy    model.PolicyRef `json:"policy"`
	Log       model.LogHead   `json:"log"`
	Reason    string          `json:"reason"`
}

type (
	shedBody struct {
		Tier int `json:"tier"`
	}
	offBody struct {
		Feature string `json:"feature"`
	}
	bypassBody struct {
		Control string     `json:"control"`
		Caps    model.Caps `json:"caps"`
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
// It fails on a directive that Parse would not read back.
func Encode(d model.Directive) ([]byte, error) {
	if err := check(&d); err != nil {
		return nil, err
	}
	body, err := encodeBody(&d)
	if err != nil {
		return nil, err
	}
	out, err := compact(wire{
		V: 1, ID: d.ID, Fleet: d.Fleet, Incident: d.Incident, Scope: d.Scope, Kind: d.Kind, Body: body,
		IssuedAt: stamp(d.IssuedAt), NotBefore: stamp(d.NotBefore), NotAfter: stamp(d.NotAfter),
		Right: d.Right, Policy: d.Policy, Log: d.Log, Reason: d.Reason,
	})
	if err != nil {
		return nil, err
	}
	if len(out) > MaxPayload {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrPayload, len(out), MaxPayload)
	}
	return out, nil
}

// Parse reads a canonical payload. Bytes that do not encode back to themselves
// are refused: duplicate keys, unknown fields, spaces and other spellings.
func Parse(payload []byte) (model.Directive, error) {
	if len(payload) > MaxPayload {
		return model.Directive{}, fmt.Errorf("%w: %d bytes, at most %d", ErrPayload, len(payload), MaxPayload)
	}
	var w wire
	if err := strict(payload, &w); err != nil {
		return model.Directive{}, err
	}
	if w.V != 1 {
		return model.Directive{}, fmt.Errorf("%w: version %d, this software reads 1", ErrPayload, w.V)
	}
	d := model.Directive{
		ID: w.ID, Fleet: w.Fleet, Incident: w.Incident, Scope: w.Scope, Kind: w.Kind,
		Right: w.Right, Policy: w.Policy, Log: w.Log, Reason: w.Reason,
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
	if err := decodeBody(w.Body, &d); err != nil {
		return model.Directive{}, err
	}
	again, err := Encode(d)
	if err != nil {
		return model.Directive{}, err
	}
	if !bytes.Equal(again, payload) {
		return model.Directive{}, fmt.Errorf("%w: the bytes are not canonical", ErrPayload)
	}
	return d, nil
}

func encodeBody(d *model.Directive) ([]byte, error) {
	switch d.Kind {
	case model.Shed:
		return compact(shedBody{d.Tier})
	case model.Off:
		return compact(offBody{d.Feature})
	case model.Bypass:
		return compact(bypassBody{d.Control, d.Caps})
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
		err := strict(raw, &b)
		d.Tier = b.Tier
		return err
	case model.Off:
		var b offBody
		err := strict(raw, &b)
		d.Feature = b.Feature
		return err
	case model.Bypass:
		var b bypassBody
		err := strict(raw, &b)
		d.Control, d.Caps = b.Control, b.Caps
		return err
	case model.Freeze, model.Ping:
		return strict(raw, &emptyBody{})
	case model.Dimmer:
		var b dimmerBody
		err := strict(raw, &b)
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
		err := strict(raw, &b)
		d.Ends, d.IDs, d.From, d.To, d.Ramp, d.Percent = b.Ends, b.IDs, b.From, b.To, b.Ramp, b.Percent
		return err
	}
	var b endBody
	err := strict(raw, &b)
	d.Ends, d.IDs = b.Ends, b.IDs
	return err
}

// check holds what every directive must fulfil, whoever signed it.
func check(d *model.Directive) error {
	if _, err := ulid.ParseStrict(d.ID); err != nil || strings.ToUpper(d.ID) != d.ID {
		return fmt.Errorf("%w: id %q is not a ULID", ErrPayload, d.ID)
	}
	for _, f := range []struct{ what, name string }{
		{"fleet", d.Fleet}, {"incident", d.Incident}, {"right", d.Right}, {"kind", string(d.Kind)},
	} {
		if !Name(f.name) {
			return fmt.Errorf("%w: %s %q is not a name of a-z, 0-9, '-', '.', '_' and at most %d bytes", ErrPayload, f.what, f.name, MaxName)
		}
	}
	if d.Scope != model.AnyScope && !Name(d.Scope) {
		return fmt.Errorf("%w: scope %q is neither a service nor *", ErrPayload, d.Scope)
	}
	if d.IssuedAt.IsZero() || d.NotBefore.IsZero() {
		return fmt.Errorf("%w: issued_at and not_before are required", ErrPayload)
	}
	if !d.NotAfter.IsZero() && !d.NotBefore.Before(d.NotAfter) {
		return fmt.Errorf("%w: not_after is not later than not_before", ErrPayload)
	}
	if len(d.Reason) > model.MaxReason || !printable(d.Reason) {
		return fmt.Errorf("%w: a reason is one line of at most %d bytes of printable text", ErrPayload, model.MaxReason)
	}
	if d.Policy.Version < 1 || !hexDigest(d.Policy.Digest) {
		return fmt.Errorf("%w: policy needs a version and a SHA-256 in hex", ErrPayload)
	}
	if d.Log.Size < 0 || !hexDigest(d.Log.Root) || !originOK(d.Log.Origin) {
		return fmt.Errorf("%w: log needs an origin, a size and a root in hex", ErrPayload)
	}
	return checkBody(d)
}

func checkBody(d *model.Directive) error {
	needsEnd := func() error {
		if d.NotAfter.IsZero() {
			return fmt.Errorf("%w: a %s must have not_after", ErrPayload, d.Kind)
		}
		return nil
	}
	mustHold := func(ok bool, what string) error {
		if !ok {
			return fmt.Errorf("%w: %s", ErrPayload, what)
		}
		return nil
	}
	switch d.Kind {
	case model.Shed:
		return mustHold(d.Tier >= 1 && d.Tier <= maxTier, "a shed names a tier from 1 to 6")
	case model.Off:
		return mustHold(Name(d.Feature), "an off names a feature")
	case model.Bypass:
		c := d.Caps
		if err := mustHold(Name(d.Control), "a bypass names a control"); err != nil {
			return err
		}
		same := c.Under.Currency == c.HostTotal.Currency && c.Under.Currency == c.Total.Currency
		if err := mustHold(same && c.Under.Minor > 0 && c.HostCount > 0 && c.HostTotal.Minor > 0 && c.Total.Minor > 0,
			"a bypass has four caps above zero in one currency"); err != nil {
			return err
		}
		return needsEnd()
	case model.Freeze, model.Ping:
		return needsEnd()
	case model.Dimmer:
		return mustHold(d.TargetMS > 0 && d.Floor >= 1 && d.Ceiling <= 100 && d.Floor <= d.Ceiling,
			"a dimmer has a target in ms and 1 <= floor <= ceiling <= 100 percent")
	case model.End:
		return checkEnd(d, mustHold)
	default:
		var any json.RawMessage
		if err := strict(d.Raw, &any); err != nil {
			return err
		}
		return nil
	}
}

func checkEnd(d *model.Directive, mustHold func(bool, string) error) error {
	if err := mustHold(len(d.IDs) >= 1 && len(d.IDs) <= MaxIDs, "an ending lists 1 to 48 ids"); err != nil {
		return err
	}
	for i, id := range d.IDs {
		if _, err := ulid.ParseStrict(id); err != nil || i > 0 && d.IDs[i-1] >= id {
			return fmt.Errorf("%w: ids of an ending are distinct ULIDs in ascending order", ErrPayload)
		}
	}
	if d.Ends != model.Shed {
		return mustHold(Name(string(d.Ends)), "an ending names the kind it ends")
	}
	return mustHold(d.From >= 1 && d.From <= maxTier && d.To == d.From-1 && d.Percent >= 1 && d.Percent <= 100 && Name(strings.ToLower(d.Ramp)),
		"an end of sheds steps from one tier to the next lower one, with a ramp and 1 to 100 percent")
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

func strict(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%w: %v", ErrPayload, err)
	}
	if dec.InputOffset() != int64(len(raw)) {
		return fmt.Errorf("%w: something follows the JSON object", ErrPayload)
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

// Name reports whether s is a name as this format takes it: lower-case letters,
// digits, '-', '.', '_', starting with a letter or digit, at most MaxName bytes.
func Name(s string) bool {
	if s == "" || len(s) > MaxName {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '.' && c != '_') {
			return false
		}
	}
	return true
}

// originOK reports whether s is <fleet>/<incident>/<session>.
func originOK(s string) bool {
	parts := strings.Split(s, "/")
	return len(parts) == 3 && Name(parts[0]) && Name(parts[1]) && Name(parts[2])
}

func hexDigest(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// printable allows what a reason may hold without being made safe again: no
// control, bidirectional, zero-width or other invisible characters.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r != ' ' && !graphic(r) {
			return false
		}
	}
	return true
}
