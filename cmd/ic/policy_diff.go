package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/degradedmode/ic/internal/explain"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/spf13/cobra"
)

func (a *app) policyDiffCmd() *cobra.Command {
	exitCode := false
	cmd := &cobra.Command{
		Use:   "diff [OLD NEW]",
		Short: "Say in sentences what changes from one policy to another",
		Long: `OLD and NEW are two policy folders or two files of one kind; without them they are the
policy in force and the version that ic policy stage has made beside it. Each change is
marked as wider (somebody may do more), narrower, or neither; the most dangerous stands
first. Signatures are not looked at.`,
		Args: noneOrTwo,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				var err error
				if args, err = a.liveAndStaged(cmd); err != nil {
					return err
				}
			}
			before, err := readForDiff(args[0])
			if err != nil {
				return err
			}
			after, err := readForDiff(args[1])
			if err != nil {
				return err
			}
			if before.file != after.file {
				return fail(exitUsage, "%s is %s and %s is %s: there is nothing to compare", args[0], before.kind(), args[1], after.kind()).
					hinting("two policy folders, or two files of one kind")
			}
			d := explain.Diff(before.Source, after.Source)
			if exitCode && !d.Empty() {
				a.code = exitFailed
			}
			return a.print(d, func(w io.Writer) { d.Text(w) })
		},
	}
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 1 when something changes")
	return cmd
}

func noneOrTwo(_ *cobra.Command, args []string) error {
	if len(args) != 0 && len(args) != 2 {
		return fail(exitUsage, "name both sides, or neither: %d is named", len(args)).
			hinting("ic policy diff OLD NEW; without them, the policy in force and the staged one")
	}
	return nil
}

// liveAndStaged are the folders of the policy in force and of its next version.
func (a *app) liveAndStaged(cmd *cobra.Command) ([]string, error) {
	dir, _, err := a.policyDir(cmd)
	if err != nil {
		return nil, err
	}
	staged, there := policy.IsStaged(dir)
	if !there {
		return nil, fail(exitNeeds, "nothing is staged beside %s, so there is nothing to compare it with", dir).
			hinting("ic policy stage makes the next version; ic policy diff OLD NEW compares any two")
	}
	return []string{dir, staged}, nil
}

// side is one of the two things that are compared.
type side struct {
	explain.Source
	file string // the name a policy folder has for it; "" for a whole folder
}

func (s side) kind() string {
	if s.file == "" {
		return "a folder"
	}
	return s.file
}

func readForDiff(path string) (side, error) {
	info, err := os.Stat(path)
	if err != nil {
		return side{}, fail(exitUsage, "%w", err)
	}
	if info.IsDir() {
		return readFolder(path)
	}
	return readOne(path, info)
}

func readFolder(dir string) (side, error) {
	docs, root, findings, err := policy.ReadDrafts(os.DirFS(dir))
	if err != nil {
		return side{}, fail(exitUsage, "%w", err)
	}
	_, err = os.Stat(filepath.Join(dir, policy.RootsFolder))
	rootless := errors.Is(err, fs.ErrNotExist) // documents alone can be compared too
	for _, f := range findings {
		if f.Code == "syntax" && !(rootless && strings.HasPrefix(f.File, policy.RootsFolder)) {
			return side{}, unreadable(dir, f)
		}
	}
	if root == nil && emptyDocuments(&docs) {
		return side{}, fail(exitUsage, "there is no policy in %s", dir)
	}
	return side{Source: explain.Source{Docs: docs, Root: root}}, nil
}

func emptyDocuments(docs *policy.Documents) bool {
	return docs.Features == nil && docs.Ladder == nil && docs.Rights == nil && docs.Backends == nil && docs.Journeys == nil && len(docs.Controls) == 0
}

func unreadable(where string, f policy.Finding) error {
	return fail(exitFailed, "%s: %s", where, f).hinting("a change that cannot be read cannot be compared; mend it first")
}

// readOne reads one document by putting it, under the name that a policy folder
// has for it, into a folder of its own.
func readOne(path string, info fs.FileInfo) (side, error) {
	if info.Size() > policy.MaxDocument {
		return side{}, fail(exitUsage, "%s has %d bytes, a file of a policy at most %d", path, info.Size(), policy.MaxDocument)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return side{}, fail(exitUsage, "%w", err)
	}
	name := nameInFolder(path, raw)
	dir, err := os.MkdirTemp("", "ic-diff-")
	if err != nil {
		return side{}, err
	}
	defer os.RemoveAll(dir)
	at := filepath.Join(dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, raw, 0o600)); err != nil {
		return side{}, err
	}
	docs, root, findings, err := policy.ReadDrafts(os.DirFS(dir))
	if err != nil {
		return side{}, err
	}
	for _, f := range findings {
		if f.Code == "syntax" && f.File == name {
			return side{}, unreadable(path, f)
		}
	}
	if root == nil && emptyDocuments(&docs) {
		return side{}, fail(exitUsage, "%s is no document of a policy that can be compared", path).
			hinting("a trust root, or a file that says which domain it is; a manifest follows from the files")
	}
	return side{Source: explain.Source{Docs: docs, Root: root}, file: name}, nil
}

// aRoot is the name under which one root alone is read: the first.
const aRoot = policy.RootsFolder + "/1.yaml"

// nameInFolder is the name that a policy folder has for a document, by what the
// document says of itself: a copy may be called anything.
func nameInFolder(path string, raw []byte) string {
	if m := regexp.MustCompile(`(?m)^domain: *"?([a-z0-9][a-z0-9._-]{0,63})"?\s*$`).FindSubmatch(raw); m != nil {
		return string(m[1]) + ".yaml"
	}
	if filepath.Base(filepath.Dir(path)) == policy.RootsFolder || regexp.MustCompile(`(?m)^people:`).Match(raw) {
		return aRoot
	}
	return filepath.Base(path)
}
