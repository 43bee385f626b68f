package sdk

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"strconv"
	"strings"
)

// Fit joins as many tokens as fit into max bytes, from the first on, and lists
// the ids of the rest. It stops at the first that does not fit: nothing less
// important is ever carried in the place of something more important.
func Fit(tokens []Token, max int) (value string, leftOut []string) {
	var out strings.Builder
	for i, t := range tokens {
		need := len(t.Text)
		if i > 0 {
			need++ // the space
		}
		if out.Len()+need > max {
			for _, rest := range tokens[i:] {
				leftOut = append(leftOut, rest.ID)
			}
			break
		}
		if i > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(t.Text)
	}
	return out.String(), leftOut
}

// digestDomain separates this hash from every other use of SHA-256.
const digestDomain = "ic.plan.v1"

// PlanDigest binds a plan: SHA-256, in hex, over netstrings ("5:hello,") of the
// domain, then of each part in the order of the code below. Numbers are decimal,
// truths "1" and "0", a list is its length and then its items. LastKnownGood is
// an observation, not a part of what would be done, and stays outside.
func PlanDigest(p *Plan) string {
	d := digester{sha256.New()}
	d.text(digestDomain)
	d.number(len(p.Changes))
	for i := range p.Changes {
		c := &p.Changes[i]
		d.text(c.Target)
		d.list(c.Hosts)
		d.text(c.Before)
		d.text(c.After)
		d.text(c.Owner)
		d.truth(c.Conflict)
		d.truth(c.Restarts)
	}
	d.number(p.Restarts)
	d.number(p.Targets)
	d.list(p.LeftOut)
	return hex.EncodeToString(d.hash.Sum(nil))
}

type digester struct{ hash hash.Hash }

func (d digester) text(s string) {
	_, _ = io.WriteString(d.hash, strconv.Itoa(len(s))+":"+s+",") // a hash takes every write
}

func (d digester) number(n int) { d.text(strconv.Itoa(n)) }

func (d digester) truth(b bool) {
	if b {
		d.text("1")
		return
	}
	d.text("0")
}

func (d digester) list(items []string) {
	d.number(len(items))
	for _, item := range items {
		d.text(item)
	}
}
