package hostrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	// lookEvery is how soon a file shows what is no change of what is in force: a
	// source that fails, a disk that works again.
	lookEvery = time.Second
	// rewriteEvery is how often a file is written again when nothing has changed
	// but its age: whoever reads it can tell a quiet agent from a dead one.
	rewriteEvery = 10 * time.Second
	// writeLimit is how long a write may take before it counts as failed. The next
	// one waits until it has come back.
	writeLimit = 2 * time.Second

	fileMode = 0o644 // it is for the services beside it, and nothing in it is secret
)

var errHangs = errors.New("its file system hangs")

// outlet is one file that says what is in force.
type outlet struct {
	path   string
	render func(*State) []byte
	busy   chan struct{} // holds one element while a write is under way

	wrote   bool
	said    string // what was written last, without ages
	at      time.Duration
	boot    string
	trouble string
}

func (cfg *Config) outlets() []*outlet {
	var out []*outlet
	for _, one := range []struct {
		path   string
		render func(*State) []byte
	}{{cfg.StateFile, stateJSON}, {cfg.EnvFile, envLines}} {
		if one.path != "" {
			out = append(out, &outlet{path: one.path, render: one.render, busy: make(chan struct{}, 1)})
		}
	}
	return out
}

// keepFiles writes at every change, which what ends by itself is too.
func (r *Runner) keepFiles(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		changed := r.engine.Changed()
		r.writeFiles()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-tick.C:
		}
	}
}

func (r *Runner) writeFiles() {
	if len(r.outlets) == 0 {
		return
	}
	now, state := r.Now(), r.State()
	said := state.ageless()
	for _, o := range r.outlets {
		due := now.BootID != o.boot || now.Boot-o.at >= rewriteEvery
		if o.wrote && o.said == said && !due {
			continue
		}
		err := o.write(o.render(&state))
		o.trouble = r.changed(o.trouble, "write "+o.path, err)
		// A failed write is tried again at the next look, a second later at most.
		o.wrote, o.said, o.at, o.boot = err == nil, said, now.Boot, now.BootID
	}
}

// ageless is what a state says but for what changes by the mere passing of time.
func (s State) ageless() string {
	s.At, s.AsOf, s.AgeS = time.Time{}, time.Time{}, min(s.AgeS, 0)
	sources := make([]SourceState, len(s.Sources))
	for i, source := range s.Sources {
		source.AgeS = min(source.AgeS, 0)
		sources[i] = source
	}
	s.Sources = sources
	return string(stateJSON(&s))
}

func stateJSON(s *State) []byte {
	var out bytes.Buffer
	_ = json.NewEncoder(&out).Encode(s) // a State holds nothing that JSON cannot
	return out.Bytes()
}

// write replaces the file as a whole. It does so in a goroutine of its own, since a
// file system that hangs answers no deadline; there is never a second one.
func (o *outlet) write(content []byte) error {
	select {
	case o.busy <- struct{}{}:
	default:
		return errHangs
	}
	done := make(chan error, 1)
	go func() {
		done <- replace(o.path, content)
		<-o.busy
	}()
	limit := time.NewTimer(writeLimit)
	defer limit.Stop()
	select {
	case err := <-done:
		return err
	case <-limit.C:
		return errHangs
	}
}

// replace writes beside the file and renames. The name beside it is always the
// same, so that nothing is left over by being killed; it is made afresh, so that
// nothing is written through a link that somebody has put there.
func replace(path string, content []byte) error {
	next := path + ".next"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Chmod(fileMode), f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", next, err), os.Remove(next))
	}
	return os.Rename(next, path)
}
