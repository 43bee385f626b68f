package hostrun

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
)

const (
	maxAsk    = 4096 // bytes of a question to /v1/allow
	maxDetail = 300  // bytes of what is wrong with one
)

// ask is the question of one item.
type ask struct {
	Control string `json:"control"`
	Service string `json:"service"` // "": whichever of this host's
	Amount  amount `json:"amount"`
}

// amount is money as programs have it, {"minor": 4999, "currency": "USD"}, or as
// policies have it, "49.99 USD".
type amount struct{ model.Money }

// UnmarshalJSON implements json.Unmarshaler.
func (a *amount) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &a.Money)
	}
	var parts struct {
		Minor    *int64 `json:"minor"`
		Currency string `json:"currency"`
	}
	if err := strictly(bytes.NewReader(raw), &parts); err != nil {
		return err
	}
	if parts.Minor == nil {
		return errors.New("amount.minor is required: in minor units, such as cents")
	}
	named, err := model.ParseMoney("0.00 " + parts.Currency)
	if err != nil {
		return errors.New("amount.currency is required: three capital letters")
	}
	a.Money = model.Money{Minor: *parts.Minor, Currency: named.Currency}
	return nil
}

// Verdict is the answer. ExpiresAt is when the bypass that let the item pass ends
// at the latest; where several are open, the earliest of their ends.
type Verdict struct {
	Allowed   bool       `json:"allowed"`
	Reason    model.Code `json:"reason,omitempty"` // why not
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

func (d *desk) allow(w http.ResponseWriter, req *http.Request) {
	// A page in a browser on this machine may post forms, but not JSON.
	if kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, errors.New("send application/json"))
		return
	}
	var q ask
	if err := strictly(http.MaxBytesReader(w, req.Body, maxAsk), &q); err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf(`want {"control": "…", "service": "…", "amount": {"minor": 4999, "currency": "USD"}}: %s`,
			untrusted.Text(err.Error(), maxDetail)))
		return
	}
	if q.Control == "" || q.Amount.IsZero() {
		refuse(w, http.StatusBadRequest, errors.New("control and amount are required"))
		return
	}
	v, err := d.now()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	answer(w, http.StatusOK, d.judge(&q, &v.state))
}

func (d *desk) judge(q *ask, state *State) Verdict {
	service, code := d.run.Allow(q.Control, q.Service, q.Amount.Money)
	if code != "" {
		return Verdict{Reason: code}
	}
	return Verdict{Allowed: true, ExpiresAt: state.ends(q.Control, service)}
}

// Allow asks the engine, for one service of this host or, with "", for each in
// turn, and counts the item where it may pass: there the code is empty and the
// service is the one by whose bypass it passes. For the service of another host
// nothing is open here: what a bypass may cost is its budget times the hosts of its
// scope.
func (r *Runner) Allow(control, service string, amount model.Money) (by string, code model.Code) {
	why, now := engine.CodeClosed, r.Now()
	for _, own := range r.cfg.Engine.Services {
		if service != "" && service != own {
			continue
		}
		ok, code := r.engine.Allow(control, own, amount, now)
		if ok {
			return own, ""
		}
		if why == engine.CodeClosed {
			why = code
		}
	}
	return "", why
}

// ends is the earliest end of the bypasses of a control that are open for a
// service.
func (s *State) ends(control, service string) *time.Time {
	var first *time.Time
	for i := range s.Bypasses {
		b := &s.Bypasses[i]
		if b.Control == control && (b.Scope == service || b.Scope == model.AnyScope) && (first == nil || b.Until.Before(*first)) {
			first = &b.Until
		}
	}
	return first
}

// strictly takes one value with known fields and nothing behind it.
func strictly(from io.Reader, into any) error {
	dec := json.NewDecoder(from)
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind it")
	}
	return nil
}
