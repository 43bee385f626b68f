package shipped_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/promrules"
	"github.com/degradedmode/ic/internal/runbooks"
	shipped "github.com/degradedmode/ic/runbooks"
)

// ten are the runbooks of the issue.
var ten = [...]string{
	"break-glass-daily-check", "close-and-review-exposure", "commander-handover", "flag-service-down", "flapping-ladder",
	"payment-risk-down", "policy-expired", "prometheus-blind", "recover-one-tier-at-a-time", "service-in-degraded-mode",
}

func texts(t *testing.T) map[string][]byte {
	t.Helper()
	out, err := shipped.Texts(policytest.Now().AddDate(0, 6, 0))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheTenShipAndLintHasNothingAgainstThem(t *testing.T) {
	_, bundle, _ := policytest.Shop(t)
	known := runbooks.KnownOf(bundle)
	known.Now, known.Origins = policytest.Now(), []string{}
	known.Query = func(query string) string {
		if err := promrules.OneSeries(query); err != nil {
			return err.Error()
		}
		return ""
	}
	known.Bounds = promrules.Bounds
	all := texts(t)
	if len(all) != len(ten) {
		t.Errorf("%d runbooks ship", len(all))
	}
	for _, id := range ten {
		for _, f := range runbooks.LintSource(id+".md", all[id+".md"], known) {
			if f.Severity != runbooks.LintInfo {
				t.Error(f)
			}
		}
	}
}

// Whoever opens one at 3am finds the same four answers first, and below each step
// that changes something the command for it.
func TestARunbookSaysTheSameFourThingsFirst(t *testing.T) {
	for file, raw := range texts(t) {
		rb, err := runbooks.Parse(file, raw)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, words := range []string{"**What you see.** ", "**What it means.** ", "**What to do.** ", "**When to stop.** "} {
			found := strings.Index(rb.Intro[at:], words)
			if found < 0 {
				t.Fatalf("%s: %q does not follow in\n%s", file, words, rb.Intro[at:])
			}
			at += found
		}
		for i := range rb.Steps {
			if s := &rb.Steps[i]; s.Kind == runbooks.KindRecover && s.Recover.Percent > 10 {
				continue // the command stands at the first step of the ramp
			} else if s.Kind.HasEffect() && !strings.Contains(s.Prose, "```sh\nic ") {
				t.Errorf("%s: step %s has no command for the case that the run cannot be used", file, s.ID)
			}
		}
	}
}

// A sentence in the text is held to what the policy and the program say.
func TestARunbookSaysWhatTheShopAndTheProgramDo(t *testing.T) {
	_, bundle, _ := policytest.Shop(t)
	oldest := ""
	for _, f := range bundle.Features {
		if strings.Contains(f.Tiers[2], "min old") {
			oldest += f.Tiers[2]
		}
	}
	if oldest != "in stock or not, up to 10 min old" {
		t.Fatalf("at tier 2 the shop shows what is old: %q", oldest)
	}
	freeze, _, _ := bundle.Right("freeze")
	if freeze.Lasts.Std() != time.Hour {
		t.Fatalf("a freeze lasts %s", freeze.Lasts)
	}
	all := texts(t)
	for file, says := range map[string][]string{
		"service-in-degraded-mode":   {"Whether something is in stock may be up to 10 minutes old."},
		"commander-handover":         {"the deputy takes command at once, anybody else five minutes\nlater", "```sh\nic incident take\n```"},
		"recover-one-tier-at-a-time": {"Type the command once for each of those lines, with its scope"},
		"prometheus-blind":           {"For an hour no machine changes the tier", "`ic do unfreeze` is\nrefused until every signal has a value and none is red", "--for 15m"},
	} {
		for _, text := range says {
			if !strings.Contains(string(all[file+".md"]), text) {
				t.Errorf("%s does not say %q", file, text)
			}
		}
	}
}

// Who cannot see has no signal to go by, and nothing that he can do only with one.
func TestTheRunbookForTheBlindNeedsNoSight(t *testing.T) {
	rb, err := runbooks.Parse("prometheus-blind.md", texts(t)["prometheus-blind.md"])
	if err != nil {
		t.Fatal(err)
	}
	if len(rb.Signals) > 0 {
		t.Errorf("it fits while %v are abnormal, which nobody can see then", rb.Signals)
	}
	for i := range rb.Steps {
		s := &rb.Steps[i]
		for _, c := range []*runbooks.Check{s.Check, s.Probe, waitOf(s)} {
			if c != nil && (c.Signal != nil || c.PromQL != nil && c.NoData != runbooks.NoDataAsk) {
				t.Errorf("%s cannot come to its end while signals are unknown", s.ID)
			}
		}
		if s.Undo != nil && s.Undo.Do != nil {
			t.Errorf("%s is taken back by %s, which needs every signal", s.ID, s.Undo.Do.Right)
		}
	}
	if at := rb.Step("freeze"); at == nil || at.Do == nil || rb.Step("moves") == nil {
		t.Error("what holds the machines, and the question whether they move, are gone")
	}
}

func waitOf(s *runbooks.Step) *runbooks.Check {
	if s.Wait == nil {
		return nil
	}
	return s.Wait.Until
}

func TestTheReadmeNamesEachRunbook(t *testing.T) {
	raw, err := fs.ReadFile(shipped.Files, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ten {
		if !strings.Contains(string(raw), "| ["+id+"]("+id+".md) |") {
			t.Errorf("%s is not in README.md", id)
		}
	}
}

func TestWrittenRunbooksAreSignedByThoseWhoCount(t *testing.T) {
	_, bundle, _ := policytest.Shop(t)
	dir := filepath.Join(t.TempDir(), "runbooks")
	signing := shipped.Signing{Root: bundle.Root, Signers: policytest.People(), Rand: policytest.Rand(), Realm: directive.Production, Fleet: policytest.Fleet}
	if err := shipped.Write(dir, texts(t), signing); err != nil {
		t.Fatal(err)
	}
	for _, id := range ten {
		signature := judge(t, dir, id, bundle)
		if signature.State != runbooks.Signed || strings.Join(signature.By, " ") != strings.Join([]string{templates.Dev, templates.Ines, templates.Priya}, " ") {
			t.Errorf("%s: %+v", id, signature)
		}
	}
	rb, err := runbooks.Parse("flapping-ladder.md", read(t, dir, "flapping-ladder"))
	if want := policytest.Now().AddDate(0, 6, 0).UTC().Truncate(24 * time.Hour); err != nil || !rb.ValidUntil.Equal(want) {
		t.Errorf("valid until %v, not %v: %v", rb.ValidUntil, want, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
		t.Error(err)
	}
	if err := shipped.Write(dir, nil, signing); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a folder that is there was replaced: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func read(t *testing.T, dir, id string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, id+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func judge(t *testing.T, dir, id string, b *policy.Bundle) runbooks.Signature {
	t.Helper()
	return runbooks.Judge(os.DirFS(dir), id+".md", read(t, dir, id), b, directive.Production, policytest.Fleet)
}
