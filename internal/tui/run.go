package tui

import (
	"context"
	"errors"
	"fmt"
	"io"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"
)

// framesPerSecond bounds how often the screen is written. Twenty are smooth
// enough for a list and halve the idle cost.
const framesPerSecond = 20

// ErrInterrupted is what Run returns after ctrl-c or SIGINT.
var ErrInterrupted = errors.New("interrupted")

// Run shows the console until the person leaves it, ctx ends or the process is
// told to stop. The terminal is given back in every case, also after a panic.
// What goes on without the console is printed to the output afterwards.
func Run(ctx context.Context, desk Desk, opt Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newConsole(ctx, desk, opt)
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithFPS(framesPerSecond)}
	if opt.Input != nil {
		options = append(options, tea.WithInput(opt.Input))
	}
	if opt.Output != nil {
		options = append(options, tea.WithOutput(opt.Output))
	}
	if opt.Environ != nil {
		options = append(options, tea.WithEnvironment(opt.Environ))
	}
	p := tea.NewProgram(m, options...)
	m.post = p.Send
	_, err := p.Run()
	if opt.Output != nil {
		m.sc.now = opt.Now()
		_, _ = io.WriteString(opt.Output, m.farewell()) // the terminal may be gone with its reader
	}
	switch {
	case m.crash != nil:
		return m.crash
	case m.interrupted, errors.Is(err, tea.ErrInterrupted):
		return ErrInterrupted
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("the console was stopped: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("the console stopped: %w", err)
	default:
		return nil
	}
}

// IsTerminal reports whether both ends are a terminal: without one there is no
// console, and the caller says what to use instead.
func IsTerminal(in, out any) bool {
	return isTerminal(in) && isTerminal(out)
}

func isTerminal(f any) bool {
	file, ok := f.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}
