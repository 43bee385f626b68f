package ladder

import (
	"cmp"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Input is everything that a move depends on.
type Input struct {
	Bundle  *policy.Bundle
	World   *model.World
	Moves   []Move // as MovesOf gives them: of every incident, oldest first
	Machine string // who would sign
	// Blind says of a signal since when it was seen to be anything but a value, by
	// whoever has looked all the time; a signal that is a value, or was not looked
	// at, is not in it.
	Blind map[string]time.Time
}

// Purpose is what a move is for.
type Purpose string

// Purposes.
const (
	Enter Purpose = "enter" // the conditions of a tier hold
	Blind Purpose = "blind" // signals are missing that could hold them
	Event Purpose = "event" // the schedule wants the tier
	Halt  Purpose = "halt"  // a gate failed in the middle of a ramp: all hosts back to where it began
	Leave Purpose = "leave" // the next step of a recovery
)

// Proposal is a move that decisions permits.
type Proposal struct {
	Purpose Purpose       `json:"purpose"`
	Ask     decisions.Ask `json:"ask"`
	Request model.Request `json:"request"`
	Cause   []Cause       `json:"cause"` // signals and their values; none for an event
	Text    string        `json:"text"`  // all of it in one sentence
}

// Outcome is what the ladder comes to.
type Outcome struct {
	Move   *Proposal `json:"move,omitempty"`
	Why    []string  `json:"why"`            // why nothing else moves, as sentences
	Alarms []Alarm   `json:"alarms"`         // what a person has to be told, as long as it lasts
	Again  time.Time `json:"again,omitzero"` // when time alone may change this; zero: nobody can say
	Target int       `json:"target"`         // highest tier that the signals call for, automatic or not
	Turns  int       `json:"turns"`          // by machines, in the window of the flap guard
	Spent  int64     `json:"spent_s"`        // seconds at tier 2 and above this month
	Latch  time.Time `json:"latch,omitzero"` // since when the ladder is latched; zero: it is not
	Frozen bool      `json:"frozen"`         // a freeze stands in the way of a move
	Last   time.Time `json:"last,omitzero"`  // when a machine moved it last
}

// look is one call of Next.
type look struct {
	Input
	b     *policy.Bundle
	w     *model.World
	now   time.Time
	calls []call // by tier, ascending
	flaps flapping
	last  time.Time
	out   Outcome
}

// Next is at most one move: first what takes away, then what the schedule wants,
// then what gives back.
func Next(in Input) Outcome {
	if in.Bundle == nil || in.World == nil || in.Bundle.Root == nil {
		return Outcome{Why: []string{"there is no policy and no world to look at"}}
	}
	l := &look{Input: in, b: in.Bundle, w: in.World, now: in.World.Now}
	l.flaps, l.last = flapsAt(&l.b.Automatic, l.Moves, l.now), lastAutomatic(l.Moves)
	l.out = Outcome{
		Why: []string{}, Turns: l.flaps.turns, Latch: l.flaps.latched,
		Spent: int64(spent(l.Moves, l.now) / time.Second),
	}
	for i := range l.b.Tiers {
		l.calls = append(l.calls, l.callOf(&l.b.Tiers[i]))
	}
	slices.SortFunc(l.calls, func(x, y call) int { return cmp.Compare(x.tier.Tier, y.tier.Tier) })
	l.out.Target = l.target()
	l.alarms()
	switch {
	case len(l.b.Tiers) == 0:
		l.because("the policy in force has no ladder (ic policy inspect)")
	case !l.flaps.latched.IsZero():
		l.because("the ladder is latched since " + clock(l.flaps.latched) + ": a person releases it")
	default:
		for _, attempt := range []func() *Proposal{l.enter, l.halt, l.event, l.leave} {
			if l.out.Move = attempt(); l.out.Move != nil {
				break
			}
		}
	}
	slices.Sort(l.out.Why)
	l.out.Why = slices.Compact(l.out.Why)
	return l.out
}

func (l *look) because(why string) { l.out.Why = append(l.out.Why, why) }

// again notes a moment at which this should be looked at once more.
func (l *look) again(at time.Time) {
	if at.After(l.now) && (l.out.Again.IsZero() || at.Before(l.out.Again)) {
		l.out.Again = at
	}
}

// target is the highest tier that values call for, whoever may enter it.
func (l *look) target() int {
	for _, c := range slices.Backward(l.calls) {
		if c.held {
			return c.tier.Tier
		}
	}
	return 0
}

// enter sheds where a tier is called for that is higher than the one in force, or
// that a ramp is leaving.
func (l *look) enter() *Proposal {
	for _, scope := range l.entered() {
		chain := decisions.ChainOf(l.w, scope)
		standing := chain.Tier
		if scope != model.AnyScope {
			standing = max(standing, decisions.ChainOf(l.w, model.AnyScope).Tier)
		}
		for _, c := range slices.Backward(l.calls) {
			if !c.held && !c.blind {
				continue
			}
			tier := min(c.tier.Tier, l.b.LastTier(scope))
			ramped := chain.Ramp != nil && tier == chain.Tier
			if tier < standing || tier == standing && !ramped || l.shedRight(scope, tier) == "" {
				continue
			}
			purpose, causes := Enter, c.causes
			switch {
			case ramped:
				purpose = Halt
			case !c.held:
				purpose = Blind
			}
			if p := l.shed(scope, tier, purpose, causes, sentence(causes)); p != nil {
				return p
			}
		}
	}
	return nil
}

// halt sheds at the tier that a ramp is leaving when a condition for leaving it is
// known to be broken. Where that is not known the ramp stays where it is.
func (l *look) halt() *Proposal {
	for _, scope := range l.shedScopes() {
		chain := decisions.ChainOf(l.w, scope)
		causes := l.broken(&chain)
		if len(causes) == 0 || l.shedRight(scope, chain.Tier) == "" {
			continue
		}
		if p := l.shed(scope, chain.Tier, Halt, causes, "a gate of the ramp failed: "+sentence(causes)); p != nil {
			return p
		}
	}
	return nil
}

// event enters the tier that the schedule wants from its first second on, also
// where a ramp is just leaving it. Once a person has moved the ladder while it
// runs, it is his to decide.
func (l *look) event() *Proposal {
	for _, event := range decisions.EventsNow(l.b, l.w) {
		if !event.Running {
			l.again(event.From)
			continue
		}
		scopes := event.Lacks
		for _, scope := range l.shedScopes() {
			chain := decisions.ChainOf(l.w, scope)
			if chain.Ramp != nil && chain.Tier == event.Tier && (covers(event.Scope, scope) || scope == model.AnyScope) {
				scopes = append(scopes, scope)
			}
		}
		for _, scope := range scopes {
			tier := min(event.Tier, l.b.LastTier(scope))
			if l.shedRight(scope, tier) == "" || l.takenOver(scope, event.From) {
				continue // the first is an alarm
			}
			if p := l.shed(scope, tier, Event, nil, event.Name+" runs since "+clock(event.From)); p != nil {
				return p
			}
		}
	}
	return nil
}

// takenOver reports whether a person has moved a scope since a moment.
func (l *look) takenOver(scope string, since time.Time) bool {
	return slices.ContainsFunc(l.Moves, func(m Move) bool {
		return !m.Automatic && m.moves() && !m.At.Before(since) && (m.Scope == scope || m.Scope == model.AnyScope || scope == model.AnyScope)
	})
}

// shed proposes one, or says why not now.
func (l *look) shed(scope string, tier int, purpose Purpose, causes []Cause, text string) *Proposal {
	if !l.b.Automatic.ShedAtOnce && l.tooSoon("a shed to tier "+number(tier)) {
		return nil
	}
	ask := decisions.Ask{Right: l.shedRight(scope, tier), Scope: scope, Tier: tier, Actor: l.Machine}
	return l.propose(purpose, ask, causes, text)
}

// leave proposes the next step of a recovery, of the machine's own or of a ramp
// that a commander has begun.
func (l *look) leave() *Proposal {
	for _, scope := range l.shedScopes() {
		chain := decisions.ChainOf(l.w, scope)
		tier, known := l.b.TierOf(chain.Tier)
		right := l.recoverRight(scope, chain.Tier)
		switch what := "leaving tier " + number(chain.Tier); {
		case !known || !tier.Auto || right == "":
			l.because(what + " of " + named(scope) + " is for people")
			continue
		case l.callsFor(&tier):
			continue // it has said why
		case l.tooSoon(what):
			continue
		case chain.Ramp == nil && l.flaps.turns+1 > l.b.Automatic.Flaps:
			l.because(what + " would be one turn more than the flap guard allows in " + l.b.Automatic.FlapWindow.String())
			continue
		}
		causes := l.leaveCauses(&tier)
		ask := decisions.Ask{Right: right, Scope: scope, Tier: decisions.NextTier, Actor: l.Machine}
		if p := l.propose(Leave, ask, causes, sentence(causes)); p != nil {
			return p
		}
	}
	return nil
}

// tooSoon holds two moves by machines apart.
func (l *look) tooSoon(what string) bool {
	next := l.last.Add(l.b.Automatic.Every.Std())
	if l.last.IsZero() || !l.now.Before(next) {
		return false
	}
	l.again(next)
	l.because(what + " waits until " + clock(next) + ": " + l.b.Automatic.Every.String() + " between two automatic moves")
	return true
}

// propose drafts what is asked and has it judged; what is not permitted is no
// move, and its reasons are why.
func (l *look) propose(purpose Purpose, ask decisions.Ask, causes []Cause, text string) *Proposal {
	ask.Reason, ask.Evidence = shortened(text), text
	request, err := decisions.Draft(l.b, l.w, ask)
	if err != nil {
		l.because(err.Error())
		return nil
	}
	verdict := decisions.Evaluate(l.b, l.w, &request)
	if verdict.Outcome == model.Permitted {
		return &Proposal{Purpose: purpose, Ask: ask, Request: request, Cause: causes, Text: text}
	}
	for _, r := range verdict.Reasons {
		l.because(decisions.Sentence(r))
		switch r.Code {
		case decisions.Dwell, decisions.RampStep:
			l.again(l.now.Add(r.Wait.Std()))
		case decisions.Frozen:
			l.out.Frozen = true
			l.again(r.At)
		}
	}
	return nil
}
