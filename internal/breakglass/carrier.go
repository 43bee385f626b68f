package breakglass

import (
	"cmp"
	"slices"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/plugins/sdk"
)

// Urgency orders the tokens of a carrier value: what does not fit is what
// matters least.
type Urgency int

// From the most urgent on. What closes a control's hole comes first, what makes
// the fleet stricter next; what loosens comes last.
const (
	EndsBypass Urgency = iota
	Sheds              // and offs
	Freezes
	Recovers // ends of sheds and offs
	Rest
)

// UrgencyOf places a directive.
func UrgencyOf(d *model.Directive) Urgency {
	switch {
	case d.Kind == model.End && d.Ends == model.Bypass:
		return EndsBypass
	case d.Kind == model.Shed, d.Kind == model.Off:
		return Sheds
	case d.Kind == model.Freeze:
		return Freezes
	case d.Kind == model.End && (d.Ends == model.Shed || d.Ends == model.Off):
		return Recovers
	}
	return Rest
}

// Ranked is a token and what it says, from which its place follows.
type Ranked struct {
	Directive model.Directive
	Token     string
}

// InOrder puts tokens into the order in which a backend gets them: the more
// urgent first, of the same urgency the newer first.
func InOrder(ranked []Ranked) []sdk.Token {
	sorted := slices.Clone(ranked)
	slices.SortStableFunc(sorted, func(a, b Ranked) int {
		return cmp.Or(
			cmp.Compare(UrgencyOf(&a.Directive), UrgencyOf(&b.Directive)),
			cmp.Compare(b.Directive.ID, a.Directive.ID),
		)
	})
	out := make([]sdk.Token, len(sorted))
	for i := range sorted {
		out[i] = sdk.Token{ID: sorted[i].Directive.ID, Text: sorted[i].Token}
	}
	return out
}

// CarrierValue is what a carrier would hold, and the ids of what did not fit. A
// limit of 0, or above what hosts read, is what hosts read.
func CarrierValue(tokens []Ranked, limit int) (value string, leftOut []string) {
	if limit <= 0 || limit > directive.MaxCarrier {
		limit = directive.MaxCarrier
	}
	return sdk.Fit(InOrder(tokens), limit)
}
