package engine

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// Codes of what Allow answers when it does not allow.
const (
	CodeClosed     model.Code = "closed"         // no bypass of this control is open here: the check stands
	CodeOverAmount model.Code = "over-amount"    // the item is not under the cap of any open bypass
	CodeSpent      model.Code = "budget-spent"   // this host has let through what it may in this period
	CodeNotDurable model.Code = "not-durable"    // it cannot be written down, so it is not let through
	CodeFull       model.Code = "host-full"      // the host holds as many statements as it may
	CodeMismatch   model.Code = "other-currency" // the budget of this period is in another currency
)

const (
	maxBudgets = 1024 // periods kept; with 10 rights in use every day, 100 days
	dayFormat  = "2006-01-02"

	// A block is what is reserved durably at once, and so what a crash forfeits
	// at most: a sixteenth of the budget, and at most 16 items.
	blockShare = 16
	blockItems = 16
)

// period names one budget: overlapping grants of one right share it.
type period struct{ control, right, day string }

func periodOf(d *model.Directive) period {
	return period{d.Control, d.Right, d.NotBefore.UTC().Format(dayFormat)}
}

// use is a number of items and their sum.
type use struct {
	count int64
	total model.Money
}

// budget is what a host has let through in one period. It is never refilled:
// what is reserved and not used when the process ends is lost.
type budget struct {
	mu       sync.Mutex
	used     use
	reserved use  // durable
	spent    bool // state was lost, so nothing of it may be let through any more
}

// take counts one item if the caps and what is reserved allow it. want is what
// has to be reserved first when the answer is neither yes nor a code.
func (b *budget) take(amount model.Money, caps *model.Caps) (ok bool, want use, code model.Code) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used.total.Currency == "" {
		b.used.total.Currency, b.reserved.total.Currency = amount.Currency, amount.Currency
	}
	next := use{b.used.count + 1, model.Money{Minor: b.used.total.Minor + amount.Minor, Currency: amount.Currency}}
	switch {
	case b.used.total.Currency != amount.Currency:
		return false, use{}, CodeMismatch
	case b.spent || next.count > caps.HostCount || next.total.Minor > caps.HostTotal.Minor:
		return false, use{}, CodeSpent
	case next.count <= b.reserved.count && next.total.Minor <= b.reserved.total.Minor:
		b.used = next
		return true, use{}, ""
	}
	items := min(max(caps.HostCount/blockShare, 1), blockItems)
	sum := max(caps.HostTotal.Minor/blockShare, amount.Minor)
	return false, use{
		count: max(b.reserved.count, min(caps.HostCount, b.used.count+items)),
		total: model.Money{
			Minor:    max(b.reserved.total.Minor, min(caps.HostTotal.Minor, b.used.total.Minor+sum)),
			Currency: amount.Currency,
		},
	}, ""
}

// reserve makes room up to want, which is durable now.
func (b *budget) reserve(want use) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved.count = max(b.reserved.count, want.count)
	b.reserved.total.Minor = max(b.reserved.total.Minor, want.total.Minor)
}

// restore sets what a state file says: all that was reserved is gone.
func (b *budget) restore(r *record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved.count = max(b.reserved.count, r.Count)
	b.reserved.total = model.Money{Minor: max(b.reserved.total.Minor, r.Total.Minor), Currency: r.Total.Currency}
	b.used = b.reserved
}

func (b *budget) read() (used, reserved use) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.reserved
}

// budgets are all periods of a host.
type budgets struct {
	by      map[period]*budget
	forfeit string // days up to this one are spent
}

func (b *budgets) at(p period) *budget {
	found, ok := b.by[p]
	if !ok {
		found = &budget{spent: p.day <= b.forfeit}
		b.by[p] = found
	}
	return found
}

// forfeitThrough gives up what is left of all periods that have begun by host
// time: after a loss nobody knows how much that is.
func (b *budgets) forfeitThrough(day string) {
	b.forfeit = max(b.forfeit, day)
	for p, one := range b.by {
		if p.day <= b.forfeit {
			one.mu.Lock()
			one.spent = true
			one.mu.Unlock()
		}
	}
}

// sorted lists the periods, the newest first.
func (b *budgets) sorted() []period {
	return slices.SortedFunc(maps.Keys(b.by), func(x, y period) int {
		return cmp.Or(-cmp.Compare(x.day, y.day), cmp.Compare(x.control, y.control), cmp.Compare(x.right, y.right))
	})
}

// records are what a new generation has to hold. The oldest periods beyond the
// limit are given up, with all that is left of their days.
func (b *budgets) records() []record {
	var out []record
	for i, p := range b.sorted() {
		if i == maxBudgets {
			b.forfeitThrough(p.day)
			break
		}
		if _, reserved := b.by[p].read(); reserved.count > 0 {
			out = append(out, budgetRecord(p, reserved))
		}
	}
	if b.forfeit != "" {
		out = append(out, record{Type: recordForfeit, Day: b.forfeit})
	}
	return out
}

func budgetRecord(p period, reserved use) record {
	return record{
		Type: recordBudget, Control: p.control, Right: p.right, Day: p.day,
		Count: reserved.count, Total: reserved.total,
	}
}

func dayOf(t time.Time) string { return t.UTC().Format(dayFormat) }
