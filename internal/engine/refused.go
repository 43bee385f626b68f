package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/degradedmode/ic/internal/model"
)

const (
	maxRefused    = 1024 // tokens remembered, to judge them afresh and not to verify them twice
	reportRefused = 64   // in a report
)

// refusal is a token that was not taken, and why.
type refusal struct {
	token  string
	source string
	id     string     // what it says of itself, or the beginning of its SHA-256
	signed *statement // nil if it did not verify, which no policy changes
	code   model.Code
	order  int // of the first refusal
}

func digestID(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "sha256:" + hex.EncodeToString(sum[:6])
}

// routine reports whether a refusal is what an old token in a carrier always
// gets, and so the last thing to show.
func (r *refusal) routine() bool {
	return r.code == model.CodeExpired || r.code == model.CodeEnded
}

// refusals remembers a bounded number of tokens; the oldest go first.
type refusals struct {
	by    map[string]*refusal
	order int
}

func (r *refusals) put(one refusal) {
	if known, ok := r.by[one.token]; ok {
		known.code = one.code
		return
	}
	if len(r.by) == maxRefused {
		delete(r.by, r.sorted()[maxRefused-1].token)
	}
	r.order++
	one.order = r.order
	r.by[one.token] = &one
}

func (r *refusals) drop(token string) { delete(r.by, token) }

// keep forgets what source has refused and no longer carries.
func (r *refusals) keep(source string, carried []string) {
	if len(r.by) == 0 {
		return
	}
	present := make(map[string]bool, len(carried))
	for _, token := range carried {
		present[token] = true
	}
	maps.DeleteFunc(r.by, func(token string, one *refusal) bool {
		return one.source == source && !present[token]
	})
}

// sorted lists the refusals, what matters first, the newest first.
func (r *refusals) sorted() []*refusal {
	return slices.SortedFunc(maps.Values(r.by), func(a, b *refusal) int {
		if a.routine() != b.routine() {
			if a.routine() {
				return 1
			}
			return -1
		}
		return cmp.Compare(b.order, a.order)
	})
}
