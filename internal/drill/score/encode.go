package score

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// MaxScore bounds the JSON of a score in bytes: a hundred practised things and
// three runs fit ten times.
const MaxScore = 256 << 10

// Encode is the score in its one form: one line of JSON, keys in the order of the
// format, integers only. The same score gives the same bytes.
func (s *Score) Encode() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("encode a score: %w", err)
	}
	if out.Len() > MaxScore {
		return nil, fmt.Errorf("encode a score: %d bytes, at most %d", out.Len(), MaxScore)
	}
	return out.Bytes(), nil
}

// Parse reads what Encode wrote and nothing else: a byte more, less or in another
// place is an error.
func Parse(raw []byte) (*Score, error) {
	if len(raw) > MaxScore {
		return nil, fmt.Errorf("read a score: %d bytes, at most %d", len(raw), MaxScore)
	}
	var s Score
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("read a score: %w", err)
	}
	if s.V != Version {
		return nil, fmt.Errorf("read a score: version %d, this program reads %d", s.V, Version)
	}
	again, err := s.Encode()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, raw) {
		return nil, fmt.Errorf("read a score: it is not in the form in which scores are written")
	}
	return &s, nil
}
