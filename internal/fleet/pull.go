package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
	"golang.org/x/sync/errgroup"
)

// Defaults of Options.
const (
	DefaultTimeout     = 2 * time.Second // of one host, or one query
	DefaultConcurrency = 32              // hosts asked at once
)

// The ways by which a HostView was made.
const (
	ViaDirect     = "direct"
	ViaPrometheus = "prometheus"
)

// Options of Pull and FromPrometheus. Fleet and Now are required.
type Options struct {
	Fleet       string
	Now         func() time.Time
	Timeout     time.Duration // 0: DefaultTimeout
	Concurrency int           // 0: DefaultConcurrency
	// Client is used by Pull; its redirect policy is not. nil connects directly,
	// past any proxy, and keeps no connection.
	Client *http.Client
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Concurrency == 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.Client == nil {
		o.Client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	client := *o.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.Client = &client
	return o
}

// Pull asks every host of the inventory for its report and returns one view per
// host, in the inventory's order, whatever happens. It takes at most
// hosts/Concurrency x Timeout, and no longer than ctx: hosts that were not
// asked by then are unreachable and say so.
func Pull(ctx context.Context, inv Inventory, o Options) []model.HostView {
	o = o.withDefaults()
	views := make([]model.HostView, len(inv.Hosts))
	var group errgroup.Group
	group.SetLimit(o.Concurrency)
	for i, h := range inv.Hosts {
		group.Go(func() error {
			views[i] = pullOne(ctx, h, o)
			return nil // a host's failure is in its view
		})
	}
	_ = group.Wait() // no goroutine returns an error
	return views
}

func pullOne(ctx context.Context, h Host, o Options) model.HostView {
	view := model.HostView{Host: h.Name, Services: h.Services, Via: ViaDirect}
	switch {
	case h.ReportURL == "":
		view.Detail = "the inventory has no report_url for it"
		return view
	case ctx.Err() != nil:
		view.Detail = "not asked: the pull ran out of time"
		return view
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	body, err := fetch(ctx, h.ReportURL, o)
	var answered *badAnswer
	if view.Reachable = err == nil || errors.As(err, &answered); view.Reachable {
		view.SeenAt = o.Now()
	}
	if err == nil {
		view.Report, err = ParseReport(body, o.Fleet, h.Name)
	}
	if err != nil {
		view.Report, view.Detail = nil, untrusted.Text(err.Error(), maxDetail)
	}
	return view
}

// badAnswer means that somebody answered, and not with a report.
type badAnswer struct{ what string }

func (b *badAnswer) Error() string { return b.what }

func fetch(ctx context.Context, from string, o Options) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, errors.New("its report_url is not an address")
	}
	resp, err := o.Client.Do(req)
	if err != nil {
		return nil, errors.New(untrusted.Network(err))
	}
	defer resp.Body.Close()
	if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 {
		return nil, &badAnswer{fmt.Sprintf("it answers %d and sends us to %q; redirects are not followed", resp.StatusCode, to)}
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &badAnswer{fmt.Sprintf("it answers %d %s instead of a report", resp.StatusCode, http.StatusText(resp.StatusCode))}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxReport+1))
	if err != nil {
		return nil, errors.New(untrusted.Network(err))
	}
	return body, nil
}
