package ofrep

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reason says how a value came about, in OpenFeature's words.
type Reason string

// Reasons that a host gives.
const (
	Static  Reason = "STATIC"          // nothing touches it: the value of normal operation
	Matched Reason = "TARGETING_MATCH" // something in force has changed it
	Stale   Reason = "STALE"           // the value may be out of date
	Default Reason = "DEFAULT"         // nothing is known: a value that is safe
)

// Flag is one evaluated flag.
type Flag struct {
	Key      string         `json:"key"`
	Value    any            `json:"value"` // bool, integer, or what JSON makes an object of
	Reason   Reason         `json:"reason"`
	Variant  string         `json:"variant"`
	Metadata map[string]any `json:"metadata,omitempty"` // bool, string and number only
}

// Set is all flags at one moment, ready to be sent. It is never changed.
type Set struct {
	tag  string
	bulk []byte
	one  map[string][]byte
}

// NewSet makes the answers. The tag follows from keys, values, variants and
// reasons alone: metadata holds ages, and an age that grows is no change.
func NewSet(flags []Flag, metadata map[string]any) (*Set, error) {
	flags = slices.Clone(flags)
	slices.SortFunc(flags, func(a, b Flag) int { return strings.Compare(a.Key, b.Key) })
	s := &Set{one: make(map[string][]byte, len(flags))}
	sum := sha256.New()
	tagged := json.NewEncoder(sum)
	for i := range flags {
		f := flags[i]
		if _, twice := s.one[f.Key]; twice {
			return nil, fmt.Errorf("two flags are named %q", f.Key)
		}
		body, err := json.Marshal(withAll(f, metadata))
		if err != nil {
			return nil, fmt.Errorf("write flag %q: %w", f.Key, err)
		}
		s.one[f.Key] = body
		f.Metadata = nil
		if err := tagged.Encode(f); err != nil {
			return nil, fmt.Errorf("write flag %q: %w", f.Key, err)
		}
	}
	var err error
	s.bulk, err = json.Marshal(struct {
		Flags    []Flag         `json:"flags"`
		Metadata map[string]any `json:"metadata,omitempty"`
	}{flags, metadata})
	if err != nil {
		return nil, fmt.Errorf("write all flags: %w", err)
	}
	s.tag = `"` + hex.EncodeToString(sum.Sum(nil)[:16]) + `"`
	return s, nil
}

// withAll is a flag as it is sent alone, with what is true of all of them.
func withAll(f Flag, metadata map[string]any) Flag {
	if len(metadata) > 0 {
		joined := maps.Clone(metadata)
		maps.Copy(joined, f.Metadata)
		f.Metadata = joined
	}
	return f
}

// Tag is the entity tag of the whole, quotes included.
func (s *Set) Tag() string { return s.tag }

// has reports whether one of the tags that a client named is that of s.
func (s *Set) has(header string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || strings.TrimPrefix(tag, "W/") == s.tag {
			return true
		}
	}
	return false
}
