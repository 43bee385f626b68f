package audit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAReaderFollowsWhatIsAppended(t *testing.T) {
	state, second := t.TempDir(), t.TempDir()
	r := NewReader(incident, state, second)
	if changed, err := r.Poll(); changed || err != nil || len(r.Sessions()) != 0 {
		t.Fatalf("an incident that has no log yet: %v, %v", changed, err)
	}
	w := open(t, state, options(t, "laptop"))
	for _, text := range []string{"one", "two", "three"} {
		mustAppend(t, w, Note{Text: text})
		if changed, err := r.Poll(); !changed || err != nil {
			t.Fatalf("after %q: changed %v, %v", text, changed, err)
		}
		if changed, err := r.Poll(); changed || err != nil {
			t.Fatalf("after %q, again: changed %v, %v", text, changed, err)
		}
	}
	mustAppend(t, open(t, second, options(t, "command")), Note{Text: "four"})
	if changed, err := r.Poll(); !changed || err != nil {
		t.Fatalf("after another session began: %v, %v", changed, err)
	}
	if diff := cmp.Diff(mustRead(t, state, second), r.Sessions()); diff != "" {
		t.Errorf("following gives something else than reading:\n%s", diff)
	}
	if got := texts(r.Sessions()); !slices.Equal(got, []string{"four", "one", "two", "three"}) {
		t.Errorf("followed %q", got)
	}
	if got := r.Sessions()[1].Head; got != w.Head() {
		t.Errorf("the head read is %+v, the writer's is %+v", got, w.Head())
	}
}

func TestAReaderReadsOnlyWhatIsNew(t *testing.T) {
	data, begins, _ := small(t)
	path := placedAs(t, data[:begins[2]], "laptop")
	state := filepath.Dir(filepath.Dir(filepath.Dir(path)))
	r := NewReader(incident, state)
	if _, err := r.Poll(); err != nil {
		t.Fatal(err)
	}
	// What was read once is not read again: Poll does not see that it was changed
	// since. A fresh Read does.
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, one := f.WriteAt([]byte("#"), 0)
	_, two := f.WriteAt(data[begins[2]:], begins[2])
	if err := errors.Join(one, two, f.Close()); err != nil {
		t.Fatal(err)
	}
	if changed, err := r.Poll(); !changed || err != nil || len(r.Sessions()[0].Entries) != 3 {
		t.Errorf("poll: %v, %v, %d entries", changed, err, len(r.Sessions()[0].Entries))
	}
	if _, err := Read(incident, state); err == nil {
		t.Error("a fresh read passes over the change")
	}
}

func TestAReaderWaitsForTheRestOfAWrite(t *testing.T) {
	data, begins, _ := small(t)
	path := placedAs(t, nil, "laptop")
	r := NewReader(incident, filepath.Dir(filepath.Dir(filepath.Dir(path))))
	for size := range len(data) + 1 {
		overwrite(t, path, data[:size])
		if _, err := r.Poll(); err != nil {
			t.Fatalf("after %d bytes: %v", size, err)
		}
		s := r.Sessions()[0]
		whole := 0
		for i := range begins {
			end := int64(len(data))
			if i+1 < len(begins) {
				end = begins[i+1]
			}
			if end <= int64(size) {
				whole++
			}
		}
		if len(s.Entries) != whole {
			t.Fatalf("after %d bytes: %d entries, want %d", size, len(s.Entries), whole)
		}
	}
}

func TestAReaderNoticesThatAFileWasCutOrReplaced(t *testing.T) {
	data, begins, _ := small(t)
	for name, harm := range map[string]func(path string) error{
		"cut": func(path string) error { return os.Truncate(path, begins[2]) },
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path))
		},
		"damaged further on": func(path string) error {
			return os.WriteFile(path, append(slices.Clone(data), "garbage\n"...), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := placedAs(t, data, "laptop")
			r := NewReader(incident, filepath.Dir(filepath.Dir(filepath.Dir(path))))
			if _, err := r.Poll(); err != nil {
				t.Fatal(err)
			}
			if err := harm(path); err != nil {
				t.Fatal(err)
			}
			for range 2 { // damage stays reported
				var broken *IntegrityError
				if _, err := r.Poll(); !errors.As(err, &broken) {
					t.Errorf("poll: %v", err)
				}
			}
			if s := r.Sessions()[0]; s.Damage == nil || len(s.Entries) != 3 {
				t.Errorf("what was read before is %d entries, damage %v", len(s.Entries), s.Damage)
			}
		})
	}
}

func TestReadSaysThatATailIsTorn(t *testing.T) {
	data, begins, _ := small(t)
	path := placedAs(t, data[:len(data)-5], "laptop")
	s := mustRead(t, filepath.Dir(filepath.Dir(filepath.Dir(path))))[0]
	if s.Torn == nil || s.Torn.Offset != begins[2] || s.Torn.Bytes != int64(len(data)-5)-begins[2] || len(s.Entries) != 2 {
		t.Errorf("torn is %+v, with %d entries", s.Torn, len(s.Entries))
	}
}

func TestReadRefusesWhatTheFilesDoNotProve(t *testing.T) {
	data, begins, _ := small(t)
	record := func(n int) []byte { return data[begins[n]:begins[n+1]] }
	lines := bytes.SplitAfter(data, []byte("\n"))
	for name, changed := range map[string][]byte{
		"an entry with another text":    bytes.Replace(data, []byte("risk is down"), []byte("risk is fine"), 1),
		"a checkpoint of another entry": slices.Concat(record(0), lines[2], lines[1]),
		"a signature that is too short": bytes.Replace(data, []byte(`\n"}`), []byte("=\\n\"}"), 1),
	} {
		var broken *IntegrityError
		path := placedAs(t, changed, "laptop")
		if _, err := Read(incident, filepath.Dir(filepath.Dir(filepath.Dir(path)))); !errors.As(err, &broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestListShowsWhatIsOpen(t *testing.T) {
	state, second := t.TempDir(), t.TempDir()
	begin := func(state, incident string, bodies ...Body) {
		o := options(t, "laptop")
		o.Incident = incident
		mustAppend(t, open(t, state, o), bodies...)
	}
	begin(state, "inc-1", IncidentOpen{"first"}, IncidentClose{Note: "over"})
	begin(second, "inc-2", IncidentOpen{"second"})
	begin(state, "inc-3", IncidentOpen{"third"})
	if err := os.WriteFile(filepath.Join(Folder(state, "inc-3"), "stray.jsonl"), []byte("garbage\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := List(state, second)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d incidents, %v", len(all), err)
	}
	for i, want := range []struct {
		id, title string
		open, err bool
	}{{"inc-1", "first", false, false}, {"inc-2", "second", true, false}, {"inc-3", "third", true, true}} {
		got := all[i]
		if got.ID != want.id || got.State.Incident.Title != want.title || got.State.IsOpen() != want.open || (got.Err != nil) != want.err {
			t.Errorf("incident %d: %s %q open %v error %v, want %+v", i, got.ID, got.State.Incident.Title, got.State.IsOpen(), got.Err, want)
		}
	}
	if none, err := List(t.TempDir()); err != nil || len(none) != 0 {
		t.Errorf("a state folder without incidents: %v, %v", none, err)
	}
}

// A log that is being written arrives in pieces, and a hostile one has any bytes:
// reading never panics, and pieces say the same as the whole.
func FuzzPiecesOfALogSayTheSameAsTheWhole(f *testing.F) {
	data, begins, _ := small(f)
	f.Add(data, uint(begins[1]))
	f.Add(data[:len(data)-1], uint(begins[2]+10))
	f.Add(append(slices.Clone(data), 0, 0), uint(3))
	f.Add([]byte("{}\n{}\n"), uint(3))
	f.Add([]byte(`{"v":1,"seq":1,"prev":"`+"\n\n"), uint(5))
	f.Fuzz(func(t *testing.T, data []byte, cut uint) {
		whole, pieces := newParser("laptop.jsonl", false), newParser("laptop.jsonl", false)
		at := int(cut % uint(len(data)+1))
		used, broken := whole.feed(data)
		first, early := pieces.feed(data[:at])
		if early == nil {
			// What is not there yet may be looked at as torn; that must change nothing.
			_, _ = pieces.rest(data[first:at])
			var more int
			more, early = pieces.feed(data[first:])
			first += more
		}
		if used != first || (broken == nil) != (early == nil) || !cmp.Equal(whole.entries, pieces.entries) || whole.chain.head() != pieces.chain.head() && broken == nil {
			t.Fatalf("cut at %d: whole %d bytes, %v; pieces %d bytes, %v", at, used, broken, first, early)
		}
		_, _ = whole.rest(data[used:])
	})
}
