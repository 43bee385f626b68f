package policy

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
	"go.yaml.in/yaml/v3"
)

// timeLayout is the one spelling of a time: UTC, whole seconds.
const timeLayout = "2006-01-02T15:04:05Z"

// Limits of values.
const (
	MaxText  = 1000 // bytes of one text: what a person reads before signing
	maxFloat = 1e12 // thresholds; beyond it digits after the point would be lost
)

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, at *trail) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, at, "one value is expected here, not %s", describe(n))
		return
	}
	switch v.Type() {
	case timeType:
		d.time(n, v, at)
		return
	case moneyType:
		m, err := model.ParseMoney(n.Value)
		if err != nil {
			d.fail(n, at, `%s is not an amount; write it like "50.00 USD"`, quoted(n))
			return
		}
		v.Set(reflect.ValueOf(m))
		return
	case durationType:
		d.duration(n, v, at)
		return
	}
	switch v.Kind() {
	case reflect.String:
		d.text(n, v, at)
	case reflect.Bool:
		if !bare(n) || n.Value != "true" && n.Value != "false" {
			d.fail(n, at, "%s is neither true nor false; write one of the two", quoted(n))
			return
		}
		v.SetBool(n.Value == "true")
	case reflect.Float64:
		d.float(n, v, at)
	default:
		d.integer(n, v, at)
	}
}

// bare reports whether a value stands without quotes.
func bare(n *yaml.Node) bool { return n.Style == 0 }

func quoted(n *yaml.Node) string { return strconv.Quote(untrusted.Text(n.Value, maxQuoted)) }

func (d *decoder) text(n *yaml.Node, v reflect.Value, at *trail) {
	switch {
	case bare(n) && ambiguous(n):
		d.fail(n, at, "%s without quotes is not a text for every reader; write it in double quotes", n.Value)
		return
	case strings.ContainsRune(n.Value, '\n'):
		d.fail(n, at, "a text is one line; join the lines")
		return
	case len(n.Value) > MaxText:
		d.fail(n, at, "the text has %d bytes, at most %d", len(n.Value), MaxText)
		return
	case untrusted.Text(n.Value, len(n.Value)) != n.Value:
		d.fail(n, at, "the text holds characters that do not print: %s", quoted(n))
		return
	}
	if words := wordsOf(v.Type()); words != nil && !slices.Contains(words, n.Value) {
		d.fail(n, at, "%s is not one of %s", quoted(n), strings.Join(words, ", "))
		return
	}
	v.SetString(n.Value)
}

// ambiguous reports whether a text without quotes is something else for YAML
// 1.1 or 1.2: a number, a time, a truth value, sixty-based digits.
func ambiguous(n *yaml.Node) bool {
	return n.ShortTag() != "!!str" || reserved(n.Value) || strings.Trim(n.Value, "0123456789:._+-") == ""
}

// reserved lists the words that some YAML reader takes for a truth value or for
// nothing.
func reserved(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	}
	return false
}

func (d *decoder) integer(n *yaml.Node, v reflect.Value, at *trail) {
	i, err := strconv.ParseInt(n.Value, 10, v.Type().Bits())
	if err != nil || !bare(n) || strconv.FormatInt(i, 10) != n.Value {
		d.fail(n, at, "%s is not a whole number in plain digits; write it like 5000, without quotes, leading zeros or separators", quoted(n))
		return
	}
	v.SetInt(i)
}

func (d *decoder) float(n *yaml.Node, v reflect.Value, at *trail) {
	f, err := strconv.ParseFloat(n.Value, 64)
	digits, _, _ := strings.Cut(strings.TrimPrefix(n.Value, "-"), ".")
	if err != nil || !bare(n) || strings.Trim(n.Value, "-.0123456789") != "" || digits == "" || len(digits) > 1 && digits[0] == '0' ||
		strings.HasSuffix(n.Value, ".") || math.Abs(f) > maxFloat {
		d.fail(n, at, "%s is not a number; write it like 0.8 or 80, without exponent, leading zeros or separators", quoted(n))
		return
	}
	v.SetFloat(f + 0) // -0 becomes 0
}

func (d *decoder) duration(n *yaml.Node, v reflect.Value, at *trail) {
	parsed, err := model.ParseDuration(n.Value)
	if err == nil {
		v.SetInt(int64(parsed))
		return
	}
	switch {
	case strings.Trim(n.Value, "0123456789") == "":
		d.fail(n, at, "%s has no unit; write it like %ss, %sm or %sh", quoted(n), n.Value, n.Value, n.Value)
	case strings.HasSuffix(n.Value, "d"):
		d.fail(n, at, "%s: there is no unit for days; write hours, like 24h", quoted(n))
	default:
		d.fail(n, at, "%s is not a duration; write a number and the largest unit of h, m and s that fits, like 2h, 15m, 90s", quoted(n))
	}
}

func (d *decoder) time(n *yaml.Node, v reflect.Value, at *trail) {
	t, err := time.Parse(timeLayout, n.Value)
	if err != nil || t.Format(timeLayout) != n.Value {
		d.fail(n, at, "%s is not a time; write UTC and whole seconds, like 2027-11-30T00:00:00Z", quoted(n))
		return
	}
	v.Set(reflect.ValueOf(t))
}
