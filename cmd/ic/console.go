package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/tui"
	"github.com/spf13/cobra"
)

// ownSession starts a child that the death of this console's terminal does not
// reach.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// console opens the console: the first frame is drawn before any service has
// answered.
func (a *app) console(cmd *cobra.Command, _ []string) error {
	if !tui.IsTerminal(a.in, a.out) {
		return fail(exitUsage, "the console needs a terminal").hinting("without one use the commands: ic status, ic can, ic watch")
	}
	c, err := a.load(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if err := a.openKey(ctx, c); err != nil {
		return err
	}
	d, b, err := a.desk(ctx, c)
	if err != nil {
		return err
	}
	s, err := a.world(c)
	if err != nil {
		return err
	}
	books := a.consoleShelf(&shelf{dir: runbooksOf(c), c: c, bundle: b, stand: s}, d)
	died := make(chan any, 1)
	go func() {
		// A panic beside the console would leave the terminal raw.
		defer func() {
			if p := recover(); p != nil {
				died <- p
				cancel()
			}
		}()
		d.Run(ctx)
	}()
	a.kept.screen.Store(true)
	err = tui.Run(ctx, &consoleDesk{Desk: d, waiting: a.waiting}, tui.Options{
		Now: func() time.Time { return s.clock.Now().Wall }, Real: a.real, Input: a.in, Output: a.out,
		Environ: os.Environ(), NoColor: a.getenv("NO_COLOR") != "",
		Runbooks: func() []tui.Runbook { return tui.RunbooksOf(b) }, Runs: books,
	})
	select {
	case p := <-died:
		err = errors.Join(err, fail(exitFailed, "the console stopped watching: %v", p))
	default:
	}
	if errors.Is(err, tui.ErrInterrupted) {
		err = &failure{code: exitInterrupted, err: err}
	}
	return errors.Join(err, d.Close())
}

// consoleDesk is a desk in the words of the console.
type consoleDesk struct {
	*incident.Desk
	waiting func() string // for whom the signing key waits; "" nobody
}

// Snapshot says first that somebody has to touch his key: nothing goes on before.
func (d *consoleDesk) Snapshot() incident.Snapshot {
	s := d.Desk.Snapshot()
	if text := d.waiting(); text != "" {
		s.Headline = decisions.Headline{Text: text}
	}
	return s
}

func (d *consoleDesk) Command(ctx context.Context, action, person string) (incident.Result, error) {
	return d.Desk.Command(ctx, incident.Action(action), person, "")
}

func (d *consoleDesk) Cosign(ctx context.Context, token string) (incident.Result, error) {
	p, err := d.ReadProposal(ctx, token)
	if err != nil {
		return incident.Result{}, err
	}
	return d.Desk.Cosign(ctx, p, true)
}
