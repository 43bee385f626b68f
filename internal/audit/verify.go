package audit

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

// VerifyOptions say against what a log is verified.
type VerifyOptions struct {
	Realm directive.Realm
	Fleet string
	// Trusted names the person or machine to whom an SSH key belongs, by its
	// SHA256 fingerprint. A session certified by any other key fails.
	Trusted func(fingerprint string) (person string, ok bool)
	// Heads were kept elsewhere: by hosts, in directives, on a photograph. Each one
	// of a log in Paths has to lie on its chain.
	Heads []model.LogHead
	// Complete says that every log of the incident has to be here, as in an evidence
	// bundle. Otherwise one that is named and absent may be on another machine.
	Complete bool
}

// FileResult is what was verified in one file.
type FileResult struct {
	File        string        `json:"file"`
	Origin      string        `json:"origin"`
	Person      string        `json:"person"`
	Fingerprint string        `json:"fingerprint"`
	Entries     int64         `json:"entries"`
	Head        model.LogHead `json:"head"`
	Ended       bool          `json:"ended"`       // the session ended in order
	Unclaimed   int64         `json:"unclaimed"`   // entries behind what the next segment continues: written, never acknowledged
	Torn        *Torn         `json:"torn"`        // an unfinished write at the end; nil: none
	HeadsMet    int           `json:"heads_met"`   // kept heads that lie on this chain
	HighestHead int64         `json:"highest_met"` // the largest of them; a cut below it would show
}

// Result is what was verified. Absent are heads of the same incidents whose logs
// are not here: they are on other machines, or they were deleted.
type Result struct {
	Files   []FileResult    `json:"files"`
	Entries int64           `json:"entries"`
	Absent  []model.LogHead `json:"absent"`
}

// Heads lists where the verified logs stand.
func (r *Result) Heads() []model.LogHead {
	out := make([]model.LogHead, 0, len(r.Files))
	for _, f := range r.Files {
		if f.Entries > 0 {
			out = append(out, f.Head)
		}
	}
	return out
}

// Verify checks logs: files, or folders of incidents with all segments in them.
// An error joins one *IntegrityError for each thing that is wrong; the result
// then covers what was right. A torn tail is no error, and is said in the result.
//
// Heads named by directives in the logs, and by segments that continue another
// one, are held against the chains like those in o.Heads.
func Verify(o VerifyOptions, paths ...string) (Result, error) {
	files, err := expand(paths)
	if err != nil {
		return Result{}, err
	}
	v := verification{o: o, logs: map[string]*verified{}, broken: map[string]bool{}}
	for _, file := range files {
		v.file(file)
	}
	v.heads(v.kept())
	return v.result(), errors.Join(v.wrong...)
}

func expand(paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("verify the log: %w", err)
		}
		if !info.IsDir() {
			out = append(out, path)
			continue
		}
		files, err := logFiles(path)
		if err != nil {
			return nil, err
		}
		out = append(out, files...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("verify the log: no %s file in %v", extension, paths)
	}
	return out, nil
}

// verified is one log whose own bytes are in order.
type verified struct {
	parser *parser
	result FileResult
}

type verification struct {
	o      VerifyOptions
	order  []*verified
	logs   map[string]*verified // by origin
	broken map[string]bool      // origins of logs that are here and damaged
	absent []model.LogHead
	wrong  []error
}

// file verifies one file by itself.
func (v *verification) file(file string) {
	data, err := readFrom(file, 0)
	if err != nil {
		v.wrong = append(v.wrong, err)
		return
	}
	p := newParser(file, true)
	used, broken := p.feed(data)
	var torn *Torn
	if broken == nil {
		torn, broken = p.rest(data[used:])
	}
	if broken != nil {
		v.broken[p.chain.origin] = true
		v.wrong = append(v.wrong, broken)
		return
	}
	log := &verified{parser: p, result: FileResult{File: file, Torn: torn}}
	if len(p.entries) == 0 {
		v.order = append(v.order, log) // a crash before the first write was complete: nobody to certify
		return
	}
	if err := v.certified(log); err != nil {
		v.wrong = append(v.wrong, &IntegrityError{File: file, Line: 1, What: err.Error(), cause: err})
		return
	}
	v.order = append(v.order, log)
	v.logs[p.chain.origin] = log
}

// certified checks who vouches for the key that signed the checkpoints.
func (v *verification) certified(log *verified) error {
	p := log.parser
	if p.statement.Fleet != v.o.Fleet {
		return fmt.Errorf("%w: it is of fleet %q, this is %q", ErrUncertified, p.statement.Fleet, v.o.Fleet)
	}
	fingerprint, err := p.statement.signedBy(p.start.Statement, p.start.Certificate, v.o.Realm)
	if err != nil {
		return err
	}
	person, ok := v.o.Trusted(fingerprint)
	if !ok {
		return fmt.Errorf("%w: key %s is nobody's", ErrUncertified, fingerprint)
	}
	if person != p.statement.Person {
		return fmt.Errorf("%w: key %s is %q's, the log says %q", ErrUncertified, fingerprint, person, p.statement.Person)
	}
	if other := v.logs[p.chain.origin]; other != nil {
		return fmt.Errorf("a second log of %s, beside %s", p.chain.origin, other.result.File)
	}
	_, ended := p.entries[len(p.entries)-1].Body.(SessionEnd)
	r := &log.result
	r.Origin, r.Person, r.Fingerprint, r.Ended = p.chain.origin, person, fingerprint, ended
	r.Entries, r.Head = p.chain.tree.size, p.head()
	return nil
}

// keptHead is a head and who kept it.
type keptHead struct {
	model.LogHead
	by        string
	continues bool // the next segment says so: what lies behind it was not acknowledged
}

// kept collects the heads to hold against the chains.
func (v *verification) kept() []keptHead {
	var out []keptHead
	for _, h := range v.o.Heads {
		out = append(out, keptHead{LogHead: h, by: "a head kept elsewhere"})
	}
	for _, log := range v.order {
		if s := log.parser.start.Sealed; s != nil {
			out = append(out, keptHead{model.LogHead{Origin: s.Origin, Size: s.Size, Root: s.Root}, "the segment " + log.parser.chain.origin, true})
		}
		for _, e := range log.parser.entries {
			if d, ok := directiveIn(e.Body); ok {
				out = append(out, keptHead{d.Log, "the directive " + d.ID, false})
			}
		}
	}
	return out
}

// heads holds every head against its chain. One of a log that should be here and
// is not shows that a whole file is gone.
func (v *verification) heads(kept []keptHead) {
	for _, h := range kept {
		log := v.logs[h.Origin]
		switch {
		case log != nil:
			if err := log.meet(h); err != nil {
				v.wrong = append(v.wrong, err)
			}
		case h.Size == 0 || v.broken[h.Origin]: // nothing to find, or reported already
		case v.expects(h.Origin):
			v.wrong = append(v.wrong, &IntegrityError{File: h.Origin, Line: 1,
				What: fmt.Sprintf("%s names %d entries of this log, and it is not here", h.by, h.Size)})
		case v.knows(h.Origin) && !slices.Contains(v.absent, h.LogHead):
			v.absent = append(v.absent, h.LogHead)
		}
	}
}

// expects reports whether a log of that origin has to be here: another segment
// of its session is, or all logs of its incident are said to be.
func (v *verification) expects(origin string) bool {
	dir, base := splitOrigin(origin)
	session, _, _ := strings.Cut(base, ".")
	for _, log := range v.logs {
		if log.parser.chain.keyName == dir+session {
			return true
		}
	}
	return v.o.Complete && v.knows(origin)
}

// knows reports whether the origin is of an incident that is being verified.
func (v *verification) knows(origin string) bool {
	dir, _ := splitOrigin(origin)
	for have := range v.logs {
		if d, _ := splitOrigin(have); d == dir {
			return true
		}
	}
	return false
}

// meet holds one head against the chain.
func (l *verified) meet(h keptHead) error {
	p := l.parser
	at := func(record int64, format string, args ...any) error {
		e := &IntegrityError{File: l.result.File, Offset: p.offset, Line: p.line + 1, What: fmt.Sprintf(format, args...)}
		if record < int64(len(p.offsets)) {
			e.Offset, e.Line = p.offsets[record], int(record)*2+1
		}
		return e
	}
	size := int64(len(p.roots))
	if h.Size < 0 || h.Size > size {
		return at(size, "it ends after %d entries, and %s names %d: its end was cut off", size, h.by, h.Size)
	}
	root := emptyRoot()
	if h.Size > 0 {
		root = p.roots[h.Size-1]
	}
	if hex.EncodeToString(root[:]) != h.Root {
		return at(max(h.Size-1, 0), "the root at %d entries is not the one that %s names: the log was forked", h.Size, h.by)
	}
	l.result.HeadsMet++
	l.result.HighestHead = max(l.result.HighestHead, h.Size)
	if h.continues {
		l.result.Unclaimed = size - h.Size
	}
	return nil
}

func (v *verification) result() Result {
	r := Result{Files: []FileResult{}, Absent: v.absent}
	slices.SortFunc(v.order, func(a, b *verified) int {
		return cmp.Or(cmp.Compare(a.parser.chain.keyName, b.parser.chain.keyName),
			cmp.Compare(a.parser.start.Segment, b.parser.start.Segment), cmp.Compare(a.result.File, b.result.File))
	})
	for _, log := range v.order {
		r.Files = append(r.Files, log.result)
		r.Entries += log.result.Entries
	}
	return r
}
