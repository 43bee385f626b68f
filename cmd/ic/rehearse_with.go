package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/degradedmode/ic/internal/drill/follow"
	"github.com/degradedmode/ic/internal/drill/scenario"
	"github.com/degradedmode/ic/internal/runbooks"
	tonight "github.com/degradedmode/ic/runbooks"
)

// follows says who acts in a scenario where a runbook is followed: the one of --with,
// or the one that the scenario names. Nobody is asked: every question has the answer
// that package follow documents. A scenario without a runbook acts for itself.
func (p *player) follows(s *scenario.Scenario, f *rehearsalFlags) error {
	p.o = scenario.Options{}
	word := orElse(f.with, s.Runbook)
	switch {
	case word == "" && f.as != "":
		return fail(exitUsage, "%s has no runbook that one seat follows: everybody in it acts as the file says, and the score is of what came of all their acts", s.Name).
			hinting("--with RUNBOOK has the person of --as follow a runbook instead; without --auto that person is you, at the console")
	case word == "":
		return nil
	}
	rb, err := p.book(word)
	if err != nil {
		return err
	}
	taken := s.Follow()
	if taken == nil {
		p.o.Acts = follow.Acts(rb, f.as)
		return nil
	}
	p.o.Follows = follow.Follows(rb)
	if f.as != "" {
		who, err := s.Seat(f.as)
		if err != nil {
			return fail(exitUsage, "%w", err)
		}
		taken.Who = who.Name
	}
	return nil
}

// book reads a runbook: a file, one of the folder beside the policy, or one that ships.
func (p *player) book(word string) (*runbooks.Runbook, error) {
	path := word
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join(runbooksOf(p.c), word+".md")
	}
	raw, err := readSome(path, runbooks.MaxFile+1) // what is too long is said with its place
	if errors.Is(err, fs.ErrNotExist) {
		if text, failed := fs.ReadFile(tonight.Files, word+".md"); failed == nil {
			raw, err = text, nil
		}
	}
	if err != nil {
		return nil, fail(exitUsage, "read the runbook: %w; and none of that name ships", err).hinting("ic runbook list shows what there is")
	}
	rb, err := runbooks.Parse(filepath.Base(path), raw)
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	return rb, nil
}
