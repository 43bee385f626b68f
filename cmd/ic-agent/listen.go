package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/degradedmode/ic/internal/hostrun"
)

const (
	defaultListen = "127.0.0.1:7420"
	anyPort       = "127.0.0.1:0" // for exec: several may run on one machine

	unixPrefix = "unix:"
	httpPrefix = "http://"
	maxListen  = 8           // addresses; more is a mistake in the configuration
	socketMode = 0o660       // who else may connect is decided by the folder
	knock      = time.Second // of asking whether somebody answers on a socket

	// maxConnections of all addresses together: services on one machine keep a few
	// each.
	maxConnections = 256
)

// address is one place to answer on.
type address struct{ network, at string }

func (a address) String() string {
	if a.network == "unix" {
		return unixPrefix + a.at
	}
	return httpPrefix + a.at
}

// addresses are where the configuration says to answer, or else. Without
// allow_remote nobody is reached who is not on this machine.
func (c *config) addresses(otherwise string) ([]address, error) {
	text := c.listen
	if text == "" {
		text = otherwise
	}
	var out []address
	for _, one := range list(text) {
		if path, ok := strings.CutPrefix(one, unixPrefix); ok {
			if !filepath.IsAbs(path) {
				return nil, fmt.Errorf("listen %s: a socket is unix: and an absolute path, like unix:/run/ic/agent.sock", one)
			}
			out = append(out, address{"unix", path})
			continue
		}
		if _, _, err := net.SplitHostPort(one); err != nil {
			return nil, fmt.Errorf("listen %s: %w; it is HOST:PORT, like %s, or unix:/PATH", one, err, defaultListen)
		}
		if !hostrun.Loopback(one) && c.allowRemote != "true" {
			return nil, fmt.Errorf(`listen %s: others than this machine would reach it; use %s, or set allow_remote to "true" if console and Prometheus have to`, one, defaultListen)
		}
		out = append(out, address{"tcp", one})
	}
	if len(out) > maxListen {
		return nil, fmt.Errorf("listen: %d addresses, at most %d", len(out), maxListen)
	}
	return out, nil
}

// openAll listens on all addresses, or on none.
func openAll(all []address, remote bool) (listeners []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range listeners {
				err = errors.Join(err, l.Close())
			}
			listeners = nil
		}
	}()
	for _, a := range all {
		l, err := a.open()
		if err != nil {
			return listeners, fmt.Errorf("answer on %s: %w", a, err)
		}
		listeners = append(listeners, l)
		// "localhost" is what this machine's own files make of it.
		if a.network == "tcp" && !remote && !hostrun.Loopback(l.Addr().String()) {
			return listeners, fmt.Errorf("answer on %s: it leads to %s, which is not loopback", a, l.Addr())
		}
	}
	return listeners, nil
}

func (a address) open() (net.Listener, error) {
	if a.network != "unix" {
		return net.Listen(a.network, a.at)
	}
	if err := clearSocket(a.at); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", a.at)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(a.at, socketMode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// clearSocket removes what an agent has left that was killed. What answers, and
// what is no socket, stays.
func clearSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is there and is no socket", path)
	}
	conn, err := net.DialTimeout("unix", path, knock)
	if err == nil {
		_ = conn.Close()
		return errors.New("another process answers there")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// crowd keeps the number of connections down. When one comes that is too many, the
// one that has done nothing for the longest goes: whoever opens connections and
// sends a byte a second does not keep others out.
type crowd struct {
	most int

	mu   sync.Mutex
	turn int
	last map[net.Conn]int // the turn at which a connection did something
}

// changed is what a server says of a connection.
func (c *crowd) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(c.last, conn)
		return
	}
	c.turn++
	c.last[conn] = c.turn
	if len(c.last) <= c.most {
		return
	}
	oldest := conn
	for other, turn := range c.last {
		if turn < c.last[oldest] {
			oldest = other
		}
	}
	delete(c.last, oldest)
	_ = oldest.Close() // its goroutine sees it
}

// addressOf is where a listener answers, for whoever reads it.
func addressOf(l net.Listener) string {
	return address{l.Addr().Network(), l.Addr().String()}.String()
}
