package incident

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/untrusted"
)

// maxSaid bounds what an error quotes of a pack.
const maxSaid = 300

// What an unpack does with one log.
const (
	LogNew      = "new"
	LogExtended = "extended" // ours was the beginning of it
	LogSame     = "same"
	LogAhead    = "ahead" // it is the beginning of ours, which stays
)

// Unpacked says what a pack has brought.
type Unpacked struct {
	Manifest PackManifest      `json:"manifest"`
	Logs     map[string]string `json:"logs"` // by file: new, extended, same, ahead
	State    audit.State       `json:"-"`
}

// Unpack takes the logs of a pack into the state folder. All of it is read,
// bounded, and verified together with what is here before the first file is
// touched; then each log is new, or the continuation of ours, or what we have
// already. A log that is anything else is a fork or a forgery: ErrIntegrity, and
// nothing is changed.
func (b Bench) Unpack(in io.Reader) (Unpacked, error) {
	m, logs, err := readPack(in, b.Fleet)
	out := Unpacked{Manifest: m, Logs: map[string]string{}}
	if m.Fleet != "" && m.Fleet != b.Fleet {
		return out, fmt.Errorf("%w: the pack is of fleet %q, this is %q", ErrDenied, untrusted.Text(m.Fleet, maxSaid), b.Fleet)
	}
	if err != nil {
		return out, fmt.Errorf("%w: the pack is not whole: %s", ErrIntegrity, untrusted.Text(err.Error(), maxSaid))
	}
	folder := audit.Folder(b.State, m.Incident)
	ours, err := logsIn(folder)
	if err != nil {
		return out, err
	}
	fresh := map[string][]byte{}
	for name, data := range logs {
		have, here := ours[name]
		switch {
		case !here:
			out.Logs[name], fresh[name] = LogNew, data
		case bytes.Equal(have, data):
			out.Logs[name] = LogSame
		case bytes.HasPrefix(data, have):
			out.Logs[name], fresh[name] = LogExtended, data
		case bytes.HasPrefix(have, data):
			out.Logs[name] = LogAhead
		default:
			return out, fmt.Errorf("%w: %s here and in the pack differ in the middle: one of them is not what its session wrote; nothing was changed", ErrIntegrity, name)
		}
	}
	stage, err := newStage(b.State, m.Incident, fresh)
	if err != nil {
		return out, err
	}
	defer stage.remove()
	if err := b.together(&m, stage, folder, ours, fresh); err != nil {
		return out, err
	}
	// What cannot be verified was refused; what it says is read here once more.
	sessions, _ := audit.Read(m.Incident, stage.root, b.State)
	if out.State = audit.Fold(sessions); out.State.IsOpen() {
		if err := b.onlyOpen(m.Incident); err != nil {
			return out, err
		}
	}
	if err := stage.moveInto(folder, out.Logs); err != nil {
		return out, err
	}
	sessions, err = audit.Read(m.Incident, b.State)
	out.State = audit.Fold(sessions)
	return out, err
}

// readPack reads a pack to its end. Only the files that the manifest names are
// in it, in its order, with its sizes and digests.
func readPack(in io.Reader, fleet string) (m PackManifest, logs map[string][]byte, err error) {
	buffered := bufio.NewReader(io.LimitReader(in, maxPackOnDisk))
	packed, err := gzip.NewReader(buffered)
	if err != nil {
		return m, nil, err
	}
	packed.Multistream(false)
	archive := tar.NewReader(io.LimitReader(packed, maxPackBytes+maxPackManifest+(maxPackFiles+4)*1024))
	text, err := next(archive, packManifest, maxPackManifest)
	if err != nil {
		return m, nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return m, nil, fmt.Errorf("%s: %w", packManifest, err)
	}
	if err := m.check(fleet); err != nil {
		return m, nil, err
	}
	logs = map[string][]byte{}
	for _, f := range m.Files {
		data, err := next(archive, m.Incident+"/"+f.Name, f.Size)
		if err != nil {
			return m, nil, err
		}
		if int64(len(data)) != f.Size || digest(data) != f.SHA256 {
			return m, nil, fmt.Errorf("%s is not what the manifest names", f.Name)
		}
		logs[f.Name] = data
	}
	switch _, err := archive.Next(); {
	case err == nil:
		return m, nil, errors.New("it holds more than its manifest names")
	case !errors.Is(err, io.EOF):
		return m, nil, err
	}
	return m, logs, ended(packed, buffered)
}

// next reads one file of the archive, which has to be that one.
func next(archive *tar.Reader, name string, limit int64) ([]byte, error) {
	h, err := archive.Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("it ends where %s should follow", name)
	case err != nil:
		return nil, err
	case h.Typeflag != tar.TypeReg:
		return nil, fmt.Errorf("%q is not a file", h.Name)
	case h.Name != name:
		return nil, fmt.Errorf("%q stands where %s should", h.Name, name)
	case h.Size > limit:
		return nil, fmt.Errorf("%s has %d bytes, at most %d", name, h.Size, limit)
	}
	return io.ReadAll(archive)
}

// ended wants nothing but padding in the rest, and the checksum of the whole.
func ended(packed io.Reader, raw io.ByteReader) error {
	rest, err := io.ReadAll(io.LimitReader(packed, maxPackManifest))
	if err != nil {
		return err
	}
	if len(bytes.Trim(rest, "\x00")) > 0 || len(rest) == maxPackManifest {
		return errors.New("something follows its files")
	}
	if _, err := raw.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.New("something follows it")
	}
	return nil
}

// together verifies what the folder would hold: the logs of the pack, and ours
// beside them. A head that one of them names in another has to be there.
func (b Bench) together(m *PackManifest, s *stage, folder string, ours, fresh map[string][]byte) error {
	var paths []string
	for name := range fresh {
		paths = append(paths, filepath.Join(s.folder, name))
	}
	for name := range ours {
		if _, replaced := fresh[name]; !replaced {
			paths = append(paths, filepath.Join(folder, name))
		}
	}
	for _, f := range m.Files {
		if _, known := m.headOf(f.Name); !known {
			return fmt.Errorf("%w: the pack names no head of %s", ErrIntegrity, f.Name)
		}
	}
	_, err := b.verify(m.Heads, paths...)
	return err
}

// onlyOpen refuses a second open incident: a night has one log.
func (b Bench) onlyOpen(incident string) error {
	all, err := audit.List(b.State)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].ID != incident && all[i].State.IsOpen() {
			return fmt.Errorf("%w: incident %s is open here: close it, or unpack into another state folder (--state)", ErrNeeds, all[i].ID)
		}
	}
	return nil
}

// moveInto puts the staged logs in their places. A new one never takes the place
// of a file that has appeared meanwhile, and one that is being written is left
// alone.
func (s *stage) moveInto(folder string, what map[string]string) error {
	on := audit.OS{}
	for _, name := range sortedNames(what) {
		if what[name] != LogExtended {
			continue
		}
		if held, err := audit.Held(filepath.Join(folder, name)); err != nil || held {
			return errors.Join(fmt.Errorf("%w: %s is being written on this machine, and the pack goes on where it stands; nothing was changed", ErrIntegrity, name), err)
		}
	}
	for _, dir := range []string{filepath.Dir(folder), folder} {
		if _, err := on.Mkdir(dir); err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
	}
	for _, name := range sortedNames(what) {
		from, to := filepath.Join(s.folder, name), filepath.Join(folder, name)
		var err error
		switch what[name] {
		case LogNew:
			err = os.Link(from, to)
		case LogExtended:
			err = os.Rename(from, to)
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w: unpacking again goes on where this stopped", name, err)
		}
	}
	return errors.Join(on.SyncDir(folder), on.SyncDir(filepath.Dir(folder)))
}
