package engine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	statePrefix = "state."
	temporary   = "state.tmp"
	foreignEnd  = ".foreign" // a file of another host or fleet, kept for a person to look at
	damagedEnd  = ".damaged" // a file that does not say whose it is

	generationDigits = 6
	keptGenerations  = 2       // the current one and the one to fall back to
	rewriteAfter     = 1 << 18 // bytes appended, at least, before a new generation is written
	writeAtOnce      = 1 << 16 // bytes of a generation that are in memory while it is written
	maxNotes         = 16      // sentences about what was found
)

// Condition is what was found in a state folder.
type Condition string

// Conditions, also shown in a report.
const (
	StateOK           Condition = "ok"
	StateRecovered    Condition = "recovered"     // something was lost; what is left is in force
	StateSafeDefaults Condition = "safe-defaults" // nothing could be used: no shed is known, nothing is open
	StateForeign      Condition = "foreign"       // the folder was another host's; as safe-defaults
	StateVolatile     Condition = "volatile"      // there is no folder
	StateUnpersisted  Condition = "unpersisted"   // something in force is not on disk yet
)

// identity says whose folder it is.
type identity struct{ fleet, host string }

// store appends records to the current generation of a folder. Every start and
// every rewrite begins a new generation; nothing is ever appended to an old one.
type store struct {
	folder     Folder
	who        identity
	id         string // of the folder, made once
	generation int
	file       File // nil: sealed, the next write is a rewrite
	n          int  // records in the current generation
	size       int  // bytes of the current generation as it was begun
	appended   int  // bytes since then
}

// loaded is what a folder said at the start.
type loaded struct {
	records   []record // of all generations, oldest first
	condition Condition
	notes     []string // one sentence for each thing that was not as it should be
	lost      bool     // something may be missing that nobody can give back
	read      bool     // a generation of this host could be used
}

// load reads every generation. The facts are joined, since a set that only grows
// cannot be rolled back by an old file; but only what is wrong with the newest
// one can have cost anything. Foreign and unreadable files stay in the folder
// under another name.
func (s *store) load() loaded {
	out := loaded{condition: StateOK}
	names, err := s.folder.Names()
	if err != nil {
		out.note("the state folder cannot be listed: %v", err)
		out.condition, out.lost = StateSafeDefaults, true
		return out
	}
	own := 0
	for _, name := range generations(names) {
		s.generation = generationOf(name)
		var records []record
		records, out.condition, out.lost = s.read(name, &out)
		switch out.condition {
		case StateForeign:
			s.setAside(name, foreignEnd, &out)
		case StateSafeDefaults:
			s.setAside(name, damagedEnd, &out)
		default:
			own++
			out.records = append(out.records, records...)
		}
	}
	if out.read = own > 0; out.read && out.condition != StateOK {
		out.condition = StateRecovered
	}
	return out
}

// read returns the records of one file, what became of it, and whether anything
// is lost with it that nobody can give back.
func (s *store) read(name string, out *loaded) ([]record, Condition, bool) {
	data, err := s.folder.Read(name)
	if err != nil {
		out.note("%s cannot be read: %v", name, err)
		return nil, StateSafeDefaults, true
	}
	found := scan(data)
	if len(found.records) == 0 || found.records[0].Type != recordFolder || found.records[0].V != formatVersion {
		out.note("%s does not say whose it is", name)
		return nil, StateSafeDefaults, true
	}
	head := found.records[0]
	if head.Fleet != s.who.fleet || head.Host != s.who.host {
		out.note("%s belongs to another host (%q of fleet %q)", name, head.Host, head.Fleet)
		return nil, StateForeign, true
	}
	s.id = head.Folder
	if found.damaged+found.lost == 0 {
		return found.records[1:], StateOK, false
	}
	out.note("%s: %d places are damaged, %d of its records are lost", name, found.damaged, found.lost)
	return found.records[1:], StateRecovered, found.lost > 0
}

func (l *loaded) note(format string, args ...any) {
	if len(l.notes) == maxNotes {
		return // what is wrong is known by now
	}
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

func (s *store) setAside(name, end string, out *loaded) {
	if err := s.folder.Rename(name, name+end); err != nil {
		out.note("%s cannot be set aside: %v", name, err)
	}
}

// generations lists the state files, oldest first.
func generations(names []string) []string {
	var out []string
	for _, name := range names {
		if generationOf(name) > 0 {
			out = append(out, name)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return generationOf(a) - generationOf(b) })
	return out
}

// generationOf is the number in the name of a state file, 0 for other names.
func generationOf(name string) int {
	digits, ok := strings.CutPrefix(name, statePrefix)
	if n, err := strconv.ParseUint(digits, 10, 31); ok && err == nil && nameOf(int(n)) == name {
		return int(n)
	}
	return 0
}

func nameOf(generation int) string {
	return fmt.Sprintf("%s%0*d", statePrefix, generationDigits, generation)
}

var errSealed = errors.New("the last write has failed; a new generation has to be written first")

// append makes records durable. After an error nothing is known about them and
// the file is never written again: a second fsync would report a success that is
// none.
func (s *store) append(records []record) error {
	if s.file == nil {
		return errSealed
	}
	data, err := s.encode(nil, records)
	if err != nil {
		return err
	}
	if err := write(s.file, data); err != nil {
		s.seal()
		return fmt.Errorf("append to %s: %w", nameOf(s.generation), err)
	}
	s.appended += len(data)
	return nil
}

// rewrite begins a new generation that holds exactly records.
func (s *store) rewrite(records []record) error {
	s.seal()
	s.n = 0
	first := record{Type: recordFolder, V: formatVersion, Fleet: s.who.fleet, Host: s.who.host, Folder: s.id}
	s.generation++
	file, err := s.begin(first, records)
	if err != nil {
		return fmt.Errorf("write %s: %w", nameOf(s.generation), err)
	}
	s.file, s.appended = file, 0
	s.forget()
	return nil
}

// begin writes a whole file under its final name and leaves it open.
func (s *store) begin(first record, records []record) (File, error) {
	file, err := s.folder.Create(temporary)
	if err != nil {
		return nil, err
	}
	err = s.fill(file, first, records)
	if err == nil {
		err = s.folder.Rename(temporary, nameOf(s.generation))
	}
	if err == nil {
		err = durable(s.folder)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// fill writes the records of a whole generation and makes them durable. It has few
// of them in memory at a time.
func (s *store) fill(file File, first record, records []record) error {
	data, err := s.encode(nil, []record{first})
	if err != nil {
		return err
	}
	s.size = 0
	for i := range records {
		if data, err = s.encode(data, records[i:i+1]); err != nil {
			return err
		}
		if len(data) < writeAtOnce {
			continue
		}
		if _, err := file.Write(data); err != nil {
			return err
		}
		s.size += len(data)
		data = data[:0]
	}
	s.size += len(data)
	return write(file, data)
}

// forget removes all but the newest generations. What cannot be removed now is
// tried again after the next rewrite.
func (s *store) forget() {
	names, err := s.folder.Names()
	if err != nil {
		return
	}
	old := generations(names)
	for _, name := range old[:max(0, len(old)-keptGenerations)] {
		if s.folder.Remove(name) != nil {
			return
		}
	}
}

// encode appends records to out, numbered on.
func (s *store) encode(out []byte, records []record) ([]byte, error) {
	n := s.n
	for _, r := range records {
		n++
		r.N = n
		var err error
		if out, err = encode(out, r); err != nil {
			return nil, err
		}
	}
	s.n = n
	return out, nil
}

func write(file File, data []byte) error {
	if _, err := file.Write(data); err != nil {
		return err
	}
	return durable(file)
}

// grown reports whether the current generation is worth a rewrite: not before it
// has doubled, so that a host that holds much does not write it all for every little.
func (s *store) grown() bool { return s.appended > max(rewriteAfter, s.size) }

func (s *store) seal() {
	if s.file != nil {
		// What was acknowledged is synced already; the rest must not be trusted.
		_ = s.file.Close()
		s.file = nil
	}
}

func (s *store) close() error {
	s.seal()
	return s.folder.Close()
}
