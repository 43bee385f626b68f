package main

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/explain"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/spf13/cobra"
)

func (a *app) policyExplainCmd() *cobra.Command {
	as := ""
	cmd := &cobra.Command{
		Use:   "explain [DIR]",
		Short: "Say in sentences what a policy lets people do, and what it may cost",
		Long: `Print what somebody signs: who may do what, where, how far and for how long; the
worst case of every bypass in money; what one stolen key could do; and what only the
console enforces. With --as only what this group or person signs. What is not signed
yet is explained as if it were, and says so.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			src, err := a.policySource(cmd, args)
			if err != nil {
				return err
			}
			r, err := explain.Explain(src, as)
			if errors.Is(err, explain.ErrNobody) {
				return fail(exitUsage, "%w", err).hinting("groups: %s", strings.Join(slices.Sorted(maps.Keys(src.Root.Groups)), ", "))
			}
			if err != nil {
				return fail(exitFailed, "explain the policy: %w", err).hinting("ic policy lint says where it is wrong")
			}
			return a.print(r, func(w io.Writer) { r.Text(w) })
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "only what this group or person signs")
	return cmd
}

// policySource reads the policy folder as it lies there, and judges its
// signatures as far as the configuration lets it. What cannot be judged is a
// draft.
func (a *app) policySource(cmd *cobra.Command, args []string) (explain.Source, error) {
	dir, c, err := a.policyDir(cmd)
	if err != nil {
		return explain.Source{}, err
	}
	if len(args) == 1 {
		dir = args[0]
	}
	src, err := a.draftsOf(dir)
	if err != nil {
		return src, err
	}
	stand, err := a.files(c)
	if err != nil {
		return src, err
	}
	src.Now = stand.clock.Now().Wall
	if c.Inventory != "" {
		inv, err := inventoryFile(c.Inventory)
		if err != nil {
			return src, err
		}
		src.Hosts = []model.HostView{}
		for _, h := range inv.Hosts {
			src.Hosts = append(src.Hosts, model.HostView{Host: h.Name, Services: h.Services})
		}
	}
	if c.RootSHA256 == "" || c.Fleet == "" {
		src.Unsigned = "No signature can be judged: fleet and root_sha256 are not configured"
		return src, nil
	}
	highest, err := policy.ReadHighest(filepath.Join(c.State, highestFile))
	if err != nil {
		return src, fail(exitIntegrity, "%w", err)
	}
	b, _, err := policy.LoadDir(dir, policy.LoadOptions{Fleet: c.Fleet, RootSHA256: c.RootSHA256, Realm: stand.realm(), State: highest, Now: src.Now})
	if err != nil {
		src.Unsigned = "Nothing of this folder may be obeyed: " + err.Error()
		return src, nil
	}
	src.States, src.Ref = b.Domains, b.Ref
	return src, nil
}

// draftsOf reads the documents of a folder, signed or not. What cannot be read is
// left out, and a person is told.
func (a *app) draftsOf(dir string) (explain.Source, error) {
	docs, root, findings, err := policy.ReadDrafts(os.DirFS(dir))
	if err != nil {
		return explain.Source{}, fail(exitUsage, "%w", err)
	}
	for _, f := range findings {
		a.note("%s", f)
	}
	if root == nil {
		return explain.Source{}, fail(exitUsage, "there is no policy in %s: no trust root can be read", dir).
			hinting("--policy names the folder that has roots and the documents")
	}
	return explain.Source{Docs: docs, Root: root}, nil
}
