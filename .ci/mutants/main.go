// Command mutants shows that the tests are awake: it leaves one promise at a time
// out of the product, with go test -overlay so that no source is touched, and
// wants the test that names the promise to turn red.
//
// A line that is gone, a variant that does not compile, a test that does not
// exist or that is red without the variant: each is a failure of this program,
// and so is a test that stays green.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// limit is the longest one run of one test may take, its build included.
const limit = 5 * time.Minute

type variant struct {
	name      string // the promise that is left out
	file      string // from the root of the module
	old, new  string
	pkg, test string
}

func main() {
	bad := 0
	for _, v := range variants {
		start := time.Now()
		said, err := v.try(context.Background())
		took := time.Since(start).Round(100 * time.Millisecond)
		if err != nil {
			bad++
			fmt.Printf("NOT CAUGHT  %s (%s): %v\n", v.name, took, err)
			continue
		}
		fmt.Printf("caught      %s: %s %s is red (%s): %s\n", v.name, v.pkg, v.test, took, said)
	}
	fmt.Printf("%d of %d variants caught\n", len(variants)-bad, len(variants))
	if bad > 0 {
		os.Exit(1)
	}
}

// try runs the test without and with the variant; it returns what the red test
// said first.
func (v variant) try(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "ic-mutant-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := v.overlay(dir)
	if err != nil {
		return "", err
	}
	out, err := v.run(ctx)
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+v.test+" ")) {
		return "", fmt.Errorf("the test does not pass on the product itself: %v\n%s", err, out)
	}
	out, err = v.run(ctx, "-overlay", overlay)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", errors.New("the test stays green")
	case !errors.As(err, &exit) || !bytes.Contains(out, []byte("--- FAIL: "+v.test+" ")):
		return "", fmt.Errorf("it fails, but not by that test: %v\n%s", err, out)
	}
	return complaint(out), nil
}

// overlay writes the variant of the file and the description that go test wants.
func (v variant) overlay(dir string) (string, error) {
	source, err := os.ReadFile(v.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), v.old); n != 1 {
		return "", fmt.Errorf("%q stands %d times in %s, not once: the table is out of date", v.old, n, v.file)
	}
	original, err := filepath.Abs(v.file)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), v.old, v.new, 1)), 0o600); err != nil {
		return "", err
	}
	description, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, description, 0o600)
}

// run runs the one test; -vet=off since a variant may leave what vet dislikes.
func (v variant) run(ctx context.Context, more ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args := append([]string{"test", "-v", "-vet=off", "-run", "^" + v.test + "$"}, more...)
	return exec.CommandContext(ctx, "go", append(args, v.pkg)...).CombinedOutput()
}

// complaint is the first line that names a line of a test.
func complaint(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "_test.go:") {
			return strings.TrimSpace(line)
		}
	}
	return "no line of a test"
}
