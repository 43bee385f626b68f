package score

import (
	"fmt"
	"strings"

	"github.com/degradedmode/ic/internal/untrusted"
)

// Player is what kind of somebody acted in a run with ic.
type Player string

// The players of a run.
const (
	ByPerson  Player = "person"  // somebody at the console
	ByMachine Player = "machine" // nobody: the scenario acted, or a runbook with fixed answers
	ByScript  Player = "script"  // nobody: the acts of a file
)

// Played says who acted in a run, in which seat and how fast. A record from before
// it was written down has none.
type Played struct {
	By    Player `json:"by"`
	Who   string `json:"who,omitempty"`   // of the scenario: whose seat the console was, or who followed the runbook
	Role  string `json:"role,omitempty"`  // of that person
	Speed int    `json:"speed,omitempty"` // at the console: how many times real time

	// At the console: what the person asked for, granted or not; the acts of the
	// scenario that were left to the person; and the runbook that was to be followed.
	// With nobody there: the acts that were done, and those that were planned.
	Acts    int    `json:"acts,omitempty"`
	Due     int    `json:"due,omitempty"`
	Runbook string `json:"runbook,omitempty"`
	Begun   bool   `json:"begun,omitempty"`
}

// Seat is what kind of player it was and in whose seat: two runs have to share it to
// be compared with each other. The speed is no part of it.
func (p *Played) Seat() string {
	if p == nil {
		return ""
	}
	return string(p.By) + " " + p.Who
}

// String is who played, for people.
func (p *Played) String() string {
	who := ""
	if p != nil && p.Who != "" {
		who = untrusted.Text(p.Who, maxText)
		if p.Role != "" {
			who += " (" + untrusted.Text(p.Role, maxText) + ")"
		}
	}
	switch {
	case p == nil:
		return "nothing says by whom"
	case p.By == ByPerson:
		return "a person at the console as " + who
	case p.By == ByScript:
		return "unattended, by a script"
	case who != "":
		return "unattended, " + who + " follows the runbook"
	default:
		return "unattended"
	}
}

// speed is how fast the console went, in words; "" where there was none.
func (p *Played) speed() string {
	switch {
	case p == nil || p.Speed == 0:
		return ""
	case p.Speed == 1:
		return "real time"
	default:
		return fmt.Sprintf("%d x real time", p.Speed)
	}
}

// Idle says why a rehearsal has practised nobody, or not what it was for; "": it
// has.
func (p *Played) Idle() string {
	switch {
	case p == nil:
		return ""
	case p.By != ByPerson:
		return p.undone()
	case p.Acts == 0 && p.Due > 0:
		left := fmt.Sprintf("%d acts of the scenario were", p.Due)
		if p.Due == 1 {
			left = "an act of the scenario was"
		}
		return fmt.Sprintf("%s did nothing at the console, and %s left to that seat: nothing was rehearsed by anybody", untrusted.Text(p.Who, maxText), left)
	case p.Runbook != "" && !p.Begun:
		return fmt.Sprintf("the runbook %s was never begun: nobody has rehearsed it", untrusted.Text(p.Runbook, maxText))
	default:
		return ""
	}
}

// undone says that nothing came of what was planned for nobody at a console.
func (p *Played) undone() string {
	of := "scenario"
	if p.By == ByScript {
		of = "script"
	}
	switch {
	case p.Acts > 0 || p.Due == 0:
		return ""
	case p.Due == 1:
		return "the one act of the " + of + " was not done: nothing was rehearsed"
	default:
		return fmt.Sprintf("none of the %d acts of the %s was done: nothing was rehearsed", p.Due, of)
	}
}

// Planned writes down how many acts were planned for nobody at a console, and how many
// of them the record shows to be done. Waiting is none.
func (p *Played) Planned(acts int, r *Record) {
	p.Due = acts
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == Step && !strings.HasPrefix(e.What, Waits) {
			p.Acts++
		}
	}
}

// Waits begins what is written down of somebody who looks at the console and waits for
// the next step.
const Waits = "waits: "
