package git

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/degradedmode/ic/plugins/sdk"
	"github.com/degradedmode/ic/plugins/sdk/conformance"
	"github.com/degradedmode/ic/plugins/sdk/conformance/worlds"
)

func TestConformance(t *testing.T) {
	open := func(t *testing.T, config map[string]string) sdk.Conn { return configured(t, config, nil) }
	conformance.Run(t, worlds.GitRepositories(t, open))
}

func configured(t *testing.T, config, secrets map[string]string) *sdk.Session {
	t.Helper()
	s := sdk.NewSession(New(os.Getenv))
	t.Cleanup(func() { must(t, s.Stop(context.Background())) })
	must(t, s.Configure(t.Context(), config, secrets))
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const one, two = "ic1.one.sig", "ic1.two.sig"

func plan(t *testing.T, s *sdk.Session, token string) sdk.Plan {
	t.Helper()
	p, err := s.Plan(t.Context(), sdk.PlanRequest{Tokens: []sdk.Token{{ID: "T", Text: token}}, Targets: []string{"edge-01", "edge-02"}})
	must(t, err)
	return p
}

// quiet takes progress and keeps the last of each phase.
type quiet map[sdk.Phase]sdk.Progress

func (q quiet) report(p sdk.Progress) error {
	q[p.Phase] = p
	return nil
}

func send(t *testing.T, s *sdk.Session, token, operation string) quiet {
	t.Helper()
	q := quiet{}
	must(t, s.Apply(t.Context(), plan(t, s, token).Digest, operation, q.report))
	return q
}

func hook(t *testing.T, r *worlds.Repository, name, script string) {
	t.Helper()
	dir := filepath.Join(r.Bare, "hooks")
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

func TestACommitSaysWhichOperationAndPlanItCarries(t *testing.T) {
	r := worlds.NewRepository(t)
	config := r.Config()
	config["author"] = "Incident Command <ic@example.org>"
	s := configured(t, config, nil)
	digest := plan(t, s, one).Digest
	q := quiet{}
	must(t, s.Apply(t.Context(), digest, "OP1", q.report))
	got := worlds.Git(t, r.Bare, "log", "-1", "--format=%an <%ae>|%cn|%(trailers:key=Ic-Operation,valueonly)|%(trailers:key=Ic-Plan,valueonly)", worlds.Branch)
	want := "Incident Command <ic@example.org>|Incident Command|OP1\n|" + digest
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if q[sdk.Written].RemoteID != r.Tip(t) {
		t.Errorf("it reports %q, the tip is %s", q[sdk.Written].RemoteID, r.Tip(t))
	}
}

func TestUndoGivesBackTheVeryFile(t *testing.T) {
	r := worlds.NewRepository(t)
	s := configured(t, r.Config(), nil)
	send(t, s, one, "OP1")
	if got, want := r.Text(t, worlds.EnvFile), worlds.EnvText+"\nIC_DIRECTIVES="+one+"\n"; got != want {
		t.Fatalf("the file is %q, want %q", got, want)
	}
	must(t, s.Undo(t.Context(), "OP1", quiet{}.report))
	if got := r.Text(t, worlds.EnvFile); got != worlds.EnvText {
		t.Errorf("the file is %q, want %q", got, worlds.EnvText)
	}

	r.Write(t, worlds.EnvFile, "A=1\nIC_DIRECTIVES=\r\nB=2\n")
	send(t, s, one, "OP2")
	if got, want := r.Text(t, worlds.EnvFile), "A=1\nIC_DIRECTIVES="+one+"\r\nB=2\n"; got != want {
		t.Errorf("a place kept free becomes %q, want %q", got, want)
	}
	r.Write(t, worlds.EnvFile, "A=one\nIC_DIRECTIVES="+one+"\r\nB=2\n")
	must(t, s.Undo(t.Context(), "OP2", quiet{}.report))
	if got, want := r.Text(t, worlds.EnvFile), "A=one\nIC_DIRECTIVES=\r\nB=2\n"; got != want {
		t.Errorf("with somebody else's change in between it is %q, want %q", got, want)
	}
}

func TestAFileThatWasNotThereIsMadeAndTakenAway(t *testing.T) {
	r := worlds.NewRepository(t)
	config := r.Config()
	config["path"] = "new/folder/ic.env"
	s := configured(t, config, nil)
	send(t, s, one, "OP1")
	if got := r.Text(t, config["path"]); got != "IC_DIRECTIVES="+one+"\n" {
		t.Errorf("the file is %q", got)
	}
	must(t, s.Undo(t.Context(), "OP1", quiet{}.report))
	if left := worlds.Git(t, r.Bare, "ls-tree", "-r", "--name-only", worlds.Branch); strings.Contains(left, "new/") {
		t.Errorf("after undo the repository has %q", left)
	}
}

func TestWhenSomebodyElseWasFasterTheCommitGoesOnTop(t *testing.T) {
	r := worlds.NewRepository(t)
	s := configured(t, r.Config(), nil)
	p := plan(t, s, one)
	r.Write(t, "README", "between plan and apply\n")
	must(t, s.Apply(t.Context(), p.Digest, "OP1", func(p sdk.Progress) error {
		if p.Phase == sdk.Writing {
			r.Write(t, worlds.EnvFile, "A=2\n") // between our fetch and our push
		}
		return nil
	}))
	if got, want := r.Text(t, worlds.EnvFile), "A=2\nIC_DIRECTIVES="+one+"\n"; got != want {
		t.Errorf("the file is %q, want %q", got, want)
	}
	if got := worlds.Git(t, r.Bare, "log", "--format=%an", "-3", worlds.Branch); got != "ic\nAda\nAda" {
		t.Errorf("the last commits are by %q", got)
	}
}

func TestWhenSomebodyTookOurLineThePlanIsVoid(t *testing.T) {
	r := worlds.NewRepository(t)
	s := configured(t, r.Config(), nil)
	p := plan(t, s, one)
	err := s.Apply(t.Context(), p.Digest, "OP1", func(sdk.Progress) error {
		r.Write(t, worlds.EnvFile, "IC_DIRECTIVES=adas\n")
		return nil
	})
	if sdk.CodeOf(err) != sdk.CodeChanged || r.Text(t, worlds.EnvFile) != "IC_DIRECTIVES=adas\n" {
		t.Errorf("got %v, and the file is %q", err, r.Text(t, worlds.EnvFile))
	}
}

func TestTheOwnerOfALineIsWhoWroteIt(t *testing.T) {
	r := worlds.NewRepository(t)
	s := configured(t, r.Config(), nil)
	send(t, s, one, "OP1")
	r.Write(t, worlds.EnvFile, "IC_DIRECTIVES=adas\n")
	r.Write(t, worlds.EnvFile, "A=2\nIC_DIRECTIVES=adas\n")
	for _, c := range []struct {
		text, owner string
		conflict    bool
	}{
		{"A=2\nIC_DIRECTIVES=adas\n", "Ada", true},
		{"IC_DIRECTIVES=" + one + "\n", "ic/OP1", false}, // Ada brought our value back
		{"export IC_DIRECTIVES=" + one + "\n", "Ada: IC_DIRECTIVES stands there in another form than IC_DIRECTIVES=value in fleet/ic.env", true},
		{"IC_DIRECTIVES=\nIC_DIRECTIVES=\n", "Ada: IC_DIRECTIVES stands there more than once in fleet/ic.env", true},
	} {
		r.Write(t, worlds.EnvFile, c.text)
		change := plan(t, s, two).Changes[0]
		if change.Owner != c.owner || change.Conflict != c.conflict {
			t.Errorf("%q: owner %q, conflict %v; want %q, %v", c.text, change.Owner, change.Conflict, c.owner, c.conflict)
		}
	}
}

func TestWhatThePipelineSaysIsPassedOn(t *testing.T) {
	r := worlds.NewRepository(t)
	marker := filepath.Join(t.TempDir(), "marker")
	hook(t, r, "post-receive", `while read -r _ new ref; do
	case $ref in refs/heads/*) ;; *) continue ;; esac
	printf '20/60 batch 1\n60/60 batch 3\nall restarted\n' |
	git -c user.name=p -c user.email=p@x notes --ref=ic-receipts add -F - "$new"
done
: >'`+marker+`'`)
	send(t, configured(t, r.Config(), nil), one, "OP1")
	if _, err := os.Stat(marker); err != nil {
		t.Fatalf("the pipeline's hook did not run: %v", err)
	}
	var rolling []sdk.Progress
	must(t, configured(t, r.Config(), nil).Observe(t.Context(), "OP1", func(p sdk.Progress) error {
		if p.Phase == sdk.Rolling {
			rolling = append(rolling, p)
		}
		return nil
	}))
	if len(rolling) != 3 || rolling[0].Done != 20 || rolling[0].Total != 60 || rolling[0].Message != "batch 1" ||
		rolling[2].Message != "all restarted" || rolling[2].Done != 0 {
		t.Errorf("the observer sees %+v", rolling)
	}
}

func TestARefusalOfTheOtherSideIsDeniedAndChangesNothing(t *testing.T) {
	r := worlds.NewRepository(t)
	hook(t, r, "pre-receive", "echo 'main is protected' >&2; exit 1")
	before := r.Tip(t)
	s := configured(t, r.Config(), nil)
	err := s.Apply(t.Context(), plan(t, s, one).Digest, "OP1", quiet{}.report)
	if sdk.CodeOf(err) != sdk.CodeDenied || !strings.Contains(err.Error(), "pre-receive hook declined") || r.Tip(t) != before {
		t.Errorf("got %q: %v", sdk.CodeOf(err), err)
	}
}

func TestAPushWhoseAnswerGotLostIsFound(t *testing.T) {
	r := worlds.NewRepository(t)
	// The receiving side moves the branch and is killed before it can say so.
	hook(t, r, "post-receive", "kill -9 $PPID")
	s := configured(t, r.Config(), nil)
	q := send(t, s, one, "OP1")
	if q[sdk.Written].RemoteID != r.Tip(t) {
		t.Errorf("the push arrived, and it reports %+v", q)
	}
}

func TestAnUndoThatFailsIsNotTakenForOneThatWorked(t *testing.T) {
	r := worlds.NewRepository(t)
	s := configured(t, r.Config(), nil)
	send(t, s, one, "OP1")
	hook(t, r, "pre-receive", "exit 1")
	q := quiet{}
	if err := s.Undo(t.Context(), "OP1", q.report); sdk.CodeOf(err) != sdk.CodeDenied || len(q) > 0 {
		t.Errorf("got %v and %+v", err, q)
	}
}

func TestAnOperationDeepInTheHistoryIsFound(t *testing.T) {
	r := worlds.NewRepository(t)
	s := configured(t, r.Config(), nil)
	sent := send(t, s, one, "OP1")
	pile(t, r, 3*firstDepth)
	if change := plan(t, configured(t, r.Config(), nil), two).Changes[0]; change.Conflict || change.Owner != "ic/OP1" {
		t.Errorf("an old value of ours is owned by %q, conflict %v", change.Owner, change.Conflict)
	}
	q := quiet{}
	must(t, configured(t, r.Config(), nil).Observe(t.Context(), "OP1", q.report))
	if q[sdk.Written].RemoteID != sent[sdk.Written].RemoteID {
		t.Errorf("the observer sees %+v", q)
	}
	must(t, configured(t, r.Config(), nil).Undo(t.Context(), "OP1", q.report))
	if got := r.Text(t, worlds.EnvFile); got != worlds.EnvText {
		t.Errorf("after undo the file is %q", got)
	}
}

// pile puts n commits of somebody else's on the branch.
func pile(t *testing.T, r *worlds.Repository, n int) {
	t.Helper()
	var feed strings.Builder
	for i := range n {
		feed.WriteString("commit refs/heads/" + worlds.Branch + "\ncommitter Ada <ada@example.org> 1800000000 +0000\ndata 2\nhi\n")
		if i == 0 {
			feed.WriteString("from refs/heads/" + worlds.Branch + "^0\n")
		}
		feed.WriteString("M 100644 inline other\ndata 1\nx\n")
	}
	cmd := exec.Command("git", "--git-dir="+r.Bare, "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(feed.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("fast-import: %v: %s", err, out)
	}
}

func TestWhatCannotBeReachedOrReadIsSaid(t *testing.T) {
	r := worlds.NewRepository(t)
	for _, c := range []struct {
		name  string
		spoil func(config map[string]string)
		code  sdk.Code
		words string
	}{
		{"no repository", func(c map[string]string) { c["repo"] += "-not" }, sdk.CodeUnreachable, "does not appear to be a git repository"},
		{"no branch", func(c map[string]string) { c["branch"] = "release" }, sdk.CodeUnreachable, "couldn't find remote ref"},
		{"a folder in the place of the file", func(c map[string]string) { c["path"] = "fleet" }, sdk.CodeBadConfig, "not a plain file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := r.Config()
			c.spoil(config)
			s := configured(t, config, nil)
			_, err := s.Plan(t.Context(), sdk.PlanRequest{Tokens: []sdk.Token{{ID: "T", Text: one}}, Targets: []string{"edge-01"}})
			if sdk.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %q: %v", sdk.CodeOf(err), err)
			}
			findings, err := s.Check(t.Context())
			must(t, err)
			if last := findings[len(findings)-1]; !findings[0].OK || last.Name != "reach" || last.OK || !strings.Contains(last.Detail, c.words) {
				t.Errorf("Check says %+v", findings)
			}
		})
	}
}

func TestAGitThatIsTooOldIsSaid(t *testing.T) {
	for text, fine := range map[string]bool{
		"git version 2.39.5":                true,
		"git version 2.32.0":                true,
		"git version 3.0.1 (Apple Git-155)": true,
		"git version 2.31.9":                false,
		"git version 1.99.9":                false,
		"git from somewhere":                false,
	} {
		if err := newEnough(text); (err == nil) != fine {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAMissingGitIsSaid(t *testing.T) {
	r := worlds.NewRepository(t)
	s := configured(t, r.Config(), nil)
	t.Setenv("PATH", t.TempDir())
	findings, err := s.Check(t.Context())
	must(t, err)
	if findings[0].OK || !strings.Contains(findings[0].Detail, "git program is not installed") {
		t.Errorf("Check says %+v", findings)
	}
}
