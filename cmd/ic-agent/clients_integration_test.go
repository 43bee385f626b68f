//go:build integration

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/model"
)

// need passes a test over whose program is not on this machine. Under
// IC_INTEGRATION=1 a missing one is a failure:
//
//	IC_INTEGRATION=1 go test -tags integration ./cmd/ic-agent -run AnotherLanguage
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("IC_INTEGRATION") == "1" {
		t.Fatalf("%s is not on PATH, and IC_INTEGRATION=1 wants it: install %s", program, program)
	}
	t.Skipf("%s is not on PATH: install %s to run this test", program, program)
	return ""
}

func TestAServiceInAnotherLanguageReadsItsHost(t *testing.T) {
	m := newMachine(t)
	dir := t.TempDir()
	socket, stateFile, envFile := filepath.Join(dir, "agent.sock"), filepath.Join(dir, "state.json"), filepath.Join(dir, "ic.env")
	m.args = append(slices.Clone(m.policy),
		"-state", m.state, "-file", m.file, "-listen", "127.0.0.1:0,unix:"+socket, "-state-file", stateFile, "-env-file", envFile)
	m.start()
	m.deliver(func() bool { return len(m.report().Live) == 2 },
		m.token(model.Directive{Kind: model.Shed, Scope: model.AnyScope, Tier: 2, Right: "shed"}),
		m.token(model.Directive{Kind: model.Bypass, Scope: "checkout", Right: "risk-bypass-small-orders"}))
	m.until("the files are written", func() bool {
		lines, _ := os.ReadFile(envFile)
		state, _ := os.ReadFile(stateFile)
		return strings.Contains(string(lines), "IC_TIER_CHECKOUT=2") && strings.Contains(string(state), `"control":"payment-risk"`)
	})
	for _, c := range []struct {
		program string
		args    []string
		says    string
	}{
		{"node", []string{filepath.Join("testdata", "client.mjs"), m.url, socket, stateFile}, `all 200 2 TARGETING_MATCH
off false off
again 304 0
one 2 true number
bypass true 50.00 USD true
unknown 404 FLAG_NOT_FOUND
bad context 400 INVALID_CONTEXT
4999 true true
5000 false over-amount
49.99 400
socket 200 true
file 1 2 false true 1
`},
		{"sh", []string{filepath.Join("testdata", "client.sh"), m.url, socket, envFile}, `again 304
tier 2
unknown 404
socket true
fresh 200
file 2 1 ok
`},
	} {
		t.Run(c.program, func(t *testing.T) {
			need(t, "curl")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			out, err := exec.CommandContext(ctx, need(t, c.program), c.args...).CombinedOutput()
			if err != nil || string(out) != c.says {
				t.Errorf("%v; it says\n%swant\n%s", err, out, c.says)
			}
		})
	}
}
