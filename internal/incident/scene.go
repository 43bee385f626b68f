package incident

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/untrusted"
)

// Scene is all that a verdict depends on: the policy, the world at one moment, and
// who asks. The same scene gives the same verdict, tonight and in a year.
type Scene struct {
	Bundle *policy.Bundle
	World  model.World
	Actor  string
}

// Scene is what this desk would judge by now. It asks nobody.
func (d *Desk) Scene() Scene {
	return Scene{Bundle: d.o.Bundle, World: d.world(), Actor: d.o.Person}
}

// Matrix is every row of the policy with its verdict.
func (s *Scene) Matrix() []decisions.Row { return decisions.Enumerate(s.Bundle, &s.World, s.Actor) }

// Domains are the documents of the policy and whether they are in force.
func (s *Scene) Domains() []policy.DomainState { return domainsOf(s.Bundle) }

// Preview judges a wish and says what a confirmation has to show.
func (s *Scene) Preview(ask decisions.Ask) (Preview, error) {
	if ask.Actor == "" {
		ask.Actor = s.Actor
	}
	request, err := decisions.Draft(s.Bundle, &s.World, ask)
	if err != nil {
		return Preview{}, err
	}
	return s.Judge(request), nil
}

// Saved is a scene in a file, without the policy: that is signed and has its own
// place. Request is what was judged; without one it was the whole matrix.
type Saved struct {
	V       int            `json:"v"`
	Actor   string         `json:"actor"`
	Request *model.Request `json:"request,omitempty"`
	World   model.World    `json:"world"`
}

// MaxSaved bounds a saved world in bytes: 10,000 hosts with their reports fit.
const MaxSaved = 64 << 20

// Save writes a scene down. What it writes reads back as the same.
func (s *Scene) Save(request *model.Request) ([]byte, error) {
	saved := Saved{V: 1, Actor: s.Actor, Request: request, World: s.World}
	saved.World.Incident.Title = untrusted.Text(s.World.Incident.Title, maxSaid) // a person typed it, and no verdict reads it
	raw, err := json.MarshalIndent(saved, "", " ")
	if err != nil {
		return nil, fmt.Errorf("save the world: %w", err)
	}
	again, err := ReadSaved(raw, s.World.Fleet)
	if err != nil {
		return nil, fmt.Errorf("save the world: it would not read back: %w", err)
	}
	if twice, err := json.MarshalIndent(again, "", " "); err != nil || !bytes.Equal(raw, twice) {
		return nil, errors.Join(errors.New("save the world: it would read back as another one"), err)
	}
	return append(raw, '\n'), nil
}

// ReadSaved reads a saved world of a fleet. It is text from outside: a field that
// is not known, one that stands twice, or text that a screen would obey is an
// error that says where.
func ReadSaved(raw []byte, fleet string) (Saved, error) {
	var s Saved
	if len(raw) > MaxSaved {
		return s, fmt.Errorf("the saved world has %d bytes, at most %d", len(raw), MaxSaved)
	}
	keys, err := walk(raw)
	if err != nil {
		return s, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return s, placed(raw, keys, err)
	}
	switch {
	case s.V != 1 || s.World.V != 1:
		return s, fmt.Errorf("the saved world is of version %d.%d, this software reads 1.1", s.V, s.World.V)
	case s.World.Fleet != fleet:
		return s, fmt.Errorf("the saved world is of fleet %q, this is %q", s.World.Fleet, fleet)
	}
	return s, nil
}

// at is a position in a text for a person: line and column, from 1.
func at(raw []byte, offset int64) string {
	before := raw[:min(max(offset, 0), int64(len(raw)))]
	line := bytes.Count(before, []byte("\n")) + 1
	return fmt.Sprintf("line %d, column %d", line, len(before)-bytes.LastIndexByte(before, '\n'))
}

// walk looks at every key and text of one JSON value: none stands twice in its
// object, however it is spelt, and none would be obeyed by a screen. It returns
// where each key stands first.
func walk(raw []byte) (map[string]int64, error) {
	w := walker{raw: raw, dec: json.NewDecoder(bytes.NewReader(raw)), keys: map[string]int64{}}
	w.dec.UseNumber()
	if err := w.value(0); err != nil {
		return nil, err
	}
	if _, err := w.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: something follows the saved world", at(raw, w.dec.InputOffset()))
	}
	return w.keys, nil
}

// maxDepth is deeper than any world and shallower than any stack.
const maxDepth = 64

type walker struct {
	raw  []byte
	dec  *json.Decoder
	keys map[string]int64
}

// token is the next one and where it begins.
func (w *walker) token() (json.Token, int64, error) {
	t, err := w.dec.Token()
	end := w.dec.InputOffset()
	if err != nil {
		return nil, end, placed(w.raw, nil, err)
	}
	begin := end
	if s, ok := t.(string); ok {
		begin = w.begin(end)
		if untrusted.Text(s, len(s)) != s {
			return nil, begin, fmt.Errorf("%s: text that is not safe to show: %q", at(w.raw, begin), untrusted.Text(s, maxSaid))
		}
	}
	return t, begin, nil
}

// begin finds the opening quote of the string that ends at end.
func (w *walker) begin(end int64) int64 {
	for i := end - 2; i >= 0; i-- {
		if w.raw[i] != '"' {
			continue
		}
		slashes := int64(0)
		for i-1-slashes >= 0 && w.raw[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
	return 0
}

func (w *walker) value(depth int) error {
	t, where, err := w.token()
	if err != nil {
		return err
	}
	open, isDelim := t.(json.Delim)
	if !isDelim {
		return nil
	}
	if depth >= maxDepth {
		return fmt.Errorf("%s: nested deeper than %d", at(w.raw, where), maxDepth)
	}
	seen := map[string]bool{}
	for w.dec.More() {
		if open == '{' {
			key, where, err := w.token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			folded := strings.ToLower(name) // Go's decoder takes either spelling for a field
			if seen[folded] {
				return fmt.Errorf("%s: %q stands twice", at(w.raw, where), name)
			}
			seen[folded] = true
			if _, known := w.keys[name]; !known {
				w.keys[name] = where
			}
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
	}
	_, _, err = w.token()
	return err
}

// placed says where a decoder's error is.
func placed(raw []byte, keys map[string]int64, err error) error {
	where := int64(len(raw))
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		where = syntax.Offset - 1
	case errors.As(err, &kind):
		where = kind.Offset - 1
	default:
		_, quoted, ok := strings.Cut(err.Error(), "unknown field ")
		if name, err := strconv.Unquote(quoted); ok && err == nil {
			return fmt.Errorf("%s: unknown field %q", at(raw, keys[name]), name)
		}
	}
	return fmt.Errorf("%s: %s", at(raw, where), untrusted.Text(strings.TrimPrefix(err.Error(), "json: "), maxSaid))
}
