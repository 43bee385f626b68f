package scenario

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/drill/sim"
	"github.com/degradedmode/ic/internal/policy/templates"
)

const whole = `scenario  small-night
title     A small night
source    ours
why       To read all there is to read.

fleet     shop 60
lasts     45m
people    ines commander reacts 4m acts 1m
people    dev operator reacts 90s
people    fiona finance absent
shop      busy of edge 9.5 %
shop      shared-fallback on

series every 30s recorded{job="x"} 1+1x4 _x3 7
at 0s     inject payment-risk-down
at 5m     load 150.25 %
at 35m    clear payment-risk-down

abort_if  unscored > 50000.00 USD

baseline
  at 5m dev flag bypass-risk on
  then ines override bypass-risk on
  at 30m ladder steps cpu 80 every 30s

with ic
  on checkout-errors abnormal ines do risk-bypass-small-orders scope checkout for 10m under 40.00 USD
  then ines push git
  on skew dev note hosts are missing
  on 20m dev command take
  then dev recover checkout to 0 with recover

expect    baseline unscored 41000.00 USD within 5 %
expect    baseline errors of checkout at 7m 18 % within 10 %
expect    ic impact < 12.5 min
expect    ic-no-second-bypass denied of quorum <= 3

fitted    dev-reacts = 90 s because nobody wrote it down
`

func TestAScenarioReadsAndPrintsAsItself(t *testing.T) {
	s, err := Parse("small.scenario", []byte(whole), Shop())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(Format(s)); got != whole {
		t.Errorf("printed again it is\n%s", got)
	}
	if len(s.Series[0].Points) != 5+3+1 || s.Series[0].Points[4].Value != 5 || !s.Series[0].Points[5].Gap {
		t.Errorf("the series has the points %v", s.Series[0].Points)
	}
	if s.Shop[0].Value != 95_000 || s.World[1].Load != 1_502_500 || s.AbortIf[0].Value != 50_000_00 || s.Expect[2].Value != 750_000 {
		t.Errorf("numbers: %+v %+v %+v %+v", s.Shop[0], s.World[1], s.AbortIf[0], s.Expect[2])
	}
	if p := s.People[0]; p.Reacts != 4*time.Minute || p.Acts != time.Minute || s.People[1].Acts != 90*time.Second || !s.People[2].Absent {
		t.Errorf("people: %+v", s.People)
	}
}

func TestThePolicyHasItsDate(t *testing.T) {
	text := strings.Replace(whole, "shared-fallback on\n", "shared-fallback on\npolicy    expires 90s\n", 1)
	s, err := Parse("small.scenario", []byte(text), Shop())
	if err != nil || s.Expires != 90*time.Second || string(Format(s)) != text {
		t.Errorf("it expires after %s, %v; printed it is\n%s", s.Expires, err, Format(s))
	}
}

func TestARunbookHasActsBesideIt(t *testing.T) {
	const with = "with runbook recover-one-tier-at-a-time and ladder\n  on 15m ines follow\n  on 20m dev command take\n"
	a, b := strings.Index(whole, "with ic\n"), strings.Index(whole, "\nexpect")
	text := strings.Replace(whole[:a]+with+whole[b:], "expect    ic-no-second-bypass denied of quorum <= 3\n", "", 1)
	s, err := Parse("small.scenario", []byte(text), Shop())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(Format(s)); got != text {
		t.Errorf("printed again it is\n%s", got)
	}
	if f := s.Follow(); s.Runbook != "recover-one-tier-at-a-time" || !s.Ladder || f == nil || f.Who != "ines" || len(s.IC) != 2 {
		t.Errorf("%q, ladder %v, taken by %+v, acts %+v", s.Runbook, s.Ladder, s.Follow(), s.IC)
	}
	if one, err := s.Seat("operator"); err != nil || one.Name != "dev" {
		t.Errorf("the operator is %q: %v", one.Name, err)
	}
	if _, err := s.Seat("fiona"); err == nil || !strings.Contains(err.Error(), `nobody in the scenario is "fiona"; there are ines (commander), dev (operator)`) {
		t.Errorf("somebody who is absent: %v", err)
	}
}

func TestWhatIsWrongHasALineAColumnAndASentence(t *testing.T) {
	for _, c := range []struct {
		what, old, new string
		want           string // LINE:COLUMN: and the beginning of the sentence
	}{
		{"an unknown word", "lasts     45m", "lates     45m", `7:1: unknown word "lates": did you mean "lasts"?`},
		{"a time past the end", "at 35m    clear", "at 46m    clear", `17:4: 46m is after the end: the scenario lasts 45m`},
		{"a fault that the world lacks", "inject payment-risk-down", "inject payment-risk-dwon", `15:18: this world has no fault "payment-risk-dwon": did you mean "payment-risk-down"?`},
		{"no baseline", "baseline\n  at 5m dev flag bypass-risk on\n  then ines override bypass-risk on\n  at 30m ladder steps cpu 80 every 30s\n", "", `no baseline: without`},
		{"an empty baseline", "  at 5m dev flag bypass-risk on\n  then ines override bypass-risk on\n  at 30m ladder steps cpu 80 every 30s\n", "", `no baseline: without`},
		{"a control character", "A small night", "A small\x1b[2J night", `2:18: the character U+001B is not allowed`},
		{"a tab", "A small night", "A\tnight", `2:12: a tab is not allowed`},
		{"bytes that are no text", "A small night", "A \xff night", `2:13: a byte that is no UTF-8`},
		{"CRLF", "source    ours\n", "source    ours\r\n", `3:15: a carriage return is not allowed`},
		{"a second title", "source    ours", "title     again\nsource    ours", `3:1: "title" stands in line 2 already`},
		{"a second person", "dev operator reacts 90s", "ines operator reacts 90s", `9:11: person ines stands in line 8 already`},
		{"a fault twice", "at 5m     load 150.25 %", "at 5m     inject payment-risk-down", `16:18: fault payment-risk-down stands in line 15 already`},
		{"a clear without its fault", "at 0s     inject payment-risk-down", "at 0s     inject auto-heal", `17:17: payment-risk-down is cleared and was not injected before`},
		{"time that runs back", "at 5m     load", "at 40m    load", `17:4: 35m is out of order: the line before is at 40m`},
		{"acts that run back", "at 30m ladder", "at 2m ladder", `24:6: 2m is out of order: the act in line 22 waits for 5m`},
		{"a keyword at the wrong place", "fleet     shop 60\n", "fitted    a = b because c\nfleet     shop 60\n", `7:1: "fleet" is out of order: it stands before "fitted"`},
		{"an act outside", "fleet     shop 60", "  fleet   shop 60", `6:3: an indented line belongs under "baseline", "with ic" or "with runbook NAME"`},
		{"an act with ic by the clock", "on 20m dev command", "at 20m dev command", `30:3: with ic nobody acts by the clock`},
		{"then with nothing before", "on checkout-errors abnormal ines do", "then ines do", `27:3: "then" needs an act before it`},
		{"somebody without a line", "people    dev operator reacts 90s\n", "", `has no "people" line`},
		{"an absent person who acts", "on 20m dev command take", "on 20m fiona command take", `30:10: fiona is absent and cannot act`},
		{"an unknown person", "then ines push", "then inez push", `28:8: unknown person "inez": did you mean "ines"?`},
		{"an unknown act", "ines push git", "ines psuh git", `28:13: unknown act "psuh": did you mean "push"?`},
		{"a runbook that nobody takes", "with ic\n", "with runbook b\n", `nobody takes the runbook: add an act like "on SIGNAL abnormal PERSON follow"`},
		{"a runbook where there is none", "ines push git", "ines follow", `28:13: unknown act "follow"`},
		{"a runbook taken twice", "with ic\n  on checkout-errors abnormal ines do", "with runbook b\n  on 1m dev follow\n  on 2m ines follow\n  on checkout-errors abnormal ines do", `28:14: "follow" stands in line 27 already`},
		{"a runbook with arguments", "with ic\n", "with runbook b\n  on 1m dev follow it\n", `27:20: "it" is one word too many`},
		{"a runbook without its second bypass", "with ic\n", "with runbook b\n  on 1m dev follow\n", `37:1: the run without a second bypass`},
		{"a ladder of another kind", "with ic\n", "with ic and luck\n", `26:13: unknown helper "luck"`},
		{"something else", "with ic\n", "with hope\n", `26:6: after "with" comes "ic" or "runbook NAME"`},
		{"an act of the other section", "dev note hosts are missing", "dev flag tier 3", `29:15: unknown act "flag"`},
		{"too few words", "ines push git", "ines push", `28:17: "push" lacks something`},
		{"an unknown signal", "on checkout-errors abnormal", "on checkout-error abnormal", `27:6: unknown signal "checkout-error": did you mean "checkout-errors"?`},
		{"an unknown flag", "ines override bypass-risk on", "ines override bypass-rsk on", `23:22: unknown flag "bypass-rsk": did you mean "bypass-risk"?`},
		{"an unknown figure", "abort_if  unscored", "abort_if  unscord", `19:11: unknown figure "unscord": did you mean "unscored"?`},
		{"money without a currency", "50000.00 USD", "50000.00", `19:22: "50000.00" is no amount`},
		{"money of another currency", "50000.00 USD", "50000.00 EUR", `19:22: "50000.00 EUR" is no amount`},
		{"a figure without its service", "errors of checkout at 7m", "errors at 7m", `34:27: "errors" wants "of SERVICE" after it`},
		{"a figure at a time that it lacks", "ic impact <", "ic impact at 3m <", `35:21: "impact" has no "at"`},
		{"an abort at a time", "abort_if  unscored >", "abort_if  unscored until 5m >", `19:20: an abort is looked at all the time`},
		{"an abort within", "abort_if  unscored > 50000.00 USD", "abort_if  unscored 5.00 USD within 5 %", `19:20: "5.00" is no comparison`},
		{"an unknown mode", "expect    ic impact", "expect    ci impact", `35:11: unknown mode "ci"`},
		{"a share without its sign", "within 5 %", "within 5", `within N %`},
		{"a word too many", "fleet     shop 60", "fleet     shop 60 hosts", `6:19: "hosts" is one word too many`},
		{"too small a fleet", "shop 60", "shop 11", `6:16: a shop has at least 12 hosts`},
		{"a fleet of nobody's", "fleet     shop", "fleet     farm", `6:11: unknown fleet "farm"`},
		{"YAML's habit", "lasts     45m", "lasts     0.75h", `7:11: "0.75h" is no duration`},
		{"nothing", "lasts     45m", "lasts", `7:6: "" is no duration`},
		{"a fitted one without why", "because nobody wrote it down", "", `a fitted parameter is written NAME = VALUE because WHY`},
		{"a policy that is over before", "shared-fallback on\n", "shared-fallback on\npolicy    expires 0s\n", `13:19: the policy has to be in force when the scenario begins`},
		{"a policy that is over after", "shared-fallback on\n", "shared-fallback on\npolicy    expires 46m\n", `13:19: 46m is after the end`},
		{"something else of the policy", "shared-fallback on\n", "shared-fallback on\npolicy    lapses 5m\n", `13:11: of the policy can be said only when it is over`},
		{"a second date of the policy", "shared-fallback on\n", "shared-fallback on\npolicy    expires 5m\npolicy    expires 6m\n", `14:1: "policy" stands in line 13 already`},
		{"a series of a billion", "1+1x4 _x3 7", "1+1x1000000000", `14:18: the series has more values than a day has seconds`},
		{"a series past the end", "1+1x4 _x3 7", "1+1x91", `after the end: the scenario lasts 45m`},
		{"a series that is none", "1+1x4 _x3 7", "one two", `14:18: the series cannot be read`},
		{"a series of nothing", "1+1x4 _x3 7", "", `14:18: the series has no values`},
		{"a series of NaN", "1+1x4 _x3 7", "1 NaN", `write _ for a scrape that brought nothing`},
		{"a right that the policy lacks", "do risk-bypass-small-orders", "do risk-bypas-small-orders", `27:39: unknown right "risk-bypas-small-orders": did you mean "risk-bypass-small-orders"?`},
		{"a right of a recovery", "with recover\n", "with recovr\n", `31:39: unknown right "recovr": did you mean "recover"?`},
		{"a recovery through nothing", "with recover\n", "through hostfiles\n", `31:42: unknown backend "hostfiles": did you mean "hostfile"?`},
		{"a backend that the policy lacks", "push git", "push hostfiles", `28:18: unknown backend "hostfiles": did you mean "hostfile"?`},
		{"a check of nothing", "ines push git", "ines check hostfil", `28:19: unknown backend "hostfil": did you mean "hostfile"?`},
		{"a feature that the policy lacks", "risk-bypass-small-orders scope checkout for", "feature-off feature recomendations for", `27:59: unknown feature of the policy "recomendations": did you mean "recommendations"?`},
		{"an order of nothing", "for 10m under", "for 0s under", `27:83: an order lasts longer than nothing`},
		{"a keyword that is misspelt", "fleet     shop", "flet      shop", `6:1: unknown word "flet": did you mean "fleet"?`},
		{"a section that is misspelt", "baseline\n", "basline\n", `21:1: unknown word "basline": did you mean "baseline"?`},
		{"a section twice", "with ic\n", "baseline\n  at 40m dev decides nothing\n\nwith ic\n", `26:1: "baseline" stands in line 21 already`},
		{"a number of YAML's", "lasts     45m", "lasts     05000", `7:11: "05000" is no duration`},
		{"no time at all", "lasts     45m", "lasts     0s", `7:11: a scenario lasts longer than nothing`},
		{"a fleet of no host", "shop 60", "shop 0", `6:16: a shop has at least 12 hosts`},
		{"somebody who is there at once", "reacts 90s", "reacts 0s", `9:31: nobody acts in no time`},
		{"somebody who acts at once", "acts 1m", "acts 0s", `8:41: nobody acts in no time`},
		{"somebody whose name is misspelt", "people    ines", "people    inez", `8:11: unknown person "inez": did you mean "ines"?`},
		{"a fault that is misspelt and cleared", "inject payment-risk-down", "inject payment-risk-dwn", `15:18: this world has no fault "payment-risk-dwn"`},
		{"people that are misspelt", "people    dev", "peple     dev", `9:1: unknown word "peple": did you mean "people"?`},
		{"people with a tab", "people    dev", "people\tdev", `9:7: a tab is not allowed`},
		{"a fault with a tab", "at 0s     inject", "at 0s\tinject", `15:6: a tab is not allowed`},
		{"a time that cannot be read", "at 5m     load", "at 5      load", `16:4: "5" is no duration`},
		{"a cue that cannot be read", "  on checkout-errors abnormal ines do", "  when checkout-errors abnormal ines do", `27:3: unknown word "when"`},
		{"a share of more than all", "checkout at 7m 18 %", "checkout at 7m 148 %", `34:45: 148 % is more than 100 %, the most that a share can be`},
		{"a figure that may be anything", "within 10 %", "within 148 %", `34:57: 148 % is more than 100 %, the most that a figure may differ by`},
		{"a service that is busier than it can be", "busy of edge 9.5 %", "busy of edge 109.5 %", `11:24: 109.5 % is more than 100 %, the most that busy can be`},
		{"a demand beyond all measure", "load 150.25 %", "load 999999 %", `16:16: 999999 % is more than 10000 %, the most that the demand can be`},
		{"nothing is expected with ic", "expect    ic impact < 12.5 min\nexpect    ic-no-second-bypass denied of quorum <= 3\n", "", `nothing is expected of the run with ic, which could only pass`},
		{"acts with a tab", "  at 5m dev flag bypass-risk on\n  then ines override bypass-risk on\n  at 30m ladder", "\tat 30m ladder", `22:1: a tab is not allowed`},
		{"a histogram", "1+1x4 _x3 7", "{{schema:0 sum:1}}", `14:18: a series is numbers`},
	} {
		t.Run(c.what, func(t *testing.T) {
			text := strings.Replace(whole, c.old, c.new, 1)
			if text == whole {
				t.Fatalf("%q is not in the scenario", c.old)
			}
			if strings.Contains(c.new, "with runbook") && !strings.Contains(c.want, "second bypass") {
				text = strings.Replace(text, "expect    ic-no-second-bypass denied of quorum <= 3\n", "", 1) // there is none of a runbook
			}
			_, err := Parse("x", []byte(text), Shop())
			var all Errors
			if !errors.As(err, &all) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if len(all) != 1 {
				t.Errorf("one fault is %d sentences: %v", len(all), err)
			}
			for _, e := range all {
				if e.Line < 1 || e.Column < 1 || strings.ContainsAny(e.Text, "\n\x1b") {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}

func TestLongFilesAreRefusedBeforeTheyAreRead(t *testing.T) {
	for what, c := range map[string]struct{ text, want string }{
		"2 MiB":           {strings.Repeat("# a line\n", 2<<20/9+1), "x:233017:8: the file goes on here; a scenario has less than 2 MiB"},
		"too many lines":  {strings.Repeat("\n", MaxLines+1), "has more than 20000 lines"},
		"a long line":     {"title " + strings.Repeat("a", MaxLine), "the line has 65542 bytes"},
		"a thousand ills": {strings.Repeat("nonsense\n", 5000), `x:1:1: unknown word "nonsense"`},
	} {
		_, err := Parse("x", []byte(c.text), Shop())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.200v", what, err)
		}
		var all Errors
		if errors.As(err, &all); len(all) > MaxErrors {
			t.Errorf("%s: %d errors at once", what, len(all))
		}
	}
}

func TestAScenarioIsCalledLikeItsFile(t *testing.T) {
	s, err := Parse("drills/small.scenario", []byte(whole), Shop())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Named("drills/small-night.scenario"); err != nil {
		t.Error(err)
	}
	want := `drills/small.scenario:1:11: the scenario is called "small-night" and its file "small": they have the same name`
	if err := s.Named("drills/small.scenario"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// What a scenario may name is what its world has: nothing else is understood, and
// nothing that there is is refused.
func TestWhatAScenarioMayNameIsWhatThePolicyHas(t *testing.T) {
	w, err := sim.New(sim.Options{Seed: 1, Hosts: 12, State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	known, bundle := Shop(), w.Bundle()
	if score.Controller != templates.LadderController {
		t.Errorf("the score takes %s for a person", templates.LadderController)
	}
	for what, names := range map[string][2][]string{
		"rights":   {known.Rights, bundle.RightNames()},
		"backends": {known.Backends, slices.Sorted(maps.Keys(bundle.Backends))},
		"features": {known.PolicyFeatures, slices.Sorted(maps.Keys(bundle.Features))},
		"signals":  {known.Signals, slices.Sorted(maps.Keys(bundle.Signals))},
	} {
		if !slices.Equal(names[0], names[1]) {
			t.Errorf("%s: a scenario may name %q, and the policy has %q", what, names[0], names[1])
		}
	}
}

func TestCommentsAreNotPartOfAScenario(t *testing.T) {
	commented := "# before\n" + strings.ReplaceAll(whole, "\n\n", "\n  # inside\n\n\n")
	a, err := Parse("x", []byte(commented), Shop())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(Format(a)); got != whole {
		t.Errorf("printed it is\n%s", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(""))
	f.Add([]byte("series every 1s a{b=\"}\"} 1x3\n"))
	f.Add([]byte("  then\nexpect ic impact < 1. min"))
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "scenarios", "*.scenario"))
	for _, name := range files {
		if raw, err := os.ReadFile(name); err == nil {
			f.Add(raw)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := Parse("fuzz", raw, Shop())
		if err != nil {
			var all Errors
			if !errors.As(err, &all) || len(all) == 0 {
				t.Fatalf("an error without a place: %v", err)
			}
			for _, e := range all {
				if e.Line < 1 || e.Column < 1 || e.Line > bytes.Count(raw, []byte("\n"))+1 || e.Text == "" {
					t.Fatalf("%+v", e)
				}
			}
			return
		}
		printed := Format(s)
		again, err := Parse("fuzz", printed, Shop())
		if err != nil {
			t.Fatalf("what was printed cannot be read: %v\n%s", err, printed)
		}
		if !bytes.Equal(Format(again), printed) || len(again.Expect) != len(s.Expect) || !reflect.DeepEqual(again.People, s.People) {
			t.Fatalf("printed twice it differs:\n%s", printed)
		}
	})
}
