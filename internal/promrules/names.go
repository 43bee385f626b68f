package promrules

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/degradedmode/ic/internal/directive"
)

// maxStem leaves room in a name for a window and a number.
const maxStem = directive.MaxName - 16

// stem is an alert's name as policies write names: KubeAPIErrorBudgetBurn is
// kube-api-error-budget-burn.
func stem(alert string) string {
	var out strings.Builder
	runes := []rune(alert)
	for i, r := range runes {
		if out.Len() >= maxStem {
			break
		}
		plain := r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
		if !plain || startsWord(runes, i) {
			if text := out.String(); text != "" && !strings.HasSuffix(text, "-") {
				out.WriteByte('-')
			}
		}
		if plain {
			out.WriteRune(unicode.ToLower(r))
		}
	}
	if text := strings.Trim(out.String(), "-"); text != "" {
		return text
	}
	return "signal"
}

// startsWord reports whether a capital begins a word: after a small letter or a
// digit, or before a small letter.
func startsWord(runes []rune, i int) bool {
	if i == 0 || !unicode.IsUpper(runes[i]) {
		return false
	}
	return !unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

// names gives every signal a name of its own. The first of a stem keeps it, so
// that a rule which is added at the end renames nothing.
type names struct {
	taken map[string]bool
	next  map[string]int // by name without a number: the number to try next
}

func (n *names) take(alert, window string) string {
	base := stem(alert)
	if window != "" && len(window) <= maxWindow {
		base += "-" + window
	}
	name := base
	for n.taken[name] {
		n.next[base]++
		name = base + "-" + strconv.Itoa(n.next[base]+1)
	}
	n.taken[name] = true
	return name
}

// maxWindow bounds a window in a name, such as 30m or 1h30m.
const maxWindow = 8
