package policy_test

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
)

func names() policy.Names {
	return policy.Names{
		Runbooks: []string{"payment-risk-down"}, Bundled: []string{"git", "hostfile"}, Now: policytest.Now(),
		Query: func(query string) string {
			if strings.Contains(query, "(") {
				return ""
			}
			return "it can yield several series; put sum, max or another reducer around it"
		},
	}
}

func lintFolder(t testing.TB, files fstest.MapFS) []policy.Finding {
	t.Helper()
	found, err := policy.LintFolder(files, names())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTheExamplePolicyLintsClean(t *testing.T) {
	for name, pace := range map[string]templates.Pace{"real": templates.RealPace(), "test": templates.TestPace()} {
		p := policytest.Params()
		p.Pace = pace
		files, err := templates.Shop(p)
		if err != nil {
			t.Fatal(err)
		}
		folder := fstest.MapFS{}
		for file, content := range files {
			folder[file] = &fstest.MapFile{Data: content}
		}
		for _, f := range lintFolder(t, folder) {
			t.Errorf("%s pace: %s", name, f)
		}
	}
}

func TestLint(t *testing.T) {
	clean := baseFolder(t)
	for _, c := range bends() {
		t.Run(c.code+"/"+c.at, func(t *testing.T) {
			found := lintFolder(t, bend(t, clean, c.file, c.old, c.new))
			if !slices.ContainsFunc(found, func(f policy.Finding) bool {
				return f.Code == c.code && f.Severity == c.severity && f.Path == c.at && strings.Contains(f.Sentence, c.says) && f.Line > 0 && f.Col > 0 &&
					f.Page == "docs/lint/"+c.code+".md"
			}) {
				t.Errorf("want %s at %s that says %q, got %v", c.code, c.at, c.says, found)
			}
		})
	}
}

// bend is a folder with one text in one file changed, where it stands first.
func bend(t testing.TB, clean fstest.MapFS, file, old, new string) fstest.MapFS {
	t.Helper()
	text := string(clean[file].Data)
	if !strings.Contains(text, old) {
		t.Fatalf("%s does not hold\n%s", file, old)
	}
	files := maps.Clone(clean)
	files[file] = &fstest.MapFile{Data: []byte(strings.Replace(text, old, new, 1))}
	return files
}

func TestLintOfALadderOfOneTier(t *testing.T) {
	files := baseFolder(t)
	text := string(files["ladder.yaml"].Data)
	files = bend(t, files, "ladder.yaml", text[strings.Index(text, "  - tier: 2"):strings.Index(text, "automatic:\n")], "")
	if found := lintFolder(t, files); !slices.ContainsFunc(found, func(f policy.Finding) bool {
		return f.Code == "tier-numbers" && strings.Contains(f.Sentence, "the ladder has 1 tiers; it has 2 to 6")
	}) {
		t.Errorf("got %v", found)
	}
}

// A rule that no row of the table ever breaks could be one that finds nothing.
func TestEveryCodeOfLintIsTested(t *testing.T) {
	tested := map[string]bool{"inventory-empty": true} // below
	for _, c := range bends() {
		tested[c.code] = true
	}
	for _, code := range policy.LintCodes() {
		if !tested[code] {
			t.Errorf("nothing breaks the rule %s", code)
		}
	}
}

func TestLintOfAnInventoryOfNothing(t *testing.T) {
	files := baseFolder(t)
	text := string(files["backends.yaml"].Data)
	files["backends.yaml"] = &fstest.MapFile{Data: []byte(text[:strings.Index(text, "  hosts:\n")])}
	if found := lintFolder(t, files); !slices.ContainsFunc(found, func(f policy.Finding) bool {
		return f.Code == "inventory-empty" && f.Severity == policy.LintWarning && f.Path == "inventory"
	}) {
		t.Errorf("got %v", found)
	}
}

// A degradable feature may be simpler only where one of its dependencies is gone.
func TestAFallbackMakesAFeatureDegradable(t *testing.T) {
	tiers := `      1: "no change"
      2: "list prices, the discount is given at the till"
      3: "list prices, the discount is given at the till"
      4: "list prices"
`
	same := strings.Repeat(`x: "no change"`+"\n", 4)
	for n := range 4 {
		same = strings.Replace(same, "x:", fmt.Sprintf("      %d:", n+1), 1)
	}
	found := lintFolder(t, bend(t, baseFolder(t), "features.yaml", tiers, same))
	if slices.ContainsFunc(found, func(f policy.Finding) bool { return f.Code == "degradable-without-fallback" }) {
		t.Errorf("got %v", found)
	}
}

// An exception speaks for what is inside the entry that it names, and for nothing
// beside it.
func TestWhatAnExceptionCovers(t *testing.T) {
	const entry = "features.yaml features.personal-prices"
	for _, c := range []struct {
		path    string
		excused bool
	}{
		{entry, true},
		{entry + ".endpoints.browse.dependencies.price-service.fallback.marked", true},
		{entry + ".endpoints.browse", true},
		{entry + ".endpoints.browse.dependencies.price", false},
		{"features.yaml features", false},
		{"features.yaml features.personal", false},
		{"ladder.yaml features.personal-prices", false},
	} {
		files := bend(t, baseFolder(t), "features.yaml", "traffic: 1\n              marked: true", "traffic: 1\n              marked: false")
		files = bend(t, files, "ladder.yaml", "    code: game-day\n    path: \"ladder.yaml services.payment-risk\"", "    code: fallback-unmarked\n    path: \""+c.path+"\"")
		found := lintFolder(t, files)
		i := slices.IndexFunc(found, func(f policy.Finding) bool { return f.Code == "fallback-unmarked" })
		if i < 0 || (found[i].Severity == policy.LintExcepted) != c.excused {
			t.Errorf("%s: excused should be %v, got %v", c.path, c.excused, found)
		}
		if idle := slices.ContainsFunc(found, func(f policy.Finding) bool { return f.Code == "exception-idle" }); idle == c.excused {
			t.Errorf("%s: called idle: %v", c.path, idle)
		}
	}
}

// What keeps a control closed cannot be excused, however the exception is written.
func TestNoExceptionOpensAControl(t *testing.T) {
	for code, what := range map[string][2]string{
		"authorization-opens": {"protects: authorization\n    fails: closed", "protects: authorization\n    fails: open"},
		"control-fails-open":  {"protects: inventory\n    fails: closed", "protects: inventory\n    fails: open"},
	} {
		files := bend(t, baseFolder(t), "stock.yaml", what[0], what[1])
		files = bend(t, files, "ladder.yaml", "    code: game-day\n    path: \"ladder.yaml services.payment-risk\"", "    code: "+code+"\n    path: \"stock.yaml controls\"")
		if found := lintFolder(t, files); !slices.ContainsFunc(found, func(f policy.Finding) bool { return f.Code == code && f.Severity == policy.LintError }) {
			t.Errorf("%s: got %v", code, found)
		}
	}
}

func TestTheNearestCode(t *testing.T) {
	for word, want := range map[string]string{"gameday": "game-day", "exit-windows": "exit-window", "bypas-without-cap": "bypass-without-cap"} {
		if got := policy.NearestLintCode(word); got != want {
			t.Errorf("%s: got %s, want %s", word, got, want)
		}
	}
}

func TestAFolderThatCannotBeListed(t *testing.T) {
	if _, err := policy.LintFolder(unlisted{}, names()); err == nil || !strings.Contains(err.Error(), "list the policy folder") {
		t.Errorf("got %v", err)
	}
}

// unlisted is a folder that nobody may look into.
type unlisted struct{}

func (unlisted) Open(string) (fs.File, error) { return nil, fs.ErrPermission }

// Findings of reading and of rules come in one order.
func TestFindingsAreSorted(t *testing.T) {
	files := bend(t, baseFolder(t), "payments.yaml", "per_day: 4", "per_day: 0")
	files = bend(t, files, "payments.yaml", "v: 1", "v:  1")
	files = bend(t, files, "features.yaml", "calls: 8", "calls: 08")
	var got []string
	for _, f := range lintFolder(t, files) {
		got = append(got, f.File+" "+f.Code)
	}
	want := []string{"features.yaml syntax", "ladder.yaml game-day", "payments.yaml not-canonical", "payments.yaml bypass-without-cap"}
	if !slices.Equal(slices.DeleteFunc(got, func(s string) bool { return !slices.Contains(want, s) }), want) {
		t.Errorf("got %v", got)
	}
}

func TestLintPointsAtTheLine(t *testing.T) {
	files := bend(t, baseFolder(t), "payments.yaml", "per_day: 4", "per_day: 0")
	before, _, _ := strings.Cut(string(files["payments.yaml"].Data), "per_day: 0")
	line := 1 + strings.Count(before, "\n")
	found := lintFolder(t, files)
	want := policy.Finding{Code: "bypass-without-cap", Severity: policy.LintError, File: "payments.yaml", Path: "rights.risk-bypass-small-orders.bypass.per_day",
		Line: line, Col: 16, Sentence: "per_day is not above zero; a bypass has every cap", Page: "docs/lint/bypass-without-cap.md"}
	if !slices.Contains(found, want) {
		t.Errorf("want %+v, got %+v", want, found)
	}
	if got := want.String(); got != fmt.Sprintf("payments.yaml:%d:16: ", line)+"rights.risk-bypass-small-orders.bypass.per_day: per_day is not above zero; a bypass has every cap (error, bypass-without-cap)" {
		t.Errorf("printed as %s", got)
	}
}

// Half a policy is what people have when they start.
func TestLintOfAnUnfinishedFolder(t *testing.T) {
	for _, keep := range []string{"features.yaml", "ladder.yaml", "rights.yaml", "payments.yaml", "stock.yaml", "backends.yaml", "journeys.yaml", "roots/1.yaml"} {
		files := fstest.MapFS{keep: baseFolder(t)[keep]}
		for _, f := range lintFolder(t, files) {
			if (f.Code != "syntax" || f.File != "roots/1.yaml") && f.Severity != policy.LintExcepted {
				t.Errorf("%s alone: %s", keep, f)
			}
		}
	}
	found := lintFolder(t, fstest.MapFS{})
	if len(found) != 1 || found[0].File != "roots/1.yaml" {
		t.Errorf("an empty folder: %v", found)
	}
}

// Nobody is asked about names that he does not know.
func TestLintWithoutNames(t *testing.T) {
	files := bend(t, baseFolder(t), "ladder.yaml", `runbook: ""`, "runbook: latency")
	files = bend(t, files, "ladder.yaml", `query: "avg(up{job=\"payment-risk\"})"`, "query: up")
	files = bend(t, files, "backends.yaml", "bundled: git", "bundled: argo")
	files = bend(t, files, "payments.yaml", "expires: 2027-11-30", "expires: 2020-11-30")
	found, err := policy.LintFolder(files, policy.Names{})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found[0].Severity != policy.LintExcepted || found[1].Code != "outlives-document" {
		t.Errorf("got %v", found)
	}
}
