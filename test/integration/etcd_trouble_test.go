//go:build integration && linux

package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/drill/flagservice"
	"github.com/degradedmode/ic/internal/drill/proxy"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// trouble is a night on which everything happens to etcd that can.
type trouble struct {
	*estate
	shed, later string
	store       *flagservice.Service // the one that hosts read now
}

func TestEtcdInTrouble(t *testing.T) {
	t.Parallel() // it mostly waits
	need(t, "prometheus", "git")
	n := &trouble{}
	chapters(t, []chapter{
		{"everything runs and a shed is out", func() { n.estate = newEstate(t); n.store = n.flags; n.begins() }},
		{"etcd is full: it is read, and says that it takes nothing", n.isFull},
		{"two hosts are cut off, and what they miss is compacted away", n.isCompacted},
		{"etcd is killed: nothing changes, and a shed goes on", n.isKilled},
		{"etcd comes back empty: hosts keep what they hold", n.isEmpty},
		{"a subset is put back: nothing that was ended comes again", n.isSubset},
		{"the same signed texts are handed over again", n.isWhole},
		{"the log is whole", func() { n.by.must(done, words("audit", "verify"), "the log is whole") }},
	})
}

// run gives an order at the store of the moment and reads its id.
func (n *trouble) run(code int, args ...string) (r incident.Result) {
	n.t.Helper()
	n.by.must(code, append(args, "--yes", "--json", "--etcd", n.store.Endpoint())).read(n.t, &r)
	return r
}

// says is what the console tells of the flag service.
func (n *trouble) says() incident.CarrierView {
	n.t.Helper()
	var s incident.Snapshot
	n.by.must(done, words("status", "--json", "--etcd", n.store.Endpoint())).read(n.t, &s)
	return s.Carriers[0]
}

// hold wants that every host holds exactly these.
func (n *trouble) hold(ids ...string) {
	n.t.Helper()
	for _, v := range n.views() {
		if len(v.Report.Live) != len(ids) {
			n.t.Errorf("%s holds %+v, want %v", v.Host, v.Report.Live, ids)
		}
		for _, id := range ids {
			if !holds(&v, id) {
				n.t.Errorf("%s has lost %s: %+v", v.Host, id, v.Report.Live)
			}
		}
	}
}

func (n *trouble) begins() {
	connected(n.t, n.inv)
	n.shed = n.run(done, "shed", "2", "--reason", "checkout struggles").ID
	n.hold(n.shed)
	if c := n.says(); !c.Connected || c.Detail != "" || len(c.Lacks) != 0 {
		n.t.Errorf("of an etcd that is well the console says %+v", c)
	}
}

func (n *trouble) client() *clientv3.Client {
	n.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{n.store.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	return c
}

func (n *trouble) isFull() {
	c := n.client()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	members, err := c.MemberList(ctx)
	if err != nil {
		n.t.Fatal(err)
	}
	alarm := func(action pb.AlarmRequest_AlarmAction) {
		n.t.Helper()
		request := &pb.AlarmRequest{Action: action, Alarm: pb.AlarmType_NOSPACE, MemberID: members.Members[0].ID}
		if _, err := pb.NewMaintenanceClient(c.ActiveConnection()).Alarm(ctx, request); err != nil {
			n.t.Fatal(err)
		}
	}
	alarm(pb.AlarmRequest_ACTIVATE)
	if v := n.says(); !v.Connected || !strings.Contains(v.Detail, "etcd is full and read-only: compact and defragment it") {
		n.t.Errorf("of a full etcd the console says %+v", v)
	}
	r := n.run(unconfirmed, "do", "feature-off", "--feature", "recommendations", "--reason", "slow")
	if len(r.Carriers) != 1 || !strings.Contains(r.Carriers[0], "full and read-only") {
		n.t.Errorf("an order to a full etcd: %+v", r)
	}
	n.hold(n.shed)
	alarm(pb.AlarmRequest_DEACTIVATE)
	n.later = r.ID
	if v := n.says(); len(v.Lacks) != 1 || v.Lacks[0].ID != n.later || v.Lacks[0].Lost {
		n.t.Errorf("when it takes writes again the console says %+v", v)
	}
	n.by.must(done, words("reissue", "--yes"), "sent  etcd")
	until(n.t, "every host has it", func() bool { return all(n.t, n.inv, func(v *model.HostView) bool { return holds(v, n.later) }) })
}

func (n *trouble) isCompacted() {
	cut := n.agents[:2]
	for _, a := range cut {
		if err := a.flags.Cut(proxy.Reset); err != nil {
			n.t.Fatal(err)
		}
	}
	end := n.run(unconfirmed, "do", "feature-on", "--feature", "recommendations", "--id", n.later, "--reason", "fine again")
	c := n.client()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	got, err := c.Get(ctx, "/ic/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := c.Compact(ctx, got.Header.Revision); err != nil {
		n.t.Fatal(err)
	}
	for _, a := range cut {
		if err := a.flags.Heal(); err != nil {
			n.t.Fatal(err)
		}
	}
	until(n.t, "the end "+end.ID+" is on every host", func() bool { return all(n.t, n.inv, func(v *model.HostView) bool { return !holds(v, n.later) }) })
	n.hold(n.shed)
}

func (n *trouble) isKilled() {
	n.flags.Kill()
	until(n.t, "every host says so", func() bool {
		return all(n.t, n.inv, func(v *model.HostView) bool {
			return strings.Contains(sourceOf(v, hostrun.FromEtcd).Error, "etcd is unreachable")
		})
	})
	n.hold(n.shed)
	if c := n.says(); c.Connected || !strings.Contains(c.Detail, "connection refused") || !strings.Contains(c.Detail, "breaking glass does not need it") {
		n.t.Errorf("of a dead etcd the console says %+v", c)
	}
}

// isEmpty leads every host to another etcd, which holds nothing.
func (n *trouble) isEmpty() {
	fresh, err := flagservice.Start(n.t.Context(), filepath.Join(n.t.TempDir(), "etcd"))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(fresh.Kill)
	n.store = fresh
	for _, a := range n.agents {
		a.flags.SetTarget(fresh.Addr())
	}
	until(n.t, "every host has read an etcd that is empty", func() bool {
		return all(n.t, n.inv, func(v *model.HostView) bool {
			s := sourceOf(v, hostrun.FromEtcd)
			return s.Error == "" && len(s.PresentIDs) == 0
		})
	})
	n.hold(n.shed)
	if c := n.says(); !c.Connected || !strings.Contains(c.Detail, "it once held them and was emptied or put back to an earlier state") || len(c.Lacks) != 2 {
		n.t.Errorf("of an empty etcd the console says %+v", c)
	}
}

// isSubset puts back what was ended, without its ending, and restarts a host that
// has a folder.
func (n *trouble) isSubset() {
	var token string
	for _, is := range n.status().World.Issued {
		if is.Directive.ID == n.later {
			token = is.Token
		}
	}
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	if _, err := n.client().Put(ctx, fmt.Sprintf("/ic/%s/d/%s", n.views()[0].Report.Fleet, n.later), token); err != nil || token == "" {
		n.t.Fatalf("put a part of it back: %v", err)
	}
	until(n.t, "every host has read the subset", func() bool {
		return all(n.t, n.inv, func(v *model.HostView) bool { return len(sourceOf(v, hostrun.FromEtcd).PresentIDs) == 1 })
	})
	n.hold(n.shed)
	n.agents[0].end(9)
	if err := n.agents[0].start(""); err != nil {
		n.t.Fatal(err)
	}
	connected(n.t, n.inv)
	n.hold(n.shed)
}

func (n *trouble) isWhole() {
	began := time.Now()
	n.by.must(done, words("reissue", "--yes", "--etcd", n.store.Endpoint()), "sent  etcd  shed", "sent  etcd  end off")
	if c := n.says(); c.Detail != "" || len(c.Lacks) != 0 {
		n.t.Errorf("afterwards the console says %+v", c)
	}
	until(n.t, "every host has read all three", func() bool {
		return all(n.t, n.inv, func(v *model.HostView) bool { return len(sourceOf(v, hostrun.FromEtcd).PresentIDs) == 3 })
	})
	n.hold(n.shed)
	n.t.Logf("handed over and read by every host in %s", time.Since(began).Round(time.Millisecond))
}
