package incident

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

// Limits of a pack: far more than a long night writes, far less than a laptop
// holds. Nothing beyond them is read, whatever a pack says about itself.
const (
	maxPackFiles    = 1024
	maxPackBytes    = 128 << 20 // of all logs together
	maxPackManifest = 1 << 20
	maxPackOnDisk   = 64 << 20 // compressed
)

const (
	packManifest = "manifest.json"
	logExtension = ".jsonl"
)

// PackManifest is the first file of a pack: what is in it, byte for byte, and
// where each log stood. It is not signed: every log in it is.
type PackManifest struct {
	V        int             `json:"v"`
	Fleet    string          `json:"fleet"`
	Incident string          `json:"incident"`
	At       time.Time       `json:"at"`
	By       string          `json:"by"`
	Files    []PackFile      `json:"files"` // sorted by name, in the order of the pack
	Heads    []model.LogHead `json:"heads"`
}

// PackFile is one log of the pack.
type PackFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Bench is where packs are made and opened: whose logs, and who is believed.
type Bench struct {
	Realm   directive.Realm
	Fleet   string
	State   string // state folder
	Trusted func(fingerprint string) (person string, ok bool)
}

func (b Bench) verify(heads []model.LogHead, paths ...string) (audit.Result, error) {
	r, err := audit.Verify(audit.VerifyOptions{Realm: b.Realm, Fleet: b.Fleet, Trusted: b.Trusted, Heads: heads}, paths...)
	if err != nil {
		return r, fmt.Errorf("%w: %w", ErrIntegrity, err)
	}
	return r, nil
}

// Pack writes the logs of an incident into one file for another machine: every
// complete record of every session, and nothing else of the state folder. What
// does not verify here is not handed over.
func (b Bench) Pack(out io.Writer, incident, by string, at time.Time) (PackManifest, error) {
	m := PackManifest{V: 1, Fleet: b.Fleet, Incident: incident, At: at.UTC().Truncate(time.Second), By: by, Files: []PackFile{}}
	if !directive.Name(incident) {
		return m, fmt.Errorf("pack: %q is not the name of an incident", incident)
	}
	logs, err := logsIn(audit.Folder(b.State, incident))
	if err != nil {
		return m, err
	}
	if len(logs) == 0 {
		return m, fmt.Errorf("%w: there is no log of incident %q here", ErrNeeds, incident)
	}
	// A session may be writing: what is verified is what was read, once.
	stage, err := newStage(b.State, incident, logs)
	if err != nil {
		return m, err
	}
	defer stage.remove()
	verified, err := b.verify(nil, stage.folder)
	if err != nil {
		return m, err
	}
	for _, f := range verified.Files {
		name := filepath.Base(f.File)
		if f.Torn != nil {
			logs[name] = logs[name][:f.Torn.Offset] // an unfinished write was never relied upon
		}
		if len(logs[name]) == 0 {
			delete(logs, name)
		}
	}
	m.Heads = verified.Heads()
	for _, name := range sortedNames(logs) {
		m.Files = append(m.Files, PackFile{name, int64(len(logs[name])), digest(logs[name])})
	}
	if err := m.check(b.Fleet); err != nil {
		return m, fmt.Errorf("pack: %w", err)
	}
	return m, m.write(out, logs)
}

// write prints the same bytes for the same logs.
func (m *PackManifest) write(out io.Writer, logs map[string][]byte) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(out)
	archive := tar.NewWriter(packed)
	add := func(name string, data []byte) error {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(data)), Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		_, err := archive.Write(data)
		return err
	}
	err = add(packManifest, append(text, '\n'))
	for _, f := range m.Files {
		err = errors.Join(err, add(m.Incident+"/"+f.Name, logs[f.Name]))
	}
	if err := errors.Join(err, archive.Close(), packed.Close()); err != nil {
		return fmt.Errorf("write the pack: %w", err)
	}
	return nil
}

// check is what has to be true of a manifest before anything it names is read.
func (m *PackManifest) check(fleet string) error {
	var total int64
	for i, f := range m.Files {
		switch {
		case !logName(f.Name):
			return fmt.Errorf("%q is not the name of a session's log", f.Name)
		case i > 0 && f.Name <= m.Files[i-1].Name:
			return fmt.Errorf("%s is not in its place", f.Name)
		case f.Size <= 0 || f.Size > audit.MaxSegment:
			return fmt.Errorf("%s has %d bytes, 1 to %d are possible", f.Name, f.Size, audit.MaxSegment)
		}
		total += f.Size
	}
	switch {
	case m.V != 1:
		return fmt.Errorf("it is of version %d, this software reads 1", m.V)
	case m.Fleet != fleet:
		return fmt.Errorf("it is of fleet %q, this is %q", m.Fleet, fleet)
	case !directive.Name(m.Incident):
		return fmt.Errorf("%q is not the name of an incident", m.Incident)
	case len(m.Files) == 0 || len(m.Files) > maxPackFiles:
		return fmt.Errorf("%d logs, 1 to %d are possible", len(m.Files), maxPackFiles)
	case total > maxPackBytes:
		return fmt.Errorf("logs of %d bytes, at most %d", total, maxPackBytes)
	}
	return nil
}

// logName: <session>.jsonl or <session>.<n>.jsonl, and no path.
func logName(name string) bool {
	base, ok := strings.CutSuffix(name, logExtension)
	return ok && directive.Name(base)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// logsIn reads the logs of a folder. A folder that is not there has none; one
// that is a link somewhere else is refused, and so is a log that is.
func logsIn(folder string) (map[string][]byte, error) {
	out := map[string][]byte{}
	info, err := os.Lstat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the logs: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is not a folder", ErrIntegrity, folder)
	}
	found, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the logs: %w", err)
	}
	for _, f := range found {
		if !strings.HasSuffix(f.Name(), logExtension) {
			continue
		}
		path := filepath.Join(folder, f.Name())
		info, err := f.Info()
		switch {
		case err != nil:
			return nil, fmt.Errorf("read the logs: %w", err)
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%w: %s is not a file", ErrIntegrity, path)
		case info.Size() > audit.MaxSegment:
			return nil, fmt.Errorf("%w: %s has %d bytes, which no session writes", ErrIntegrity, path, info.Size())
		}
		if out[f.Name()], err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("read the logs: %w", err)
		}
	}
	return out, nil
}

// stage is a folder beside the incidents in which logs can be verified before
// they count: a state folder of its own, which nobody looks into.
type stage struct{ root, folder string }

func newStage(state, incident string, logs map[string][]byte) (*stage, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("make room in the state folder: %w", err)
	}
	root, err := os.MkdirTemp(state, "pack-")
	if err != nil {
		return nil, fmt.Errorf("make room in the state folder: %w", err)
	}
	s := &stage{root, audit.Folder(root, incident)}
	err = os.MkdirAll(s.folder, 0o700)
	for _, name := range sortedNames(logs) {
		if err == nil {
			err = writeSynced(filepath.Join(s.folder, name), logs[name])
		}
	}
	if err != nil {
		s.remove()
		return nil, fmt.Errorf("make room in the state folder: %w", err)
	}
	return s, nil
}

// remove leaves nothing behind that counts for anything.
func (s *stage) remove() { _ = os.RemoveAll(s.root) }

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(data))
	return errors.Join(err, f.Sync(), f.Close())
}

// headOf is where a log of the pack stood.
func (m *PackManifest) headOf(file string) (model.LogHead, bool) {
	origin := m.Fleet + "/" + m.Incident + "/" + strings.TrimSuffix(file, logExtension)
	at := slices.IndexFunc(m.Heads, func(h model.LogHead) bool { return h.Origin == origin })
	if at < 0 {
		return model.LogHead{}, false
	}
	return m.Heads[at], true
}
