package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/untrusted"
	prom "github.com/prometheus/common/model"
)

// Labels of the series of an inventory. What the series measures is of no
// interest: a host that is down is a host.
const (
	LabelHost      = "host"
	LabelService   = "service"
	LabelReportURL = "report_url" // optional
)

// HostsOf makes hosts of the series of a query: one series for each host, and for
// each service where it runs several. One series that is wrong makes all of them
// wrong, since what is left would be a number of hosts that is too small.
func HostsOf(series prom.Vector) ([]Host, error) {
	byName := make(map[string]*Host)
	for _, s := range series {
		h := Host{Name: string(s.Metric[LabelHost]), ReportURL: string(s.Metric[LabelReportURL])}
		service := string(s.Metric[LabelService])
		if byName[h.Name] == nil {
			byName[h.Name] = &h
		}
		known := byName[h.Name]
		if known.ReportURL != h.ReportURL {
			return nil, fmt.Errorf("host %s has two report_urls", untrusted.Text(h.Name, maxQuoted))
		}
		if !slices.Contains(known.Services, service) {
			known.Services = append(known.Services, service)
		}
	}
	hosts := make([]Host, 0, len(byName))
	for _, h := range byName {
		slices.Sort(h.Services)
		hosts = append(hosts, *h)
	}
	slices.SortFunc(hosts, func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	return hosts, checkHosts(hosts)
}

// checkHosts holds a list that was not written by a person against the limits of
// one that was.
func checkHosts(hosts []Host) error {
	switch {
	case len(hosts) == 0:
		return errors.New("it lists no host")
	case len(hosts) > MaxHosts:
		return fmt.Errorf("it lists %d hosts, at most %d are taken", len(hosts), MaxHosts)
	}
	for i := range hosts {
		h, quoted := &hosts[i], untrusted.Text(hosts[i].Name, maxQuoted)
		switch {
		case !directive.Name(h.Name):
			return fmt.Errorf("the label %s is %q, which is no name of a-z, 0-9, '-', '.', '_'", LabelHost, quoted)
		case i > 0 && hosts[i-1].Name >= h.Name:
			return fmt.Errorf("host %s is listed twice or out of order", quoted)
		case len(h.Services) == 0 || len(h.Services) > MaxServices:
			return fmt.Errorf("host %s runs %d services, which are 1 to %d", quoted, len(h.Services), MaxServices)
		case h.ReportURL != "" && !isReportURL(h.ReportURL):
			return fmt.Errorf("host %s: "+wrongURL, quoted, maxURL)
		}
		for _, service := range h.Services {
			if !directive.Name(service) {
				return fmt.Errorf("host %s: the label %s is %q, which is no name of a-z, 0-9, '-', '.', '_'", quoted, LabelService, untrusted.Text(service, maxQuoted))
			}
		}
	}
	return nil
}
