package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// dialLimit is how long the proxy tries to reach its target: on loopback
	// either at once or not at all.
	dialLimit = 2 * time.Second
	// acceptPause is the distance of two tries to accept when the machine has
	// run out of something.
	acceptPause = 20 * time.Millisecond
	// buffer is what one direction of one connection holds while it is cut.
	buffer = 32 << 10
)

// Cut is a way of being unreachable.
type Cut int

const (
	// None passes everything.
	None Cut = iota
	// Reset ends every connection with a TCP reset and resets every new one: a
	// middle box that answers for the dead.
	Reset
	// Refuse closes the port as well: connection refused, as from a machine on
	// which nothing listens.
	Refuse
	// Blackhole lets connections stand and delivers nothing: a partition. What
	// was sent meanwhile arrives after Heal, as TCP would retransmit it.
	Blackhole
)

func (c Cut) String() string {
	return [...]string{"none", "reset", "refuse", "blackhole"}[c]
}

// Proxy passes TCP connections from its own port to a target. It is safe for
// concurrent use.
type Proxy struct {
	addr string

	mu       sync.Mutex
	target   string
	cut      Cut
	open     chan struct{} // closed while bytes may pass
	listener net.Listener  // nil while refused or closed
	pairs    map[*pair]struct{}
	closed   bool
	serving  sync.WaitGroup
}

// Listen opens a proxy to target on a free port of loopback.
func Listen(target string) (*Proxy, error) {
	p := &Proxy{target: target, open: make(chan struct{}), pairs: make(map[*pair]struct{})}
	close(p.open)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a proxy to %s: %w", target, err)
	}
	p.addr = l.Addr().String()
	p.serve(l)
	return p, nil
}

// Addr is where the proxy listens; it stays the same for its whole life.
func (p *Proxy) Addr() string { return p.addr }

// SetTarget changes where new connections go; those that stand are left.
func (p *Proxy) SetTarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// State is how the proxy is cut now.
func (p *Proxy) State() Cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}

// Cut makes the target unreachable. Cutting in another way replaces the first;
// None is Heal.
func (p *Proxy) Cut(how Cut) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("set proxy %s to %s: it is closed", p.addr, how)
	}
	if how != Refuse && p.listener == nil {
		l, err := net.Listen("tcp", p.addr)
		if err != nil {
			return fmt.Errorf("open proxy %s again: %w: another program took the port: start the demo again", p.addr, err)
		}
		p.serve(l)
	}
	p.cut = how
	switch {
	case how == None && !isOpen(p.open):
		close(p.open)
	case how != None && isOpen(p.open):
		p.open = make(chan struct{})
	}
	if how == Refuse && p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	if how == Refuse || how == Reset {
		for c := range p.pairs {
			c.reset()
		}
	}
	return nil
}

// Heal lets everything pass again.
func (p *Proxy) Heal() error { return p.Cut(None) }

// Close ends the proxy and every connection through it, and waits for them.
func (p *Proxy) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	if p.listener != nil {
		p.listener.Close()
	}
	for c := range p.pairs {
		c.reset()
	}
	p.mu.Unlock()
	p.serving.Wait()
	return nil
}

// serve accepts from l until it is closed. The caller holds mu or owns p alone.
func (p *Proxy) serve(l net.Listener) {
	p.listener = l
	p.serving.Go(func() {
		for {
			client, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				// Out of descriptors, most likely: try again, but not in a spin.
				time.Sleep(acceptPause)
				continue
			}
			p.accept(client.(*net.TCPConn))
		}
	})
}

func (p *Proxy) accept(client *net.TCPConn) {
	c := &pair{client: client, ended: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.cut == Reset || p.cut == Refuse {
		c.reset()
		return
	}
	p.pairs[c] = struct{}{}
	p.serving.Go(func() {
		p.carry(c)
		p.mu.Lock()
		delete(p.pairs, c)
		p.mu.Unlock()
	})
}

// carry dials the target once bytes may pass and copies both ways until either
// side ends.
func (p *Proxy) carry(c *pair) {
	if !p.mayPass(c) {
		return
	}
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	conn, err := net.DialTimeout("tcp", target, dialLimit)
	if err != nil {
		c.reset()
		return
	}
	if !c.join(conn.(*net.TCPConn)) {
		return
	}
	var up sync.WaitGroup
	up.Go(func() { p.pump(c, c.target, c.client) })
	p.pump(c, c.client, c.target)
	up.Wait()
	c.close()
}

// pump copies from src to dst. An end of file closes the other side for
// writing only, so that a half-closed connection works; an error resets both.
func (p *Proxy) pump(c *pair, dst, src *net.TCPConn) {
	buf := make([]byte, buffer)
	for {
		n, readErr := src.Read(buf)
		if n > 0 {
			if !p.mayPass(c) {
				return
			}
			if _, err := dst.Write(buf[:n]); err != nil {
				c.reset()
				return
			}
		}
		if errors.Is(readErr, io.EOF) {
			if p.mayPass(c) {
				dst.CloseWrite()
			}
			return
		}
		if readErr != nil {
			c.reset()
			return
		}
	}
}

// mayPass waits while the proxy is a black hole; false means that the
// connection has ended.
func (p *Proxy) mayPass(c *pair) bool {
	for {
		p.mu.Lock()
		open := p.open
		p.mu.Unlock()
		select {
		case <-c.ended:
			return false
		default:
		}
		select {
		case <-c.ended:
			return false
		case <-open:
			return true
		}
	}
}

func isOpen(gate chan struct{}) bool {
	select {
	case <-gate:
		return true
	default:
		return false
	}
}

// pair is the two sockets of one connection.
type pair struct {
	mu     sync.Mutex
	client *net.TCPConn
	target *net.TCPConn // nil until dialled
	ended  chan struct{}
	over   bool
}

// join adds the target's socket, unless the connection ended meanwhile.
func (c *pair) join(target *net.TCPConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		target.Close()
		return false
	}
	c.target = target
	return true
}

// reset ends both sides at once; with linger 0 the peer sees a TCP reset.
func (c *pair) reset() { c.end(true) }

func (c *pair) close() { c.end(false) }

func (c *pair) end(reset bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	close(c.ended)
	for _, s := range []*net.TCPConn{c.client, c.target} {
		if s == nil {
			continue
		}
		if reset {
			// Failing to set it makes an orderly end of a reset, nothing worse.
			_ = s.SetLinger(0)
		}
		s.Close()
	}
}
