package scenario

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/drill/score"
)

// seedsOr is how many seeds a test plays: as many as IC_SEEDS says, or the usual
// number.
func seedsOr(t testing.TB, usual int) int {
	t.Helper()
	text := os.Getenv("IC_SEEDS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("IC_SEEDS is %q, not a number of seeds", text)
	}
	return n
}

func shippedNames(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "scenarios", "*.scenario"))
	if err != nil || len(files) < 14 {
		t.Fatalf("%d scenarios ship: %v", len(files), err)
	}
	var out []string
	for _, f := range files {
		out = append(out, strings.TrimSuffix(filepath.Base(f), ".scenario"))
	}
	return out
}

// incidents are the scenarios of the table: those that tell an incident. The ones
// that rehearse a runbook (runbook-NAME) have no figures to compare with.
func incidents(t testing.TB) (out []string) {
	t.Helper()
	for _, name := range shippedNames(t) {
		if !strings.HasPrefix(name, "runbook-") {
			out = append(out, name)
		}
	}
	return out
}

// sourced are the expectations of a baseline that are figures of its source.
func sourced(s *Scenario) (out []*Expectation) {
	for i := range s.Expect {
		if e := &s.Expect[i]; e.Mode == score.Baseline && e.Op == opWithin {
			out = append(out, e)
		}
	}
	return out
}

// spread is the least, the median and the most of some values.
type spread struct{ least, median, most int64 }

func spreadOf(values []int64) spread {
	slices.Sort(values)
	return spread{values[0], values[len(values)/2], values[len(values)-1]}
}

// TestBaselinesLandOnTheFiguresOfTheirSources plays without ic what the documents
// tell, and holds the median against their own numbers. If the model does not make
// the disaster, it says nothing about the cure.
func TestBaselinesLandOnTheFiguresOfTheirSources(t *testing.T) {
	n, found := seedsOr(t, defaultSeeds), 0
	for _, name := range shippedNames(t) {
		s := shipped(t, name)
		figures := sourced(s)
		if len(figures) == 0 {
			continue
		}
		found += len(figures)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values := make([][]int64, len(figures))
			for seed := 1; seed <= n; seed++ {
				r := play(t, s, score.Baseline, uint64(seed))
				for i, e := range figures {
					v, ok := Value(r, e.Figure)
					if !ok {
						t.Fatalf("seed %d does not tell %s", seed, e.Figure)
					}
					values[i] = append(values[i], v)
				}
			}
			for i, e := range figures {
				got := spreadOf(values[i])
				t.Logf("BASELINE|%s|%s|%s|%s|%s|%s", name, e.Figure, e.Figure.Print(e.Value), e.Figure.Print(got.median), e.Figure.Print(got.least), e.Figure.Print(got.most))
				if !e.Near(got.median) {
					t.Errorf("line %d: the source says %s, the median of %d seeds is %s (%s to %s)", e.Line, e.String(), n,
						e.Figure.Print(got.median), e.Figure.Print(got.least), e.Figure.Print(got.most))
				}
			}
		})
	}
	if found < 7 {
		t.Errorf("%d figures of sources are held against the model", found)
	}
}

// modeRows measures every scenario in every mode that it speaks of.
func modeRows(t *testing.T, n int) (rows []string) {
	for _, name := range incidents(t) {
		s := shipped(t, name)
		for _, mode := range []score.Mode{score.Baseline, score.WithIC, score.NoSecondBypass} {
			if mode == score.NoSecondBypass && !slices.ContainsFunc(s.Expect, func(e Expectation) bool { return e.Mode == mode }) {
				continue
			}
			row, values := []string{"MODES", name, string(mode)}, map[string][]int64{}
			for seed := 1; seed <= n; seed++ {
				r := play(t, s, mode, uint64(seed))
				for _, figure := range []string{"impact", "lost", "unscored"} {
					v, _ := Value(r, Figure{Name: figure}) // every record has these
					values[figure] = append(values[figure], v)
				}
			}
			for _, figure := range []string{"impact", "lost", "unscored"} {
				row = append(row, Figure{Name: figure}.Print(spreadOf(values[figure]).median))
			}
			rows = append(rows, strings.Join(row, "|"))
			t.Log(rows[len(rows)-1])
		}
	}
	return rows
}

// modeSeeds is how many seeds the table of modes is the median of.
const modeSeeds = 5

const baselinesDoc = "../../../docs/baselines.md"

var (
	write    = flag.Bool("write", false, "measure every mode and print the rows of docs/baselines.md")
	measured = flag.String("measured", "", "write docs/baselines.md from the rows in this log of earlier runs")
)

// TestTheTableOfBaselines: with -write it measures the modes (the figures of the
// sources are measured above, with IC_SEEDS=100), with -measured it writes the
// document from the logs of both; else it holds the document against the files.
func TestTheTableOfBaselines(t *testing.T) {
	if *write {
		modeRows(t, modeSeeds)
		return
	}
	if *measured != "" {
		raw, err := os.ReadFile(*measured)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(baselinesDoc, document(t, string(raw)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	doc, err := os.ReadFile(baselinesDoc)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range incidents(t) {
		s := shipped(t, name)
		for _, row := range fittedRows(s) {
			if !strings.Contains(string(doc), row) {
				t.Errorf("docs/baselines.md lacks %q", row)
			}
		}
		for _, e := range sourced(s) {
			if row := fmt.Sprintf("| %s | %s | %s |", name, e.Figure, e.Figure.Print(e.Value)); !strings.Contains(string(doc), row) {
				t.Errorf("docs/baselines.md lacks %q", row)
			}
		}
		if n := strings.Count(string(doc), "| "+name+" | "+string(score.WithIC)+" |"); n != 1 {
			t.Errorf("docs/baselines.md has %d rows of %s with ic", n, name)
		}
	}
}

func fittedRows(s *Scenario) (rows []string) {
	for _, f := range s.Fitted {
		rows = append(rows, fmt.Sprintf("| %s | %s = %s | %s |", s.Name, f.Name, f.Value, f.Why))
	}
	return rows
}

// document is docs/baselines.md from the rows of a log.
func document(t *testing.T, log string) []byte {
	t.Helper()
	tables := map[string][]string{}
	for _, line := range strings.Split(log, "\n") {
		for _, kind := range []string{"BASELINE|", "MODES|"} {
			if at := strings.Index(line, kind); at >= 0 {
				tables[kind] = append(tables[kind], "| "+strings.ReplaceAll(line[at+len(kind):], "|", " | ")+" |")
			}
		}
	}
	if len(tables) != 2 {
		t.Fatalf("%s has %d of the 2 tables", *measured, len(tables))
	}
	var fitted []string
	for _, name := range incidents(t) {
		fitted = append(fitted, fittedRows(shipped(t, name))...)
	}
	slices.Sort(tables["BASELINE|"])
	var out strings.Builder
	fmt.Fprintf(&out, documentText, strings.Join(tables["BASELINE|"], "\n"), modeSeeds, strings.Join(tables["MODES|"], "\n"), strings.Join(fitted, "\n"))
	return []byte(out.String())
}

const documentText = `# Baselines

A comparison is worth what its baseline is worth. Each scenario is played first without ` + "`ic`" + `, by what its source says people did; where the
source has figures, the model has to make them before anything is said about ` + "`ic`" + `. Written by

` + "```" + `
IC_SEEDS=100 go test ./internal/drill/scenario -run BaselinesLand -v > base.log
go test -timeout 1h ./internal/drill/scenario -run TableOfBaselines -write -v > modes.log
cat base.log modes.log > both.log; go test ./internal/drill/scenario -run TableOfBaselines -args -measured $PWD/both.log
` + "```" + `

An ordinary ` + "`go test`" + ` holds the first table over 5 seeds: the median has to lie within what the scenario's ` + "`expect`" + ` line allows, 5 %% of
the source's figure.

## Figures of the sources, median of 100 seeds

| scenario | figure, without ic | source | median | least | most |
|---|---|---|---|---|---|
%s

## With ic and without, median of %d seeds

Customer-impact minutes, orders lost, and orders that no check has seen (` + "`docs/scenario-format.md`" + ` says what each counts). People react as
fast in every mode. Where ` + "`ic`" + ` is worse, it is worse here, too:

- A page from a snapshot counts as hit, so every minute at tier 2 is an impact minute. A ladder that sheds early and leaves slowly (flash-sale,
  recovery-herd, two-commanders) loses fewer orders and shows simpler pages for longer.
- A bypass that ends after its fifteen minutes loses the orders of the minutes behind it. In kill-switch-needs-the-outage a second one, signed
  by finance, exposes about as much as the source's night did, in fewer minutes; in the run where nobody grants it the exposure nearly halves
  and more orders are lost. In bypass-forgotten the forgotten bypass sells more.
- In prometheus-blind-in-recovery the ordinary recovery is refused while nobody can see. With ` + "`ic`" + ` two people sign each of the three steps to
  tier 1, where the shop stays; without it everything is back at once, on a feeling that happens to be right here.
- In flapping-ladder the changes cost neither orders nor pages of this model: 23 changes against one is the whole difference.
- No policy has the six rungs of black-friday's source. It is played on the four tiers of the shop's example policy: L0 is no tier, L1 and L2
  are tier 1, L3 and L4 are tier 2, L5 is tier 3 and 4. What differs between two rungs of one tier is not rehearsed.
- What a right costs is time at the keyboard: a proposal that two people sign starts three minutes later.

| scenario | mode | impact | lost | unscored |
|---|---|---|---|---|
%s

## Parameters that the sources do not give

| scenario | fitted | because |
|---|---|---|
%s
`
