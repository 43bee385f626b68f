package directive

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// checkUnknown holds the body of a kind that this version does not know to what
// the format promises of every body: one JSON object in one spelling, so that
// whoever comes to know the kind reads the same thing from the same bytes. No
// space, no key twice, no other escape of a character, whole numbers only,
// printable text only.
func checkUnknown(raw []byte) error {
	if len(raw) == 0 || raw[0] != '{' {
		return bad("the body is not a JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out bytes.Buffer
	if err := reprint(dec, &out); err != nil {
		return err
	}
	if !bytes.Equal(out.Bytes(), raw) {
		return bad("the body is not canonical")
	}
	return nil
}

// reprint copies the next value of dec to out in its one spelling.
func reprint(dec *json.Decoder, out *bytes.Buffer) error {
	token, err := dec.Token()
	if err != nil {
		return bad("%w", err)
	}
	switch v := token.(type) {
	case json.Delim:
		return reprintAll(dec, out, v == '{')
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err != nil || strconv.FormatInt(n, 10) != v.String() {
			return bad("%s is not a whole number of 64 bits", v)
		}
		out.WriteString(v.String())
	case string:
		if !printable(v) {
			return bad("text in the body is not printable")
		}
		return reprintScalar(v, out)
	default:
		return reprintScalar(v, out)
	}
	return nil
}

// reprintAll copies the members of an object or array whose opening has been
// read, and its closing.
func reprintAll(dec *json.Decoder, out *bytes.Buffer, object bool) error {
	opening, closing := byte('['), byte(']')
	if object {
		opening, closing = '{', '}'
	}
	out.WriteByte(opening)
	seen := make(map[string]bool)
	for n := 0; dec.More(); n++ {
		if n > 0 {
			out.WriteByte(',')
		}
		if object {
			start := out.Len()
			if err := reprint(dec, out); err != nil {
				return err
			}
			key := out.String()[start:]
			if seen[key] {
				return bad("key %s stands twice", key)
			}
			seen[key] = true
			out.WriteByte(':')
		}
		if err := reprint(dec, out); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return bad("%w", err)
	}
	out.WriteByte(closing)
	return nil
}

func reprintScalar(v any, out *bytes.Buffer) error {
	text, err := compact(v)
	out.Write(text)
	return err
}
