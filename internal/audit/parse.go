package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// IntegrityError says that a log is not what was written. Offset is the byte at
// which the broken record begins, Line the line in the file, counted from 1.
type IntegrityError struct {
	File   string
	Offset int64
	Line   int
	What   string

	cause error // what a caller may decide on, nil if there is none
}

// Unwrap returns the cause, such as ErrUncertified.
func (e *IntegrityError) Unwrap() error { return e.cause }

func (e *IntegrityError) Error() string {
	// Both may quote what somebody put into a file or gave it as a name.
	return fmt.Sprintf("%s: record at byte %d (line %d): %s",
		untrusted.Text(e.File, maxPath), e.Offset, e.Line, untrusted.Text(e.What, MaxText))
}

// Torn is an unfinished write at the end of a file: a crash, a full disk or a
// write under way. Nothing in it was acknowledged.
type Torn struct {
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// parser takes the log of one file apart, record by record. It checks all that
// can be checked without knowing whose key it is: form, order, both chains and,
// if asked, the checkpoint signatures.
type parser struct {
	file       string
	signatures bool

	chain     chain
	start     SessionStart
	statement Statement
	verifier  note.Verifier
	offset    int64 // of the next record
	line      int   // lines before it
	entries   []Entry
	offsets   []int64     // of each record
	roots     []tlog.Hash // after each record
}

func newParser(file string, signatures bool) *parser {
	// Until the first entry has told the session, the chain is nobody's.
	return &parser{file: file, signatures: signatures, chain: chain{prev: noPrev, root: emptyRoot()}}
}

func (p *parser) broken(line int, format string, args ...any) *IntegrityError {
	return &IntegrityError{File: p.file, Offset: p.offset, Line: p.line + line, What: fmt.Sprintf(format, args...)}
}

// feed takes data that follows what it has had. It returns how much of it was
// complete records. What remains is torn if nothing follows.
func (p *parser) feed(data []byte) (int, *IntegrityError) {
	used := 0
	for {
		n, err := p.record(data[used:])
		if err != nil || n == 0 {
			return used, err
		}
		used += n
	}
}

// record reads one record, two lines. It returns 0 if data does not hold both.
func (p *parser) record(data []byte) (int, *IntegrityError) {
	first, err := p.cut(data, 1)
	if first < 0 || err != nil {
		return 0, err
	}
	second, err := p.cut(data[first+1:], 2)
	if second < 0 || err != nil {
		return 0, err
	}
	size := first + 1 + second + 1
	entry, wrong := p.take(data[:first])
	if wrong != nil {
		return 0, p.broken(1, "%v", wrong)
	}
	var verifier note.Verifier
	if p.signatures {
		verifier = p.verifier
	}
	if wrong := p.chain.verify(data[first+1:size-1], verifier); wrong != nil {
		return 0, p.broken(2, "%v", wrong)
	}
	p.chain.close(data[:size])
	p.entries = append(p.entries, entry)
	p.offsets = append(p.offsets, p.offset)
	p.roots = append(p.roots, p.chain.root)
	p.offset += int64(size)
	p.line += 2
	return size, nil
}

// head is that of the complete records, also after damage was found behind them.
func (p *parser) head() model.LogHead {
	h := model.LogHead{Origin: p.chain.origin, Size: int64(len(p.roots))}
	root := emptyRoot()
	if h.Size > 0 {
		root = p.roots[h.Size-1]
	}
	h.Root = hex.EncodeToString(root[:])
	return h
}

// cut finds the end of a line, -1 if it is not there yet.
func (p *parser) cut(data []byte, line int) (int, *IntegrityError) {
	at := bytes.IndexByte(data, '\n')
	if at > MaxLine || at < 0 && len(data) > MaxLine {
		return -1, p.broken(line, "a line of more than %d bytes", MaxLine)
	}
	return at, nil
}

// take checks an entry line against the chain and takes it into the tree.
func (p *parser) take(line []byte) (Entry, error) {
	e, err := readEntry(line)
	if err != nil {
		return e, fmt.Errorf("not an entry: %w", err)
	}
	if want := p.chain.tree.size + 1; e.Seq != want {
		return e, fmt.Errorf("seq is %d and should be %d", e.Seq, want)
	}
	if e.Prev != p.chain.prev {
		return e, errors.New("prev is not the SHA-256 of the record before")
	}
	start, isStart := e.Body.(SessionStart)
	if isStart != (e.Seq == 1) {
		return e, errors.New("the first entry of a file, and only that, begins a session")
	}
	if isStart {
		if err := p.begin(start); err != nil {
			return e, err
		}
	}
	if e.Session != p.statement.Session || e.Actor != p.statement.Person {
		return e, fmt.Errorf("it is of session %q by %q, the log is of %q by %q",
			e.Session, e.Actor, p.statement.Session, p.statement.Person)
	}
	if err := p.covered(e); err != nil {
		return e, err
	}
	return e, p.chain.add(line)
}

// begin learns from the first entry whose log it is, and holds the file's name
// against it.
func (p *parser) begin(start SessionStart) error {
	statement, err := readStatement(start.Statement)
	if err != nil {
		return fmt.Errorf("the session's statement: %w", err)
	}
	verifier, err := note.NewVerifier(statement.Key)
	if err != nil {
		return fmt.Errorf("the session's key: %w", err)
	}
	parts := strings.Split(verifier.Name(), "/")
	if len(parts) != 3 || parts[0] != statement.Fleet || parts[2] != statement.Session ||
		!directive.Name(parts[0]) || !directive.Name(parts[1]) || !sessionName(parts[2]) {
		return fmt.Errorf("the session's key is named %q, not <fleet>/<incident>/<session>", verifier.Name())
	}
	if start.Segment < 1 {
		return fmt.Errorf("segment %d", start.Segment)
	}
	folder, base := filepath.Split(p.file)
	incident := filepath.Base(folder)
	if base != segmentOf(parts[2], start.Segment)+extension || folder != "" && incident != parts[1] {
		return fmt.Errorf("it is segment %d of %s and lies in a file of another name", start.Segment, verifier.Name())
	}
	p.start, p.statement, p.verifier = start, statement, verifier
	p.chain = newChain(verifier.Name(), start.Segment)
	return nil
}

// covered checks that the certificate covers the entry, by the boot clock of the
// machine that wrote both: a wall clock may have been set in between. Across
// boots there is nothing to compare.
func (p *parser) covered(e Entry) error {
	if e.Boot != p.start.BeganBoot {
		return nil
	}
	length, err := p.statement.length()
	if err != nil {
		return err
	}
	if since := e.MonoNS - p.start.BeganNS; since < 0 || since > int64(length) {
		return errors.New("the session's certificate does not cover its time")
	}
	return nil
}

// rest judges what follows the last complete record: nil if nothing does, torn
// if it can be the beginning of the next write, and otherwise broken.
func (p *parser) rest(data []byte) (*Torn, *IntegrityError) {
	if len(data) == 0 {
		return nil, nil
	}
	sum := sha256.Sum256(data)
	torn := &Torn{Offset: p.offset, Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
	written := data
	// After a power loss a file may be longer than what was written to it. One
	// NUL alone is no such tail but a changed byte.
	if kept := bytes.TrimRight(data, "\x00"); len(data)-len(kept) > 1 {
		written = kept
	}
	entry, checkpoint, whole := bytes.Cut(written, []byte("\n"))
	if !whole {
		begins := fmt.Appendf(nil, `{"v":%d,"seq":%d,"prev":"%s","at":"`, formatVersion, p.chain.tree.size+1, p.chain.prev)
		n := min(len(begins), len(entry))
		if !bytes.Equal(entry[:n], begins[:n]) {
			return nil, p.broken(1, "not the beginning of an entry")
		}
		return torn, nil
	}
	// The parser may be fed again, so the entry is tried on a copy.
	trial := *p
	trial.chain.tree.stored = slices.Clone(p.chain.tree.stored)
	if _, err := trial.take(entry); err != nil {
		return nil, p.broken(1, "%v", err)
	}
	if !trial.chain.torn(checkpoint) {
		return nil, p.broken(2, "not the beginning of the entry's checkpoint")
	}
	return torn, nil
}
