package incident

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"golang.org/x/sys/unix"
)

// packedFile is one file of an archive, for packs that nobody of ours has made.
type packedFile struct {
	name, link string
	kind       byte
	data       []byte
}

func contents(t *testing.T, pack []byte) []packedFile {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(pack))
	if err != nil {
		t.Fatal(err)
	}
	var out []packedFile
	for r := tar.NewReader(zr); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, packedFile{name: h.Name, kind: tar.TypeReg, data: data})
	}
}

func repacked(t *testing.T, files []packedFile) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	w := tar.NewWriter(zw)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Linkname: f.link, Typeflag: f.kind, Size: int64(len(f.data)), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// lied is a pack whose manifest says what fits the change.
func lied(t *testing.T, pack []byte, change func(m *PackManifest, files []packedFile) []packedFile) []byte {
	t.Helper()
	files := contents(t, pack)
	var m PackManifest
	if err := json.Unmarshal(files[0].data, &m); err != nil {
		t.Fatal(err)
	}
	files = change(&m, files)
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	files[0].data = raw
	return repacked(t, files)
}

func resum(m *PackManifest, files []packedFile) {
	for i := range m.Files {
		sum := sha256.Sum256(files[i+1].data)
		m.Files[i].Size, m.Files[i].SHA256 = int64(len(files[i+1].data)), hex.EncodeToString(sum[:])
	}
}

// badPack is a pack that must be refused, and what is said about it.
type badPack struct {
	pack []byte
	want string
}

// changesNothing: whatever is wrong with a pack, the state folder stays as it was.
func (s *shop) changesNothing(t *testing.T, packs map[string]badPack) {
	for name, c := range packs {
		t.Run(name, func(t *testing.T) {
			there := t.TempDir()
			got, err := s.bench(there).Unpack(bytes.NewReader(c.pack))
			want := ErrIntegrity
			if name == "another fleet" {
				want = ErrDenied
			}
			if !errors.Is(err, want) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %v with %q", err, want, c.want)
			}
			if left := tree(t, there); len(left) != 0 || got.State.IsOpen() {
				t.Errorf("it has left %v", slices.Sorted(maps.Keys(left)))
			}
		})
	}
}

// TestAFileThatIsNoWholePackChangesNothing, and neither does one that holds
// anything but files in their places.
func TestAFileThatIsNoWholePackChangesNothing(t *testing.T) {
	s, _, incident := night(t)
	good := s.pack(s.state, incident)
	files := contents(t, good)
	swap := func(at int, f packedFile) []byte {
		changed := slices.Clone(files)
		changed[at] = f
		return repacked(t, changed)
	}
	log := files[1]
	flipped := bytes.Clone(log.data)
	flipped[len(flipped)/2] ^= 1
	s.changesNothing(t, map[string]badPack{
		"empty":               {nil, "not whole"},
		"not a pack":          {[]byte("icpack"), "not whole"},
		"cut in the middle":   {good[:len(good)/2], "not whole"},
		"cut at the end":      {good[:len(good)-1], "not whole"},
		"something follows":   {append(bytes.Clone(good), 0), "something follows"},
		"no files":            {repacked(t, nil), "ends where manifest.json should follow"},
		"no logs":             {repacked(t, files[:1]), "ends where"},
		"one file more":       {repacked(t, append(slices.Clone(files), packedFile{name: "x", kind: tar.TypeReg})), "more than its manifest names"},
		"one bit flipped":     {swap(1, packedFile{log.name, "", tar.TypeReg, flipped}), "not what the manifest names"},
		"a byte less":         {swap(1, packedFile{log.name, "", tar.TypeReg, log.data[1:]}), "not what the manifest names"},
		"a byte more":         {swap(1, packedFile{log.name, "", tar.TypeReg, append(bytes.Clone(log.data), 'x')}), "at most"},
		"a link":              {swap(1, packedFile{log.name, "/etc/passwd", tar.TypeSymlink, nil}), "is not a file"},
		"a hard link":         {swap(1, packedFile{log.name, packManifest, tar.TypeLink, nil}), "is not a file"},
		"a folder":            {swap(1, packedFile{incident + "/", "", tar.TypeDir, nil}), "is not a file"},
		"a path upwards":      {swap(1, packedFile{"../" + log.name, "", tar.TypeReg, log.data}), "stands where"},
		"an absolute path":    {swap(1, packedFile{"/" + log.name, "", tar.TypeReg, log.data}), "stands where"},
		"a manifest in prose": {swap(0, packedFile{packManifest, "", tar.TypeReg, []byte("hello")}), "not whole"},
		"a manifest of zeros": {swap(0, packedFile{packManifest, "", tar.TypeReg, make([]byte, 8<<20)}), "at most"},
		"a field more":        {swap(0, packedFile{packManifest, "", tar.TypeReg, append([]byte(`{"king":1,`), files[0].data[1:]...)}), "unknown field"},
	})
}

// TestAManifestThatLiesChangesNothing: it is not signed, so nothing is believed
// that the logs do not say themselves.
func TestAManifestThatLiesChangesNothing(t *testing.T) {
	s, _, incident := night(t)
	good := s.pack(s.state, incident)
	type change = func(m *PackManifest, f []packedFile) []packedFile
	lie := func(c change) []byte { return lied(t, good, c) }
	bomb := make([]byte, 8<<20)
	s.changesNothing(t, map[string]badPack{
		"another version": {lie(func(m *PackManifest, f []packedFile) []packedFile { m.V = 2; return f }), "of version 2"},
		"another fleet":   {lie(func(m *PackManifest, f []packedFile) []packedFile { m.Fleet = "bank"; return f }), `of fleet "bank"`},
		"an incident that is a path": {lie(func(m *PackManifest, f []packedFile) []packedFile {
			m.Incident, f[1].name = "../x", "../x/"+m.Files[0].Name
			return f
		}), "not the name of an incident"},
		"a log that is a path": {lie(func(m *PackManifest, f []packedFile) []packedFile {
			m.Files[0].Name, f[1].name = "../x.jsonl", m.Incident+"/../x.jsonl"
			return f
		}), "not the name of a session's log"},
		"no log at all": {lie(func(m *PackManifest, f []packedFile) []packedFile { m.Files = nil; return f[:1] }), "0 logs"},
		"one log twice": {lie(func(m *PackManifest, f []packedFile) []packedFile {
			m.Files = append(m.Files, m.Files[0])
			return append(f, f[1])
		}), "not in its place"},
		"a log of a terabyte": {lie(func(m *PackManifest, f []packedFile) []packedFile { m.Files[0].Size = 1 << 40; return f }), "bytes, 1 to"},
		"logs of too many bytes": {lie(func(m *PackManifest, f []packedFile) []packedFile {
			m.Files = nil
			for _, n := range []string{"a", "b", "c"} {
				m.Files = append(m.Files, PackFile{Name: n + ".jsonl", Size: audit.MaxSegment})
			}
			return f
		}), "bytes, at most"},
		"nothing but zeros": {lie(func(m *PackManifest, f []packedFile) []packedFile { f[1].data = bomb; resum(m, f); return f }), "integrity"},
		"no head":           {lie(func(m *PackManifest, f []packedFile) []packedFile { m.Heads = nil; return f }), "names no head"},
		"another head": {lie(func(m *PackManifest, f []packedFile) []packedFile {
			m.Heads[0].Root = strings.Repeat("0", 64)
			return f
		}), "forked"},
		"the last record cut off": {lie(func(m *PackManifest, f []packedFile) []packedFile {
			lines := bytes.SplitAfter(f[1].data, []byte("\n"))
			f[1].data = bytes.Join(lines[:len(lines)-3], nil)
			resum(m, f)
			return f
		}), "its end was cut off"},
		"a word changed and summed up again": {lie(func(m *PackManifest, f []packedFile) []packedFile {
			f[1].data = bytes.Replace(f[1].data, []byte("risk is down"), []byte("risk is fine"), 1)
			resum(m, f)
			return f
		}), "integrity"},
		"of somebody unknown": {foreignPack(t), "integrity"},
	})
}

// foreignPack is whole, and its session was certified by a key that is nobody's.
func foreignPack(t *testing.T) []byte {
	other := anotherShop(t)
	other.keys["ines"] = policytest.Key("mallory")
	d := other.desk("ines")
	other.command(d, Open, "")
	b := other.bench(other.state)
	b.Trusted = func(string) (string, bool) { return "ines", true }
	var out bytes.Buffer
	if _, err := b.Pack(&out, d.Snapshot().World.Incident.ID, "ines", other.clock.at); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestAPackNeverOverwritesALog that says something else than it.
func TestAPackNeverOverwritesALog(t *testing.T) {
	s, d, incident := night(t)
	good := s.pack(s.state, incident)
	there := t.TempDir()
	s.unpack(there, good)
	path := logFile(t, there, incident)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, ours := range map[string][]byte{
		"one bit differs":  append(bytes.Clone(whole[:len(whole)-2]), whole[len(whole)-2]^1, '\n'),
		"another log":      []byte("something else\n"),
		"it began alike":   append(bytes.Clone(whole[:len(whole)/2]), "and went on differently\n"...),
		"ours has garbage": append(bytes.Clone(whole), "garbage"...),
	} {
		if err := os.WriteFile(path, ours, 0o600); err != nil {
			t.Fatal(err)
		}
		before := tree(t, there)
		if _, err := s.bench(there).Unpack(bytes.NewReader(good)); !errors.Is(err, ErrIntegrity) {
			t.Errorf("%s: %v", name, err)
		}
		if !maps.Equal(before, tree(t, there)) {
			t.Errorf("%s: something was changed", name)
		}
	}

	// A beginning of it is continued, unless somebody writes there.
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	held := hold(t, path)
	if _, err := s.bench(there).Unpack(bytes.NewReader(good)); !errors.Is(err, ErrIntegrity) || !strings.Contains(err.Error(), "is being written") {
		t.Errorf("%v", err)
	}
	held.Close()
	if got := s.unpack(there, good); got.Logs[filepath.Base(path)] != LogExtended {
		t.Errorf("%v", got.Logs)
	}
	if now, _ := os.ReadFile(path); !bytes.Equal(now, whole) {
		t.Error("it was not continued")
	}

	// A link in the place of a log or of the folder leads nowhere.
	if err := errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.bench(there).Unpack(bytes.NewReader(good)); !errors.Is(err, ErrIntegrity) || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("%v", err)
	}
	folder := filepath.Dir(path)
	if err := errors.Join(os.RemoveAll(folder), os.Symlink(t.TempDir(), folder)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.bench(there).Unpack(bytes.NewReader(good)); !errors.Is(err, ErrIntegrity) || !strings.Contains(err.Error(), "is not a folder") {
		t.Errorf("%v", err)
	}
	_ = d
}

func TestASecondOpenIncidentIsNotLetIn(t *testing.T) {
	s, d, incident := night(t)
	pack := s.pack(s.state, incident)
	there := t.TempDir()
	own := s.desk("dev", func(o *Options) { o.State, o.Board, o.Carriers = there, nil, nil })
	s.command(own, Open, "")
	before := tree(t, there)
	if _, err := s.bench(there).Unpack(bytes.NewReader(pack)); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "is open here") {
		t.Errorf("%v", err)
	}
	if !maps.Equal(before, tree(t, there)) {
		t.Error("something was changed")
	}
	// One that is over is only kept.
	s.pass(4 * time.Hour)
	s.command(d, Take, "")
	tier, _ := s.bundle.TierOf(1)
	for range tier.Ramp {
		s.must(d, decisions.Ask{Right: "recover", Tier: decisions.NextTier, Reason: "calm"})
		s.pass(tier.RampStep.Std())
	}
	s.command(d, CloseIt, "")
	if got := s.unpack(there, s.pack(s.state, incident)); got.State.IsOpen() {
		t.Error("it is open")
	}
}

// hold locks a log as its writer does.
func hold(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return f
}
