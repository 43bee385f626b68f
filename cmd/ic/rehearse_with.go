package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/degradedmode/ic/internal/drill/follow"
	"github.com/degradedmode/ic/internal/drill/scenario"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/spf13/cobra"
)

// follows is what acts where a runbook is followed: nobody is asked, and every
// question has the answer that package follow documents.
func (a *app) follows(cmd *cobra.Command, f *rehearsalFlags) (func(context.Context, *scenario.Run) error, error) {
	c, err := a.load(cmd)
	if err != nil {
		return nil, err
	}
	path := f.with
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join(runbooksOf(c), f.with+".md")
	}
	raw, err := readBounded(path, runbooks.MaxFile)
	if err != nil {
		return nil, fail(exitUsage, "read the runbook: %w", err).hinting("ic runbook list shows what there is")
	}
	rb, err := runbooks.Parse(filepath.Base(path), raw)
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	return follow.Acts(rb, f.as), nil
}
