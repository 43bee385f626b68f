package keys_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/sshsig/sshsigtest"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// holder is an agent with one key that it lists at once and signs with when may
// lets it, or never.
type holder struct {
	agent.ExtendedAgent
	key ssh.Signer
	may chan struct{} // closed: it signs at once
}

func holding(key ssh.Signer) *holder {
	return &holder{ExtendedAgent: agent.NewKeyring().(agent.ExtendedAgent), key: key, may: make(chan struct{})}
}

func (h *holder) List() ([]*agent.Key, error) {
	p := h.key.PublicKey()
	return []*agent.Key{{Format: p.Type(), Blob: p.Marshal(), Comment: "on a lanyard"}}, nil
}

func (h *holder) SignWithFlags(_ ssh.PublicKey, data []byte, _ agent.SignatureFlags) (*ssh.Signature, error) {
	<-h.may
	return h.key.Sign(rand.Reader, data)
}

func printOf(s ssh.Signer) string { return ssh.FingerprintSHA256(s.PublicKey()) }

func TestASecurityKeySaysAtOnceWhenItWantsToBeTouched(t *testing.T) {
	token := sshsigtest.NewFIDO(t, 9, sshsigtest.Touched)
	h := holding(token)
	over := false
	s := keys.Sources{AgentSocket: serve(t, h), SlowAfter: time.Nanosecond, Waits: func(which string, touch bool) func() {
		if which != printOf(token) || !touch {
			t.Errorf("it asks to touch %s, %v", which, touch)
		}
		close(h.may)
		return func() { over = true }
	}}
	listed, err := keys.List(t.Context(), s)
	if err != nil || len(listed) != 1 || !listed[0].NeedsTouch() || listed[0].Handle {
		t.Errorf("List = %+v, %v", listed, err)
	}
	signer, err := keys.Find(t.Context(), s, printOf(token), sshsig.ForDirective)
	if err != nil {
		t.Fatal(err)
	}
	proves(t, signer, printOf(token), sshsig.ForDirective)
	if !over {
		t.Error("nobody is told that the touch has come")
	}
}

func TestATokenThatWasNotTouchedSignsNothing(t *testing.T) {
	for name, flags := range map[string]byte{"no flag": 0, "a PIN and no touch": sshsigtest.Verified} {
		token := sshsigtest.NewFIDO(t, 9, flags)
		h := holding(token)
		close(h.may)
		signer, err := keys.Find(t.Context(), keys.Sources{AgentSocket: serve(t, h)}, printOf(token), sshsig.ForDirective)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sshsig.Sign(signer, rand.Reader, []byte("payload"), namespace); !errors.Is(err, sshsig.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestATouchThatDoesNotComeEndsTheWait(t *testing.T) {
	token := sshsigtest.NewFIDO(t, 9, sshsigtest.Touched)
	h := holding(token)
	t.Cleanup(func() { close(h.may) })
	ctx, stop := context.WithCancel(t.Context())
	s := keys.Sources{AgentSocket: serve(t, h), TouchWait: 50 * time.Millisecond}
	signer, err := keys.Find(ctx, s, printOf(token), sshsig.ForDirective)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := signer.Sign(rand.Reader, []byte("x")); !errors.Is(err, keys.ErrHangs) || !strings.Contains(err.Error(), "nobody touched the key or confirmed within 50ms") {
		t.Errorf("error is %v", err)
	}
	s.TouchWait = time.Hour
	s.Waits = func(string, bool) func() { stop(); return func() {} } // a person gives up
	if signer, err = keys.Find(ctx, s, printOf(token), sshsig.ForDirective); err != nil {
		t.Fatal(err)
	}
	if _, err := signer.Sign(rand.Reader, []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

// ssh-add -c makes an agent ask somebody on a screen before it signs.
func TestAnAgentThatAsksForAConfirmationIsMentionedAfterAWhile(t *testing.T) {
	key := sshsigtest.Ed25519(t, 1)
	h := holding(key)
	var said, over atomic.Int32
	s := keys.Sources{AgentSocket: serve(t, h), SlowAfter: time.Millisecond, Waits: func(which string, touch bool) func() {
		if which != printOf(key) || touch {
			t.Errorf("it asks to touch %s, %v", which, touch)
		}
		said.Add(1)
		close(h.may)
		return func() { over.Add(1) }
	}}
	signer, err := keys.Find(t.Context(), s, printOf(key), sshsig.ForDirective)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := signer.Sign(rand.Reader, []byte("x")); err != nil || said.Load() != 1 || over.Load() != 1 {
		t.Errorf("said %d times, over %d times, %v", said.Load(), over.Load(), err)
	}
}

func TestALockedAgentIsSaidToBeLockedOrEmpty(t *testing.T) {
	private, print := newEd25519(t)
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: private}); err != nil {
		t.Fatal(err)
	}
	s := keys.Sources{AgentSocket: serve(t, ring)}
	signer, err := keys.Find(t.Context(), s, print, sshsig.ForDirective)
	if err != nil {
		t.Fatal(err)
	}
	if err := ring.Lock([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Find(t.Context(), s, print, sshsig.ForDirective); !errors.Is(err, keys.ErrNoKey) || !strings.Contains(err.Error(), "ssh-add -X") {
		t.Errorf("find in a locked agent: %v", err)
	}
	if _, err := signer.Sign(rand.Reader, []byte("x")); !errors.Is(err, keys.ErrNoSign) || !errors.Is(err, keys.ErrAgent) {
		t.Errorf("sign after it was locked: %v", err)
	}
}

// refuser holds a key and says no, as after a confirmation that was denied.
type refuser struct{ *holder }

func (refuser) SignWithFlags(ssh.PublicKey, []byte, agent.SignatureFlags) (*ssh.Signature, error) {
	return nil, errors.New("denied")
}

func TestAnAgentThatRefusesIsQuotedWithWhatToLookAt(t *testing.T) {
	key := sshsigtest.Ed25519(t, 1)
	signer, err := keys.Find(t.Context(), keys.Sources{AgentSocket: serve(t, refuser{holding(key)})}, printOf(key), sshsig.ForDirective)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := signer.Sign(rand.Reader, []byte("x")); !errors.Is(err, keys.ErrNoSign) || errors.Is(err, keys.ErrHangs) {
		t.Errorf("error is %v", err)
	}
	if _, err := signer.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, []byte("x"), "ssh-dss"); err == nil {
		t.Error("it is asked for an algorithm that is not the key's")
	}
}

func TestEverySourceProvesItselfInTheOrderInWhichAKeyIsLookedFor(t *testing.T) {
	private, print := newEd25519(t)
	dir := t.TempDir()
	make := func(name string, passphrase string) (string, string) {
		k, err := keys.Generate(rand.Reader, dir+"/"+name, "", []byte(passphrase))
		if err != nil {
			t.Fatal(err)
		}
		return k.From, k.Fingerprint
	}
	plain, plainPrint := make("plain", "")
	locked, lockedPrint := make("locked", "open sesame")
	s := keys.Sources{AgentSocket: agentWith(t, private), Files: []string{plain, locked, dir + "/gone"}}
	signed := 0
	sign := func(signer ssh.Signer) error {
		signed++
		_, err := sshsig.Sign(signer, rand.Reader, []byte("payload"), namespace)
		return err
	}
	check := func(proofs []keys.Proof, want map[string]error) {
		t.Helper()
		var from []string
		for _, p := range proofs {
			from = append(from, p.From)
			if err := want[p.From]; (p.Err == nil) != (err == nil) || err != nil && !errors.Is(p.Err, err) {
				t.Errorf("%s: %v, want %v", p.From, p.Err, err)
			}
		}
		if !slices.Equal(from, []string{keys.AgentSource, plain, locked, dir + "/gone"}) {
			t.Errorf("order: %q", from)
		}
	}
	missing := errors.New("some error")
	check(keys.Prove(t.Context(), s, []string{print, lockedPrint}, sign), map[string]error{
		plain: keys.ErrNotYours, locked: keys.ErrNoAsk, dir + "/gone": errNotExist,
	})
	check(keys.Prove(t.Context(), s, nil, sign), map[string]error{locked: keys.ErrNoAsk, dir + "/gone": errNotExist})
	if signed != 3 {
		t.Errorf("%d signatures were asked for, want 3", signed)
	}
	check(keys.Prove(t.Context(), s, []string{plainPrint}, func(ssh.Signer) error { return missing }), map[string]error{
		keys.AgentSource: keys.ErrNotYours, plain: missing, locked: keys.ErrNotYours, dir + "/gone": errNotExist,
	})
}

func TestOfSeveralKeysThatNobodyNamedNoneIsAsked(t *testing.T) {
	one, _ := newEd25519(t)
	two, _ := newEd25519(t)
	sign := func(ssh.Signer) error { return io.ErrUnexpectedEOF }
	for what, c := range map[string]struct {
		s    keys.Sources
		want error
	}{
		"two keys": {keys.Sources{AgentSocket: agentWith(t, one, two)}, keys.ErrWhich},
		"no key":   {keys.Sources{AgentSocket: agentWith(t)}, keys.ErrNotYours},
		"one key":  {keys.Sources{AgentSocket: agentWith(t, one)}, io.ErrUnexpectedEOF},
	} {
		proofs := keys.Prove(t.Context(), c.s, nil, sign)
		if len(proofs) != 1 || !errors.Is(proofs[0].Err, c.want) {
			t.Errorf("%s: %+v", what, proofs)
		}
	}
}
