package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/spf13/cobra"
)

// packed is what a pack prints.
type packed struct {
	File     string                `json:"file"`
	SHA256   string                `json:"sha256"`
	Manifest incident.PackManifest `json:"manifest"`
}

func (a *app) incidentPackCmd() *cobra.Command {
	path := ""
	cmd := &cobra.Command{
		Use:   "pack [ID]",
		Short: "Put an incident into one file for another machine",
		Long: `Write the log of an incident (without ID, of the open one) into one file: every session
with its directives, proposals and lease. No key, token of a service or configuration is
in it. Whoever takes over runs ic incident unpack FILE and then takes command.`,
		Example: "  ic incident pack -o tonight.icpack",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if path == "" {
				return fail(exitUsage, "say into which file: -o FILE")
			}
			b, err := a.bench(cmd)
			if err != nil {
				return err
			}
			id, err := whichIncident(b.config, args)
			if err != nil {
				return err
			}
			return a.pack(b, id, path)
		},
	}
	cmd.Flags().StringVarP(&path, "output", "o", "", "file to write; it must not be there yet")
	return cmd
}

// bench is where packs are made and opened. It needs the policy, which says whose
// logs are believed, and neither key nor network.
type bench struct {
	incident.Bench
	config config
	now    time.Time
}

func (a *app) bench(cmd *cobra.Command) (*bench, error) {
	c, err := a.load(cmd)
	if err != nil {
		return nil, err
	}
	b, err := a.bundle(c, false)
	if err != nil {
		return nil, err
	}
	stand, err := a.files(c)
	if err != nil {
		return nil, err
	}
	trusted := func(fp string) (string, bool) {
		s, ok := b.SignerOf(fp)
		return s.Name, ok
	}
	return &bench{incident.Bench{Realm: stand.realm(), Fleet: c.Fleet, State: c.State, Trusted: trusted}, c, stand.clock.Now().Wall}, nil
}

// whichIncident is the one that is named, or the one that is open.
func whichIncident(c config, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	all, err := audit.List(c.State)
	if err != nil {
		return "", err
	}
	var open []audit.Summary
	for _, s := range all {
		if s.State.IsOpen() {
			open = append(open, s)
		}
	}
	if found := latest(open, nil); found != nil {
		return found.ID, nil
	}
	return "", fail(exitNeeds, "no incident is open: name the one to pack").hinting("ic audit show prints the last one")
}

// pack writes the file whole or not at all.
func (a *app) pack(b *bench, id, path string) error {
	f, err := newFile(path)
	if err != nil {
		return err
	}
	sum := sha256.New()
	m, err := b.Pack(io.MultiWriter(f, sum), id, b.config.Person, b.now)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	out := packed{File: path, SHA256: hex.EncodeToString(sum.Sum(nil)), Manifest: m}
	return a.print(out, func(w io.Writer) {
		fmt.Fprintf(w, "incident %s is in %s: %s\n  sha256 %s\n", m.Incident, out.File, counted(len(m.Files), "session"), out.SHA256)
		for _, h := range m.Heads {
			fmt.Fprintf(w, "  head   %s at %d, root %.16s\n", h.Origin, h.Size, h.Root)
		}
		fmt.Fprintln(w, "on the other machine: ic incident unpack FILE, then ic incident accept (offered) or take (lapsed)")
	})
}

func (a *app) incidentUnpackCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "unpack FILE",
		Short: "Take an incident over from another machine",
		Long: `Read a pack to its end, verify every log in it together with those that are here, and
only then add what is new. A log that is here is never overwritten: the pack may continue
it, equal it or be behind it. Anything else fails with exit code 5 and changes nothing.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := a.bench(cmd)
			if err != nil {
				return err
			}
			f, err := os.Open(args[0])
			if err != nil {
				return fail(exitUsage, "read the pack: %w", err)
			}
			defer f.Close()
			got, err := b.Unpack(f)
			if err != nil {
				return err
			}
			return a.printUnpacked(&got, b.now)
		},
	}
}

func (a *app) printUnpacked(got *incident.Unpacked, now time.Time) error {
	s := &got.State
	view := struct {
		Incident  model.Incident    `json:"incident"`
		Open      bool              `json:"open"`
		Command   string            `json:"command"`
		Logs      map[string]string `json:"logs"`
		Issued    int               `json:"issued"`
		Proposals int               `json:"proposals"`
		By        string            `json:"packed_by"`
	}{s.Incident, s.IsOpen(), incident.CommandText(&s.Incident.Lease, now), got.Logs, len(s.Issued), len(s.Proposals), got.Manifest.By}
	return a.print(view, func(w io.Writer) {
		state := "closed"
		if view.Open {
			state = "open; " + view.Command
		}
		fmt.Fprintf(w, "incident %s is here: %s, %s, %d waiting; %s\n", s.Incident.ID, counted(len(got.Logs), "session"), counted(view.Issued, "directive"), view.Proposals, state)
		for _, name := range sortedKeys(got.Logs) {
			fmt.Fprintf(w, "  %-9s %s\n", got.Logs[name], name)
		}
	})
}
