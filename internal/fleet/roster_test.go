package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
	prom "github.com/prometheus/common/model"
)

// series makes one of each "host service report_url".
func series(lines ...string) (out prom.Vector) {
	for _, line := range lines {
		m := prom.Metric{}
		for i, value := range strings.Split(line, " ") {
			if value != "" {
				m[prom.LabelName([]string{"host", "service", "report_url"}[i])] = prom.LabelValue(value)
			}
		}
		out = append(out, &prom.Sample{Metric: m}) // its value, 0, is of no interest
	}
	return out
}

func TestHostsAreMadeOfSeries(t *testing.T) {
	got, err := fleet.HostsOf(series("edge-02 edge", "checkout-01 checkout http://checkout-01:7070/report", "edge-01 edge", "checkout-01 cart http://checkout-01:7070/report", "edge-01 edge"))
	want := []fleet.Host{
		{Name: "checkout-01", Services: []string{"cart", "checkout"}, ReportURL: "http://checkout-01:7070/report"},
		{Name: "edge-01", Services: []string{"edge"}},
		{Name: "edge-02", Services: []string{"edge"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOneWrongSeriesMakesTheListWrong(t *testing.T) {
	many := make([]string, fleet.MaxHosts+1)
	for i := range many {
		many[i] = fmt.Sprintf("edge-%05d edge", i)
	}
	busy := make([]string, fleet.MaxServices+1)
	for i := range busy {
		busy[i] = fmt.Sprintf("edge-01 service-%d", i)
	}
	for what, c := range map[string]struct {
		series prom.Vector
		want   string
	}{
		"none":               {series(), "no host"},
		"no host":            {series("edge-01 edge", " edge"), `the label host is ""`},
		"no service":         {series("edge-01 edge", "edge-02"), `edge-02: the label service is ""`},
		"no name":            {series("edge\u00a001 edge"), "no name of"},
		"an escape":          {series("edge-01\x1b[2J edge"), `\x1b[2J`},
		"no name of service": {series("edge-01 Edge"), `"Edge"`},
		"two addresses":      {series("edge-01 edge http://a:1/report", "edge-01 cart http://b:1/report"), "two report_urls"},
		"one address of two": {series("edge-01 edge http://a:1/report", "edge-01 cart"), "two report_urls"},
		"another scheme":     {series("edge-01 edge file:///etc/passwd"), "http or https"},
		"a password":         {series("edge-01 edge http://ana:secret@a:1/"), "without a user"},
		"too many hosts":     {series(many...), "20001 hosts"},
		"too many services":  {series(busy...), "65 services"},
	} {
		got, err := fleet.HostsOf(c.series)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") || untrusted.Text(err.Error(), 1000) != err.Error() {
			t.Errorf("%s: %d hosts, %v; want %q", what, len(got), err, c.want)
		}
	}
}

// oracle is a Prometheus that is asked for hosts.
type oracle struct {
	now    time.Time
	answer prom.Vector
	err    error
	asked  int
}

func (o *oracle) ask(ctx context.Context, query string) (prom.Vector, time.Time, error) {
	o.asked++
	if _, limited := ctx.Deadline(); !limited || query != "up" {
		return nil, o.now, errors.New("asked without a limit, or for something else")
	}
	return o.answer, o.now, o.err
}

func (o *oracle) options(file string) fleet.RosterOptions {
	return fleet.RosterOptions{Fleet: "shop", Query: "up", MaxAge: model.Duration(10 * time.Minute), File: file, Now: func() time.Time { return o.now }, Ask: o.ask}
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestTheLastListCountsWithItsAgeWhenNobodyAnswers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "inventory.json")
	o := &oracle{now: noon, answer: series("edge-01 edge", "edge-02 edge http://edge-02:1/report")}
	r := fleet.NewRoster(o.options(file))
	if k := r.Known(); len(k.Hosts) != 0 || !k.At.IsZero() || k.Detail != "not asked yet" {
		t.Errorf("before anything: %+v", k)
	}
	fresh := r.Refresh(t.Context())
	if len(fresh.Hosts) != 2 || !fresh.At.Equal(noon) || fresh.Detail != "" || fresh.MaxAge != model.Duration(10*time.Minute) {
		t.Fatalf("%+v", fresh)
	}

	// Another start, hours later, without Prometheus.
	o.now, o.answer, o.err = noon.Add(3*time.Hour), nil, errors.New("connection refused\x1b[2J")
	r = fleet.NewRoster(o.options(file))
	if k := r.Known(); !reflect.DeepEqual(k.Hosts, fresh.Hosts) || !k.At.Equal(noon) || !strings.Contains(k.Detail, "list of the last time") {
		t.Errorf("from disk: %+v", k)
	}
	k := r.Refresh(t.Context())
	if !reflect.DeepEqual(k.Hosts, fresh.Hosts) || !k.At.Equal(noon) || k.Detail != `this is the last list that is known: connection refused\x1b[2J` {
		t.Errorf("without Prometheus: %+v", k)
	}
	// An answer that is no list takes nothing away either.
	o.now, o.err = o.now.Add(time.Minute), nil
	if k := r.Refresh(t.Context()); len(k.Hosts) != 2 || !strings.HasSuffix(k.Detail, "it lists no host") {
		t.Errorf("with an empty answer: %+v", k)
	}
	o.now, o.answer = o.now.Add(time.Minute), series("edge-03 edge")
	if k := r.Refresh(t.Context()); len(k.Hosts) != 1 || k.Detail != "" || !k.At.Equal(o.now) {
		t.Errorf("when it is back: %+v", k)
	}
}

func TestAListIsAskedForNoMoreOftenThanItChanges(t *testing.T) {
	o := &oracle{now: noon, answer: series("edge-01 edge")}
	r := fleet.NewRoster(o.options(""))
	after := func(d time.Duration, want int) {
		t.Helper()
		o.now = o.now.Add(d)
		if r.Refresh(t.Context()); o.asked != want {
			t.Errorf("%s later: asked %d times, want %d", d, o.asked, want)
		}
	}
	after(0, 1)
	after(59*time.Second, 1)
	after(time.Second, 2)
	o.err = errors.New("down")
	after(time.Minute, 3)
	after(9*time.Second, 3)
	after(time.Second, 4)

	hurried := o.options("")
	hurried.MaxAge = model.Duration(40 * time.Second)
	o.err, o.asked = nil, 0
	r = fleet.NewRoster(hurried)
	after(0, 1)
	after(9*time.Second, 1)
	after(time.Second, 2)
	after(-time.Hour, 3) // a clock that was set back does not stop it
}

func TestAListOnDiskThatIsNotOursIsNotUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "inventory.json")
	good := `{"v":1,"fleet":"shop","query":"up","at":"2026-11-30T11:00:00Z","hosts":[{"host":"edge-01","services":["edge"]}]}`
	o := &oracle{now: noon}
	load := func(text string) fleet.Known {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return fleet.NewRoster(o.options(file)).Known()
	}
	if k := load(good); len(k.Hosts) != 1 {
		t.Fatalf("%+v", k)
	}
	for what, text := range map[string]string{
		"another fleet":  strings.Replace(good, "shop", "bank", 1),
		"another query":  strings.Replace(good, `"up"`, `"down"`, 1),
		"the future":     strings.Replace(good, "T11", "T13", 1),
		"no time":        strings.Replace(good, "2026-11-30T11:00:00Z", "0001-01-01T00:00:00Z", 1),
		"no host":        strings.Replace(good, `{"host":"edge-01","services":["edge"]}`, "", 1),
		"no service":     strings.Replace(good, `["edge"]`, `[]`, 1),
		"a wrong URL":    strings.Replace(good, `["edge"]`, `["edge"],"report_url":"ftp://x/"`, 1),
		"twice":          strings.Replace(good, "]}]", `]},{"host":"edge-01","services":["edge"]}]`, 1),
		"a field":        strings.Replace(good, `"v":1`, `"v":1,"w":1`, 1),
		"torn":           good[:len(good)-9],
		"longer than it": good + strings.Repeat(" ", fleet.MaxInventory),
	} {
		if k := load(text); len(k.Hosts) != 0 || !k.At.IsZero() || !strings.Contains(k.Detail, "is not used") {
			t.Errorf("%s: %+v", what, k)
		}
	}
}

func TestAListThatCannotBeKeptIsUsedAllTheSame(t *testing.T) {
	o := &oracle{now: noon, answer: series("edge-01 edge")}
	k := fleet.NewRoster(o.options(filepath.Join(t.TempDir(), "gone", "inventory.json"))).Refresh(t.Context())
	if len(k.Hosts) != 1 || !strings.Contains(k.Detail, "cannot be kept") {
		t.Errorf("%+v", k)
	}
	o.answer, o.err = nil, errors.New("down")
	if k := fleet.NewRoster(o.options("")).Refresh(t.Context()); k.Detail != "there is no list: down" {
		t.Errorf("%+v", k)
	}
}
