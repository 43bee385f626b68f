package fleet_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/model"
)

// hostsOf serves hosts whose answers the test decides.
func hostsOf(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, host string), names ...string) fleet.Inventory {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, strings.TrimPrefix(r.URL.Path, "/"))
	}))
	t.Cleanup(server.Close)
	var inv fleet.Inventory
	for _, n := range names {
		inv.Hosts = append(inv.Hosts, fleet.Host{Name: n, Services: []string{"checkout"}, ReportURL: server.URL + "/" + n})
	}
	return inv
}

func options() fleet.Options {
	return fleet.Options{Fleet: "shop", Now: func() time.Time { return t0 }}
}

func TestEveryHostIsAskedAndKeepsItsPlace(t *testing.T) {
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("checkout-%02d", i)
	}
	inv := hostsOf(t, func(w http.ResponseWriter, _ *http.Request, host string) {
		w.Write(encode(t, report(host, shedID)))
	}, names...)
	for i, v := range fleet.Pull(t.Context(), inv, options()) {
		if v.Host != names[i] || !v.Reachable || v.Report == nil || v.Report.Host != names[i] ||
			v.Report.Live[0].ID != shedID || v.Via != fleet.ViaDirect || !v.SeenAt.Equal(t0) || v.Detail != "" {
			t.Fatalf("view %d is %+v", i, v)
		}
	}
}

func TestAnAnswerThatIsNotTheHostsReportIsNoReport(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(r *model.Report)
		body   string
		want   string
	}{
		{what: "a report of another fleet", change: func(r *model.Report) { r.Fleet = "bank" }, want: `fleet "bank", this is "shop"`},
		{what: "a report of another host", change: func(r *model.Report) { r.Host = "b" }, want: `host "b", the inventory has "a"`},
		{what: "a report of the future", change: func(r *model.Report) { r.V = 2 }, want: "version 2"},
		{what: "a posture of other ids", change: func(r *model.Report) { r.Live = nil }, want: "posture"},
		{what: "an id that is none", change: func(r *model.Report) { r.Live[0].ID = "x\x1b[2J" }, want: `\x1b[2J`},
		{what: "an unknown field", body: `{"v":1,"mood":"fine"}`, want: `unknown field`},
		{what: "two reports", body: string(encode(t, report("a"))) + "{}", want: "something follows"},
		{what: "a page", body: "<html>sign in</html>", want: "not a report"},
		{what: "nothing", body: "", want: "not a report"},
		{what: "no end", body: strings.Repeat(" ", fleet.MaxReport+1), want: "longer than"},
	} {
		body := []byte(c.body)
		if c.change != nil {
			r := report("a", shedID)
			c.change(&r)
			body = encode(t, r)
		}
		inv := hostsOf(t, func(w http.ResponseWriter, _ *http.Request, _ string) { w.Write(body) }, "a")
		v := fleet.Pull(t.Context(), inv, options())[0]
		if !v.Reachable || v.Report != nil || !strings.Contains(v.Detail, c.want) || strings.Contains(v.Detail, "\x1b") {
			t.Errorf("%s: reachable %v, report %v, detail %q; want %q in it", c.what, v.Reachable, v.Report, v.Detail, c.want)
		}
	}
}

func TestTextOfAReportIsMadeSafe(t *testing.T) {
	r := report("a")
	r.State = "ok\x1b[2J"
	r.Sources[0].Error = "down\r\u202e"
	got, err := fleet.ParseReport(encode(t, r), "shop", "a")
	if err != nil || got.State != `ok\x1b[2J` || got.Sources[0].Error != `down\r\u202e` {
		t.Errorf("report is %+v, %v", got, err)
	}
}

func TestAStatusThatIsNotOKIsSaid(t *testing.T) {
	inv := hostsOf(t, func(w http.ResponseWriter, _ *http.Request, _ string) { w.WriteHeader(http.StatusServiceUnavailable) }, "a")
	v := fleet.Pull(t.Context(), inv, options())[0]
	if !v.Reachable || v.Report != nil || v.Detail != "it answers 503 Service Unavailable instead of a report" {
		t.Errorf("view is %+v", v)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	var followed atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		followed.Store(true)
		w.Write(encode(t, report("a")))
	}))
	defer other.Close()
	inv := hostsOf(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		http.Redirect(w, r, other.URL+"/login", http.StatusFound)
	}, "a")
	o := options()
	o.Client = &http.Client{} // its own policy would follow
	v := fleet.Pull(t.Context(), inv, o)[0]
	if followed.Load() || v.Report != nil || !strings.Contains(v.Detail, "302") || !strings.Contains(v.Detail, "/login") {
		t.Errorf("followed %v, view %+v", followed.Load(), v)
	}
}

func TestAHostThatDoesNotAnswerIsUnreachableWithAReason(t *testing.T) {
	release := make(chan struct{})
	inv := hostsOf(t, func(w http.ResponseWriter, r *http.Request, host string) {
		switch host {
		case "silent":
			<-release
		case "dies":
			w.Header().Set("Content-Length", "1000")
			w.Write([]byte("{"))
		default:
			w.Write(encode(t, report(host)))
		}
	}, "silent", "dies", "fine")
	t.Cleanup(func() { close(release) })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	inv.Hosts = append(inv.Hosts,
		fleet.Host{Name: "refused", ReportURL: "http://" + closed.Addr().String()},
		fleet.Host{Name: "nowhere"})
	o := options()
	o.Timeout = time.Second
	for _, v := range fleet.Pull(t.Context(), inv, o) {
		want := map[string]string{
			"silent": "no answer in time", "dies": "unexpected EOF",
			"refused": "connection refused", "nowhere": "no report_url",
		}[v.Host]
		if v.Host == "fine" {
			if !v.Reachable || v.Report == nil {
				t.Errorf("the host beside them is %+v", v)
			}
		} else if v.Reachable || !v.SeenAt.IsZero() || !strings.Contains(v.Detail, want) {
			t.Errorf("%s: reachable %v, detail %q; want %q in it", v.Host, v.Reachable, v.Detail, want)
		}
	}
}

func TestAPullEndsWithItsContext(t *testing.T) {
	release := make(chan struct{})
	inv := hostsOf(t, func(http.ResponseWriter, *http.Request, string) { <-release }, "a", "b", "c")
	t.Cleanup(func() { close(release) })
	o := options()
	o.Concurrency, o.Timeout = 1, time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	views := fleet.Pull(ctx, inv, o)
	if views[0].Reachable || views[2].Reachable || !strings.Contains(views[2].Detail, "ran out of time") {
		t.Errorf("views are %+v", views)
	}
}
