package keys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/internal/untrusted"
	"github.com/zalando/go-keyring"
)

// DefaultRingWait is how long a keyring may take. It answers in milliseconds, or
// is showing a prompt that nobody sees.
const DefaultRingWait = 3 * time.Second

// Errors of a keyring, each a sentence that says what to do.
var (
	ErrNoBus    = errors.New("no keyring here: there is no D-Bus session, as over SSH or in a container; choose an age file instead (--tokens FILE)")
	ErrNoDaemon = errors.New("no keyring here: no Secret Service runs; start gnome-keyring or KWallet, or choose an age file instead (--tokens FILE)")
	ErrLocked   = errors.New("the keyring is locked, or its password was never given: unlock it in the desktop's password manager, or choose an age file instead (--tokens FILE)")
	ErrSilent   = errors.New("the keyring does not answer: it may be showing a prompt on another screen; answer that, or choose an age file instead (--tokens FILE)")
	ErrGone     = errors.New("the keyring went away in the middle of an answer: start it again, or choose an age file instead (--tokens FILE)")
	ErrTooBig   = errors.New("the token is too long for this keyring; choose an age file instead (--tokens FILE)")
)

// Backend is what a keyring can do, as its library offers it.
type Backend struct {
	Get    func(service, user string) (string, error)
	Set    func(service, user, password string) error
	Delete func(service, user string) error
}

// Ring is the keyring of the operating system. Its library has neither a limit
// nor a context, so every call runs beside us and is given up after a while. As
// long as one that was given up hangs, no other is begun or waited for: a silent
// keyring costs one wait and one goroutine, however many tokens are wanted.
type Ring struct {
	backend Backend
	wait    time.Duration
	turn    chan struct{} // holds an element while a call is under way
	hangs   atomic.Bool   // the call under way was given up
}

// OSRing is the keyring of this user's session.
func OSRing() *Ring {
	return NewRing(Backend{keyring.Get, keyring.Set, keyring.Delete}, DefaultRingWait)
}

// NewRing is a keyring that is given up after wait.
func NewRing(b Backend, wait time.Duration) *Ring {
	return &Ring{backend: b, wait: wait, turn: make(chan struct{}, 1)}
}

func (r *Ring) get(ctx context.Context, name string) (string, error) {
	return r.call(ctx, func() (string, error) { return r.backend.Get(Service, name) })
}

func (r *Ring) set(ctx context.Context, name, value string) error {
	_, err := r.call(ctx, func() (string, error) { return "", r.backend.Set(Service, name, value) })
	return err
}

func (r *Ring) delete(ctx context.Context, name string) error {
	_, err := r.call(ctx, func() (string, error) { return "", r.backend.Delete(Service, name) })
	if errors.Is(err, ErrNoToken) {
		return nil
	}
	return err
}

type ringAnswer struct {
	value string
	err   error
}

func (r *Ring) call(ctx context.Context, do func() (string, error)) (string, error) {
	if r.hangs.Load() {
		return "", ErrSilent
	}
	limit := time.NewTimer(r.wait)
	defer limit.Stop()
	select {
	case r.turn <- struct{}{}:
	case <-limit.C:
		return "", ErrSilent
	case <-ctx.Done():
		return "", ctx.Err()
	}
	answer := make(chan ringAnswer, 1)
	go func() {
		defer func() {
			r.hangs.Store(false)
			<-r.turn
		}()
		value, err := do()
		answer <- ringAnswer{value, err}
	}()
	select {
	case a := <-answer:
		return a.value, explainRing(a.err)
	case <-limit.C:
		r.giveUp(answer)
		return "", ErrSilent
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// giveUp remembers that the call under way hangs, unless it has just come back.
func (r *Ring) giveUp(answer <-chan ringAnswer) {
	r.hangs.Store(true)
	if len(answer) > 0 {
		r.hangs.Store(false)
	}
}

// explainRing knows the failures of D-Bus and the Secret Service by their words:
// the library hands them on as they come.
func explainRing(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	has := func(s string) bool { return strings.Contains(text, s) }
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return ErrNoToken
	case errors.Is(err, keyring.ErrSetDataTooBig):
		return ErrTooBig
	case errors.Is(err, keyring.ErrUnsupportedPlatform), has("dbus-launch"), has("DBUS_SESSION_BUS_ADDRESS"), has("dbus: couldn't determine address"),
		has("dbus: invalid bus address"), has("connection refused"), has("no such file or directory"):
		return ErrNoBus
	case has("disconnected from message bus"), has("dbus: connection closed"), errors.Is(err, io.EOF):
		return ErrGone
	case has("org.freedesktop.secrets"):
		return ErrNoDaemon
	case has("failed to unlock"), has("IsLocked"), has("dismissed"):
		return ErrLocked
	}
	return fmt.Errorf("the keyring fails: %s", untrusted.Text(text, maxText))
}
