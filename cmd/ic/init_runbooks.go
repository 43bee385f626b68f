package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/promrules"
	"github.com/degradedmode/ic/internal/runbooks"
	tonight "github.com/degradedmode/ic/runbooks"
)

// givenRunbooks is what a new policy has got to read at night.
type givenRunbooks struct {
	Folder   string   `json:"runbooks_folder,omitempty"`
	Runbooks []string `json:"runbooks,omitempty"`         // signed by the one who starts
	Waiting  []string `json:"runbooks_waiting,omitempty"` // those of them whose steps need what lies in later
	there    bool     // a folder of runbooks was there, and is not touched
}

// giveRunbooks writes the runbooks that ship beside a new policy, signed by whoever
// starts it: those that fit it, or will when the documents of later are in force.
func giveRunbooks(c config, starter templates.Starter, s templates.Signing, now time.Time) (givenRunbooks, error) {
	out := givenRunbooks{Folder: runbooksOf(c), Runbooks: []string{}, Waiting: []string{}}
	if _, err := os.Lstat(out.Folder); !errors.Is(err, fs.ErrNotExist) {
		out.there = true
		return out, nil
	}
	texts, err := tonight.Texts(now.Add(starterLife))
	if err != nil {
		return out, fail(exitFailed, "read the runbooks: %w", err)
	}
	current, err := draftBundle(c.Policy)
	if err != nil {
		return out, err
	}
	whole, err := knownLater(starter, now)
	if err != nil {
		return out, err
	}
	known := runbooks.KnownOf(current)
	known.Now, known.Query, known.Bounds = now, answersOnce, promrules.Bounds
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		id := strings.TrimSuffix(file, ".md")
		switch {
		case runbooks.HasError(runbooks.LintSource(file, texts[file], whole)):
			delete(texts, file) // it speaks of another shop
			continue
		case runbooks.HasError(runbooks.LintSource(file, texts[file], known)):
			out.Waiting = append(out.Waiting, id)
		}
		out.Runbooks = append(out.Runbooks, id)
	}
	if len(texts) == 0 {
		return out, nil
	}
	signing := tonight.Signing{Root: current.Root, Signers: s.Signers, Rand: s.Rand, Realm: s.Realm, Fleet: s.Fleet}
	if err := tonight.Write(out.Folder, texts, signing); err != nil {
		return out, fail(exitFailed, "%w", err)
	}
	return out, nil
}

// knownLater is what a policy defines once everything that lies in later is in
// force.
func knownLater(starter templates.Starter, now time.Time) (known runbooks.Known, err error) {
	dir, err := os.MkdirTemp("", "ic-later-")
	if err != nil {
		return known, fail(exitFailed, "read what comes later: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files := maps.Clone(starter.Files)
	maps.Copy(files, starter.Later)
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			return known, fail(exitFailed, "read what comes later: %w", err)
		}
	}
	bundle, err := draftBundle(dir)
	if err != nil {
		return known, err
	}
	known = runbooks.KnownOf(bundle)
	known.Now, known.Query, known.Bounds = now, answersOnce, promrules.Bounds
	return known, nil
}

func (g *givenRunbooks) print(w io.Writer) {
	switch {
	case g.there:
		fmt.Fprintf(w, "  runbooks %s is there, and is not touched\n", g.Folder)
	case len(g.Runbooks) > 0:
		fmt.Fprintf(w, "  runbooks %s: %d, signed; README.md says what each is for\n", g.Folder, len(g.Runbooks))
	}
	for _, id := range g.Waiting {
		fmt.Fprintf(w, "    %s has steps that wait for what lies in %s: ic runbook lint %s\n", id, laterFolder, id)
	}
}
