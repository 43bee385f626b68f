package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Only Linux tells a child that its parent has died.
func TestAProgramWhoseAgentIsKilledEnds(t *testing.T) {
	m := newMachine(t)
	mark := filepath.Join(t.TempDir(), "ended")
	cmd := m.exec(nil, nil, `trap 'echo in order > '`+mark+`'; exit 0' TERM; echo ready; while :; do sleep 0.02; done`)
	running(t, cmd)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	m.until("the program ends in order", func() bool { said, _ := os.ReadFile(mark); return string(said) == "in order\n" })
}
