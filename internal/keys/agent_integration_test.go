//go:build integration

package keys_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// stock is OpenSSH's own ssh-agent.
type stock struct {
	t       *testing.T
	socket  string
	process *os.Process
}

func stockAgent(t *testing.T) stock {
	t.Helper()
	need(t, "ssh-agent")
	dir := home(t)
	s := stock{t: t, socket: filepath.Join(dir, "agent")}
	cmd := exec.Command("ssh-agent", "-D", "-a", s.socket)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir} // no SSH_ASKPASS: nobody confirms
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.process = cmd.Process
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		conn, err := net.Dial("unix", s.socket)
		if err == nil {
			conn.Close()
			return s
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			t.Fatalf("ssh-agent does not start: %v", err)
		}
	}
}

// talk uses the agent as ssh-add does.
func (s stock) talk(do func(agent.ExtendedAgent) error) {
	s.t.Helper()
	conn, err := net.Dial("unix", s.socket)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if err := do(agent.NewClient(conn)); err != nil {
		s.t.Fatal(err)
	}
}

func (s stock) prove(fingerprint string) error {
	s.t.Helper()
	sources := keys.Sources{AgentSocket: s.socket, ListWait: 200 * time.Millisecond, TouchWait: 10 * time.Second}
	proofs := keys.Prove(s.t.Context(), sources, []string{fingerprint}, func(signer ssh.Signer) error {
		_, err := sshsig.Sign(signer, rand.Reader, []byte("payload"), namespace)
		return err
	})
	if len(proofs) != 1 {
		s.t.Fatalf("%d proofs", len(proofs))
	}
	return proofs[0].Err
}

func TestTheStockAgentSignsUntilItIsLockedStoppedOrGone(t *testing.T) {
	s := stockAgent(t)
	private, print := newEd25519(t)
	s.talk(func(a agent.ExtendedAgent) error { return a.Add(agent.AddedKey{PrivateKey: private}) })
	if err := s.prove(print); err != nil {
		t.Errorf("with the key: %v", err)
	}
	s.talk(func(a agent.ExtendedAgent) error { return a.Lock([]byte("x")) })
	if err := s.prove(print); !errors.Is(err, keys.ErrNotYours) {
		t.Errorf("locked: %v", err)
	}
	s.talk(func(a agent.ExtendedAgent) error { return a.Unlock([]byte("x")) })
	if err := s.prove(print); err != nil {
		t.Errorf("unlocked again: %v", err)
	}
	if err := s.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := s.prove(print); !errors.Is(err, keys.ErrHangs) {
		t.Errorf("stopped: %v", err)
	}
	if err := s.process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := s.prove(print); err != nil {
		t.Errorf("going on: %v", err)
	}
	if err := s.process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.process.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := s.prove(print); !errors.Is(err, keys.ErrAgent) || errors.Is(err, keys.ErrHangs) {
		t.Errorf("gone: %v", err)
	}
}

func TestTheStockAgentDoesNotSignWhatNobodyConfirms(t *testing.T) {
	s := stockAgent(t)
	private, print := newEd25519(t)
	s.talk(func(a agent.ExtendedAgent) error {
		return a.Add(agent.AddedKey{PrivateKey: private, ConfirmBeforeUse: true})
	})
	if err := s.prove(print); !errors.Is(err, keys.ErrNoSign) {
		t.Errorf("nobody confirms: %v", err)
	}
}
