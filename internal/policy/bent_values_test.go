package policy_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/policy"
)

// What bent other systems by way of their documents. Each is tried in every
// field of the frozen vectors, which use all of them: none may be the one that
// guesses. docs/explanation/attacks.md lists them all.

// written is one "key: value" line of a document, the first with that key in any.
type written struct {
	file, line, indent, key, value string
	number                         int // of the line, from 0
}

var keyAndValue = regexp.MustCompile(`^( *(?:- )?)([a-z_0-9]+): (.+)$`)

// fieldLines finds each key of the documents once, with a line where it has a
// value of its own.
func fieldLines(t *testing.T) []written {
	t.Helper()
	f := vectorFolder(t)
	var out []written
	seen := map[string]bool{}
	for _, file := range kinds {
		for n, line := range strings.Split(string(f.read(file)), "\n") {
			m := keyAndValue.FindStringSubmatch(line)
			if m == nil || seen[m[2]] {
				continue
			}
			seen[m[2]] = true
			out = append(out, written{file: file, line: line, indent: m[1], key: m[2], value: m[3], number: n})
		}
	}
	if len(out) < 100 {
		t.Fatalf("only %d fields were found: the test reads the documents wrong", len(out))
	}
	return out
}

// with is the document with other text in the place of the field's line.
func (w written) with(f *folder, text ...string) []byte {
	lines := strings.Split(string(f.read(w.file)), "\n")
	return []byte(strings.Join(slices.Replace(lines, w.number, w.number+1, text...), "\n"))
}

// Values that one reader takes for a number, a time or a truth value and the next
// one for something else.
func TestBentValuesAreRefusedInEveryField(t *testing.T) {
	f, fields := vectorFolder(t), fieldLines(t)
	for _, value := range []string{
		"05000", "0x64", "0o17", "1_000", "1e3", "+5", "1:30", "no", "Yes", "off", "y", "~", "", ".nan", "-.inf", "2027-01-01",
		"!!int 5", "!!str no", "&a 5", "*a", "{<<: {}}", "|\n  a\n  b",
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			for _, w := range fields {
				if _, err := policy.Fmt(w.file, w.with(f, w.indent+w.key+": "+value)); err == nil {
					t.Errorf("%s: %s: %s is taken", w.file, w.key, value)
				}
			}
		})
	}
}

// Words that are no value of their own here are a text where one is wanted, and
// printed in quotes if any reader takes them for more; elsewhere they are refused.
func TestBentWordsAreTextOrRefused(t *testing.T) {
	f, fields := vectorFolder(t), fieldLines(t)
	for _, value := range []string{"NaN", "Infinity", "1d", "15 m", "0day", "2027-01-01T00:00:00", "2027-01-01 00:00:00Z", "yesterday", "nothing"} {
		kept := 0
		for _, w := range fields {
			bare, err := policy.Fmt(w.file, w.with(f, w.indent+w.key+": "+value))
			if err != nil {
				continue
			}
			kept++
			quoted, err := policy.Fmt(w.file, w.with(f, w.indent+w.key+`: "`+value+`"`))
			if err != nil || string(bare) != string(quoted) {
				t.Errorf("%s: %s: %s is taken, and not as the text %q: %v", w.file, w.key, value, value, err)
			}
		}
		if kept == 0 || kept > len(fields)/2 {
			t.Errorf("%s is taken in %d of %d fields", value, kept, len(fields))
		}
	}
}

// "ttl: 15" was fifteen hours for the writer and fifteen nanoseconds for the
// reader; "1d" is a day for one library and an error for the next.
func TestBentDurationsAreRefused(t *testing.T) {
	f := vectorFolder(t)
	tried := 0
	for _, w := range fieldLines(t) {
		if !regexp.MustCompile(`^\d+[hms]$`).MatchString(w.value) {
			continue
		}
		tried++
		for value, why := range map[string]string{
			"15": "has no unit", "1d": "no unit for days", "1w": "is not a duration", "15 m": "is not a duration", "1.5h": "is not a duration",
			"90m30s": "is not a duration", "-15m": "is not a duration", "015m": "is not a duration", "15M": "is not a duration", "15ms": "is not a duration",
			"60m": "is not a duration", "P1D": "is not a duration", "9999999999999h": "is not a duration",
		} {
			_, err := policy.Fmt(w.file, w.with(f, w.indent+w.key+": "+value))
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %s: %s: got %v, want %q", w.file, w.key, value, err, why)
			}
		}
	}
	if tried < 8 {
		t.Errorf("only %d fields are durations: the test reads the documents wrong", tried)
	}
}

// A time without a zone is read in the zone of whoever reads it.
func TestBentTimesWithoutAZoneAreRefused(t *testing.T) {
	f := vectorFolder(t)
	tried := 0
	for _, w := range fieldLines(t) {
		if !strings.HasSuffix(w.value, ":00Z") {
			continue
		}
		tried++
		for _, value := range []string{
			"2027-01-01T00:00:00", "2027-01-01T00:00:00z", "2027-01-01t00:00:00Z", "2027-01-01T00:00:00+00:00", "2027-01-01T00:00:00-05:00",
			"2027-01-01T00:00Z", "2027-01-01", "20270101", "20270101000000Z", "2027-01-01T24:00:00Z", "2027-01-01T00:00:60Z", "2027-02-30T00:00:00Z",
			"2027-1-1T00:00:00Z", "2027-01-01T00:00:00.0Z", "1798761600", "tomorrow",
		} {
			_, err := policy.Fmt(w.file, w.with(f, w.indent+w.key+": "+value))
			if err == nil || !strings.Contains(err.Error(), "is not a time; write UTC and whole seconds, like 2027-11-30T00:00:00Z") {
				t.Errorf("%s: %s: %s: got %v", w.file, w.key, value, err)
			}
		}
	}
	if tried < 2 {
		t.Errorf("only %d fields are times: the test reads the documents wrong", tried)
	}
}

// .nan makes every comparison false, and .inf is a bound that binds nothing.
func TestBentNumbersWithoutAValueAreRefused(t *testing.T) {
	f := vectorFolder(t)
	above := slices.IndexFunc(fieldLines(t), func(w written) bool { return w.key == "above" })
	if above < 0 {
		t.Fatal("the ladder has no threshold")
	}
	w := fieldLines(t)[above]
	for _, value := range []string{".nan", ".NaN", "nan", "NaN", ".inf", "-.inf", "+.inf", "inf", "1e400", "-1e400", "1" + strings.Repeat("0", 13), "0x1p-2", "0,8", "1/2", "", "~"} {
		if _, err := policy.Fmt(w.file, w.with(f, w.indent+w.key+": "+value)); err == nil {
			t.Errorf("a threshold of %s is taken", value)
		}
	}
}

// A bound that is missing was "no limit" for others. Here every field is
// written, but those whose absence says something of its own.
func TestBentMissingFieldsAreRefused(t *testing.T) {
	f := vectorFolder(t)
	known := fieldsOfDocuments()
	for _, w := range fieldLines(t) {
		optional, field := known[w.key]
		if _, err := policy.Fmt(w.file, w.with(f)); err == nil && field && !optional {
			t.Errorf("%s without %s is taken", w.file, w.key)
		}
	}
	for _, bound := range []string{"under", "host_count", "host_total", "total", "lasts", "per_day", "live", "max_replacements", "volatile_hosts"} {
		without := regexp.MustCompile(`(?m)^      `+bound+`: .*\n`).ReplaceAll(f.read("payments.yaml"), nil)
		if _, err := policy.Fmt("payments.yaml", without); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q is missing", bound)) {
			t.Errorf("a bypass without %s: %v", bound, err)
		}
	}
}

// fieldsOfDocuments are the keys of all types of documents, and whether one of
// them allows the key to be left out. Other keys are names that authors choose.
func fieldsOfDocuments() map[string]bool {
	out := map[string]bool{}
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(t.Elem())
		case reflect.Struct:
			if seen[t] {
				return
			}
			seen[t] = true
			for i := range t.NumField() {
				key, options, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
				if options != "inline" {
					out[key] = out[key] || options == "omitempty"
				}
				walk(t.Field(i).Type)
			}
		}
	}
	for _, doc := range []any{policy.Root{}, policy.Manifest{}, policy.FeaturesDoc{}, policy.LadderDoc{}, policy.RightsDoc{}, policy.ControlsDoc{}, policy.BackendsDoc{}, policy.JourneysDoc{}} {
		walk(reflect.TypeOf(doc))
	}
	return out
}

// With a key twice, one reader takes the first and another the last; with a key
// that nobody knows, the writer believes in a bound that is not there.
func TestBentKeysTwiceOrUnknownAreRefused(t *testing.T) {
	f := vectorFolder(t)
	known := fieldsOfDocuments()
	for _, w := range fieldLines(t) {
		begin := strings.ReplaceAll(w.indent, "-", " ")
		if _, err := policy.Fmt(w.file, w.with(f, w.line, begin+w.key+": "+w.value)); err == nil || !strings.Contains(err.Error(), "stands here twice; remove one") {
			t.Errorf("%s: %s twice: %v", w.file, w.key, err)
		}
		if _, field := known[w.key]; !field {
			continue
		}
		for _, other := range []string{strings.ToUpper(w.key), w.key + "_", `"` + w.key + ` "`} {
			if _, err := policy.Fmt(w.file, w.with(f, w.line, begin+other+": "+w.value)); err == nil {
				t.Errorf("%s: %s beside %s is taken", w.file, other, w.key)
			}
		}
	}
}

// Text that means something else to a parser than to the eye.
func TestBentTextIsRefused(t *testing.T) {
	const line = "domain: journeys\n"
	deep := 100_000
	for _, c := range []struct{ what, put, why string }{
		{"an anchor", "domain: &d journeys\n", "anchors and aliases are not allowed"},
		{"an alias", "domain: *d\n", ""},
		{"a merge key", "<<: {domain: journeys}\n", "merge keys (<<) are not allowed"},
		{"a tag", "domain: !!str journeys\n", "tags such as !!str are not allowed"},
		{"a tag of its own", "domain: !journeys journeys\n", "tags such as !journeys are not allowed"},
		{"a second document", line + "---\nv: 1\n", `one document without "---" lines`},
		{"a second document behind the end of the first", line + "...\nv: 1\n", `one document without "..." lines`},
		{"a directive of YAML", "%YAML 1.1\n" + line, `one document without "%" lines`},
		{"a comment", line + "# version: 1\n", "say it in a why: field"},
		{"U+2028 inside a comment", line + "# safe\u2028version: 1\n", "U+2028 ends a line for some readers only"},
		{"U+2029 inside a comment", line + "# safe\u2029version: 1\n", "U+2029 ends a line for some readers only"},
		{"U+0085 inside a comment", line + "# safe\u0085version: 1\n", "U+0085 ends a line for some readers only"},
		{"a bare CR inside a comment", line + "# safe\rversion: 1\n", "a carriage return (U+000D) ends a line for some readers only"},
		{"CRLF", "domain: journeys\r\n", "lines end in LF"},
		{"a tab as indent", "\tdomain: journeys\n", "a tab; indent with spaces"},
		{"a tab behind a key", "domain:\tjourneys\n", "a tab; indent with spaces"},
		{"a byte order mark", "\ufeff" + line, "U+FEFF is not a printable character"},
		{"a NUL", "domain: journeys\x00\n", "U+0000 is not a printable character"},
		{"an escape of a terminal", "domain: \"\x1b[2K\"\n", "U+001B is not a printable character"},
		{"an escaped escape", `domain: "\e[2K"` + "\n", "characters that do not print"},
		{"a right-to-left override", "domain: \"\u202eyenruoj\"\n", "U+202E is not a printable character"},
		{"bytes that are not UTF-8", "domain: \xc0\xaf\n", "is not UTF-8"},
		{"a surrogate in UTF-8", "domain: \xed\xa0\x80\n", "is not UTF-8"},
		{"UTF-16", "\xff\xfed\x00\n", "is not UTF-8"},
		{"a long line", "domain: " + strings.Repeat("j", 1<<19) + "\n", "at most 1000"},
		{"a long key", strings.Repeat("j", 1<<19) + ": 1\n", ""},
		{"deep lists", "domain: " + strings.Repeat("[", deep) + strings.Repeat("]", deep) + "\n", ""},
		{"deep groups", "domain: " + strings.Repeat("{a: ", deep) + "1" + strings.Repeat("}", deep) + "\n", ""},
		{"just too deep", "domain: " + strings.Repeat("[", 17) + strings.Repeat("]", 17) + "\n", "nested deeper than 16 levels"},
		{"a bomb of aliases", "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n", ""},
		{"a thousand unknown keys", thousandKeys(), "unknown field"},
	} {
		t.Run(c.what, func(t *testing.T) {
			src := strings.Replace(printed, line, c.put, 1)
			got, err := policy.Fmt("journeys.yaml", []byte(src))
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want %q", err, c.why)
			}
			if got != nil {
				t.Errorf("refused and printed:\n%s", got)
			}
			if err != nil && len(err.Error()) > 1<<14 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func thousandKeys() string {
	var out strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&out, "k%d: 1\n", i)
	}
	return out.String()
}
