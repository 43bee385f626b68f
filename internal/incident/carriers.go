package incident

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// Missing is a directive that a carrier does not hold although a host has to know
// it: in force, to come, or an ending.
type Missing struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Lost   bool   `json:"lost"`             // the carrier acknowledged it once
	Barred string `json:"barred,omitempty"` // why ic reissue leaves it out
	token  string
	of     string // incident
}

func (d *Desk) carriersOf(w *model.World, h *heard) []CarrierView {
	out := make([]CarrierView, len(h.carriers))
	for i := range h.carriers {
		c := &h.carriers[i]
		v := CarrierView{Name: d.o.Carriers[i].Name(), Connected: c.err == nil && !c.readAt.IsZero(), ReadAt: c.readAt}
		switch {
		case c.err != nil:
			v.Detail = c.err.Error()
		case v.Connected:
			v.Lacks = d.lacking(w, v.Name, c)
			v.Detail = strings.Join(slices.DeleteFunc([]string{c.note, lacksText(v.Lacks)}, func(s string) bool { return s == "" }), "; ")
		}
		out[i] = v
	}
	return out
}

// wholeSecond is how exact issued_at is.
const wholeSecond = time.Second

// lacking lists what a host would not learn from a carrier that was read. What was
// issued after the read is not known to be missing.
func (d *Desk) lacking(w *model.World, name string, c *carrierState) []Missing {
	var out []Missing
	for i := range w.Issued {
		is := &w.Issued[i]
		if !needed(is, w) || c.readAt.Sub(is.Directive.IssuedAt) <= wholeSecond || d.holdsToken(c, is) {
			continue
		}
		if _, underway := d.inFlight.Load(is.Directive.ID); underway {
			continue
		}
		out = append(out, Missing{
			ID: is.Directive.ID, Title: TitleOf(&is.Directive), Lost: slices.Contains(is.Carried, name), Barred: d.barred(is, w),
			token: is.Token, of: is.Directive.Incident,
		})
	}
	return out
}

// needed is what every host has to know: what is in force or to come, and every
// ending, which costs little and repairs a host that has missed it.
func needed(is *model.Issued, w *model.World) bool {
	return is.Token != "" && (is.LiveAt(w.Now) || is.EndedBy == "" && w.Now.Before(is.Directive.NotBefore))
}

// holdsToken: another text under the id is not it, whoever wrote it there.
func (d *Desk) holdsToken(c *carrierState, is *model.Issued) bool {
	token, there := c.tokens[is.Directive.ID]
	if !there || token == is.Token {
		return there
	}
	signed := d.seen.verify(token, d.o.Realm, d.o.Fleet)
	return signed != nil && signed.Directive.ID == is.Directive.ID
}

// barred says why a token is not handed to a carrier again, "" when it may be:
// hosts would not take it, or nobody knows whether it ever left this console.
func (d *Desk) barred(is *model.Issued, w *model.World) string {
	signed := d.seen.verify(is.Token, d.o.Realm, d.o.Fleet)
	if signed == nil {
		return "its signatures do not hold"
	}
	if code := d.o.Bundle.Admit(&signed.Directive, signed.Fingerprints(), minTime(w.Now, signed.Directive.IssuedAt)); code != "" {
		return fmt.Sprintf("hosts would refuse it (%s): give it again under another key", code)
	}
	if is.Outcome == "" && d.o.Bundle.Direction(&is.Directive) == model.Loosen {
		return "what became of it is UNKNOWN: ic status reads it"
	}
	return ""
}

// lacksText says in a sentence what a carrier lacks and what to do.
func lacksText(lacks []Missing) string {
	if len(lacks) == 0 {
		return ""
	}
	names, lost := make([]string, len(lacks)), 0
	for i, m := range lacks {
		names[i] = ShortID(m.ID)
		if m.Lost {
			lost++
		}
	}
	text := fmt.Sprintf("it lacks %s", some(names))
	if lost > 0 {
		text += fmt.Sprintf(": it once held %s and was emptied or put back to an earlier state", those(lost, len(lacks)))
	}
	return text + "; hosts keep what they hold; ic reissue hands over the same signed texts again"
}

func those(n, of int) string {
	switch {
	case n == of && n == 1:
		return "it"
	case n == of:
		return "them"
	}
	return fmt.Sprintf("%d of them", n)
}
