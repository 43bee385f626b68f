package tui

import "github.com/degradedmode/ic/internal/decisions"

// view is one of the six pages. It is a plain struct: it holds what is selected
// and scrolled, and nothing that it was not shown.
type view interface {
	Size(width, height int)
	Update(sc *scene, a action) outcome
	Draw(sc *scene) page
	Keys() []ownKey
}

// filtered is a view whose list can be filtered.
type filtered interface{ list() *listing }

// outcome is what came of a key in a view.
type outcome struct {
	handled bool
	wish    any    // an ask, plan, push or undo wish; nil: nothing
	says    string // why the key could not act
}

// What a view may wish for. The model turns a wish into a question to the desk.
type (
	askWish  struct{ ask decisions.Ask }
	planWish struct{ backend string }
	pushWish struct{}
)

// ok is the outcome of a key that only moved something.
func ok() outcome { return outcome{handled: true} }

// cannot is the outcome of a key that says why it does nothing.
func cannot(why string) outcome { return outcome{handled: true, says: why} }

// lowView is the height below which a view leaves out what introduces it.
const lowView = 8

// scroll is a view's place in more lines than fit.
type scroll struct{ top int }

// move handles the keys that scroll; ok is false if the action is none of them.
func (s *scroll) move(a action, lines, height int) bool {
	step := max(height-1, 1)
	switch a {
	case moveUp:
		s.top--
	case moveDown:
		s.top++
	case pageUp:
		s.top -= step
	case pageDown:
		s.top += step
	case moveTop:
		s.top = 0
	case moveBottom:
		s.top = lines
	default:
		return false
	}
	s.top = min(max(s.top, 0), max(lines-height, 0))
	return true
}

// scrolling are the keys of a view that only scrolls.
func scrolling() []ownKey {
	return []ownKey{{act: moveDown}, {act: moveUp}, {act: pageDown}, {act: pageUp}, {act: moveTop}, {act: moveBottom}}
}
