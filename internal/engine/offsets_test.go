package engine_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/degradedmode/ic/internal/engine"
)

// written is a story and the folder on disk that it has left.
type written struct {
	*story
	files map[string][]byte
	names []string // the generations, oldest first
	lines []said
	sizes []size // of the newest generation, after each line
}

type size struct {
	name  string
	bytes int
}

// writeStory lets a host live through the first part on a real folder.
func writeStory(t *testing.T) *written {
	dir := t.TempDir()
	w := &written{files: map[string][]byte{}}
	w.story = newStory(t, dir, func(line string) {
		w.lines = append(w.lines, heard(t, line))
		newest := slices.Max(stateFiles(t, dir))
		info, err := os.Stat(newest)
		if err != nil {
			t.Fatal(err)
		}
		w.sizes = append(w.sizes, size{filepath.Base(newest), int(info.Size())})
	})
	w.first()
	if err := w.folder.Close(); err != nil { // as a kill does
		t.Fatal(err)
	}
	for _, path := range stateFiles(t, dir) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		w.names = append(w.names, filepath.Base(path))
		w.files[filepath.Base(path)] = data
	}
	if len(w.names) != 2 {
		t.Fatalf("the folder holds %v, not two generations", w.names)
	}
	return w
}

func stateFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "state.0*"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	slices.Sort(names)
	return names
}

// with is the folder with other content of one file.
func (w *written) with(t *testing.T, name string, data []byte) engine.Folder {
	files := maps.Clone(w.files)
	files[name] = data
	return put(t, files)
}

// TestAFlippedBitAnywhereForgetsNothing flips one bit of one of the two files of a
// folder: whatever the host has said holds.
func TestAFlippedBitAnywhereForgetsNothing(t *testing.T) {
	w := writeStory(t)
	all := tellsOf(w.lines)
	flipped, bits := 0, 0
	for _, name := range w.names {
		bits += 8 * len(w.files[name])
		first, step := swept(t, 2003)
		for bit := first; bit < 8*len(w.files[name]) && !t.Failed(); bit += step {
			damaged := slices.Clone(w.files[name])
			damaged[bit/8] ^= 1 << (bit % 8)
			w.holdsTo(t, w.with(t, name, damaged), all, nil, engine.StateOK, engine.StateRecovered)
			if flipped++; t.Failed() {
				t.Errorf("with bit %d of byte %d of %s flipped", bit%8, bit/8, name)
			}
		}
	}
	t.Logf("%d of %d single bits flipped, one at a time", flipped, bits)
}

// TestAFileTornAnywhereKeepsWhatItStillSays cuts the newer file of a folder at some
// length: what the host had said by the time the file was as long holds, as does all
// that the older file says. (What it said later was on disk and has been taken away
// again, which no crash does and no host can know.)
func TestAFileTornAnywhereKeepsWhatItStillSays(t *testing.T) {
	w := writeStory(t)
	newest := w.names[1]
	first, step := swept(t, 251)
	torn := 0
	for length := first; length < len(w.files[newest]) && !t.Failed(); length += step {
		known := 0
		for known < len(w.lines) && (w.sizes[known].name != newest || w.sizes[known].bytes <= length) {
			known++
		}
		w.holdsTo(t, w.with(t, newest, w.files[newest][:length]), tellsOf(w.lines[:known]), w.lines[known:], engine.StateOK, engine.StateRecovered)
		if torn++; t.Failed() {
			t.Errorf("with %s cut at %d of %d", newest, length, len(w.files[newest]))
		}
	}
	t.Logf("cut at %d of %d lengths", torn, len(w.files[newest]))

	older := w.names[0]
	for length := first; length < len(w.files[older]) && !t.Failed(); length += step {
		w.holdsTo(t, w.with(t, older, w.files[older][:length]), tellsOf(w.lines), nil, engine.StateOK)
		if t.Failed() {
			t.Errorf("with %s cut at %d", older, length)
		}
	}
}
