package breakglass

import (
	"strings"
	"sync"

	"github.com/degradedmode/ic/internal/untrusted"
)

// output keeps the end of what a backend prints.
type output struct {
	mu   sync.Mutex
	last []byte
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = append(o.last, text...)
	if over := len(o.last) - maxOutput; over > 0 {
		o.last = append(o.last[:0], o.last[over:]...)
	}
	return len(text), nil
}

// lines are clean, and say whose they are.
func (o *output) lines(label string) []string {
	o.mu.Lock()
	text := string(o.last)
	o.mu.Unlock()
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, label+": "+untrusted.Text(line, maxLine))
		}
	}
	return out
}

// lastLine is the last thing that was said, clean; empty if nothing was.
func (o *output) lastLine() string {
	lines := o.lines("")
	if len(lines) == 0 {
		return ""
	}
	return strings.TrimPrefix(lines[len(lines)-1], ": ")
}
