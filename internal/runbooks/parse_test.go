package runbooks_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/runbooks"
)

func TestARunbookIsReadWithItsWords(t *testing.T) {
	rb := parse(t, base)
	if rb.Title != "Payment risk is down" || rb.Manual || !rb.ValidUntil.Equal(time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)) || rb.MaxDuration != model.Duration(3*time.Hour) || len(rb.Digest) != 64 {
		t.Errorf("front matter: %+v", rb)
	}
	if !strings.Contains(rb.Intro, "kubectl get pods") || !strings.HasPrefix(rb.Outro, "## Afterwards\n") {
		t.Errorf("intro %q, outro %q", rb.Intro, rb.Outro)
	}
	want := []runbooks.Kind{"check", "decide", "do", "do", "push", "wait", "wait", "recover", "check", "note"}
	var got []runbooks.Kind
	for _, s := range rb.Steps {
		got = append(got, s.Kind)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("kinds %v", got)
	}
	if s := rb.Step("confirm"); s.Title != "1. Is it really down?" || s.Prose != "Look before you act.\n\nThe check reads again until it holds." || s.Line != 22 || s.Check.NoData != "ask" {
		t.Errorf("confirm: %+v", s)
	}
	if s := rb.Step("settle"); s.Title != rb.Step("back").Title || s.Longest() != model.Duration(10*time.Minute) {
		t.Errorf("a second step under a heading: %+v", s)
	}
	if d := rb.Step("open").Do; d.For != model.Duration(15*time.Minute) || d.Under.Minor != 5000 || d.Control != "risk" {
		t.Errorf("open: %+v", d)
	}
	if rb.Step("nobody") != nil {
		t.Error("a step was found that is not there")
	}
}

func TestADayOfARunbookEndsItAtItsMidnight(t *testing.T) {
	rb := parse(t, base)
	midnight := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	if rb.Expired(midnight.Add(-time.Second)) || !rb.Expired(midnight) {
		t.Error("valid until a day means: until that day begins")
	}
}

func TestAComparisonHoldsOfNumbersOnly(t *testing.T) {
	nan := 0.0
	nan /= nan
	for op, want := range map[string][3]bool{"<": {true, false, false}, "<=": {true, true, false}, "==": {false, true, false}, "!=": {true, false, true}, ">=": {false, true, true}, ">": {false, false, true}} {
		c := runbooks.Comparison{Op: op, Value: 2}
		if got := [3]bool{c.Holds(1), c.Holds(2), c.Holds(3)}; got != want || c.Holds(nan) {
			t.Errorf("%s: %v, NaN %v", op, got, c.Holds(nan))
		}
	}
}

// Every bad file gets one sentence with its place.
func TestWhatIsWrongHasALineAndAColumn(t *testing.T) {
	for _, c := range []struct{ name, old, new, place, sentence string }{
		{"a number with a leading zero for a time", "timeout: 3m", "timeout: 05000", "25:10", `"05000": a duration is a number and one unit`},
		{"a time like a clock", "timeout: 3m", "timeout: 1:30", "25:10", `"1:30": a duration is a number and one unit`},
		{"a time without a unit", "wait: {for: 10m}", "wait: {for: 15}", "86:13", `"15": a duration is a number and one unit`},
		{"a time in days", "max_duration: 3h", "max_duration: 1d", "8:15", `"1d": there is no unit for days; write 24h`},
		{"a time in the smaller unit", "timeout: 3m", "timeout: 180s", "25:10", `"180s": write it as "3m"`},
		{"no time at all", "timeout: 3m", "timeout: 0s", "25:10", "a time of 0s is none"},
		{"a truth value for a word", "choose: grows", "choose: no", "38:16", `"no" is a number, a truth value or nothing for some readers of YAML; a text like that is quoted: 'no'`},
		{"a number for a sentence", "use_when: The payment-risk service has not answered for 2 minutes.", "use_when: 42", "5:11", `"42" is a number`},
		{"nothing for a sentence", "use_when: The payment-risk service has not answered for 2 minutes.", "use_when:", "5:1", "there is no value here"},
		{"a key twice", "owner: payments-oncall", "owner: payments-oncall\nowner: else", "5:1", `"owner" stands here twice`},
		{"an unknown key", "on_timeout: stop\n```\n\nThe", "on_timout: stop\n```\n\nThe", "26:1", `unknown key "on_timout"; did you mean "on_timeout"?`},
		{"an unknown key far from all", "wait: {for: 10m}", "loop: {times: 3}", "86:1", `unknown key "loop"; known are`},
		{"an anchor", "signals: [risk-errors]", "signals: &a [risk-errors]", "6:10", "anchors and aliases are not allowed"},
		{"an alias", "signals: [risk-errors]", "signals: *a", "6:1", "unknown anchor"},
		{"a tag", "id: settle", "id: !!str settle", "85:5", "tags such as !!str are not allowed"},
		{"a merge", "wait: {for: 10m}", "wait: {<<: {for: 10m}}", "86:8", "merge keys (<<) are not allowed"},
		{"a second document", "wait: {for: 10m}", "wait: {for: 10m}\n---\nid: more", "87:1", `without "---" lines`},
		{"a tab", "wait: {for: 10m}", "wait:\t{for: 10m}", "86:6", "a tab; indent with spaces"},
		{"a bare carriage return", "Orders wait.", "Orders\rwait.", "12:7", "carriage return"},
		{"an end of line for some", "Orders wait.", "Orders\u2028wait.", "12:7", "U+2028 ends a line for some readers only"},
		{"a control character", "Orders wait.", "Orders\x1b[2Jwait.", "12:7", "U+001B is not a printable character"},
		{"a character that turns the text", "Orders wait.", "Orders\u202ewait.", "12:7", "U+202E is not a printable character"},
		{"a byte that is no text", "Orders wait.", "Orders\xffwait.", "12:7", "byte 0xff is not UTF-8"},
		{"an escape that writes one", "means: it stays as it is", `means: "it \u202e stays"`, "39:31", "the text holds U+202E"},
		{"a byte order mark", "---\nv: 1", "\ufeff---\nv: 1", "1:1", "byte order mark"},
		{"a newer format", "v: 1", "v: 2", "2:4", `the file is of format "2" and this ic reads format 1`},
		{"another name than the file's", "id: payment-risk-down", "id: payment-risk-gone", "3:5", `the file is "payment-risk-down.md" and the id is "payment-risk-gone"`},
		{"no such day", "valid_until: 2027-03-01", "valid_until: 2027-02-30", "7:14", `"2027-02-30" is no day`},
		{"a step without a kind", "wait: {for: 10m}", "role: commander", "85:1", "a step has exactly one of check, decide, do, recover, push, wait, note; there is none"},
		{"a step of two kinds", "wait: {for: 10m}", "wait: {for: 10m}\nnote: {ask: 'what?'}", "87:7", "here are wait and note"},
		{"a step of the same name", "id: settle", "id: back", "85:5", `the step in line 78 is called "back" already`},
		{"a step with the name of a word", "id: settle", "id: end", "85:5", `"end" means something where the id of a step may stand`},
		{"an answer for nobody", "is: '< 0.5'", "is: 'below'", "24:37", `"below" is no comparison`},
		{"an answer that is no number", "is: '< 0.5'", "is: '< NaN'", "24:37", "is no comparison"},
		{"a wait for ever", "is: normal}, at_most: 30m}", "is: normal}}", "80:7", `"at_most" is missing`},
		{"a deadline twice", "at_most: 30m}", "at_most: 30m}\ntimeout: 5m", "81:10", "the deadline of a wait is at_most"},
		{"a proof of nothing", "wait: {for: 10m}", "wait: {for: 10m}\nprobe: {skew: {at_least: 95}}", "87:8", "a wait has no effect that could be proved or undone"},
		{"the reach of a check", "check: {http: {url: 'https://shop.example/healthz', status: 200}}", "check: {reach: {at_least: 95}}", "104:16", "only the probe of do, recover or push"},
		{"a share over all", "probe: {skew: {at_least: 95}}", "probe: {skew: {at_least: 101}}", "72:26", "101 is not between 1 and 100"},
		{"an address with a password", "https://shop.example/healthz", "https://a:b@shop.example/", "104:21", "carries no name or password"},
		{"an address that is a file", "https://shop.example/healthz", "file:///etc/passwd", "104:21", "not an address"},
		{"undo and no undo", "undo: {push: {undo: hostfile}}", "undo: {push: {undo: hostfile}}\nirreversible: no idea", "74:15", "here are both"},
		{"an undo that pushes", "undo: {push: {undo: hostfile}}", "undo: {push: {backend: hostfile}}", "73:24", "not another push"},
		{"an option twice", "choose: stable", "choose: grows", "39:16", `two options are called "grows"`},
		{"a decision with one answer", "    - {choose: stable, means: it stays as it is, goto: seen}\n", "", "38:5", "the list has 1 entry; 2 to 9 are possible"},
		{"an answer that leads nowhere", "means: it stays as it is, goto: seen", "means: it stays as it is", "39:7", `"goto" is missing`},
		{"a brace that is not closed", "wait: {for: 10m}", "wait: {for: 10m", "86:1", "not YAML from this line on: did not find expected ',' or '}'"},
		{"a brace too many", "wait: {for: 10m}", "wait: {for: 10m}}", "86:1", "not YAML from this line on"},
		{"a quote that is not closed", "id: settle\nwait: {for: 10m}", "id: 'settle\nwait: {for: 10m}", "85:1", "not YAML from this line on"},
		{"two colons", "wait: {for: 10m}", "wait: for: 10m", "86:1", "mapping values are not allowed"},
		{"an empty step", "id: settle\nwait: {for: 10m}\n", "", "84:1", "there is nothing here"},
		{"a list for a step", "id: settle\nwait: {for: 10m}", "- id: settle", "85:1", "keys and values are expected here"},
		{"a step that is not closed", "then: end\n```\n\n## Afterwards\n\nWrite it up.\n", "then: end\n", "108:1", "this step is not closed"},
		{"a step in a list", "```ic-step\nid: settle\nwait: {for: 10m}\n```", "- ```ic-step\n  id: settle\n  wait: {for: 10m}\n  ```", "84:3", "neither in a list nor in a quote"},
		{"a step in a quote", "```ic-step\nid: settle\nwait: {for: 10m}\n```", "> ```ic-step\n> id: settle\n> wait: {for: 10m}\n> ```", "84:3", "neither in a list nor in a quote"},
		{"a step in a comment", "```ic-step\nid: settle\nwait: {for: 10m}\n```", "<!--\n```ic-step\nid: settle\nwait: {for: 10m}\n```\n-->", "85:1", "stands inside something else"},
		{"a step that is indented code", "```ic-step\nid: settle\nwait: {for: 10m}\n```", "    ```ic-step\n    id: settle\n    ```", "84:5", "stands inside something else"},
		{"a step behind spaces", "```ic-step\nid: settle", "  ```ic-step\nid: settle", "84:3", "a step starts in the first column"},
		{"a step with words behind it", "```ic-step\nid: settle", "```ic-step now\nid: settle", "84:1", "only ic-step may stand behind the marks"},
		{"a step in other letters", "```ic-step\nid: settle", "```IC-Step\nid: settle", "84:1", "did you mean ic-step?"},
		{"a step misspelled", "```ic-step\nid: settle", "```ic_step\nid: settle", "84:1", "did you mean ic-step?"},
		{"no title", "# Payment risk is down\n", "Payment risk is down.\n", "10:1", "there is no title"},
		{"no front matter", base[:strings.Index(base, "# Payment")], "", "1:1", "front matter is missing"},
		{"front matter that does not end", "max_duration: 3h\n---\n", "max_duration: 3h\n", "1:1", "front matter is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := bent(t, c.old, c.new)
			rb, err := runbooks.Parse("payment-risk-down.md", []byte(text))
			var all runbooks.Errors
			if rb != nil || !errors.As(err, &all) {
				t.Fatalf("it was read: %v", err)
			}
			lines := strings.Split(text, "\n")
			for _, e := range all {
				if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len([]rune(lines[e.Line-1]))+1 {
					t.Errorf("no place of the file: %v", e)
				}
			}
			at := slices.IndexFunc(all, func(e *runbooks.ErrorAt) bool { return strings.Contains(e.Sentence, c.sentence) })
			if at < 0 {
				t.Fatalf("no %q in:\n%v", c.sentence, err)
			}
			if !strings.HasPrefix(all[at].Error(), "payment-risk-down.md:"+c.place) {
				t.Errorf("want %s: %v", c.place, all[at])
			}
		})
	}
}

func TestLimitsHaveASentenceAndAPlace(t *testing.T) {
	many := base[:strings.Index(base, "## 1.")]
	for i := range runbooks.MaxSteps + 1 {
		many += "```ic-step\nid: s" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + "\nnote: {ask: 'what?'}\n```\n\n"
	}
	for name, c := range map[string]struct{ text, sentence string }{
		"2 MiB":     {base + strings.Repeat("All is well.\n", 2<<20/13), "longer than 262144 bytes"},
		"one line":  {strings.Repeat("a", 2<<20), "longer than 262144 bytes"},
		"201 steps": {many, "this is step 201; a runbook has at most 200"},
		"nesting":   {bent(t, "wait: {for: 10m}", "wait: "+strings.Repeat("[", 500)+strings.Repeat("]", 500)), "nested deeper than 8 levels"},
		"a reason":  {bent(t, "reason: the check is back", "reason: "+strings.Repeat("long ", 60)), "at most 200"},
	} {
		_, err := runbooks.Parse("payment-risk-down.md", []byte(c.text))
		var all runbooks.Errors
		if !errors.As(err, &all) || !strings.Contains(all[0].Sentence, c.sentence) || all[0].Line < 1 || all[0].Column < 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnExampleOfAStepInsideALongerFenceIsNone(t *testing.T) {
	rb := parse(t, bent(t, "Look before you act.", "````markdown\n```ic-step\nid: never\nnote: {ask: 'what?'}\n```\n````"))
	if len(rb.Steps) != 10 || rb.Step("never") != nil {
		t.Errorf("steps: %v", rb.Steps)
	}
	if s := rb.Step("confirm"); len(s.Fences) != 1 || s.Fences[0].Info != "markdown" || !strings.Contains(s.Fences[0].Text, "id: never") || !strings.Contains(s.Prose, "id: never") {
		t.Errorf("the fence is not shown: %+v", s)
	}
}

func TestAFenceOfWavesIsAStepToo(t *testing.T) {
	if rb := parse(t, bent(t, "```ic-step\nid: settle\nwait: {for: 10m}\n```", "~~~~ic-step\nid: settle\nwait: {for: 10m}\n~~~~")); rb.Step("settle") == nil {
		t.Error("the step is not there")
	}
}
