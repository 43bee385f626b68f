package audit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/sshsig"
)

// small writes a log of a few entries and returns its bytes, where each record
// begins, and its head.
func small(t testing.TB) (data []byte, begins []int64, head model.LogHead) {
	t.Helper()
	state := t.TempDir()
	w := open(t, state, options(t, "laptop"))
	mustAppend(t, w, IncidentOpen{Title: "risk is down"}, Note{Text: "hello"})
	head = w.Head()
	data, err := os.ReadFile(filepath.Join(Folder(state, incident), "laptop.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	for i, line := range bytes.SplitAfter(data, []byte("\n")) {
		if i%2 == 0 && len(line) > 0 {
			begins = append(begins, at)
		}
		at += int64(len(line))
	}
	return data, begins, head
}

// placedAs writes data as the log of a session and returns its path.
func placedAs(t testing.TB, data []byte, session string) string {
	t.Helper()
	folder := Folder(t.TempDir(), incident)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, session+".jsonl")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func rewrite(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// overwrite changes a file of the same length or a shorter one in place, which a
// disk does without a flush.
func overwrite(t testing.TB, path string, data []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(data, 0)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestEveryFlippedByteFailsAndNamesItsRecord(t *testing.T) {
	data, begins, _ := small(t)
	v := trusting(t)
	path := placedAs(t, data, "laptop")
	if _, err := Verify(v, path); err != nil {
		t.Fatalf("the log as it was written: %v", err)
	}
	for at := range data {
		// One bit, by turns; the case bit, which JSON decoders forgive; and, by turns,
		// the two bytes that mean something to the reader.
		for _, becomes := range []byte{data[at] ^ 1<<(at%8), data[at] ^ 0x20, "\n\x00"[at%2]} {
			if becomes == data[at] {
				continue
			}
			changed := slices.Clone(data)
			changed[at] = becomes
			overwrite(t, path, changed)
			_, err := Verify(v, path)
			var broken *IntegrityError
			if !errors.As(err, &broken) {
				t.Fatalf("byte %d from %q to %q: %v", at, data[at], becomes, err)
			}
			if want := recordOf(begins, at); broken.Offset != want {
				t.Fatalf("byte %d from %q to %q: the error names the record at %d, it is the one at %d: %v", at, data[at], becomes, broken.Offset, want, err)
			}
		}
	}
}

// recordOf is where the record that holds byte at begins.
func recordOf(begins []int64, at int) int64 {
	last := int64(0)
	for _, b := range begins {
		if b <= int64(at) {
			last = b
		}
	}
	return last
}

func TestEveryTruncationIsSeen(t *testing.T) {
	data, begins, head := small(t)
	path := placedAs(t, data, "laptop")
	alone, against := trusting(t), trusting(t)
	against.Heads = []model.LogHead{head}
	for size := len(data) - 1; size >= 0; size-- {
		if err := os.Truncate(path, int64(size)); err != nil {
			t.Fatal(err)
		}
		r, err := Verify(alone, path)
		if err != nil {
			t.Fatalf("cut to %d bytes: %v", size, err)
		}
		// A record that is cut is reported; a cut between records leaves no trace in
		// the file, which is why heads are kept elsewhere.
		boundary := slices.Contains(begins, int64(size))
		if torn := r.Files[0].Torn; (torn == nil) != boundary {
			t.Fatalf("cut to %d bytes, at a record's end: %v; torn: %+v", size, boundary, torn)
		} else if torn != nil && torn.Offset+torn.Bytes != int64(size) {
			t.Fatalf("cut to %d bytes: torn is %+v", size, torn)
		}
		if size < int(begins[1]) {
			continue // not even the session is known: no head can be held against it
		}
		var broken *IntegrityError
		if _, err := Verify(against, path); !errors.As(err, &broken) || broken.Offset != r.Files[0].end() {
			t.Fatalf("cut to %d bytes, with the head known: %v", size, err)
		}
	}
}

// end is where the last complete record of a log of small's ends.
func (r FileResult) end() int64 {
	if r.Torn != nil {
		return r.Torn.Offset
	}
	info, err := os.Stat(r.File)
	if err != nil {
		return -1
	}
	return info.Size()
}

func TestOnlyATailMayBeTorn(t *testing.T) {
	data, begins, _ := small(t)
	last := begins[len(begins)-1]
	record := data[last:]
	for name, c := range map[string]struct {
		data []byte
		torn bool
	}{
		"zeros behind the end":               {append(slices.Clone(data), make([]byte, 512)...), true},
		"zeros instead of the end":           {append(slices.Clone(data[:len(data)-40]), make([]byte, 40)...), true},
		"zeros instead of the record":        {append(slices.Clone(data[:last]), make([]byte, len(record))...), true},
		"zeros in the middle":                {slices.Concat(data[:last-40], make([]byte, 40), record), false},
		"the beginning of the next entry":    {append(slices.Clone(data), `{"v":1,"se`...), true},
		"garbage behind the end":             {append(slices.Clone(data), `garbage`...), false},
		"a line of garbage behind the end":   {append(slices.Clone(data), "garbage\n"...), false},
		"the last record twice":              {append(slices.Clone(data), record...), false},
		"the last record once more, cut":     {append(slices.Clone(data), record[:40]...), false},
		"an entry without its checkpoint":    {slices.Concat(data[:last], record[:bytes.IndexByte(record, '\n')+1]), true},
		"an entry without one in the middle": {slices.Concat(data[:last], record[:bytes.IndexByte(record, '\n')+1], record), false},
		"a line too long to be one":          {append(slices.Clone(data), bytes.Repeat([]byte("x"), MaxLine+2)...), false},
		"an empty line behind":               {append(slices.Clone(data), '\n'), false},
		"without its first record":           {data[begins[1]:], false},
		"records swapped":                    {slices.Concat(data[:begins[1]], data[begins[2]:], data[begins[1]:begins[2]]), false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Verify(trusting(t), placedAs(t, c.data, "laptop"))
			var broken *IntegrityError
			if c.torn && (err != nil || r.Files[0].Torn == nil) || !c.torn && !errors.As(err, &broken) {
				t.Errorf("error %v, result %+v", err, r.Files)
			}
		})
	}
}

// An attacker with a key of his own: cut the log and go on, or write a new one.
func TestAnotherKeyCannotContinueOrReplaceALog(t *testing.T) {
	data, begins, _ := small(t)
	o := options(t, "laptop")
	o.Rand = random(9)
	o.Certify = func(statement []byte) ([]byte, error) {
		sig, err := sshsig.Sign(sshKey(t, 1), random(2), statement, directive.Production.Namespace("session", fleet))
		return sig.Blob, err
	}
	state := t.TempDir()
	mustAppend(t, open(t, state, o), Note{Text: "forged"}, Note{Text: "forged too"})
	path := filepath.Join(Folder(state, incident), "laptop.jsonl")
	forged, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(trusting(t), path); !errors.Is(err, ErrUncertified) {
		t.Errorf("a log certified by a stranger: %v", err)
	}
	lines := bytes.SplitAfter(forged, []byte("\n"))
	continued := slices.Concat(data[:begins[1]], lines[2], lines[3])
	var broken *IntegrityError
	if _, err := Verify(trusting(t), placedAs(t, continued, "laptop")); !errors.As(err, &broken) || broken.Offset != begins[1] {
		t.Errorf("a log continued with another key: %v", err)
	}

	bo := trusting(t)
	bo.Trusted = func(string) (string, bool) { return "bo", true }
	if _, err := Verify(bo, placedAs(t, data, "laptop")); !errors.Is(err, ErrUncertified) {
		t.Errorf("amara's log under bo's key: %v", err)
	}
	drill := trusting(t)
	drill.Realm = directive.Drill
	if _, err := Verify(drill, placedAs(t, data, "laptop")); !errors.Is(err, ErrUncertified) {
		t.Errorf("a production log in a drill: %v", err)
	}
	other := trusting(t)
	other.Fleet = "other"
	if _, err := Verify(other, placedAs(t, data, "laptop")); !errors.Is(err, ErrUncertified) {
		t.Errorf("a log of another fleet: %v", err)
	}
	if _, err := Verify(trusting(t), placedAs(t, data, "desktop")); !errors.As(err, &broken) {
		t.Errorf("a log under another session's name: %v", err)
	}
}

// The holder of a session's key can write two logs. Only heads kept by others
// tell them apart.
func TestAForkShowsAgainstAKeptHead(t *testing.T) {
	fork := func(text string) (string, model.LogHead) {
		state := t.TempDir()
		w := open(t, state, options(t, "laptop")) // the same seed: the same key
		mustAppend(t, w, Note{Text: "common"}, Note{Text: text}, Note{Text: "more"})
		return Folder(state, incident), w.Head()
	}
	shown, kept := fork("what happened")
	other, _ := fork("what was made up")
	v := trusting(t)
	if _, err := Verify(v, other); err != nil {
		t.Fatalf("a fork alone is in order, that is the point: %v", err)
	}
	v.Heads = []model.LogHead{kept}
	if r, err := Verify(v, shown); err != nil || r.Files[0].HeadsMet != 1 || r.Files[0].HighestHead != 4 {
		t.Errorf("the log that was shown: %+v, %v", r.Files, err)
	}
	var broken *IntegrityError
	if _, err := Verify(v, other); !errors.As(err, &broken) || !strings.Contains(broken.What, "forked") {
		t.Errorf("the fork: %v", err)
	}
}

func TestHeadsInDirectivesAreHeldAgainstTheLog(t *testing.T) {
	state := t.TempDir()
	w := open(t, state, options(t, "laptop"))
	mustAppend(t, w, Note{Text: "x"})
	good := bypass("01JDZ0000000000000000000A1", w.Head())
	mustAppend(t, w, Intent{Payload: payload(t, good)}, signedBy(t, good))
	if r := mustVerify(t, trusting(t), state); r.Files[0].HeadsMet != 2 || r.Files[0].HighestHead != 2 {
		t.Errorf("a directive's head: %+v", r.Files[0])
	}
	lie := w.Head()
	lie.Root = strings.Repeat("ab", 32)
	mustAppend(t, w, signedBy(t, bypass("01JDZ0000000000000000000A2", lie)))
	var broken *IntegrityError
	if _, err := Verify(trusting(t), Folder(state, incident)); !errors.As(err, &broken) || !strings.Contains(broken.What, "01JDZ0000000000000000000A2") {
		t.Errorf("a directive that names another root: %v", err)
	}
}

func TestALogThatIsNotThereIsNamed(t *testing.T) {
	state := t.TempDir()
	o := options(t, "laptop")
	w := open(t, state, o)
	mustAppend(t, w, Note{Text: "x"})
	first := filepath.Join(Folder(state, incident), "laptop.jsonl")
	if err := os.Truncate(first, 1); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, w, Note{Text: "y"}) // goes on in a second segment
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(trusting(t), Folder(state, incident)); err == nil || !strings.Contains(err.Error(), "not here") {
		t.Errorf("a segment whose predecessor is gone: %v", err)
	}

	data, _, _ := small(t)
	path := placedAs(t, data, "laptop")
	v := trusting(t)
	absent := model.LogHead{Origin: fleet + "/" + incident + "/bos-laptop", Size: 3, Root: noPrev}
	v.Heads = []model.LogHead{absent, absent, {Origin: fleet + "/inc-8/laptop", Size: 3, Root: noPrev}}
	if r, err := Verify(v, path); err != nil || len(r.Absent) != 1 || r.Absent[0] != absent {
		t.Errorf("a head of somebody else's log: %+v, %v", r.Absent, err)
	}
	v.Complete = true
	if _, err := Verify(v, path); err == nil {
		t.Error("a bundle that should hold every log lacks one, and verifies")
	}
}

func TestAFileThatNeverGotItsFirstRecordIsNoFailure(t *testing.T) {
	data, begins, _ := small(t)
	path := placedAs(t, data, "laptop")
	empty := filepath.Join(filepath.Dir(path), "crashed.jsonl")
	for _, size := range []int64{0, 10, begins[1] - 1} {
		rewrite(t, empty, data[:size])
		r, err := Verify(trusting(t), filepath.Dir(path))
		if size > 600 {
			// By then the session is readable, and it is not that of the file's name.
			if err == nil {
				t.Error("laptop's first record passes as that of another session")
			}
			continue
		}
		if err != nil || len(r.Files) != 2 || r.Entries != 3 {
			t.Errorf("beside a file of %d bytes: %+v, %v", size, r, err)
		}
	}
	if _, err := Verify(trusting(t), t.TempDir()); err == nil {
		t.Error("a folder without a log verifies")
	}
	if _, err := Verify(trusting(t), filepath.Join(t.TempDir(), "nowhere")); err == nil {
		t.Error("a folder that is not there verifies")
	}
}

func TestEveryDamagedFileIsReported(t *testing.T) {
	state := t.TempDir()
	for _, session := range []string{"a", "b", "c"} {
		w := open(t, state, options(t, session))
		mustAppend(t, w, Note{Text: "hello"})
		if session == "b" {
			continue
		}
		path := filepath.Join(Folder(state, incident), session+".jsonl")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rewrite(t, path, bytes.Replace(data, []byte("hello"), []byte("hallo"), 1))
	}
	r, err := Verify(trusting(t), Folder(state, incident))
	if len(r.Files) != 1 || r.Files[0].Entries != 2 {
		t.Errorf("what is right: %+v", r.Files)
	}
	for _, want := range []string{"a.jsonl: record at byte", "c.jsonl: record at byte"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "record at byte"); n != 2 {
		t.Errorf("%d complaints about two damaged files: %v", n, err)
	}
	sessions, err := Read(incident, state)
	if h := sessions[0].Head; h.Size != 1 {
		t.Errorf("the head of a log that is damaged in its second record is %+v", h)
	}
	if err == nil || len(sessions) != 3 || len(sessions[0].Entries) != 1 || sessions[0].Damage == nil || len(sessions[1].Entries) != 2 {
		t.Errorf("reading around the damage: %v, %d sessions", err, len(sessions))
	}
}
