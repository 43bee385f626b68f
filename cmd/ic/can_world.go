package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/drill/world"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/spf13/cobra"
)

// stopped is a clock that shows the moment of a saved world.
type stopped time.Time

// Now implements model.Clock.
func (s stopped) Now() model.Instant { return model.Instant{Wall: time.Time(s)} }

// saveScene writes the world that was judged into a new file, if one is named.
func saveScene(scene *incident.Scene, request *model.Request, path string) error {
	if path == "" {
		return nil
	}
	raw, err := scene.Save(request)
	if err != nil {
		return err
	}
	f, err := newFile(path)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	return errors.Join(err, f.Sync(), f.Close())
}

// newFile makes a file that was not there before: what it holds is only read by
// its owner.
func newFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fail(exitUsage, "%s is there already, and is not overwritten", path)
	}
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	return f, nil
}

// replay judges a saved world. The policy is read as of that moment, so that a
// verdict of last month is not one about an expired policy.
func (a *app) replay(cmd *cobra.Command, path string, ask decisions.Ask) error {
	c, err := a.load(cmd)
	if err != nil {
		return err
	}
	raw, err := readBounded(path, incident.MaxSaved)
	if err != nil {
		return fail(exitUsage, "read the world: %w", err)
	}
	saved, err := incident.ReadSaved(raw, c.Fleet)
	if err != nil {
		return fail(exitUsage, "%s: %w", path, err)
	}
	drill, err := world.IsDrill(c.State)
	if err != nil {
		return err
	}
	a.seat = &seat{clock: stopped(saved.World.Now), over: drill} // nobody is asked for the time
	b, err := a.bundle(c, false)
	if err != nil {
		return err
	}
	if was := saved.World.Policy; was != b.Ref {
		a.note("the world was saved under policy version %d (%.12s) and is judged by version %d (%.12s)", was.Version, was.Digest, b.Ref.Version, b.Ref.Digest)
	}
	scene := incident.Scene{Bundle: b, World: saved.World, Actor: saved.Actor}
	if saved.Request != nil && sameWish(cmd, ask, saved.Request) {
		p := scene.Judge(*saved.Request)
		return a.canOne(&p)
	}
	return a.canNow(&scene, ask, "")
}

// sameWish: nothing was asked but what is in the file.
func sameWish(cmd *cobra.Command, ask decisions.Ask, saved *model.Request) bool {
	for _, flag := range []string{"scope", "tier", "feature"} {
		if cmd.Flags().Changed(flag) {
			return false
		}
	}
	return ask.Right == "" || ask.Right == saved.Directive.Right
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	raw, err := readSome(path, limit+1)
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return raw, err
}

// readSome reads the beginning of a file, for those who say the place where it became
// too long.
func readSome(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}
