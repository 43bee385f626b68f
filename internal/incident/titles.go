package incident

import (
	"fmt"
	"strings"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
)

// TitleOf says what a directive does, in one short line.
func TitleOf(d *model.Directive) string {
	where := d.Scope
	if where == model.AnyScope {
		where = "all services"
	}
	switch d.Kind {
	case model.Shed:
		return fmt.Sprintf("shed %s to tier %d", where, d.Tier)
	case model.Off:
		return fmt.Sprintf("switch %s off for %s", d.Feature, where)
	case model.Bypass:
		return fmt.Sprintf("skip %s under %s at %s until %s", d.Control, d.Caps.Under, where, d.NotAfter.UTC().Format("15:04:05Z"))
	case model.Freeze:
		return fmt.Sprintf("freeze recovery and opening for %s until %s", where, d.NotAfter.UTC().Format("15:04:05Z"))
	case model.Dimmer:
		return fmt.Sprintf("dim optional work of %s between %d and %d %%", where, d.Floor, d.Ceiling)
	case model.Ping:
		return fmt.Sprintf("ping %s", where)
	case model.End:
		if d.IsRecovery() {
			return fmt.Sprintf("recover %s from tier %d to %d on %d %% of hosts", where, d.From, d.To, d.Percent)
		}
		return fmt.Sprintf("end %s of %s (%s)", d.Ends, where, strings.Join(short(d.IDs), ", "))
	default:
		return fmt.Sprintf("%s (not known to this version)", d.Kind)
	}
}

// idTail is how many characters of a ULID tell directives of one night apart.
const idTail = 6

// ShortID is the tail of an id, for people.
func ShortID(id string) string {
	if len(id) <= idTail {
		return id
	}
	return id[len(id)-idTail:]
}

func short(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = ShortID(id)
	}
	return out
}

// typedFor is the text that a confirmation asks for: nothing for tightening, the
// specific thing for everything else.
func typedFor(d *model.Directive, direction model.Direction) string {
	switch {
	case direction == model.Tighten:
		return ""
	case d.Kind == model.Bypass:
		return fmt.Sprintf("skip %s", d.Control)
	case d.IsRecovery():
		return fmt.Sprintf("tier %d", d.To)
	default:
		return fmt.Sprintf("end %s", d.Ends)
	}
}

func sentences(v *model.Verdict) []string {
	out := make([]string, len(v.Reasons))
	for i, r := range v.Reasons {
		out[i] = decisions.Sentence(r)
	}
	return out
}
