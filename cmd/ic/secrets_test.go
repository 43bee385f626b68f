package main

import (
	"errors"
	"os"
	"testing"

	"github.com/degradedmode/ic/internal/keys"
)

func TestATouchIsALineBeforeTheConsoleIsDrawnAndAHeadlineAfterwards(t *testing.T) {
	a, _, said := quiet("")
	a.waits("SHA256:x", true)()
	if want := "ic: touch your key (SHA256:x)\n"; said.String() != want || a.waiting() != "" {
		t.Errorf("before: said %q, the console says %q", said, a.waiting())
	}
	said.Reset()
	a.kept.screen.Store(true)
	over := a.waits("SHA256:x", false)
	if want := "ssh-agent takes long over SHA256:x: it may be asking for a confirmation on another screen"; a.waiting() != want || said.Len() > 0 {
		t.Errorf("after: said %q, the console says %q", said, a.waiting())
	}
	if over(); a.waiting() != "" {
		t.Errorf("it goes on waiting: %q", a.waiting())
	}
}

func TestNobodyIsAskedForASecretBelowTheConsole(t *testing.T) {
	a, _, said := quiet("open sesame\n")
	if a.asker() != nil {
		t.Error("without a terminal somebody would be asked")
	}
	if _, err := a.passphrase(t.Context(), "a file", keys.AskKnown); !errors.Is(err, errNoTerminal) || said.Len() > 0 {
		t.Errorf("%v, said %q", err, said)
	}
}

func TestWhatHasToComeFirstIsToldFromWhatDoesNotWork(t *testing.T) {
	for _, err := range []error{keys.ErrNoKey, keys.ErrNotYours, keys.ErrWhich, keys.ErrAgent, keys.ErrNoAsk, keys.ErrHandle, keys.ErrExposed, os.ErrNotExist, errNoTerminal} {
		if code := codeOf(keyFailure(errors.Join(err))); code != exitNeeds {
			t.Errorf("%v: exit code %d", err, code)
		}
	}
	if code := codeOf(keyFailure(keys.ErrWrong)); code != exitFailed {
		t.Errorf("a wrong passphrase: exit code %d", code)
	}
	for _, err := range []error{keys.ErrNoBus, keys.ErrNoDaemon, keys.ErrLocked, keys.ErrSilent, keys.ErrGone} {
		if code := codeOf(tokenFailure(errors.Join(err))); code != exitNeeds {
			t.Errorf("%v: exit code %d", err, code)
		}
	}
	if code := codeOf(tokenFailure(keys.ErrTooBig)); code != exitFailed {
		t.Errorf("a token that is too long: exit code %d", code)
	}
}
