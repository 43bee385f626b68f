package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/promrules"
	"github.com/spf13/cobra"
)

// finding is one line of the doctor.
type finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

func (a *app) doctorCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Would everything work tonight? Key, policy, log, clock, flag service, signals, hosts, backends",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load(cmd)
			if err != nil {
				return err
			}
			findings := a.examine(cmd.Context(), c)
			for _, f := range findings {
				if !f.OK {
					a.code = exitFailed
				}
			}
			return a.print(findings, func(w io.Writer) {
				t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
				for _, f := range findings {
					mark := "ok"
					if !f.OK {
						mark = "FAILED"
					}
					fmt.Fprintf(t, "%s\t%s\t%s\n", mark, f.Name, f.Detail)
					if !f.OK && f.Remedy != "" {
						fmt.Fprintf(t, "\t\t-> %s\n", f.Remedy)
					}
				}
				t.Flush()
			})
		},
	}
}

func (a *app) examine(ctx context.Context, c config) []finding {
	var out []finding
	say := func(name string, ok bool, detail, remedy string) {
		out = append(out, finding{Name: name, OK: ok, Detail: detail, Remedy: remedy})
	}
	if err := writable(c.State); err != nil {
		say("state folder", false, err.Error(), "the log needs a local disk that takes a file; a bypass is refused without")
	} else {
		say("state folder", true, c.State, "")
	}
	d, b, err := a.desk(ctx, c)
	if err != nil {
		remedy := "ic policy inspect"
		var f *failure
		if errors.As(err, &f) && f.hint != "" {
			remedy = f.hint
		}
		say("policy", false, err.Error(), remedy)
		return out
	}
	defer d.Close()
	s, err := a.world(c)
	if err != nil {
		say("clock", false, err.Error(), "")
		return out
	}
	days := int(b.Expires().Sub(s.clock.Now().Wall) / (24 * time.Hour))
	say("policy", days > 0, fmt.Sprintf("version %d, %d days left", b.Ref.Version, days), "sign a new version: after the end only tightening and recovery are left")
	inactive := ""
	for _, domain := range b.Domains {
		if !domain.Active {
			inactive += fmt.Sprintf("%s: %s. ", domain.Domain, domain.Why)
		}
	}
	say("domains", inactive == "", orElse(inactive, "all are active"), "ic policy inspect")
	state := s.clock.Now().State
	say("clock", state == model.ClockOK || state == model.ClockUnknown, string(state), "a bypass is refused without a clock that can be trusted: check NTP")
	d.Refresh(ctx)
	snap := d.Snapshot()
	say("key", snap.Person != "", orElse(snap.Person, "no key of yours is in the trust root"), "ic keys check")
	a.examineTokens(ctx, c, b, say)
	examineQueries(b, say)
	a.examineSources(&snap, say)
	checked := d.CheckBackends(ctx, "")
	for _, name := range sortedKeys(checked) {
		for _, f := range checked[name] {
			say("backend "+name+": "+f.Name, f.OK, f.Detail, "ic break check "+name)
		}
	}
	return out
}

func (a *app) examineSources(snap *incident.Snapshot, say func(name string, ok bool, detail, remedy string)) {
	for _, carrier := range snap.Carriers {
		remedy := "docs/how-to/when-etcd-is-in-trouble.md; breaking glass does not need it"
		if len(carrier.Lacks) > 0 {
			remedy = "ic reissue"
		}
		say("flag service "+carrier.Name, carrier.Connected && carrier.Detail == "", orElse(carrier.Detail, "answers"), remedy)
	}
	if clock := &snap.SignalsClock; clock.State != "" {
		say("clock of the signals", clock.State != incident.ClocksDiffer, clock.Text(), "compare both with a third clock; chronyc tracking, or timedatectl, says which is synchronised")
	}
	for _, signal := range snap.Signals {
		ok := signal.Reading.State == model.ReadingValue
		detail := signal.Text
		if signal.Reading.Detail != "" {
			detail += ": " + signal.Reading.Detail
		}
		say("signal "+signal.Name, ok, detail, "no tier is left on a signal that is not known")
	}
	inv := &snap.World.Inventory
	say("inventory", inv.Detail == "" && !tooOld(inv, snap.At), inventoryText(inv, snap.At), "the query of the policy's inventory, and Prometheus; until then the last known list counts")
	reached := snap.Skew.Hosts - snap.Skew.Unreachable
	say("hosts", snap.Skew.Unreachable == 0 && snap.Skew.Hosts > 0, fmt.Sprintf("%d of %d report", reached, snap.Skew.Hosts), "ic status names them")
}

// examineQueries says what a look at the queries of the policy has found. They are
// looked at whenever the policy is loaded, and asked all the same.
func examineQueries(b *policy.Bundle, say func(name string, ok bool, detail, remedy string)) {
	flaws := queryFlaws(b)
	for _, name := range sortedKeys(flaws) {
		say("query of "+name, false, flaws[name], "ic policy lint, and a new version of the policy")
	}
	if len(flaws) == 0 && len(b.Signals) > 0 {
		say("queries", true, fmt.Sprintf("all %d can be read and yield one series", len(b.Signals)), "")
	}
	var unreadable *promrules.SyntaxError
	if query := b.Inventory.Query; query != "" && errors.As(promrules.OneSeries(query), &unreadable) {
		say("query of the inventory", false, unreadable.Sentence, "ic policy lint, and a new version of the policy")
	}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// writable proves that a file can be made durable in a folder.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, ".ic-doctor")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	if _, err := f.WriteString("ic"); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
