package tui

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/degradedmode/ic/internal/incident"
)

// console is the one Bubble Tea model. It alone talks to the desk, and only in
// commands.
type console struct {
	ctx  context.Context
	desk Desk
	opt  Options
	post func(tea.Msg) // how a push tells its progress
	keys keymap
	ink  *theme

	width, height int
	sc            scene
	at            int // the view in front
	views         [6]view
	glass         *glass
	book          *runbookView

	mode     mode
	dialog   *dialog
	prompt   *prompt
	chooser  *chooser
	decision *decision
	ending   *ending // the last screen; nil: the world goes on
	help     scroll
	notice   fact

	epoch   uint64
	running map[uint64]string // orders on their way, by epoch

	tickGen  int
	tickDue  time.Time // real time at which the pending tick fires; zero: none
	lastTick [2]time.Time

	interrupted bool
	crash       error
}

// Messages. Every answer carries its question.
type (
	snapshotMsg struct {
		snap   incident.Snapshot
		listen bool // it came from Changed: listen again
	}
	tickMsg   struct{ gen int }
	redrawMsg struct{}
	crashMsg  struct{ err error }
)

func newConsole(ctx context.Context, desk Desk, opt Options) *console {
	m := &console{
		ctx: ctx, desk: desk, opt: opt, post: func(tea.Msg) {}, keys: newKeymap(), ink: newTheme(opt.NoColor),
		glass: &glass{}, book: &runbookView{}, mode: inNormal, running: map[uint64]string{},
	}
	m.views = [6]view{&overview{}, &rights{}, m.glass, m.book, &fleetView{}, &logView{}}
	m.sc.now = opt.Now()
	if opt.Drill != nil {
		m.tell(strong, opt.Drill.Welcome)
		m.book.wanted = opt.Drill.Runbook
	}
	return m
}

// Init asks for the first numbers. It waits for none of them.
func (m *console) Init() tea.Cmd {
	return tea.Batch(m.read(), m.listen(), m.tick(), m.readShelf(), m.awaitEnding())
}

// guard runs a call to the desk. A panic in it closes the console in order, so
// that the terminal is given back, instead of tearing it down.
func guard(f func() tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				msg = crashMsg{fmt.Errorf("the console met a fault of its own: %v\n%s", r, debug.Stack())}
			}
		}()
		return f()
	}
}

func (m *console) read() tea.Cmd {
	return guard(func() tea.Msg { return snapshotMsg{snap: m.desk.Snapshot()} })
}

func (m *console) listen() tea.Cmd {
	return guard(func() tea.Msg {
		select {
		case <-m.ctx.Done():
			return nil
		case <-m.desk.Changed():
			return snapshotMsg{snap: m.desk.Snapshot(), listen: true}
		}
	})
}

// Update takes one message. It does no I/O and never waits.
func (m *console) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.sc.now = m.opt.Now()
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		cmd = m.key(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.ResumeMsg:
		cmd = m.read()
	case snapshotMsg:
		cmd = m.take(msg)
	case tickMsg:
		if msg.gen != m.tickGen {
			return m, nil
		}
		m.tickDue = time.Time{}
		cmd = m.read()
	case crashMsg:
		m.crash = msg.err
		return m, tea.Quit
	case answer:
		if m.ending == nil { // else it is about a world that is gone
			cmd = m.answered(msg)
		}
	case endingMsg:
		cmd = m.ends(msg.e)
	case goneMsg:
		return m, tea.Quit
	}
	m.sc.running = len(m.running)
	m.sc.seconds = counting(&m.sc.snap, m.sc.now) || m.book.follow.counting()
	return m, tea.Batch(cmd, m.tick())
}

func (m *console) resize(width, height int) {
	m.width, m.height = width, height
	for _, v := range m.views {
		v.Size(m.inner(), m.room())
	}
}

// take accepts a snapshot: what it shows changes, what was asked does not.
func (m *console) take(msg snapshotMsg) tea.Cmd {
	m.sc.snap, m.sc.read = msg.snap, !msg.snap.At.IsZero()
	if m.opt.Runbooks != nil {
		m.sc.runbooks = m.opt.Runbooks()
	}
	var cmds []tea.Cmd
	if msg.listen {
		cmds = append(cmds, m.listen())
	}
	if d := m.dialog; d != nil && d.stage == asking && m.prompt == nil && m.drafts(d) && len(d.blocks(&m.sc)) > 0 {
		cmds = append(cmds, m.preview(d)) // what it waited for may have come
	}
	return tea.Batch(cmds...)
}

// drafts reports whether it is time to ask again what a dialog would give.
func (m *console) drafts(d *dialog) bool {
	if d.draft != nil {
		return d.dress != nil && m.opt.Real().Sub(d.drafted) >= redraft
	}
	return d.ask != nil
}

// tick asks to be woken when what is on the screen changes by time alone: each
// second while something counts down, else with the world's minute.
func (m *console) tick() tea.Cmd {
	real := m.opt.Real()
	wait := m.untilMinute(real)
	if m.sc.seconds {
		wait = time.Second
	}
	if !m.tickDue.IsZero() && !m.tickDue.After(real.Add(wait)) {
		return nil
	}
	m.tickGen++
	m.tickDue = real.Add(wait)
	m.lastTick = [2]time.Time{real, m.sc.now}
	gen := m.tickGen
	return tea.Tick(wait, func(time.Time) tea.Msg { return tickMsg{gen} })
}

// untilMinute is how long the world's clock needs to its next minute. A drill's
// clock may run faster than ours; its pace is taken from the last tick.
func (m *console) untilMinute(real time.Time) time.Duration {
	pace := 1.0
	if d := real.Sub(m.lastTick[0]); !m.lastTick[0].IsZero() && d >= time.Second {
		pace = max(float64(m.sc.now.Sub(m.lastTick[1]))/float64(d), 1)
	}
	next := m.sc.now.Truncate(time.Minute).Add(time.Minute).Sub(m.sc.now)
	return min(max(time.Duration(float64(next)/pace), time.Second), time.Minute)
}

// question begins a new question; every older one is gone.
func (m *console) question(target string) question {
	m.epoch++
	return question{m.epoch, target}
}

// tell puts one sentence into the line above the keys.
func (m *console) tell(i ink, text string) { m.notice = fact{text: text, ink: i} }

// busy names the orders on their way, sorted.
func (m *console) busy() []string {
	var out []string
	for _, title := range m.running {
		out = append(out, title)
	}
	slices.Sort(out)
	return out
}

// close leaves whatever is in front and returns to the view.
func (m *console) close() {
	m.dialog, m.prompt, m.chooser, m.decision, m.mode = nil, nil, nil, nil, inNormal
}

// View draws a frame from values alone.
func (m *console) View() tea.View {
	content, x, y := m.frame()
	v := tea.NewView(content)
	v.AltScreen = true
	v.WindowTitle = "ic"
	if m.sc.read {
		v.WindowTitle = fmt.Sprintf("ic %s %s", m.sc.snap.Mode, m.sc.snap.Fleet)
	}
	if y >= 0 {
		v.Cursor = tea.NewCursor(x, y)
		v.Cursor.Blink = false
	}
	return v
}
