package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const limit = 5 * time.Second // of every wait in these tests

// echo is a server that sends back every line, with an end when the client ends.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return l.Addr().String()
}

func through(t *testing.T, target string) *Proxy {
	t.Helper()
	p, err := Listen(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

type line struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, addr string) line {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return line{c, bufio.NewReader(c)}
}

// visit is how a connection that says nothing ends: the reset may come during
// the handshake or after it.
func visit(addr string) error {
	c, err := net.DialTimeout("tcp", addr, limit)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = line{c, bufio.NewReader(c)}.hears(limit)
	return err
}

func (l line) say(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(l, text+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (l line) hears(within time.Duration) (string, error) {
	l.SetReadDeadline(time.Now().Add(within))
	s, err := l.r.ReadString('\n')
	return strings.TrimSpace(s), err
}

func (l line) must(t *testing.T, want string) {
	t.Helper()
	if got, err := l.hears(limit); got != want || err != nil {
		t.Fatalf("heard %q, %v; want %q", got, err, want)
	}
}

func TestBytesPassBothWaysAndAnEndIsPassedOn(t *testing.T) {
	p := through(t, echo(t))
	c := dial(t, p.Addr())
	c.say(t, "hello")
	c.must(t, "hello")
	c.Conn.(*net.TCPConn).CloseWrite()
	if _, err := c.hears(limit); !errors.Is(err, io.EOF) {
		t.Errorf("after our end the other side's is %v, want EOF", err)
	}
}

func TestResetEndsWhatStandsAndWhatComes(t *testing.T) {
	p := through(t, echo(t))
	c := dial(t, p.Addr())
	c.say(t, "one")
	c.must(t, "one")
	if err := p.Cut(Reset); err != nil {
		t.Fatal(err)
	}
	if _, err := c.hears(limit); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a standing connection saw %v, want a reset", err)
	}
	if err := visit(p.Addr()); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a new connection saw %v, want a reset", err)
	}
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	h := dial(t, p.Addr())
	h.say(t, "two")
	h.must(t, "two")
}

func TestRefuseClosesThePortAndHealOpensTheSameOne(t *testing.T) {
	p := through(t, echo(t))
	addr := p.Addr()
	c := dial(t, addr)
	c.say(t, "one")
	c.must(t, "one")
	if err := p.Cut(Refuse); err != nil {
		t.Fatal(err)
	}
	if _, err := c.hears(limit); err == nil {
		t.Error("a standing connection survived")
	}
	if n, err := net.DialTimeout("tcp", addr, limit); !errors.Is(err, syscall.ECONNREFUSED) {
		if err == nil {
			n.Close()
		}
		t.Errorf("a new connection got %v, want connection refused", err)
	}
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	h := dial(t, addr)
	h.say(t, "two")
	h.must(t, "two")
}

func TestABlackholeDeliversNothingUntilItIsHealed(t *testing.T) {
	p := through(t, echo(t))
	standing := dial(t, p.Addr())
	standing.say(t, "before")
	standing.must(t, "before")
	if err := p.Cut(Blackhole); err != nil {
		t.Fatal(err)
	}
	late := dial(t, p.Addr()) // the handshake is the machine's own
	for _, c := range []line{standing, late} {
		c.say(t, "during")
		if got, err := c.hears(100 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("heard %q, %v through a black hole", got, err)
		}
	}
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []line{standing, late} {
		c.must(t, "during")
		c.say(t, "after")
		c.must(t, "after")
	}
}

func TestOneCutReplacesAnother(t *testing.T) {
	p := through(t, echo(t))
	c := dial(t, p.Addr())
	c.say(t, "x")
	c.must(t, "x")
	for _, how := range []Cut{Blackhole, Refuse, Reset, Blackhole} {
		if err := p.Cut(how); err != nil {
			t.Fatal(err)
		}
		if p.State() != how {
			t.Errorf("state is %v after %v", p.State(), how)
		}
	}
	if _, err := c.hears(limit); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection that was refused and reset saw %v", err)
	}
	if err := p.Cut(None); err != nil {
		t.Fatal(err)
	}
	h := dial(t, p.Addr())
	h.say(t, "y")
	h.must(t, "y")
}

func TestADeadTargetIsAResetAndItsSuccessorIsFound(t *testing.T) {
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := through(t, dead.Addr().String())
	dead.Close()
	if err := visit(p.Addr()); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("through a dead target: %v, want a reset", err)
	}
	p.SetTarget(echo(t))
	n := dial(t, p.Addr())
	n.say(t, "again")
	n.must(t, "again")
}

func TestCloseEndsABlackholedConnection(t *testing.T) {
	p := through(t, echo(t))
	c := dial(t, p.Addr())
	c.say(t, "x")
	c.must(t, "x")
	if err := p.Cut(Blackhole); err != nil {
		t.Fatal(err)
	}
	c.say(t, "lost")
	if err := p.Close(); err != nil { // waits for every goroutine of the proxy
		t.Fatal(err)
	}
	if err := p.Heal(); err == nil {
		t.Error("a closed proxy was healed")
	}
}
