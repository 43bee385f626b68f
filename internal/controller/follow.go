package controller

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// follower reads what was appended to the logs of every incident in the state
// folders.
type follower struct {
	states  []string
	readers map[string]*audit.Reader // by incident
}

// position is how many entries of each file have been told, by the folder's
// number, the incident and the file.
type position map[string]int

func newFollower(states ...string) follower {
	f := follower{readers: map[string]*audit.Reader{}}
	for _, s := range states {
		if s != "" {
			f.states = append(f.states, s)
		}
	}
	return f
}

// poll reads on. What could be read counts, whatever else is damaged.
func (f *follower) poll() error {
	var failed []error
	for _, state := range f.states {
		found, err := os.ReadDir(filepath.Dir(audit.Folder(state, "any")))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("list the incidents: %w", err))
		}
		for _, entry := range found {
			if name := entry.Name(); entry.IsDir() && f.readers[name] == nil {
				f.readers[name] = audit.NewReader(name, f.states...)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.readers)) {
		if _, err := f.readers[name].Poll(); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// placed is an entry with its place.
type placed struct {
	audit.Entry
	incident, file string
	nth            int // from 1
	order          time.Time
}

// entries lists what lies behind a position, in the order of time; within a file
// in the order in which it was written.
func (f *follower) entries(after position) []placed {
	var out []placed
	for name, reader := range f.readers {
		for _, s := range reader.Sessions() {
			file, latest := f.key(name, s.File), time.Time{}
			for i, e := range s.Entries {
				if e.At.After(latest) {
					latest = e.At
				}
				if i >= after[file] {
					out = append(out, placed{Entry: e, incident: name, file: file, nth: i + 1, order: latest})
				}
			}
		}
	}
	slices.SortFunc(out, func(x, y placed) int {
		return cmp.Or(x.order.Compare(y.order), cmp.Compare(x.file, y.file), cmp.Compare(x.nth, y.nth))
	})
	return out
}

// key names a file whichever of the folders it lies in.
func (f *follower) key(incident, file string) string {
	for i, state := range f.states {
		if filepath.Dir(file) == audit.Folder(state, incident) {
			return strconv.Itoa(i) + "/" + incident + "/" + filepath.Base(file)
		}
	}
	return incident + "/" + filepath.Base(file)
}

// end is the position behind everything that was read.
func (f *follower) end() position {
	out := position{}
	for name, reader := range f.readers {
		for _, s := range reader.Sessions() {
			out[f.key(name, s.File)] = len(s.Entries)
		}
	}
	return out
}

// since is the position behind everything that was written before a moment.
func (f *follower) since(at time.Time) position {
	out := position{}
	for _, e := range f.entries(nil) {
		if e.order.Before(at) {
			out[e.file] = e.nth
		}
	}
	return out
}

// pages lists at most so many pages behind a position, and the position up to
// which they tell.
func (f *follower) pages(after position, most int) (out []Page, end position) {
	end = maps.Clone(after)
	issued := map[string]map[string]model.Directive{}
	for _, e := range f.entries(after) {
		page, worth := f.pageOf(&e, issued)
		if worth && len(out) == most {
			return out, end
		}
		end[e.file] = max(end[e.file], e.nth)
		if worth {
			out = append(out, page)
		}
	}
	return out, end
}

// pageOf words the entries that people are told of: an incident that opens or
// closes, everything that was signed, and alarms that came and went.
func (f *follower) pageOf(e *placed, issued map[string]map[string]model.Directive) (Page, bool) {
	p := Page{Key: e.file + "/" + strconv.Itoa(e.nth), Kind: string(e.Kind()), At: e.At, Actor: e.Actor, About: e.incident}
	switch b := e.Body.(type) {
	case audit.IncidentOpen:
		p.Title = fmt.Sprintf("incident %s is open (%s)", e.incident, e.Actor)
		p.Text = b.Title
	case audit.IncidentClose:
		p.Title = fmt.Sprintf("incident %s is closed (%s)", e.incident, e.Actor)
		p.Text = b.Note
	case audit.Signed:
		if issued[e.incident] == nil {
			issued[e.incident] = map[string]model.Directive{}
			state := audit.Fold(f.readers[e.incident].Sessions())
			for i := range state.Issued {
				issued[e.incident][state.Issued[i].Directive.ID] = state.Issued[i].Directive
			}
		}
		d, known := issued[e.incident][b.ID]
		if !known {
			return p, false // not a token; verify says so
		}
		p.Title, p.Text = fmt.Sprintf("%s: %s", e.Actor, incident.TitleOf(&d)), d.Reason
	case audit.Note:
		p.Title, p.Text = e.Actor, b.Text
		return p, strings.HasPrefix(b.Text, alarmMark)
	default:
		return p, false
	}
	return p, true
}
