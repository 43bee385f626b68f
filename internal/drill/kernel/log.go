package kernel

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// MaxWord is the longest text of one field in bytes; the event log is made of
// names and numbers, not of prose.
const MaxWord = 128

// Field is one named value of an event.
type Field struct {
	key  string
	word string
	n    int64
	text bool
}

// Int is a field with a number.
func Int(key string, n int64) Field { return Field{key: key, n: n} }

// Word is a field with a name. Anything but printable ASCII is replaced, and
// the rest is cut at MaxWord, so that a log can be shown as it is.
func Word(key, word string) Field { return Field{key: key, word: plain(word), text: true} }

// Log is the event log: one JSON object a line, fields in the order in which
// they were given.
type Log struct {
	to   io.Writer
	line []byte
	n    int64
	err  error
}

func newLog(to io.Writer, seed uint64, start time.Time) *Log {
	l := &Log{to: to}
	l.write(fmt.Appendf(nil, `{"v":1,"seed":%d,"start_ms":%d}`+"\n", seed, start.UnixMilli()))
	return l
}

// Log writes one event of component at the present virtual time.
func (k *Kernel) Log(component, what string, fields ...Field) {
	k.log.event(k.Since().Milliseconds(), component, what, fields)
}

func (l *Log) event(ms int64, component, what string, fields []Field) {
	l.n++
	b := append(l.line[:0], `{"ms":`...)
	b = strconv.AppendInt(b, ms, 10)
	b = append(b, `,"n":`...)
	b = strconv.AppendInt(b, l.n, 10)
	b = append(b, `,"component":`...)
	b = quoted(b, plain(component))
	b = append(b, `,"event":`...)
	b = quoted(b, plain(what))
	for _, f := range fields {
		b = append(b, ',')
		b = quoted(b, plain(f.key))
		b = append(b, ':')
		if f.text {
			b = quoted(b, f.word)
			continue
		}
		b = strconv.AppendInt(b, f.n, 10)
	}
	l.line = append(b, "}\n"...)
	l.write(l.line)
}

// write keeps the first error: the world goes on, and whoever needs the log
// asks Err at the end.
func (l *Log) write(line []byte) {
	if l.err != nil {
		return
	}
	if _, err := l.to.Write(line); err != nil {
		l.err = fmt.Errorf("write the drill's event log: %w", err)
	}
}

func quoted(b []byte, s string) []byte {
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// plain replaces what would have to be escaped in JSON or could move a
// terminal's cursor.
func plain(s string) string {
	if len(s) > MaxWord {
		s = s[:MaxWord]
	}
	for i := range len(s) {
		if odd(s[i]) {
			out := []byte(s)
			for j := i; j < len(out); j++ {
				if odd(out[j]) {
					out[j] = '?'
				}
			}
			return string(out)
		}
	}
	return s
}

func odd(c byte) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }
