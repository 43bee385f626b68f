package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/degradedmode/ic/internal/breakglass"
	"github.com/degradedmode/ic/plugins/sdk"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Version of this program", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := version()
			return a.print(map[string]string{"version": v}, func(w io.Writer) { fmt.Fprintln(w, "ic "+v) })
		},
	}
}

// version is that of the module, as the Go tool has stamped it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func (a *app) manCmd() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the man pages into a folder", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			header := &doc.GenManHeader{Title: "IC", Section: "1", Source: "ic " + version(), Manual: "ic"}
			return doc.GenManTree(cmd.Root(), header, args[0])
		},
	}
}

// backendCmd is how a bundled backend runs: as a process of its own.
func (a *app) backendCmd() *cobra.Command {
	return &cobra.Command{
		Use: "backend NAME", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			b, ok := breakglass.Bundled(args[0])
			if !ok {
				return fail(exitUsage, "there is no bundled backend %q", args[0])
			}
			sdk.Serve(b)
			return nil
		},
	}
}
