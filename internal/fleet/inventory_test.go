package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/model"
	"github.com/google/go-cmp/cmp"
)

func TestAnInventoryNamesHostsServicesAndWhereTheyReport(t *testing.T) {
	got, err := fleet.ParseInventory([]byte(`
max_age: 90s
hosts:
  - host: checkout-01
    services: [checkout, edge]
    report_url: http://checkout-01:7070/report
  - {host: edge-01, services: [edge]}
`))
	want := fleet.Inventory{MaxAge: model.Duration(90 * time.Second), Hosts: []fleet.Host{
		{Name: "checkout-01", Services: []string{"checkout", "edge"}, ReportURL: "http://checkout-01:7070/report"},
		{Name: "edge-01", Services: []string{"edge"}},
	}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("ParseInventory: %v\n%s", err, cmp.Diff(want, got))
	}
}

func TestAWrongInventorySaysWhere(t *testing.T) {
	for _, c := range []struct{ what, text, want string }{
		{"an unknown key", "hosts: []\nmaxage: 1m", `line 2, column 1: unknown key "maxage"`},
		{"an unknown key of a host", "hosts:\n- host: a\n  service: [b]", `line 3, column 3: unknown key "service"`},
		{"a key given twice", "max_age: 1m\nmax_age: 2m", "line 2, column 1: max_age is given twice"},
		{"a host listed twice", "hosts:\n- {host: a, services: [b]}\n- {host: a, services: [b]}", "line 3, column 3: host a is listed twice"},
		{"a host without services", "hosts:\n- host: a", "line 2, column 3: a host has a name and at least one service"},
		{"a name that is none", "hosts:\n- host: 'A b'", "line 2, column 9: \"A b\" is not a name"},
		{"a name that is an escape sequence", "hosts:\n- host: \"\\e[2J\"", `not a name`},
		{"a duration of another spelling", "max_age: 60s", `write it as "1m"`},
		{"an address with a password", "hosts:\n- {host: a, services: [b], report_url: 'http://u:secret@h/'}", "line 2, column 40: a report_url is"},
		{"an address of another kind", "hosts:\n- {host: a, services: [b], report_url: 'file:///etc/passwd'}", "a report_url is"},
		{"an anchor", "hosts: &a\n- {host: a, services: [b]}", "line 1, column 8: here stands a list"},
		{"an alias", "max_age: &a 1m\nhosts: *a", "here stands one plain value"},
		{"a list where a value belongs", "max_age: [1m]", "line 1, column 10: here stands one plain value"},
		{"no hosts", "max_age: 1m", "it has no hosts"},
		{"a second document", "hosts: [{host: a, services: [b]}]\n---\nhosts: []", "something follows"},
		{"no YAML", "\t{", "inventory: "},
		{"nothing", "", "inventory: "},
		{"a file without end", strings.Repeat("#", fleet.MaxInventory+1), "at most"},
	} {
		_, err := fleet.ParseInventory([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: error is %v, want %q in it", c.what, err, c.want)
		}
	}
}
