package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/spf13/cobra"
)

func (a *app) incidentCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "incident", Short: "Open, take, give, close, show", Args: cobra.NoArgs, RunE: a.showIncident}
	title := ""
	open := a.commandCmd("open", "Open an incident and take command", incident.Open, cobra.NoArgs, nil, &title)
	open.Flags().StringVar(&title, "title", "", "what it is about")
	note := ""
	closing := a.commandCmd("close", "Close the incident; refused while something is still owed", incident.CloseIt, cobra.NoArgs, nil, &note)
	closing.Flags().StringVar(&note, "note", "", "last words for the log")
	none, deputy := "", ""
	take := a.commandCmd("take", "Take command, or renew it, for 3 hours", incident.Take, cobra.NoArgs, &deputy, &none)
	take.Flags().StringVar(&deputy, "deputy", "", "who may take command at once if it lapses")
	cmd.AddCommand(open, take,
		a.commandCmd("give PERSON", "Offer command to somebody", incident.Offer, cobra.ExactArgs(1), nil, &none),
		a.commandCmd("accept", "Accept command that was offered", incident.Accept, cobra.NoArgs, nil, &none),
		a.commandCmd("deputy PERSON", "Name who may take command at once if it lapses", incident.Deputise, cobra.ExactArgs(1), nil, &none),
		a.commandCmd("relinquish", "Give command up", incident.Relinquish, cobra.NoArgs, nil, &none),
		closing,
		&cobra.Command{Use: "show", Short: "The open incident, who commands it and what keeps it open", Args: cobra.NoArgs, RunE: a.showIncident},
		a.incidentReviewCmd(), a.incidentReviewsCmd(), a.incidentWaiveCmd(), a.incidentPackCmd(), a.incidentUnpackCmd(),
	)
	return cmd
}

// commandCmd is a command about command itself. Whom it is about is its argument,
// or what a flag has put into person.
func (a *app) commandCmd(use, short string, action incident.Action, args cobra.PositionalArgs, person, note *string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
				if _, err := a.confirm(short+".", ""); err != nil {
					return err
				}
				whom := strings.Join(args, "")
				if person != nil {
					whom = *person
				}
				result, err := d.Command(ctx, action, whom, *note)
				if err != nil {
					return err
				}
				return a.print(result, func(w io.Writer) { fmt.Fprintln(w, result.Detail) })
			})
		},
	}
}

func (a *app) showIncident(cmd *cobra.Command, _ []string) error {
	return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
		d.Refresh(ctx)
		s := d.Snapshot()
		view := struct {
			Incident model.Incident     `json:"incident"`
			Command  string             `json:"command"`
			Blockers []string           `json:"blockers"`
			Owed     []incident.Owed    `json:"owed"`
			Log      []incident.LogLine `json:"log"`
		}{s.World.Incident, incident.CommandText(&s.World.Incident.Lease, s.At), s.Blockers, s.Owed, s.Log}
		return a.print(view, func(w io.Writer) {
			fmt.Fprintln(w, incidentLine(&s.World))
			for _, b := range s.Blockers {
				fmt.Fprintf(w, "  keeps it open: %s\n", b)
			}
			for _, o := range s.Owed {
				fmt.Fprintf(w, "  owed: %s\n", o.Text())
			}
			for _, l := range s.Log {
				fmt.Fprintf(w, "  %s  %-8s %s\n", l.At.UTC().Format("15:04:05Z"), l.Actor, l.Text)
			}
		})
	})
}

func (a *app) cosignCmd() *cobra.Command {
	list := false
	cmd := &cobra.Command{
		Use:   "cosign [FILE | ID]",
		Short: "Sign somebody's proposal, or carry one that is complete",
		Long: `Read a proposal from FILE or, without one, from standard input (paste it), show
what it would do, and add your signature. Approving is a signature over exactly these
bytes; there is no other kind. When the proposal is complete, it is carried.

--list shows what waits, in the log here or in the flag service; ID, or the end of
it, takes one of those.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return a.withDesk(cmd, a.listProposals)
			}
			text, err := a.readProposal(args)
			named := errors.Is(err, fs.ErrNotExist)
			if err != nil && !named {
				return err
			}
			return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
				if named {
					d.Refresh(ctx)
					if text, err = proposalNamed(d, args[0]); err != nil {
						return err
					}
				}
				p, err := d.ReadProposal(ctx, text)
				if err != nil {
					return err
				}
				describeApproval(a.err, &p)
				asked, err := a.confirm("", p.Typed)
				if err != nil {
					return err
				}
				result, err := d.Cosign(ctx, p, asked)
				return a.finish(&result, err)
			})
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "show what waits for signatures")
	return cmd
}

func (a *app) listProposals(ctx context.Context, d *incident.Desk) error {
	d.Refresh(ctx)
	waiting := append([]incident.Proposal{}, d.Snapshot().Proposals...) // in JSON a list, also when it is empty
	return a.print(waiting, func(w io.Writer) {
		if len(waiting) == 0 {
			fmt.Fprintln(w, "nothing waits for a signature, as far as is known here")
		}
		for _, p := range waiting {
			fmt.Fprintf(w, "%s  %s: %s\n", incident.ShortID(p.Directive.ID), incident.TitleOf(&p.Directive), p.Needs)
		}
	})
}

// proposalNamed finds the text of a proposal that waits by its id or the end of it.
func proposalNamed(d *incident.Desk, id string) (string, error) {
	var found []string
	for _, p := range d.Snapshot().Proposals {
		if p.Directive.ID == id || len(id) >= len(incident.ShortID(p.Directive.ID)) && strings.HasSuffix(p.Directive.ID, id) {
			found = append(found, p.Token)
		}
	}
	if len(found) != 1 {
		return "", fail(exitUsage, "%q is no file, and the id of %d proposals that wait", id, len(found)).hinting("ic cosign --list shows what waits")
	}
	return found[0], nil
}

func (a *app) readProposal(args []string) (string, error) {
	if len(args) == 0 {
		if a.terminal() {
			fmt.Fprintln(a.err, "paste the proposal and press Enter:")
		}
		return a.pasted()
	}
	info, err := os.Stat(args[0])
	if err != nil {
		return "", fail(exitUsage, "read the proposal: %w", err)
	}
	if info.Size() > maxAnswer+2 { // and the end of its line
		return "", fail(exitUsage, "read the proposal %s: %d bytes, at most %d", args[0], info.Size(), maxAnswer)
	}
	raw, err := os.ReadFile(args[0])
	if err != nil {
		return "", fail(exitUsage, "read the proposal: %w", err)
	}
	return string(raw), nil
}

// pasted is the first line that is not empty: what is pasted may begin with the
// blank line that was printed before it.
func (a *app) pasted() (string, error) {
	for {
		line, err := readLine(a.in)
		if line = strings.TrimSpace(line); line != "" && (err == nil || errors.Is(err, io.EOF)) {
			return line, nil
		}
		switch {
		case errors.Is(err, io.EOF):
			return "", fail(exitUsage, "no proposal was pasted").hinting("it is the long line that begins with ic1; or name a FILE that holds it")
		case err != nil:
			return "", fail(exitUsage, "read the proposal: %w", err)
		}
	}
}

func describeApproval(w io.Writer, p *incident.Approval) {
	d := &p.Directive
	fmt.Fprintf(w, "%s\n  right       %s\n  asked by    %s\n  signed by   %s\n  why         %s\n", p.Title, d.Right, p.Requester, strings.Join(p.Signers, ", "), d.Reason)
	if p.Left > 0 {
		fmt.Fprintf(w, "  window      %s to %s: %s left\n", d.NotBefore.UTC().Format("15:04:05Z"), d.NotAfter.UTC().Format("15:04:05Z"), p.Left.Round(time.Second))
	}
	if e := p.Exposure; e != nil {
		fmt.Fprintf(w, "  worst case  at most %s: (%d hosts + %d) x %s a day; each item under %s\n", e.WorstCase, e.Hosts, e.Replacements, e.PerHost, e.Under)
		describeOthers(w, e)
	}
	for _, r := range p.Reasons {
		fmt.Fprintf(w, "  needs       %s\n", r)
	}
}
