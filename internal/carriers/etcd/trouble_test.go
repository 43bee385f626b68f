package etcd_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/carriers/etcd"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/flagservice"
	"github.com/degradedmode/ic/internal/drill/proxy"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/sshsig"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// estate is an etcd of its own that can be killed and wiped, hosts behind a wire
// that can be cut, and whoever puts directives.
type estate struct {
	t       *testing.T
	bundle  *policy.Bundle
	dir     string
	flags   *flagservice.Service
	wire    *proxy.Proxy
	console *etcd.Carrier
	tokens  map[string]string // all that was ever signed, by id
}

func newEstate(t *testing.T) *estate {
	t.Helper()
	_, bundle, _ := policytest.Shop(t)
	e := &estate{t: t, bundle: bundle, dir: t.TempDir(), tokens: map[string]string{}}
	var err error
	if e.flags, err = flagservice.Start(t.Context(), e.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.flags.Kill)
	e.wire = newProxy(t, e.flags.Addr())
	e.console = open(t, options(e.flags.Addr(), policytest.Fleet))
	return e
}

type still struct{}

func (still) Now() model.Instant {
	return model.Instant{Wall: policytest.Now(), Boot: time.Hour, BootID: "boot", State: model.ClockOK}
}

// host starts one behind the wire. Without a folder it forgets when it stops.
func (e *estate) host(folder engine.Folder) *hostrun.Runner {
	e.t.Helper()
	r, err := hostrun.Start(hostrun.Config{
		Engine: engine.Config{Fleet: policytest.Fleet, Host: "checkout-01", Services: []string{"checkout"}, Realm: directive.Production,
			Bundle: e.bundle, Folder: folder, Rand: rand.Reader, Software: "test"},
		Clock: still{}, Etcd: []string{"http://" + e.wire.Addr()}, FullReadEvery: 100 * time.Millisecond,
	})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = r.Stop() })
	return r
}

func (e *estate) sign(d model.Directive) string {
	e.t.Helper()
	d.ID, d.Fleet, d.Incident, d.Scope = newID(), policytest.Fleet, "inc-1", "checkout"
	d.IssuedAt, d.NotBefore, d.Policy = policytest.Now(), policytest.Now(), e.bundle.Ref
	d.Log = model.LogHead{Origin: policytest.Fleet + "/inc-1/s1", Root: strings.Repeat("0", 64)}
	payload, err := directive.Encode(d)
	if err != nil {
		e.t.Fatal(err)
	}
	sig, err := directive.Sign(policytest.Key(templates.Ines), rand.Reader, payload, directive.Production, policytest.Fleet)
	if err != nil {
		e.t.Fatal(err)
	}
	if e.tokens[d.ID], err = directive.Token(payload, []sshsig.Signature{sig}...); err != nil {
		e.t.Fatal(err)
	}
	return d.ID
}

func (e *estate) shed(tier int) string {
	return e.sign(model.Directive{Kind: model.Shed, Tier: tier, Right: "shed"})
}

func (e *estate) off(feature string) string {
	return e.sign(model.Directive{Kind: model.Off, Feature: feature, Right: "feature-off"})
}

func (e *estate) on(id string) string {
	return e.sign(model.Directive{Kind: model.End, Ends: model.Off, IDs: []string{id}, Right: "feature-on"})
}

func (e *estate) put(ids ...string) {
	e.t.Helper()
	for _, id := range ids {
		if err := e.console.Put(e.t.Context(), id, e.tokens[id]); err != nil {
			e.t.Fatal(err)
		}
	}
}

// wipe restarts etcd with nothing in it.
func (e *estate) wipe() {
	e.t.Helper()
	e.flags.Kill()
	if err := os.RemoveAll(filepath.Join(e.dir, "etcd")); err != nil {
		e.t.Fatal(err)
	}
	e.restart()
}

func (e *estate) restart() {
	e.t.Helper()
	if err := e.flags.Restart(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
}

func live(r *hostrun.Runner) (ids []string) {
	for _, l := range r.Report().Live {
		ids = append(ids, l.ID)
	}
	slices.Sort(ids)
	return ids
}

// source is the flag service as the host sees it.
func source(r *hostrun.Runner) model.ReportSource {
	for _, s := range r.Report().Sources {
		if s.Name == hostrun.FromEtcd {
			return s
		}
	}
	return model.ReportSource{}
}

func (e *estate) until(what string, ok func() bool) {
	e.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			e.t.Fatalf("%s: not in %s", what, patience)
		}
	}
}

// holds wants that the host holds exactly these.
func (e *estate) holds(r *hostrun.Runner, what string, ids ...string) {
	e.t.Helper()
	slices.Sort(ids)
	if got := live(r); !slices.Equal(got, ids) {
		e.t.Errorf("%s: the host holds %v, want %v", what, got, ids)
	}
}

// readAgain waits until the host has read everything and found exactly these.
func (e *estate) readAgain(r *hostrun.Runner, ids ...string) {
	e.t.Helper()
	slices.Sort(ids)
	e.until("a full read", func() bool {
		s := source(r)
		return s.Error == "" && slices.Equal(slices.Sorted(slices.Values(s.PresentIDs)), ids)
	})
}

func TestHostsKeepWhatTheyHoldWhenEtcdIsKilled(t *testing.T) {
	e := newEstate(t)
	shed := e.shed(2)
	e.put(shed)
	folder := filepath.Join(t.TempDir(), "state")
	r := e.host(dir(t, folder))
	e.until("the shed", func() bool { return len(live(r)) == 1 })
	e.flags.Kill()
	e.until("the host says so", func() bool {
		return strings.Contains(source(r).Error, "etcd is unreachable; hosts keep what they hold")
	})
	e.holds(r, "with etcd dead", shed)
	if err := e.console.Put(t.Context(), shed, e.tokens[shed]); !errors.Is(err, etcd.ErrUnreachable) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("the console is told %v", err)
	}
	if _, err := e.console.Health(t.Context()); !errors.Is(err, etcd.ErrUnreachable) {
		t.Errorf("the health of a dead one: %v", err)
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	r = e.host(dir(t, folder))
	e.holds(r, "started again with etcd dead", shed)
	e.restart()
	later := e.off("recommendations")
	e.put(later)
	e.until("what came later", func() bool { return len(live(r)) == 2 })
	e.holds(r, "with etcd back", shed, later)
}

func dir(t *testing.T, path string) engine.Folder {
	t.Helper()
	f, err := engine.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAPartitionIsNoticedAndHealsWithoutARegression(t *testing.T) {
	t.Parallel() // it waits for a keep-alive that is not answered
	e := newEstate(t)
	shed := e.shed(3)
	e.put(shed)
	r := e.host(engine.NewMemory())
	e.until("the shed", func() bool { return len(live(r)) == 1 })
	if err := e.wire.Cut(proxy.Blackhole); err != nil {
		t.Fatal(err)
	}
	e.until("the host notices a peer that is silent", func() bool { return strings.Contains(source(r).Error, "etcd is unreachable") })
	e.holds(r, "cut off", shed)
	missed := e.off("recommendations")
	e.put(missed)
	if err := e.wire.Heal(); err != nil {
		t.Fatal(err)
	}
	e.until("what it missed", func() bool { return len(live(r)) == 2 })
	e.holds(r, "healed", shed, missed)
	e.readAgain(r, shed, missed)
}

func TestACompactionWhileAHostIsAwayLosesNothing(t *testing.T) {
	e := newEstate(t)
	feature := e.off("recommendations")
	e.put(feature)
	r := e.host(engine.NewMemory())
	e.until("the first", func() bool { return len(live(r)) == 1 })
	if err := e.wire.Cut(proxy.Refuse); err != nil {
		t.Fatal(err)
	}
	e.until("the cut", func() bool { return source(r).Error != "" })
	end, shed := e.on(feature), e.shed(2)
	e.put(end, shed)
	full, err := e.console.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw(t, e.flags.Addr()).Compact(t.Context(), full.Revision); err != nil {
		t.Fatal(err)
	}
	e.holds(r, "cut off", feature)
	if err := e.wire.Heal(); err != nil {
		t.Fatal(err)
	}
	e.until("what was put and compacted meanwhile", func() bool { return slices.Equal(live(r), []string{shed}) })
}

// alarm raises or clears an alarm of the store as an administrator could.
func (e *estate) alarm(action pb.AlarmRequest_AlarmAction, kind pb.AlarmType) {
	e.t.Helper()
	c := raw(e.t, e.flags.Addr())
	members, err := c.MemberList(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := pb.NewMaintenanceClient(c.ActiveConnection()).Alarm(e.t.Context(), &pb.AlarmRequest{Action: action, Alarm: kind, MemberID: members.Members[0].ID}); err != nil {
		e.t.Fatal(err)
	}
}

func TestAStoreAtItsQuotaIsReadAndSaysThatItTakesNothing(t *testing.T) {
	e := newEstate(t)
	shed := e.shed(2)
	e.put(shed)
	r := e.host(engine.NewMemory())
	e.until("the shed", func() bool { return len(live(r)) == 1 })
	if note, err := e.console.Health(t.Context()); note != "" || err != nil {
		t.Errorf("a healthy one says %q, %v", note, err)
	}
	for kind, want := range map[pb.AlarmType]error{pb.AlarmType_NOSPACE: etcd.ErrReadOnly, pb.AlarmType_CORRUPT: etcd.ErrCorrupt} {
		e.alarm(pb.AlarmRequest_ACTIVATE, kind)
		if note, err := e.console.Health(t.Context()); note != want.Error() || err != nil {
			t.Errorf("%s: the console is told %q, %v", kind, note, err)
		}
		another := e.off("recommendations")
		if err := e.console.Put(t.Context(), another, e.tokens[another]); !errors.Is(err, want) {
			t.Errorf("%s: a put says %v", kind, err)
		}
		e.holds(r, kind.String(), shed)
		e.alarm(pb.AlarmRequest_DEACTIVATE, kind)
	}
	fresh := e.host(engine.NewMemory())
	e.until("a new host reads", func() bool { return len(live(fresh)) == 1 })
	later := e.off("recommendations")
	e.put(later)
	e.until("what is put after the alarm", func() bool { return len(live(r)) == 2 })
}

func TestAStoreThatCameBackEmptyTakesNothingBack(t *testing.T) {
	e := newEstate(t)
	ended, shed := e.off("recommendations"), e.shed(3)
	end := e.on(ended)
	e.put(ended, shed)
	r := e.host(engine.NewMemory())
	e.until("both", func() bool { return len(live(r)) == 2 })
	e.put(end)
	e.until("the end", func() bool { return len(live(r)) == 1 })

	e.wipe()
	e.readAgain(r) // the report does not claim that etcd still carries them
	e.holds(r, "after etcd came back empty", shed)

	// Somebody puts an old copy back: what was ended, without its ending.
	e.put(ended)
	e.readAgain(r, ended)
	e.holds(r, "with a subset put back", shed)
	// Whoever knew nothing believes the subset: too tight, and visible as skew.
	fresh := e.host(engine.NewMemory())
	e.until("what is there", func() bool { return slices.Equal(live(fresh), []string{ended}) })

	// The same tokens again: nobody's authority is needed for that.
	e.put(end, shed, ended)
	e.readAgain(r, ended, end, shed)
	e.until("the new host agrees", func() bool { return slices.Equal(live(fresh), []string{shed}) })
	e.holds(r, "with everything put back", shed)
}

func TestASecondWipeDoesNotHideWhatComesBack(t *testing.T) {
	e := newEstate(t)
	shed := e.shed(2)
	r := e.host(engine.NewMemory())
	for range 2 {
		e.put(shed)
		e.readAgain(r, shed)
		e.wipe()
		e.readAgain(r)
		e.holds(r, "wiped", shed)
	}
}
