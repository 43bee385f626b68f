package tui

// mode says who gets a key. There is exactly one at a time.
type mode uint16

const (
	inNormal  mode = 1 << iota // the view
	inFilter                   // the filter of the view
	inPrompt                   // one line of text
	inChoose                   // a list to choose from: palette, tiers, faults
	inConfirm                  // a dialog that one key answers
	inTyped                    // a dialog that is answered by typing a text
	inWait                     // a dialog that waits for the desk
	inResult                   // a dialog that shows what came of it
	inDecide                   // a question of a runbook with numbered answers
	inHelp                     // the help
	inLeave                    // what goes on without this console
	inEnding                   // the last screen of a rehearsal
)

// Modes with something in common.
const (
	inText   = inFilter | inPrompt | inChoose | inTyped
	inDialog = inConfirm | inTyped | inWait | inResult | inDecide
	inAll    = inNormal | inText | inDialog | inHelp | inLeave | inEnding
)

// action is what a key means; the same key means the same in every view.
type action uint8

const (
	noAction action = iota
	goOverview
	goRights
	goGlass
	goRunbook
	goFleet
	goLog
	goNext
	goPrevious
	moveUp
	moveDown
	pageUp
	pageDown
	moveTop
	moveBottom
	enter
	back
	filter
	palette
	help
	shed
	recovery
	breakGlass
	undo
	command
	cosignature
	faults
	skipStep
	abortRun
	pick
	quit
	yes
	editReason
	copyLine
	erase
	eraseWord
	eraseAll
	interrupt
	suspend
)

// binding is one line of the key map.
type binding struct {
	act   action
	keys  []string // as Bubble Tea names them; the first is shown
	label string   // what it does, for the help
	hint  string   // for the bottom line; "": not there
	in    mode
	own   bool // only in views that list it, with their own label
}

// keymap is the one table of keys. Help, bottom line and dispatch read it;
// nothing else knows a key.
type keymap []binding

func newKeymap() keymap {
	return slicesOf(
		[]binding{
			{act: enter, keys: []string{"enter"}, label: "use or open what is selected", in: inNormal, own: true},
			{act: moveDown, keys: []string{"j", "down"}, label: "down", in: inNormal | inHelp | inEnding, own: true},
			{act: moveUp, keys: []string{"k", "up"}, label: "up", in: inNormal | inHelp | inEnding, own: true},
			{act: pageDown, keys: []string{"pgdown", "ctrl+f"}, label: "a page down", in: inNormal | inDialog | inHelp | inEnding, own: true},
			{act: pageUp, keys: []string{"pgup", "ctrl+b"}, label: "a page up", in: inNormal | inDialog | inHelp | inEnding, own: true},
			{act: moveTop, keys: []string{"g", "home"}, label: "first line", in: inNormal, own: true},
			{act: moveBottom, keys: []string{"G", "end"}, label: "last line", in: inNormal, own: true},

			{act: shed, keys: []string{"s"}, label: "shed: scope and tier", hint: "shed", in: inNormal},
			{act: recovery, keys: []string{"r"}, label: "recover one step", hint: "recover", in: inNormal},
			{act: breakGlass, keys: []string{"b"}, label: "break glass: plan, push", hint: "break", in: inNormal},
			{act: undo, keys: []string{"u"}, label: "undo an override", in: inNormal},
			{act: command, keys: []string{"i"}, label: "incident and command", hint: "incident", in: inNormal},
			{act: cosignature, keys: []string{"c"}, label: "co-sign a proposal", in: inNormal},
			{act: faults, keys: []string{"f"}, label: "faults of a drill", in: inNormal},
			{act: skipStep, keys: []string{"x"}, label: "skip the current step; asks why", hint: "skip", in: inNormal, own: true},
			{act: abortRun, keys: []string{"X"}, label: "abort the run; asks why, lists what can be undone", hint: "abort", in: inNormal, own: true},
		},
		viewKeys(), textKeys(), dialogKeys(),
		[]binding{
			{act: filter, keys: []string{"/"}, label: "filter", in: inNormal, hint: "filter", own: true},
			{act: palette, keys: []string{":"}, label: "find anything, do it", hint: "palette", in: inNormal},
			{act: help, keys: []string{"?"}, label: "keys that work here", hint: "help", in: inNormal | inHelp | inLeave},
			{act: back, keys: []string{"esc"}, label: "back; clears a filter", in: inNormal},
			{act: quit, keys: []string{"q"}, label: "quit; says what goes on", hint: "quit", in: inNormal | inHelp | inLeave},
			{act: interrupt, keys: []string{"ctrl+c"}, label: "quit at once", in: inAll},
			{act: suspend, keys: []string{"ctrl+z"}, label: "suspend", in: inAll},
		},
	)
}

func viewKeys() []binding {
	names := []string{"overview", "rights", "break-glass", "runbooks", "fleet", "log"}
	acts := []action{goOverview, goRights, goGlass, goRunbook, goFleet, goLog}
	var out []binding
	for i, act := range acts {
		out = append(out, binding{act: act, keys: []string{string(rune('1' + i))}, label: names[i], in: inNormal})
	}
	return append(out,
		binding{act: goNext, keys: []string{"tab"}, label: "next view", in: inNormal},
		binding{act: goPrevious, keys: []string{"shift+tab"}, label: "previous view", in: inNormal})
}

func textKeys() []binding {
	return []binding{
		{act: enter, keys: []string{"enter"}, label: "keep the filter", hint: "keep", in: inFilter},
		{act: enter, keys: []string{"enter"}, label: "go on with this text", hint: "go on", in: inPrompt},
		{act: enter, keys: []string{"enter"}, label: "choose", hint: "choose", in: inChoose},
		{act: enter, keys: []string{"enter"}, label: "give the order, once the text is there; cancel while nothing is typed", hint: "give the order", in: inTyped},
		{act: back, keys: []string{"esc"}, label: "clear the filter", hint: "clear", in: inFilter},
		{act: back, keys: []string{"esc"}, label: "back, nothing is done", hint: "back", in: inPrompt | inChoose},
		{act: moveDown, keys: []string{"down", "ctrl+n"}, label: "down", in: inChoose},
		{act: moveUp, keys: []string{"up", "ctrl+p"}, label: "up", in: inChoose},
		{act: moveDown, keys: []string{"down"}, label: "down", in: inFilter | inDialog},
		{act: moveUp, keys: []string{"up"}, label: "up", in: inFilter | inDialog},
		{act: erase, keys: []string{"backspace", "ctrl+h"}, label: "erase a character", in: inText},
		{act: eraseWord, keys: []string{"ctrl+w"}, label: "erase a word", in: inText},
		{act: eraseAll, keys: []string{"ctrl+u"}, label: "erase everything", in: inText},
	}
}

func dialogKeys() []binding {
	return []binding{
		{act: pick, keys: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, label: "take the answer with that number", hint: "to 9 answer", in: inDecide},
		{act: back, keys: []string{"esc"}, label: "back, nothing is decided", hint: "back", in: inDecide},
		{act: yes, keys: []string{"y"}, label: "give the order", hint: "give the order", in: inConfirm},
		{act: enter, keys: []string{"enter"}, label: "cancel", hint: "cancel", in: inConfirm},
		{act: enter, keys: []string{"enter"}, label: "close", hint: "close", in: inResult},
		{act: back, keys: []string{"esc"}, label: "cancel", hint: "cancel", in: inConfirm | inTyped},
		{act: back, keys: []string{"esc"}, label: "leave it; what is on its way goes on", hint: "leave it", in: inWait},
		{act: back, keys: []string{"esc"}, label: "close", in: inResult | inHelp},
		{act: back, keys: []string{"esc"}, label: "stay", hint: "stay", in: inLeave},
		{act: yes, keys: []string{"y"}, label: "leave", hint: "leave", in: inLeave},
		{act: quit, keys: []string{"q"}, label: "leave", hint: "or enter leaves", in: inEnding},
		{act: enter, keys: []string{"enter"}, label: "leave", in: inEnding},
		{act: editReason, keys: []string{"ctrl+e"}, label: "write the reason", hint: "reason", in: inConfirm | inTyped},
		{act: copyLine, keys: []string{"ctrl+y"}, label: "copy the line to say, or the token", hint: "copy", in: inConfirm | inTyped | inResult},
	}
}

func slicesOf(groups ...[]binding) keymap {
	var all keymap
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

// find is what a key means in a mode.
func (k keymap) find(m mode, key string) (binding, bool) {
	for _, b := range k {
		if b.in&m == 0 {
			continue
		}
		for _, name := range b.keys {
			if name == key {
				return b, true
			}
		}
	}
	return binding{}, false
}

// listed are the bindings of a mode as the help prints them: those of the view
// first, with its own labels, then those of everywhere.
func (k keymap) listed(m mode, own []ownKey) (view, everywhere []binding) {
	for _, b := range k {
		if b.in&m == 0 {
			continue
		}
		if m != inNormal || !b.own {
			everywhere = append(everywhere, b)
			continue
		}
		for _, o := range own {
			if o.act == b.act {
				if o.label != "" {
					b.label = o.label
				}
				view = append(view, b)
			}
		}
	}
	return view, everywhere
}

// ownKey is an action that a view handles itself; an empty label is that of the
// key map.
type ownKey struct {
	act   action
	label string
}

// shown is how a key is printed.
func shown(key string) string {
	if key == "pgdown" {
		return "pgdn"
	}
	return key
}
