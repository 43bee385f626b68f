package audit

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

const (
	fleet    = "shop-demo"
	incident = "inc-7"
	person   = "amara"
)

// random is a stream that repeats for the same seed.
func random(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }

// sshKey is an operator's key, the same for the same seed.
func sshKey(t testing.TB, seed byte) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune('a'+seed)), ed25519.SeedSize))))
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// ticking is a clock that moves on by one step whenever it is read.
type ticking struct {
	mu   sync.Mutex
	now  model.Instant
	step time.Duration
}

func newClock() *ticking {
	return &ticking{
		now:  model.Instant{Wall: noon, Boot: time.Hour, BootID: "boot-1", State: model.ClockOK},
		step: 250 * time.Millisecond,
	}
}

func (c *ticking) Now() model.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now
	c.now.Wall, c.now.Boot = c.now.Wall.Add(c.step), c.now.Boot+c.step
	return now
}

// jump moves the clock: all of it, or the wall clock only.
func (c *ticking) jump(d time.Duration, wallOnly bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Wall = c.now.Wall.Add(d)
	if !wallOnly {
		c.now.Boot += d
	}
}

// options are those of a session of amara's, good until the test changes them.
func options(t testing.TB, session string) Options {
	t.Helper()
	key := sshKey(t, 0)
	return Options{
		Realm: directive.Production, Fleet: fleet, Incident: incident, Session: session, Actor: person,
		Clock: newClock(), Rand: random(1), Limit: time.Minute,
		Certify: func(statement []byte) ([]byte, error) {
			sig, err := sshsig.Sign(key, random(2), statement, directive.Production.Namespace("session", fleet))
			return sig.Blob, err
		},
	}
}

// trusting knows amara's key and nobody else's.
func trusting(t testing.TB) VerifyOptions {
	t.Helper()
	want := ssh.FingerprintSHA256(sshKey(t, 0).PublicKey())
	return VerifyOptions{Realm: directive.Production, Fleet: fleet,
		Trusted: func(fingerprint string) (string, bool) { return person, fingerprint == want }}
}

func open(t testing.TB, state string, o Options) *Writer {
	t.Helper()
	w, err := Open(state, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close("test over") })
	return w
}

func mustAppend(t testing.TB, w *Writer, bodies ...Body) {
	t.Helper()
	for _, b := range bodies {
		if err := w.Append(b); err != nil {
			t.Fatalf("append %s: %v", b.Kind(), err)
		}
	}
}

func mustRead(t testing.TB, states ...string) []Session {
	t.Helper()
	sessions, err := Read(incident, states...)
	if err != nil {
		t.Fatal(err)
	}
	return sessions
}

func mustVerify(t testing.TB, o VerifyOptions, states ...string) Result {
	t.Helper()
	var folders []string
	for _, state := range states {
		if _, err := os.Stat(Folder(state, incident)); err == nil {
			folders = append(folders, Folder(state, incident))
		}
	}
	r, err := Verify(o, folders...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// texts are the notes in all sessions, in file order.
func texts(sessions []Session) []string {
	var out []string
	for _, s := range sessions {
		for _, e := range s.Entries {
			if n, ok := e.Body.(Note); ok {
				out = append(out, n.Text)
			}
		}
	}
	return out
}

// fault decides what one call on a file or folder does. n is how much of a
// write arrives.
type fault func(op, path string, size int) (n int, err error)

// crashFS is a disk that loses power: what was not synced is gone, names too.
// It runs every call past a fault first.
type crashFS struct {
	mu     sync.Mutex
	files  map[string]*crashFile
	names  map[string]bool // made durable by syncing their folder
	made   map[string]bool // folders
	fault  fault
	counts map[string]int // "write path", "sync path", …
	inside int            // calls that have not returned
}

type crashFile struct {
	on            *crashFS
	path          string
	data          []byte
	durable       int // bytes that survive
	removed, shut bool
}

func newCrashFS() *crashFS {
	return &crashFS{files: map[string]*crashFile{}, names: map[string]bool{}, made: map[string]bool{".": true}, counts: map[string]int{}}
}

// failing arranges what calls from now on do.
func (d *crashFS) failing(f fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// call counts and asks for a fault without holding the disk, so that a call can
// hang while others go on.
func (d *crashFS) call(op, path string, size int) (int, error) {
	d.mu.Lock()
	d.counts[op+" "+path]++
	d.inside++
	f := d.fault
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.inside--
		d.mu.Unlock()
	}()
	if f == nil {
		return size, nil
	}
	return f(op, path, size)
}

func (d *crashFS) count(op, path string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[op+" "+path]
}

func (d *crashFS) waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inside
}

func (d *crashFS) Mkdir(folder string) (bool, error) {
	if _, err := d.call("mkdir", folder, 0); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made[folder] {
		return false, nil
	}
	if !d.made[filepath.Dir(folder)] {
		return false, fs.ErrNotExist
	}
	d.made[folder] = true
	return true, nil
}

func (d *crashFS) Create(path string) (File, error) {
	if _, err := d.call("create", path, 0); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[path] != nil {
		return nil, fs.ErrExist
	}
	d.files[path] = &crashFile{on: d, path: path}
	return d.files[path], nil
}

func (d *crashFS) SyncDir(folder string) error {
	if _, err := d.call("syncdir", folder, 0); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for path := range d.files {
		if filepath.Dir(path) == folder {
			d.names[path] = true
		}
	}
	for made := range d.made {
		if filepath.Dir(made) == folder {
			d.names[made] = true
		}
	}
	return nil
}

func (d *crashFS) Remove(path string) error {
	if _, err := d.call("remove", path, 0); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[path].removed = true
	delete(d.files, path)
	return nil
}

func (f *crashFile) Write(p []byte) (int, error) {
	n, err := f.on.call("write", f.path, len(p))
	f.on.mu.Lock()
	defer f.on.mu.Unlock()
	f.data = append(f.data, p[:n]...)
	return n, err
}

func (f *crashFile) Sync() error {
	if _, err := f.on.call("sync", f.path, 0); err != nil {
		return err
	}
	f.on.mu.Lock()
	defer f.on.mu.Unlock()
	f.durable = len(f.data)
	return nil
}

func (f *crashFile) Length() (int64, error) {
	if _, err := f.on.call("length", f.path, 0); err != nil {
		return 0, err
	}
	f.on.mu.Lock()
	defer f.on.mu.Unlock()
	if f.removed {
		return 0, fs.ErrNotExist
	}
	return int64(len(f.data)), nil
}

func (f *crashFile) Close() error {
	f.on.mu.Lock()
	defer f.on.mu.Unlock()
	if f.shut {
		return errors.New("closed twice")
	}
	f.shut = true
	return nil
}

// losePower returns what is on the disk afterwards, in a real folder: the synced
// bytes and, of the rest, as many as kept says.
func (d *crashFS) losePower(t testing.TB, kept func(unsynced int) int) string {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	root := t.TempDir()
	for path, f := range d.files {
		if !d.survives(path) {
			continue
		}
		to := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		end := f.durable + kept(len(f.data)-f.durable)
		if err := os.WriteFile(to, f.data[:end], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// survives reports whether the name of path and of every folder above it was
// synced.
func (d *crashFS) survives(path string) bool {
	for ; path != "."; path = filepath.Dir(path) {
		if !d.names[path] {
			return false
		}
	}
	return true
}

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// nothing of what was not synced is kept.
func nothing(int) int { return 0 }

// everything of what was written is kept: the machine goes on running.
func everything(n int) int { return n }
