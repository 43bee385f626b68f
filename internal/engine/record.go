package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// The types of records. They are part of the format of the state folder.
const (
	recordFolder  = "folder"  // first of each file: whose it is
	recordHeld    = "held"    // a directive taken, with when it was first accepted
	recordKept    = "kept"    // a directive of a kind that this software does not know
	recordClock   = "clock"   // time floor, and how long bypasses have run
	recordBudget  = "budget"  // what is reserved of one budget
	recordForfeit = "forfeit" // budgets of days up to this one count as spent
	recordHead    = "head"    // head of an issuer's log that no held token names
)

const (
	formatVersion = 1
	sumDigits     = 16 // hex digits of SHA-256 before each line
	lenDigits     = 6
	prefixLen     = sumDigits + 1 + lenDigits + 1
	maxLine       = 999_999
)

// record is one fact of a state file. N counts the records of a file from 1, so
// that a gap shows a loss.
type record struct {
	N    int    `json:"n"`
	Type string `json:"t"`

	V      int    `json:"v,omitempty"` // folder
	Fleet  string `json:"fleet,omitempty"`
	Host   string `json:"host,omitempty"`
	Folder string `json:"folder,omitempty"`

	Token  string `json:"token,omitempty"` // held
	Source string `json:"source,omitempty"`

	At     time.Time        `json:"at,omitzero"` // held: host time of the first accept
	Boot   string           `json:"boot,omitempty"`
	MonoNS time.Duration    `json:"mono_ns,omitempty"`
	Floor  time.Time        `json:"floor,omitzero"` // clock
	RunMS  map[string]int64 `json:"run_ms,omitempty"`

	Control string      `json:"control,omitempty"` // budget
	Right   string      `json:"right,omitempty"`
	Day     string      `json:"day,omitempty"` // budget, forfeit
	Count   int64       `json:"count,omitempty"`
	Total   model.Money `json:"total,omitzero"`

	Head *model.LogHead `json:"head,omitempty"`
}

// encode appends a record to out, twice: a damaged byte never costs more than
// one of two copies.
func encode(out []byte, r record) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write a record of type %s: %w", r.Type, err)
	}
	if len(text) > maxLine {
		return nil, fmt.Errorf("write a record of type %s: %d bytes, at most %d", r.Type, len(text), maxLine)
	}
	out = slices.Grow(out, 2*(prefixLen+len(text)+1))
	start := len(out)
	out = fmt.Appendf(out, "%s %0*d %s\n", sumOf(text), lenDigits, len(text), text)
	return append(out, out[start:]...), nil
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:sumDigits/2])
}

// scanned is what a state file still says.
type scanned struct {
	records []record // in order, each once
	damaged int      // stretches of bytes that are no record
	lost    int      // records that are missing between others
}

// scan reads a state file whatever has happened to it. After a stretch that is
// no record it goes on at the next line.
func scan(data []byte) scanned {
	var out scanned
	next := 1
	for len(data) > 0 {
		r, size, ok := decode(data)
		if !ok {
			out.damaged++
			line := bytes.IndexByte(data, '\n')
			if line < 0 {
				break
			}
			data = data[line+1:]
			continue
		}
		data = data[size:]
		if r.N < next {
			continue // the second copy
		}
		out.lost += r.N - next
		next = r.N + 1
		out.records = append(out.records, r)
	}
	return out
}

// decode reads one copy at the beginning of data. Its length is taken from its
// prefix, so that a damaged line end does not cost the copy behind it.
func decode(data []byte) (r record, size int, ok bool) {
	if len(data) < prefixLen || data[sumDigits] != ' ' || data[prefixLen-1] != ' ' {
		return record{}, 0, false
	}
	n, err := strconv.ParseUint(string(data[sumDigits+1:prefixLen-1]), 10, 32)
	if err != nil || prefixLen+int(n) > len(data) {
		return record{}, 0, false
	}
	text := data[prefixLen : prefixLen+int(n)]
	if sumOf(text) != string(data[:sumDigits]) {
		return record{}, 0, false
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil || r.N < 1 {
		return record{}, 0, false
	}
	size = prefixLen + int(n)
	if size < len(data) {
		size++ // the line end, or what has become of it
	}
	return r, size, true
}
