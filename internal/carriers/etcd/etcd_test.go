package etcd_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/carriers/etcd"
	"github.com/oklog/ulid/v2"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
)

func TestADirectiveIsWrittenOnce(t *testing.T) {
	c := open(t, options(shared.addr, fleetOf(t)))
	id := newID()
	put(t, c, id)
	put(t, c, id) // the same again is no error: an answer may have been lost
	if err := c.Put(t.Context(), id, "another"); !errors.Is(err, etcd.ErrExists) {
		t.Fatalf("another token under the same id: %v", err)
	}
	full, err := c.All(t.Context())
	if err != nil || full.Tokens[id] != "token-of-"+id {
		t.Fatalf("All = %v, %v", full, err)
	}
}

func TestPutRefusesWhatNoReaderWouldTake(t *testing.T) {
	c := open(t, options(shared.addr, fleetOf(t)))
	for _, bad := range [][2]string{
		{"../lease", "x"}, {"", "x"}, {strings.ToLower(newID()), "x"}, {newID(), ""}, {newID(), strings.Repeat("x", 4097)},
	} {
		if err := c.Put(t.Context(), bad[0], bad[1]); err == nil {
			t.Errorf("Put(%q, %d bytes) was accepted", bad[0], len(bad[1]))
		}
	}
	if full, err := c.All(t.Context()); err != nil || len(full.Tokens) != 0 {
		t.Errorf("All = %v, %v", full, err)
	}
}

func TestAllReadsEveryPageOfOneFleetOnly(t *testing.T) {
	c := open(t, options(shared.addr, fleetOf(t)))
	other := open(t, options(shared.addr, fleetOf(t)+"-2"))
	put(t, other, newID())
	want := make([]string, 300)
	for i := range want {
		want[i] = newID()
	}
	put(t, c, want...)
	full, err := c.All(t.Context())
	if err != nil || len(full.Tokens) != len(want) || full.Note != "" || full.Revision == 0 {
		t.Fatalf("%d tokens of %d, note %q, revision %d, %v", len(full.Tokens), len(want), full.Note, full.Revision, err)
	}
}

func TestAStrangersKeysHideNoDirective(t *testing.T) {
	fleet := fleetOf(t)
	c := open(t, options(shared.addr, fleet))
	stranger := raw(t, shared.addr)
	// Together they are longer than one answer may be, and than one page of it.
	big := strings.Repeat("x", 1<<20)
	var ids []string
	for range 12 {
		id := newID()
		put(t, c, id)
		ids = append(ids, id)
		if _, err := stranger.Put(t.Context(), "/ic/"+fleet+"/d/"+newID(), big); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stranger.Put(t.Context(), "/ic/"+fleet+"/d/not-an-id", "x"); err != nil {
		t.Fatal(err)
	}
	full, err := c.All(t.Context())
	if err != nil || len(full.Tokens) != len(ids) || !strings.HasPrefix(full.Note, "13 keys") {
		t.Fatalf("%d tokens, note %q, %v", len(full.Tokens), full.Note, err)
	}
	w := watch(t, c)
	w.until(t, "all directives", w.has(ids...))
	w.until(t, "a note in the status", func() bool { return w.status.Connected && strings.HasPrefix(w.status.Err, "13 keys") })
	late := newID()
	if _, err := stranger.Put(t.Context(), "/ic/"+fleet+"/d/"+newID(), big); err != nil {
		t.Fatal(err)
	}
	put(t, c, late)
	w.until(t, "a directive behind a stranger's key", w.has(late))
}

func TestAStoreThatSomebodyFillsIsReadUpToALimit(t *testing.T) {
	c := open(t, options(shared.addr, fleetOf(t)))
	for range 150 {
		put(t, c, newID())
	}
	c.SetMost(100)
	full, err := c.All(t.Context())
	if err != nil || len(full.Tokens) != 128 || !strings.Contains(full.Note, "more than 128 keys") {
		t.Errorf("%d tokens, note %q, %v", len(full.Tokens), full.Note, err)
	}
}

func TestTheLeaseMovesByCompareAndSwap(t *testing.T) {
	c := open(t, options(shared.addr, fleetOf(t)))
	cell, err := c.LeaseGet(t.Context())
	if err != nil || cell != (etcd.Cell{}) {
		t.Fatalf("a lease nobody took: %+v, %v", cell, err)
	}
	first, err := c.LeaseSwap(t.Context(), 0, "ana")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.LeaseSwap(t.Context(), 0, "ben"); !errors.Is(err, etcd.ErrExists) {
		t.Errorf("ben took a lease that ana holds: %v", err)
	}
	again, err := c.LeaseSwap(t.Context(), 0, "ana")
	if err != nil || again != first {
		t.Errorf("ana's repeated write gave revision %d, %v; want %d", again, err, first)
	}
	second, err := c.LeaseSwap(t.Context(), first, "ben")
	if err != nil || second <= first {
		t.Fatalf("ben takes over: %d, %v", second, err)
	}
	if cell, err := c.LeaseGet(t.Context()); err != nil || cell != (etcd.Cell{Value: "ben", Revision: second}) {
		t.Errorf("lease is %+v, %v", cell, err)
	}
}

func TestTwoCosignersDoNotLoseOneAnother(t *testing.T) {
	c := open(t, options(shared.addr, fleetOf(t)))
	id := newID()
	first, err := c.CosignSwap(t.Context(), id, 0, "payload")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CosignSwap(t.Context(), id, first, "payload+ana"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CosignSwap(t.Context(), id, first, "payload+ben"); !errors.Is(err, etcd.ErrExists) {
		t.Errorf("ben overwrote ana: %v", err)
	}
	if cell, err := c.CosignGet(t.Context(), id); err != nil || cell.Value != "payload+ana" {
		t.Errorf("proposal is %+v, %v", cell, err)
	}
	if _, err := c.CosignGet(t.Context(), "../lease"); err == nil {
		t.Error("an id that is a path was accepted")
	}
	if full, err := c.All(t.Context()); err != nil || len(full.Tokens) != 0 {
		t.Errorf("a proposal is read as a directive: %v, %v", full, err)
	}
}

func TestTheNewestProposalsAreListed(t *testing.T) {
	fleet := fleetOf(t)
	c := open(t, options(shared.addr, fleet))
	if list, err := c.CosignList(t.Context()); err != nil || len(list) != 0 {
		t.Fatalf("before anything was proposed: %v, %v", list, err)
	}
	stranger := raw(t, shared.addr)
	var ids []string
	for i := range etcd.MaxProposals + 10 {
		id := ulid.MustNew(uint64(1_700_000_000_000+i), ulid.DefaultEntropy()).String()
		ids = append(ids, id)
		if _, err := stranger.Put(t.Context(), "/ic/"+fleet+"/cosign/"+id, "proposal-"+id); err != nil {
			t.Fatal(err)
		}
	}
	newest := ids[len(ids)-1]
	if _, err := stranger.Put(t.Context(), "/ic/"+fleet+"/cosign/"+newest, strings.Repeat("x", 4097)); err != nil {
		t.Fatal(err)
	}
	put(t, c, newID()) // a directive is no proposal
	list, err := c.CosignList(t.Context())
	if err != nil || len(list) != etcd.MaxProposals-1 {
		t.Fatalf("%d proposals, %v", len(list), err)
	}
	if list[ids[len(ids)-2]] == "" || list[ids[0]] != "" || list[newest] != "" {
		t.Error("not the newest are listed, or one that is too long")
	}
}

func TestWhatServesKeysOnlyHasNoHealthToTell(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bare := grpc.NewServer()
	go bare.Serve(l)
	t.Cleanup(bare.Stop)
	if note, err := open(t, options(l.Addr().String(), fleetOf(t))).Health(t.Context()); note != "" || err != nil {
		t.Errorf("it says %q, %v", note, err)
	}
}

func TestADeadEtcdGivesAnErrorWithinTheDeadline(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	withPassword := options(silent.Addr().String(), fleetOf(t))
	withPassword.Username, withPassword.Password = "ana", "secret"
	for what, o := range map[string]etcd.Options{
		"nobody listens":                options(closed.Addr().String(), fleetOf(t)),
		"nobody answers":                options(silent.Addr().String(), fleetOf(t)),
		"nobody answers, with password": withPassword,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := open(t, o)
			before := time.Now()
			err := c.Put(t.Context(), newID(), "x")
			if took := time.Since(before); took > etcd.WriteLimit+3*time.Second {
				t.Errorf("it took %s", took)
			}
			if !errors.Is(err, etcd.ErrUnreachable) || !strings.Contains(err.Error(), o.Endpoints[0]) {
				t.Errorf("error is %q", err)
			}
			if what == "nobody listens" && !strings.Contains(err.Error(), "connection refused") {
				t.Errorf("the error does not say why: %q", err)
			}
		})
	}
}

func TestAFullEtcdIsNamedAsReadOnlyAndStillRead(t *testing.T) {
	s := startOwn(t, t.TempDir(), func(cfg *embed.Config) {
		cfg.QuotaBackendBytes = 256 << 10
		cfg.BackendBatchLimit = 1 // the size is looked at when it has been written
	})
	c := open(t, options(s.addr, fleetOf(t)))
	put(t, c, newID())
	var err error
	for range 100 {
		if err = c.Put(t.Context(), newID(), strings.Repeat("x", 4096)); err != nil {
			break
		}
	}
	if !errors.Is(err, etcd.ErrReadOnly) {
		t.Fatalf("error is %v", err)
	}
	if full, err := c.All(t.Context()); err != nil || len(full.Tokens) < 2 {
		t.Errorf("All = %d tokens, %v", len(full.Tokens), err)
	}
}

func TestWrongCredentialsAreNamed(t *testing.T) {
	s := startOwn(t, t.TempDir(), func(cfg *embed.Config) { cfg.BcryptCost = 4 }) // the least, since a test under load has 2 s
	admin := raw(t, s.addr)
	for _, err := range []error{
		errOf(admin.UserAdd(t.Context(), "root", "secret")),
		errOf(admin.UserGrantRole(t.Context(), "root", "root")),
		errOf(admin.UserAdd(t.Context(), "nobody", "secret")),
		errOf(admin.AuthEnable(t.Context())),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	with := func(user, password string) error {
		o := options(s.addr, fleetOf(t))
		o.Username, o.Password = user, password
		return open(t, o).Put(t.Context(), newID(), "x")
	}
	if err := with("root", "secret"); err != nil {
		t.Errorf("the right password: %v", err)
	}
	o := options(s.addr, fleetOf(t))
	o.Username, o.Password = "nobody", "secret"
	if note, err := open(t, o).Health(t.Context()); note != "" || err != nil {
		t.Errorf("whoever may not ask for the health is told %q, %v", note, err)
	}
	for _, c := range [][2]string{{"root", "wrong"}, {"nobody", "secret"}, {"", ""}} {
		err := with(c[0], c[1])
		if !errors.Is(err, etcd.ErrAuth) || c[1] != "" && strings.Contains(err.Error(), c[1]) {
			t.Errorf("user %q: %v", c[0], err)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	for what, change := range map[string]func(*etcd.Options){
		"no endpoint":           func(o *etcd.Options) { o.Endpoints = nil },
		"endpoint without host": func(o *etcd.Options) { o.Endpoints = []string{"127.0.0.1:2379"} },
		"password in endpoint":  func(o *etcd.Options) { o.Endpoints = []string{"http://ana:secret@127.0.0.1:2379"} },
		"fleet that is a path":  func(o *etcd.Options) { o.Fleet = "a/../b" },
		"no clock":              func(o *etcd.Options) { o.Now = nil },
	} {
		o := options(shared.addr, "shop")
		change(&o)
		if _, err := etcd.New(t.Context(), o); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestACallAfterCloseIsAnError(t *testing.T) {
	c, err := etcd.New(t.Context(), options(shared.addr, fleetOf(t)))
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, newID())
	c.Close()
	if err := c.Put(t.Context(), newID(), "x"); err == nil {
		t.Error("a closed carrier wrote")
	}
}
