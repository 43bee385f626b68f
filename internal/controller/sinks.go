package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/untrusted"
)

const (
	maxAnswer = 4 << 10 // bytes that are read of an answer
	maxQuoted = 200     // bytes of it that are quoted
	newsLasts = 10 * time.Minute
)

// Address is where pages are sent and how. Its text may be a secret (that of a
// webhook is): it stands in no error and on no screen.
type Address struct {
	URL   string
	Token func() (string, error) // bearer token; nil: none
}

// post sends JSON and wants a 2xx. Redirects are not followed: they lead to a login
// page.
func (a *Address) post(ctx context.Context, client *http.Client, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write it down: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL, bytes.NewReader(raw))
	if err != nil {
		return errors.New("the address is none")
	}
	req.Header.Set("Content-Type", "application/json")
	if a.Token != nil {
		token, err := a.Token()
		if err != nil {
			return fmt.Errorf("its token cannot be read: %w", err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return errors.New(untrusted.Network(err))
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // the status is what counts
	switch {
	case resp.StatusCode/100 == 2:
		return nil
	case resp.StatusCode/100 == 3:
		return fmt.Errorf("it answers %d and sends us elsewhere, most likely to a login page", resp.StatusCode)
	default:
		return fmt.Errorf("it answers %d: %s", resp.StatusCode, untrusted.Text(strings.TrimSpace(string(answer)), maxQuoted))
	}
}

func sender() *http.Client {
	return &http.Client{Timeout: sendLimit, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// CheckAddress wants an address that pages can be sent to; its error does not
// repeat it.
func CheckAddress(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("it is not like https://pager.example/path")
	}
	if u.User != nil {
		return errors.New("it holds a user or password: take it out, a token has a place of its own")
	}
	return nil
}

// Alertmanager sends alerts by its API of version 2. An alarm is one that fires
// until it is over; news resolve by themselves.
type Alertmanager struct {
	to        Address
	fleet     string
	rehearsal bool
	real      func() time.Time
	client    *http.Client
}

// NewAlertmanager sends to the Alertmanager at a base address, such as
// http://alertmanager.example:9093.
func NewAlertmanager(to Address, fleet string, rehearsal bool, real func() time.Time) *Alertmanager {
	to.URL = strings.TrimRight(to.URL, "/") + "/api/v2/alerts"
	return &Alertmanager{to: to, fleet: fleet, rehearsal: rehearsal, real: real, client: sender()}
}

// Name implements Sink.
func (a *Alertmanager) Name() string { return "alertmanager" }

// Repeat implements Sink: an alert that is not repeated is taken for resolved,
// after five minutes unless it is configured otherwise.
func (a *Alertmanager) Repeat() time.Duration { return time.Minute }

// alert is one of the API.
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt,omitzero"`
	EndsAt      time.Time         `json:"endsAt,omitzero"`
}

// Send implements Sink.
func (a *Alertmanager) Send(ctx context.Context, pages []Page) error {
	now := a.real().UTC()
	alerts := make([]alert, len(pages))
	for i := range pages {
		alerts[i] = a.alertOf(&pages[i], now)
	}
	return a.to.post(ctx, a.client, alerts)
}

func (a *Alertmanager) alertOf(p *Page, now time.Time) alert {
	out := alert{
		Labels:      map[string]string{"alertname": "ic_" + strings.ReplaceAll(p.Kind, "-", "_"), "fleet": a.fleet, "severity": severity(p), "about": p.About},
		Annotations: map[string]string{"summary": headline(p, a.rehearsal), "description": p.Text},
	}
	if a.rehearsal {
		out.Labels["realm"] = "drill"
	}
	// A fleet's clock may be ahead of the Alertmanager's, which takes nothing that
	// begins after its end.
	out.StartsAt = now
	if !p.At.IsZero() && p.At.Before(now) {
		out.StartsAt = p.At.UTC()
	}
	switch alarm := p.Urgent || p.Over; {
	case p.Over:
		out.EndsAt = now
	case !alarm:
		out.Labels["entry"], out.Labels["actor"] = p.Key, p.Actor
		out.EndsAt = now.Add(newsLasts)
	}
	if p.Over { // its labels are those with which it began
		out.Labels["severity"] = "page"
	}
	return out
}

func severity(p *Page) string {
	if p.Urgent {
		return "page"
	}
	return "notice"
}

// headline is unmistakable in a drill.
func headline(p *Page, rehearsal bool) string {
	if rehearsal {
		return "REHEARSAL " + p.Title
	}
	return p.Title
}

// Webhook sends one message with a text, as Slack and what imitates it take it.
type Webhook struct {
	to        Address
	fleet     string
	rehearsal bool
	client    *http.Client
}

// NewWebhook sends to exactly this address.
func NewWebhook(to Address, fleet string, rehearsal bool) *Webhook {
	return &Webhook{to: to, fleet: fleet, rehearsal: rehearsal, client: sender()}
}

// Name implements Sink.
func (w *Webhook) Name() string { return "webhook" }

// Repeat implements Sink: people read a channel, and forget.
func (w *Webhook) Repeat() time.Duration { return time.Hour }

// Send implements Sink.
func (w *Webhook) Send(ctx context.Context, pages []Page) error {
	lines := make([]string, len(pages))
	for i := range pages {
		p := &pages[i]
		line := headline(p, w.rehearsal)
		if p.Urgent {
			line = "PAGE " + line
		}
		line = w.fleet + ": " + line
		if p.Text != "" {
			line += ": " + p.Text
		}
		if !p.At.IsZero() {
			line += " (" + p.At.UTC().Format("2006-01-02 15:04:05Z") + ")"
		}
		lines[i] = slackText(line)
	}
	return w.to.post(ctx, w.client, map[string]string{"text": strings.Join(lines, "\n")})
}

// slackText keeps a reason from calling a channel or posing as a link.
func slackText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
