package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// maxHosts bounds how many hosts ic status names: a screen has 24 lines, and
// --json has all of them.
const maxHosts = 12

// printSkew counts the hosts that have what was issued and names those that have
// not: what each lacks, how old its word is, and which of its sources is oldest.
func printSkew(w io.Writer, s *incident.Snapshot) {
	if inv := &s.World.Inventory; inv.Detail != "" || tooOld(inv, s.At) {
		fmt.Fprintf(w, "inventory: %s\n", inventoryText(inv, s.At))
	}
	if s.Skew.Hosts == 0 {
		fmt.Fprintln(w, "hosts: the inventory has none")
		return
	}
	counts := []string{fmt.Sprintf("%d of %d have what was issued", s.Skew.Effective, s.Skew.Hosts)}
	for _, c := range []struct {
		n    int
		text string
	}{
		{s.Skew.Lacking, "differ"}, {s.Skew.Unreachable, "cannot be reached"},
		{s.Skew.Stale, "reported too long ago to count"}, {s.Skew.Unknown, "answered without a report"},
	} {
		if c.n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", c.n, c.text))
		}
	}
	fmt.Fprintf(w, "hosts: %s\n", strings.Join(counts, ", "))
	var named []fleet.HostSkew
	for _, h := range fleet.Skew(s.World.Issued, slices.Clone(s.World.Hosts), 0, s.At).Hosts {
		if h.State != fleet.HostEffective {
			named = append(named, h)
		}
	}
	if len(named) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  HOST\tSTATE\tLACKS\tTOO MUCH\tOLDEST SOURCE\tREPORT")
	for _, h := range named[:min(len(named), maxHosts)] {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\n", h.Host, h.State, idList(h.Lacks), idList(h.Extra), sourceText(&h), ageText(h.SeenAt, s.At))
	}
	t.Flush()
	if more := len(named) - maxHosts; more > 0 {
		fmt.Fprintf(w, "  and %d more: ic status --json has all of them\n", more)
	}
}

// tooOld: a list that is older than the policy lets it be.
func tooOld(inv *model.Inventory, now time.Time) bool {
	return inv.MaxAge > 0 && !inv.At.IsZero() && now.Sub(inv.At) > inv.MaxAge.Std()
}

// inventoryText says which hosts there should be, by whom, as of when, and what is
// wrong with that.
func inventoryText(inv *model.Inventory, now time.Time) string {
	if inv.At.IsZero() {
		return fmt.Sprintf("by %s: %s", inv.Source, orElse(inv.Detail, "there is no list"))
	}
	text := fmt.Sprintf("%s by %s, %s old", counted(inv.Hosts, "host"), inv.Source, ageText(inv.At, now))
	if tooOld(inv, now) {
		text += fmt.Sprintf(" and at most %s by the policy", inv.MaxAge)
	}
	if inv.Detail != "" {
		text += ": " + inv.Detail
	}
	return text
}

func idList(ids []string) string {
	if len(ids) == 0 {
		return "-"
	}
	return strings.Join(shortIDs(ids), " ")
}

// sourceText is the source that a host has not read for longest.
func sourceText(h *fleet.HostSkew) string {
	switch {
	case h.Source == "":
		return orElse(h.Detail, "-")
	case h.SourceAgeS < 0:
		return h.Source + ", never read"
	}
	return fmt.Sprintf("%s, %s ago", h.Source, time.Duration(h.SourceAgeS)*time.Second)
}
