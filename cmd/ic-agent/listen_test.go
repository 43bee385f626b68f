package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/hostrun"
)

// bySocket asks over a socket in the file system.
func bySocket(path string) *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}}
}

func TestASocketInTheFileSystemAnswersEverything(t *testing.T) {
	m := newMachine(t)
	socket := filepath.Join(t.TempDir(), "agent.sock")
	m.args = append(m.args, "-listen", "127.0.0.1:0,unix:"+socket)
	m.start()
	client := bySocket(socket)
	get := func() (s hostrun.State) {
		t.Helper()
		answer, err := client.Get("http://agent/v1/state")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if err := json.NewDecoder(answer.Body).Decode(&s); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%d, %v", answer.StatusCode, err)
		}
		return s
	}
	if s := get(); s.Host != "checkout-01" {
		t.Errorf("state: %+v", s)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != socketMode {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	second := exec.Command(m.program, append(append([]string{}, m.policy...), "-volatile", "true", "-listen", "unix:"+socket)...)
	if out, err := second.CombinedOutput(); err == nil || !strings.Contains(string(out), "another process answers there") {
		t.Errorf("a second agent on one socket: %v, %s", err, out)
	}

	m.kill() // it leaves its socket behind
	if _, err := os.Lstat(socket); err != nil {
		t.Fatal(err)
	}
	m.start()
	get()
	if err := errors.Join(m.cmd.Process.Signal(syscall.SIGTERM), m.cmd.Wait()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an agent that stopped in order leaves its socket: %v", err)
	}
}

func TestWhatIsNoSocketOfOursIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openAll([]address{{"tcp", "127.0.0.1:0"}, {"unix", path}}, false); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("listening on a file: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "text" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// visitor has a connection to the agent on which it has sent something.
func (m *machine) visitor(sends string) net.Conn {
	m.t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(m.url, httpPrefix), patience)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, sends); err != nil {
		m.t.Fatal(err)
	}
	return conn
}

func TestWhoSendsAByteASecondKeepsNobodyOut(t *testing.T) {
	m := newMachine(t)
	m.start()
	first := m.visitor("G")
	for range 2 * maxConnections {
		m.visitor("G")
	}
	began := time.Now()
	if code := m.get("/healthz", nil); code != http.StatusOK || time.Since(began) > headLimit/2 {
		t.Errorf("beside them it takes %s to be told %d", time.Since(began), code)
	}
	first.SetReadDeadline(time.Now().Add(patience))
	if _, err := first.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first of them is still there: %v", err)
	}
}

func TestAQuestionThatDoesNotEndIsGivenUp(t *testing.T) {
	m := newMachine(t)
	m.start()
	slow := map[string]net.Conn{
		"a head": m.visitor("GET /report HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "),
		"a body": m.visitor("POST /v1/allow HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n{"),
		"flags":  m.visitor("POST /ofrep/v1/evaluate/flags HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4000\r\n\r\n{"),
	}
	for what, conn := range slow {
		conn.SetReadDeadline(time.Now().Add(headLimit + patience/2))
		if rest, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(rest), " 200 ") {
			t.Errorf("%s that does not end: %v, %s", what, err, rest)
		}
	}
	if budgets := m.report().Budgets; len(budgets) != 0 {
		t.Errorf("half a question was counted: %+v", budgets)
	}
}

func TestALongHeadIsRefused(t *testing.T) {
	m := newMachine(t)
	m.start()
	conn := m.visitor("GET /report HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + strings.Repeat("x", 2*maxHead) + "\r\n\r\n")
	conn.SetReadDeadline(time.Now().Add(patience))
	head := make([]byte, 12)
	if _, err := io.ReadFull(conn, head); err != nil || string(head) != "HTTP/1.1 431" {
		t.Errorf("%q, %v", head, err)
	}
}
