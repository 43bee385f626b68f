package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/model"
)

// Session is the log of one segment, read back. Its form, order and tree hold;
// whether its signatures do is for Verify to say.
type Session struct {
	File    string
	Origin  string // "" if not even the first entry is complete
	Name    string // <fleet>/<incident>/<session>, the same in every segment
	Segment int
	Person  string
	Sealed  *Sealed // what this segment continues
	Entries []Entry
	Head    model.LogHead
	Torn    *Torn           // an unfinished write at the end
	Damage  *IntegrityError // where reading had to stop
}

// Reader follows the logs of one incident. Each Poll reads only what is new.
type Reader struct {
	folders []string
	files   map[string]*followed
}

// followed is a file and how far it has been read.
type followed struct {
	parser *parser
	info   os.FileInfo
	tail   []byte // read, but not a whole record yet
	torn   *Torn
	damage *IntegrityError
}

// NewReader follows incident in one or more state folders. A folder that is not
// there is empty: the second one is made only in need.
func NewReader(incident string, states ...string) *Reader {
	r := &Reader{files: map[string]*followed{}}
	for _, state := range states {
		r.folders = append(r.folders, Folder(state, incident))
	}
	return r
}

// Read reads all logs of an incident. What is readable is returned also if a file
// is damaged; the error then joins one *IntegrityError for each such file.
func Read(incident string, states ...string) ([]Session, error) {
	r := NewReader(incident, states...)
	_, err := r.Poll()
	return r.Sessions(), err
}

// Poll reads what was appended since the last one and reports whether there was
// anything. Damage is reported by every Poll and stays in its session.
func (r *Reader) Poll() (changed bool, err error) {
	var failed []error
	for _, folder := range r.folders {
		files, err := logFiles(folder)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for _, file := range files {
			if r.files[file] == nil {
				r.files[file] = &followed{parser: newParser(file, false)}
			}
		}
	}
	for _, file := range sortedKeys(r.files) {
		f := r.files[file]
		grown, err := f.advance(file)
		if err != nil {
			failed = append(failed, err)
		}
		if f.damage != nil {
			failed = append(failed, f.damage)
		}
		changed = changed || grown
	}
	return changed, errors.Join(failed...)
}

// Sessions returns what has been read, by session and segment. The entries
// are shared with the reader and must not be changed.
func (r *Reader) Sessions() []Session {
	out := make([]Session, 0, len(r.files))
	for _, file := range sortedKeys(r.files) {
		f := r.files[file]
		p := f.parser
		s := Session{
			File: file, Origin: p.chain.origin, Name: p.chain.keyName, Segment: p.start.Segment,
			Person: p.statement.Person, Sealed: p.start.Sealed, Entries: slices.Clip(p.entries),
			Torn: f.torn, Damage: f.damage,
		}
		if s.Origin != "" {
			s.Head = p.head()
		}
		out = append(out, s)
	}
	sortSessions(out)
	return out
}

func sortSessions(sessions []Session) {
	slices.SortFunc(sessions, func(a, b Session) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.File, b.File))
	})
}

// advance reads on from where the file was left.
func (f *followed) advance(file string) (grown bool, err error) {
	if f.damage != nil {
		return false, nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return false, fmt.Errorf("read the log: %w", err)
	}
	have := f.parser.offset + int64(len(f.tail))
	if f.info != nil && (!os.SameFile(f.info, info) || info.Size() < have) {
		f.damage = f.parser.broken(1, "the file was cut or replaced while it was being followed")
		return true, nil
	}
	f.info = info
	if info.Size() == have {
		return false, nil
	}
	fresh, err := readFrom(file, have)
	if err != nil {
		return false, err
	}
	data := append(slices.Clone(f.tail), fresh...)
	used, broken := f.parser.feed(data)
	f.tail = data[used:]
	f.torn = nil
	if broken == nil {
		f.torn, broken = f.parser.rest(f.tail)
	}
	f.damage = broken
	return true, nil
}

// readFrom reads a log from offset on.
func readFrom(file string, offset int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, offset, MaxSegment+1-offset))
	if err != nil {
		return nil, fmt.Errorf("read the log %s: %w", file, err)
	}
	if offset+int64(len(data)) > MaxSegment {
		return nil, fmt.Errorf("read the log %s: more than %d bytes, which no writer makes", file, MaxSegment)
	}
	return data, nil
}

// logFiles lists the logs in a folder. A folder that is not there has none.
func logFiles(folder string) ([]string, error) {
	found, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the logs: %w", err)
	}
	var out []string
	for _, f := range found {
		if strings.HasSuffix(f.Name(), extension) {
			out = append(out, filepath.Join(folder, f.Name()))
		}
	}
	return out, nil
}

// Summary is one incident in a list.
type Summary struct {
	ID    string
	State State
	Err   error // damage, or an unreadable folder; State is what could be read
	// Reader has read what State is made of, and goes on from there.
	Reader *Reader
}

// List returns the incidents of one or more state folders by name.
func List(states ...string) ([]Summary, error) {
	names := map[string]bool{}
	for _, state := range states {
		found, err := os.ReadDir(filepath.Dir(Folder(state, "any")))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list the incidents: %w", err)
		}
		for _, f := range found {
			names[f.Name()] = names[f.Name()] || f.IsDir()
		}
	}
	var out []Summary
	for _, name := range sortedKeys(names) {
		if !names[name] {
			continue
		}
		r := NewReader(name, states...)
		_, err := r.Poll()
		out = append(out, Summary{ID: name, State: Fold(r.Sessions()), Err: err, Reader: r})
	}
	return out, nil
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}
