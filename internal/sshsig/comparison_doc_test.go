package sshsig_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table in docs/sshsig-comparison.md anew")

// The page shows what the test above holds: written by hand around the marks,
// from the cases between them.
const (
	page      = "../../docs/sshsig-comparison.md"
	tableFrom = "<!-- from here: go test ./internal/sshsig -run TestTheComparisonIsWrittenDown -update -->\n"
	tableTo   = "<!-- to here -->\n"
)

func TestTheComparisonIsWrittenDown(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begun := strings.Cut(string(raw), tableFrom)
	_, tail, ended := strings.Cut(rest, tableTo)
	if !begun || !ended {
		t.Fatalf("%s has lost the marks around its table", page)
	}
	want := head + tableFrom + table(t) + tableTo + tail
	if want == string(raw) {
		return
	}
	if !*update {
		t.Fatalf("%s does not show the cases as they are: run the command that stands in it", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func table(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	counts := map[verdict]int{}
	for _, g := range comparisons() {
		fmt.Fprintf(&out, "\n## %s\n\n| case | stock `ssh-keygen` | `ic` | why `ic` is stricter |\n|---|---|---|---|\n", g.name)
		seen := map[string]bool{}
		for _, c := range g.cases {
			if seen[c.name] || (c.want == stricter) != (c.why != "") {
				t.Errorf("%s: %s: a name stands once, and a stricter case has a reason, no other", g.name, c.name)
			}
			seen[c.name] = true
			counts[c.want]++
			answers := map[verdict]string{accept: "accepts | accepts", refuse: "refuses | refuses", stricter: "accepts | **refuses**"}
			fmt.Fprintf(&out, "| %s | %s | %s |\n", c.name, answers[c.want], c.why)
		}
	}
	all := counts[accept] + counts[refuse] + counts[stricter]
	if all < leastCases {
		t.Errorf("%d cases, at least %d", all, leastCases)
	}
	return fmt.Sprintf("\n%d cases: in %d both accept, in %d both refuse, in %d `ic` alone refuses.\n%s\n",
		all, counts[accept], counts[refuse], counts[stricter], out.String())
}

// leastCases is how many comparisons were promised.
const leastCases = 60
