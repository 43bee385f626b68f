package engine

import (
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

// checked is a token after everything that depends on it alone.
type checked struct {
	token  string
	id     string
	signed *statement // nil when it did not verify or is known already
	code   model.Code
}

// verify is the one place where tokens become statements. With an error the
// statement is nil, or says what the token claims, for a report.
func (e *Engine) verify(token string) (*statement, error) {
	signed, err := directive.Verify(token, e.cfg.Realm, e.cfg.Fleet)
	if signed == nil {
		return nil, err
	}
	return &statement{Directive: signed.Directive, Token: signed.Token, By: signed.Fingerprints()}, err
}

// check verifies tokens that are not known yet, without holding the lock: it is
// the dear part.
func (e *Engine) check(tokens []string) []checked {
	out := make([]checked, len(tokens))
	e.mu.Lock()
	for i, token := range tokens {
		out[i].token = token
		if h, ok := e.set.byKey[key(token)]; ok && h.knows(token) {
			out[i].signed = h.signed
		} else if r, ok := e.refused.by[token]; ok {
			out[i] = checked{token: token, id: r.id, signed: r.signed, code: r.code}
		}
	}
	e.mu.Unlock()
	for i := range out {
		c := &out[i]
		if c.signed == nil && c.code == "" {
			e.checkOne(c)
		}
		if c.signed != nil {
			c.id, c.code = c.signed.Directive.ID, ""
		}
	}
	return out
}

func (e *Engine) checkOne(c *checked) {
	signed, err := e.verify(c.token)
	if err == nil {
		c.signed = signed
		return
	}
	c.id, c.code = digestID(c.token), directive.CodeOf(err)
	if signed != nil {
		c.id = signed.Directive.ID
	}
}

// offer takes tightening into force at once and everything else when it is on
// disk.
func (e *Engine) offer(source string, tokens []string, now model.Instant) []Result {
	checks := e.check(tokens)
	e.mu.Lock()
	results := make([]Result, len(checks))
	var fresh []*held
	for i := range checks {
		var h *held
		if results[i], h = e.take(source, &checks[i], now); h != nil {
			fresh = append(fresh, h)
		}
	}
	if len(fresh) > 0 || e.floor != e.snap.Load().floor {
		e.refresh(now) // what was refused may have proved a later time
	}
	e.mu.Unlock()
	e.persist(fresh, now)
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range checks {
		if h, ok := e.set.byKey[key(checks[i].token)]; ok && results[i].Code == "" && !h.obeyed() {
			results[i].Code, results[i].New = CodeNotDurable, false
		}
	}
	return results
}

// take judges one token. It returns what has to be made durable, if anything.
func (e *Engine) take(source string, c *checked, now model.Instant) (Result, *held) {
	code := c.code
	h, known := e.set.byKey[key(c.token)]
	switch {
	case c.signed == nil: // it did not verify
	case known:
		if code, h = e.again(h, c); code == "" {
			e.refused.drop(c.token)
		}
		return e.carries(source, c, code), h
	default:
		code = e.judge(c.signed, now)
	}
	stored := c.signed != nil && code == model.CodeUnsupported
	if code == "" && len(e.set.byKey) >= MaxHeld {
		if e.forget(now); len(e.set.byKey) >= MaxHeld {
			code = CodeFull
		}
	}
	if code != "" && !stored {
		e.refused.put(refusal{token: c.token, source: source, id: c.id, signed: c.signed, code: code})
		return e.carries(source, c, code), nil
	}
	at := e.floor.moment(now)
	h = &held{
		signed: c.signed, alias: []string{c.token}, source: source,
		first: at.host, accepted: at.host, boot: now.BootID, mono: now.Boot, run: runFrom(c.signed.Directive.NotBefore, at),
		direction: e.bundle.Direction(&c.signed.Directive), durable: e.store == nil, unsupported: stored,
	}
	e.refused.drop(c.token)
	e.set.add(h)
	result := e.carries(source, c, code)
	result.New = code == ""
	return result, h
}

// carries notes that a source carries a token, whether it was taken or not; but
// what did not verify, or was signed by nobody known, does not count.
func (e *Engine) carries(source string, c *checked, code model.Code) Result {
	r := Result{ID: c.id, Code: code, carried: c.signed != nil && code != model.CodeUnknownKey}
	if r.carried {
		e.sourceOf(source).present[r.ID] = true
	}
	return r
}

// again takes a statement that is held already. One that the policy has closed
// may come with signatures that open it again; its time goes on from its first
// accept.
func (e *Engine) again(h *held, c *checked) (model.Code, *held) {
	if !h.knows(c.token) && len(h.alias) < maxAlias {
		h.alias = append(h.alias, c.token)
	}
	if h.unsupported {
		return model.CodeUnsupported, nil
	}
	if h.closed == "" || h.signed.Token == c.token {
		return h.closed, nil
	}
	if code := e.judgeHeld(c.signed, h.accepted); code != "" {
		return h.closed, nil
	}
	h.signed, h.closed, h.durable = c.signed, "", e.store == nil
	return "", h
}

// judge says whether a statement may be taken now. What is within the policy
// proves that its time has come, also when it is too late itself.
func (e *Engine) judge(signed *statement, now model.Instant) model.Code {
	d := &signed.Directive
	if code := e.bundle.Admit(d, signed.By, e.floor.moment(now).host); code != "" {
		return code
	}
	e.floor = e.floor.raised(d.IssuedAt, now)
	e.heads.add(d.Log)
	at := e.floor.moment(now)
	switch {
	case expired(d, at.host, 0):
		return model.CodeExpired
	case d.Kind != model.End && e.set.ended(d, at): // an ended recovery still ends what it lists
		return model.CodeEnded
	case e.bundle.Direction(d) != model.Loosen:
		return ""
	case !e.mayOpen(d):
		return model.CodeVolatile
	case !at.fit():
		return model.CodeClockUnfit
	}
	return ""
}

// judgeHeld says whether the present policy still allows a loosening that was
// accepted before: its bounds count, the day of its own expiry does not, since
// what was opened in time runs to its own end. All else stays in force whatever
// the policy.
func (e *Engine) judgeHeld(signed *statement, accepted time.Time) model.Code {
	d := &signed.Directive
	if e.bundle.Direction(d) != model.Loosen {
		return ""
	}
	if code := e.bundle.Admit(d, signed.By, accepted); code != "" {
		return code
	}
	if !e.mayOpen(d) {
		return model.CodeVolatile
	}
	return ""
}

// mayOpen holds back a host without a folder, unless the right lets it open.
func (e *Engine) mayOpen(d *model.Directive) bool {
	right, _, _ := e.bundle.Right(d.Right)
	return !e.cfg.Volatile || right.Bypass != nil && right.Bypass.VolatileHosts
}

// rejudge offers again what was refused and verified. It returns what has to be
// made durable.
func (e *Engine) rejudge(now model.Instant, which func(*refusal) bool) (fresh []*held) {
	for _, r := range slices.Backward(e.refused.sorted()) {
		if r.signed == nil || !which(r) {
			continue
		}
		if _, h := e.take(r.source, &checked{token: r.token, id: r.id, signed: r.signed}, now); h != nil {
			fresh = append(fresh, h)
		}
	}
	return fresh
}

// refresh publishes what is in force at now.
func (e *Engine) refresh(now model.Instant) {
	s := e.build(e.floor.moment(now))
	if old := e.snap.Swap(s); old == nil || !slices.Equal(old.live, s.live) {
		e.change()
	}
}
