package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/model"
)

var operators = [...]string{"<", "<=", "=", ">=", ">"}

// bound: FIGURE [of WORD] [at TIME | until TIME] OP VALUE, or with about VALUE
// within N % in place of the last two.
func (p *parser) bound(l *line, i int, within bool) Bound {
	one := Bound{Line: l.n}
	info := figureNamed(l.word(i))
	if info == nil {
		p.at(l, i, "unknown figure %s: %s", shown(l.word(i)), meant(l.word(i), figureNames()))
		return one
	}
	one.Figure.Name = info.Name
	i = p.figureOf(l, i+1, info, &one.Figure)
	i = p.figureWhen(l, i, info, &one.Figure, within)
	if slices.Contains(operators[:], l.word(i)) {
		one.Op = l.word(i)
		one.Value, i = p.figure(l, i+1, info)
		p.end(l, i)
		return one
	}
	if !within {
		p.at(l, i, `%s is no comparison: one of %s`, shown(l.word(i)), strings.Join(operators[:], " "))
		return one
	}
	one.Op = opWithin
	one.Value, i = p.figure(l, i, info)
	if l.word(i) != opWithin || l.word(i+2) != "%" {
		p.at(l, i, `after the figure comes a comparison (%s) and a value, or a value and "within N %%"`, strings.Join(operators[:], " "))
		return one
	}
	one.Within = p.share(l, i+1, MaxWithin, "a figure may differ by")
	p.end(l, i+3)
	return one
}

// figure is a value that the figure can have: no share of anything is more than all
// of it.
func (p *parser) figure(l *line, i int, info *figureInfo) (v int64, next int) {
	if info.unit == percent {
		return p.share(l, i, million, "a share can be"), i + 2
	}
	return p.value(l, i, info.unit)
}

// share is a share (ppm) of at most most.
func (p *parser) share(l *line, i int, most int64, what string) int64 {
	v, _ := p.value(l, i, percent)
	if v > most {
		p.at(l, i, "%s is more than %s, the most that %s", percent.print(v), percent.print(most), what)
		return 0
	}
	return v
}

const opWithin = "within"

func (p *parser) figureOf(l *line, i int, info *figureInfo, f *Figure) int {
	if l.word(i) != "of" {
		if info.ofNeeded {
			p.at(l, i, `%q wants "of %s" after it`, info.Name, strings.ToUpper(string(info.of)))
		}
		return i
	}
	switch info.of {
	case service:
		f.Of = p.of(l, i+1, string(service), p.known.Services)
	case outcome:
		f.Of = p.of(l, i+1, string(outcome), shop.OrderOutcomes[:])
	case anyWord:
		f.Of = p.name(l, i+1)
	default:
		p.at(l, i, `%q has no "of"`, info.Name)
	}
	return i + 2
}

func (p *parser) figureWhen(l *line, i int, info *figureInfo, f *Figure, timed bool) int {
	when := l.word(i)
	if when != "at" && when != "until" {
		return i
	}
	switch {
	case !timed:
		p.at(l, i, "an abort is looked at all the time: leave %q out", when)
	case when == "at" && !info.at || when == "until" && !info.until:
		p.at(l, i, "%q has no %q", info.Name, when)
	}
	f.When, f.Time = when, p.moment(l, i+1)
	return i + 2
}

// value reads a value of a unit and returns the word behind it. Shares are ppm,
// money cents, durations and impact milliseconds.
func (p *parser) value(l *line, i int, u unit) (v int64, next int) {
	switch u {
	case count:
		return p.whole(l, i, MaxAmount), i + 1
	case onOff:
		if p.of(l, i, "switch", []string{"on", "off"}) == "on" {
			v = 1
		}
		return v, i + 1
	case duration:
		return p.span(l, i, MaxLasts).Milliseconds(), i + 1
	case cents:
		m, err := model.ParseMoney(l.word(i) + " " + l.word(i+1))
		if err != nil || m.Currency != currency {
			p.at(l, i, `%s is no amount: write it like "41000.00 %s"`, shown(strings.TrimSpace(l.word(i)+" "+l.word(i+1))), currency)
			return 0, i + 2
		}
		return m.Minor, i + 2
	case percent:
		return p.scaled(l, i, "%", 4), i + 2
	default:
		v = p.scaled(l, i, "min", 2)
		return v * minute / 100, i + 2
	}
}

const (
	currency = "USD"
	minute   = int64(time.Minute / time.Millisecond)
)

// scaled reads "12.5 UNIT" with at most places decimals, as an integer of the
// last of them.
func (p *parser) scaled(l *line, i int, name string, places int) int64 {
	whole, part, dot := strings.Cut(l.word(i), ".")
	good := l.word(i+1) == name && len(part) <= places && dot == (part != "") && len(whole) > 0 && len(whole) <= 9 &&
		strings.Trim(whole+part, "0123456789") == ""
	if !good {
		p.at(l, i, `%s is no value: write it like "12.5 %s", with at most %d decimals`, shown(strings.TrimSpace(l.word(i)+" "+l.word(i+1))), name, places)
		return 0
	}
	n, _ := strconv.ParseInt(whole+part+strings.Repeat("0", places-len(part)), 10, 64) // checked: at most 13 digits
	return n
}

// print writes a value of a unit as value reads it.
func (u unit) print(v int64) string {
	switch u {
	case onOff:
		if v == 1 {
			return "on"
		}
		return "off"
	case duration:
		return model.Duration(time.Duration(v) * time.Millisecond).String()
	case cents:
		return model.Money{Minor: v, Currency: currency}.String()
	case percent:
		return decimal(v, 4) + " %"
	case minutes:
		return decimal(v*100/minute, 2) + " min"
	default:
		return strconv.FormatInt(v, 10)
	}
}

// decimal prints n, an integer of the last of places decimals, as short as it goes.
func decimal(n int64, places int) string {
	scale := int64(1)
	for range places {
		scale *= 10
	}
	text := fmt.Sprintf("%d.%0*d", n/scale, places, n%scale)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
