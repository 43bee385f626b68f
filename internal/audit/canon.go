package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// canonical prints v as the one form this format knows: compact JSON in the
// order of the struct's fields, HTML characters as they are, and whatever a
// terminal would obey or an eye would miss as \uXXXX. A log is read with less
// and grep by tired people.
func canonical(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return escapeUnseen(bytes.TrimSuffix(out.Bytes(), []byte("\n"))), nil
}

// unseen is the closed list of what is escaped besides the controls below
// U+0020, which JSON escapes anyway. It is part of the format and does not
// follow the Unicode tables of the compiler: a log must stay canonical for good.
var unseen = [...]struct{ first, last rune }{
	{0x7f, 0x9f},       // DEL, C1
	{0xad, 0xad},       // soft hyphen
	{0x34f, 0x34f},     // combining grapheme joiner
	{0x61c, 0x61c},     // Arabic letter mark
	{0x115f, 0x1160},   // Hangul fillers
	{0x17b4, 0x17b5},   // Khmer inherent vowels
	{0x180b, 0x180f},   // Mongolian selectors and separator
	{0x200b, 0x200f},   // zero width, direction marks
	{0x2028, 0x202e},   // line and paragraph separators, direction overrides
	{0x2060, 0x206f},   // word joiner, direction isolates, deprecated formats
	{0x3164, 0x3164},   // Hangul filler
	{0xfe00, 0xfe0f},   // variation selectors
	{0xfeff, 0xfeff},   // byte order mark
	{0xffa0, 0xffa0},   // half-width Hangul filler
	{0xfff0, 0xfffd},   // specials, and what stands for undecodable bytes
	{0x1bca0, 0x1bca3}, // shorthand format controls
	{0x1d173, 0x1d17a}, // musical format controls
	{0xe0000, 0xe0fff}, // tags and supplementary selectors
}

func isUnseen(r rune) bool {
	for _, u := range unseen {
		if r < u.first {
			return false
		}
		if r <= u.last {
			return true
		}
	}
	return false
}

// escapeUnseen works on encoded JSON: there such characters stand in strings
// only.
func escapeUnseen(text []byte) []byte {
	clean := 0
	for clean < len(text) && text[clean] < 0x7f {
		clean++
	}
	if clean == len(text) {
		return text
	}
	out := append(make([]byte, 0, len(text)+32), text[:clean]...)
	for rest := text[clean:]; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case !isUnseen(r):
			out = append(out, rest[:n]...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		rest = rest[n:]
	}
	return out
}

// strict decodes exactly one JSON value whose fields are all known.
func strict(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.InputOffset() != int64(len(raw)) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// foreignBody accepts the body of an unknown kind if it is in canonical form,
// which here means as printed by reprint: order and numbers as they stand.
func foreignBody(kind Kind, raw []byte) (Body, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out bytes.Buffer
	if err := reprint(dec, &out); err != nil {
		return nil, err
	}
	if !bytes.Equal(out.Bytes(), raw) {
		return nil, errors.New("the bytes are not canonical")
	}
	return Foreign{Name: kind, Raw: bytes.Clone(raw)}, nil
}

// reprint copies the next JSON value in canonical form, refusing doubled keys.
func reprint(dec *json.Decoder, out *bytes.Buffer) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	open, isDelim := token.(json.Delim)
	if !isDelim {
		return printScalar(token, out)
	}
	out.WriteByte(byte(open))
	keys := map[string]bool{}
	for first := true; dec.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		if open == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			if keys[name] {
				return fmt.Errorf("key %q stands there twice", name)
			}
			keys[name] = true
			if err := printScalar(name, out); err != nil {
				return err
			}
			out.WriteByte(':')
		}
		if err := reprint(dec, out); err != nil {
			return err
		}
	}
	closing, err := dec.Token()
	if err != nil {
		return err
	}
	end, _ := closing.(json.Delim)
	out.WriteByte(byte(end))
	return nil
}

func printScalar(v any, out *bytes.Buffer) error {
	text, err := canonical(v)
	if err != nil {
		return err
	}
	out.Write(text)
	return nil
}
