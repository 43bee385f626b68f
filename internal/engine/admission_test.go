package engine_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
)

func TestForgedTokenDoesNothing(t *testing.T) {
	h := newHost(t)
	h.take(shed(1))
	_, genuine := h.make(shed(4))
	parts := strings.Split(genuine, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	raised := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(payload), `"tier":4`, `"tier":3`, 1)))
	_, other := h.make(shed(2))
	_, byEve := h.make(shed(4), "eve")
	for name, c := range map[string]struct {
		token string
		code  model.Code
	}{
		"a changed payload under a genuine signature": {parts[0] + "." + raised + "." + parts[2], model.CodeBadSignature},
		"a signature of another payload":              {parts[0] + "." + parts[1] + "." + strings.Split(other, ".")[2], model.CodeBadSignature},
		"signed by a key nobody knows":                {byEve, model.CodeUnknownKey},
		"no signature":                                {parts[0] + "." + parts[1], model.CodeMalformed},
		"junk":                                        {"ic1.e30.e30", model.CodeMalformed},
		"too long":                                    {genuine + strings.Repeat("A", directive.MaxToken), model.CodeTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			if r := h.offer(c.token); r.Code != c.code || r.New {
				t.Errorf("offer: %+v, want %s", r, c.code)
			}
			if got := h.Tier("checkout", h.clock.Now()); got != 1 {
				t.Errorf("tier is %d, want the 1 of before", got)
			}
		})
	}
	h.crash()
	h.wantTier("checkout", 1)
	if r := h.offer(genuine); r.Code != "" {
		t.Errorf("the genuine token is refused after its forgeries: %+v", r)
	}
	h.wantTier("checkout", 4)
}

func TestForeignFleetIsRefused(t *testing.T) {
	h := newHost(t)
	d := draft(h.ids.next(), shed(4), start)
	d.Fleet = "other-shop"
	h.refuses(sign(t, d, "ada"), model.CodeForeignFleet)
	h.wantTier("checkout", 0)

	d.ID = h.ids.next()
	d.Kind, d.Tier, d.Right = model.Bypass, 0, "open"
	d.Control, d.Caps, d.NotAfter = "risk", open(0, start).Caps, start.Add(time.Minute)
	h.refuses(sign(t, d, "ada"), model.CodeForeignFleet)
	h.wantOpen(false)
}

func TestADrillsSignatureMeansNothingInProduction(t *testing.T) {
	h := newHost(t)
	payload, err := directive.Encode(draft(h.ids.next(), shed(4), start))
	if err != nil {
		t.Fatal(err)
	}
	sig, err := directive.Sign(signerOf("ada"), nil, payload, directive.Drill, fleet)
	if err != nil {
		t.Fatal(err)
	}
	token, err := directive.Token(payload, sig)
	if err != nil {
		t.Fatal(err)
	}
	h.refuses(token, model.CodeBadSignature)
	h.wantTier("checkout", 0)
}

func TestQuorumIsRequired(t *testing.T) {
	h := newHost(t)
	d := open(10*time.Minute, start)
	d.Right = "open-by-two"
	d = draft(h.ids.next(), d, start)
	h.refuses(sign(t, d, "ada"), model.CodeQuorum)
	h.refuses(sign(t, d, "ada", "bea"), model.CodeQuorum)
	h.refuses(sign(t, d, "finn"), model.CodeWrongRole)
	h.wantOpen(false)
	if r := h.offer(sign(t, d, "ada", "finn")); r.Code != "" || !r.New {
		t.Fatalf("with both signatures: %+v", r)
	}
	h.wantOpen(true)

	id := h.take(shed(2))
	back := step(2, 100, id)
	back.Right = "recover-by-two"
	_, alone := h.make(back, "bea")
	h.refuses(alone, model.CodeQuorum)
	h.wantTier("checkout", 2)
	h.take(back, "bea", "finn")
	h.wantTier("checkout", 1)
}

func TestWhatIsOverARuleIsRefused(t *testing.T) {
	h := newHost(t)
	past := start.Add(-time.Hour)
	for name, c := range map[string]struct {
		change func(*model.Directive)
		code   model.Code
	}{
		"a cap":                  {func(d *model.Directive) { d.Caps.Under = usd(5001) }, model.CodeOverCap},
		"more items":             {func(d *model.Directive) { d.Caps.HostCount = 41 }, model.CodeOverCap},
		"another currency":       {func(d *model.Directive) { d.Caps = inEuro(d.Caps) }, model.CodeOverCap},
		"a longer window":        {func(d *model.Directive) { d.NotAfter = start.Add(16 * time.Minute) }, model.CodeOverDuration},
		"another service":        {func(d *model.Directive) { d.Scope = "catalog" }, model.CodeOutOfScope},
		"another right":          {func(d *model.Directive) { d.Right = "shed" }, model.CodeWrongKind},
		"a right nobody granted": {func(d *model.Directive) { d.Right = "opens" }, model.CodeUnknownRight},
		"a newer policy":         {func(d *model.Directive) { d.Policy.Version = 4 }, model.CodePolicyBehind},
		"another policy":         {func(d *model.Directive) { d.Policy.Digest = strings.Repeat("1", 64) }, model.CodePolicyMismatch},
		"an end in the past": {func(d *model.Directive) {
			d.IssuedAt, d.NotBefore, d.NotAfter = past, past, past.Add(time.Minute)
		}, model.CodeExpired},
		"more than a day ahead": {func(d *model.Directive) {
			d.IssuedAt = start.Add(24*time.Hour + time.Second)
			d.NotBefore, d.NotAfter = d.IssuedAt, d.IssuedAt.Add(time.Minute)
		}, model.CodeFuture},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(10*time.Minute, start)
			c.change(&d)
			id, token := h.make(d)
			if r := h.offer(token); r.Code != c.code || r.ID != id {
				t.Errorf("offer: %+v, want %s", r, c.code)
			}
			if got := h.refused(id); got != c.code {
				t.Errorf("the report says %q, want %s", got, c.code)
			}
			if ok, _ := h.allow(1); ok {
				t.Error("something is open")
			}
		})
	}
}

func inEuro(c model.Caps) model.Caps {
	for _, m := range []*model.Money{&c.Under, &c.HostTotal, &c.Total} {
		m.Currency = "EUR"
	}
	return c
}

func TestAnUnknownKindIsStoredNotObeyedAndReported(t *testing.T) {
	h := newHost(t)
	d := draft(h.ids.next(), model.Directive{Kind: "reroute", Raw: []byte(`{"to":"b"}`), Right: "shed"}, start)
	token := sign(t, d, "ada")
	for range 2 {
		if r := h.offer(token); r.Code != model.CodeUnsupported || r.New {
			t.Fatalf("offer: %+v", r)
		}
		if got := h.refused(d.ID); got != model.CodeUnsupported {
			t.Errorf("the report says %q", got)
		}
		if len(h.live()) != 0 {
			t.Errorf("it is live: %v", h.live())
		}
		h.crash()
		if h.opened.Held != 1 {
			t.Errorf("%d statements are stored, want 1", h.opened.Held)
		}
	}
}

func TestAVolatileHostOpensNothingUnlessTheRightSaysSo(t *testing.T) {
	h := newHost(t)
	h.folder = nil
	h.start()
	h.wantState(engine.StateVolatile)
	_, token := h.make(open(10*time.Minute, start))
	h.refuses(token, model.CodeVolatile)
	h.wantOpen(false)
	anywhere := open(10*time.Minute, start)
	anywhere.Right = "open-anywhere"
	h.take(anywhere)
	h.wantOpen(true)
	id := h.take(shed(3))
	h.take(step(3, 100, id))
	h.wantTier("checkout", 2)
}

func TestSourcesSayWhatTheyCarryAndHowOldThatIs(t *testing.T) {
	h := newHost(t)
	first, firstToken := h.make(shed(1))
	second, secondToken := h.make(shed(2))
	_, forged := h.make(shed(3), "eve")
	h.Seen("file", []string{firstToken, forged}, nil, h.clock.Now())
	h.Offer("etcd", secondToken, h.clock.Now())
	h.clock.pass(90 * time.Second)
	r := h.Report(h.clock.Now())
	if len(r.Sources) != 2 {
		t.Fatalf("sources: %+v", r.Sources)
	}
	etcd, file := r.Sources[0], r.Sources[1]
	if file.Name != "file" || file.AgeS != 90 || len(file.PresentIDs) != 1 || file.PresentIDs[0] != first {
		t.Errorf("file: %+v", file)
	}
	if etcd.Name != "etcd" || etcd.AgeS != -1 || len(etcd.PresentIDs) != 1 || etcd.PresentIDs[0] != second {
		t.Errorf("etcd: %+v", etcd)
	}
	if len(r.Live) != 2 || r.Live[0].Source != "file" || r.Live[1].Source != "etcd" {
		t.Errorf("live: %+v", r.Live)
	}
	if len(r.Refused) != 1 || r.Refused[0].Code != string(model.CodeUnknownKey) {
		t.Errorf("refused: %+v", r.Refused)
	}

	h.Seen("file", nil, errGone, h.clock.Now())
	h.Unchanged("etcd", "slow", h.clock.Now())
	r = h.Report(h.clock.Now())
	if s := r.Sources[1]; s.Error != errGone.Error() || s.AgeS != 90 || len(s.PresentIDs) != 1 {
		t.Errorf("file after a failed read: %+v", s)
	}
	if s := r.Sources[0]; s.Error != "slow" || s.AgeS != 0 {
		t.Errorf("etcd after a full read: %+v", s)
	}

	h.Seen("file", nil, nil, h.clock.Now())
	r = h.Report(h.clock.Now())
	if s := r.Sources[1]; s.Error != "" || s.AgeS != 0 || len(s.PresentIDs) != 0 || len(r.Refused) != 0 {
		t.Errorf("file after it was emptied: %+v, refused %+v", s, r.Refused)
	}
	h.wantTier("checkout", 2) // a carrier takes nothing back
	if len(h.live()) != 2 {
		t.Errorf("live: %v", h.live())
	}
}
