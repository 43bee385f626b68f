package breakglass

import (
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/plugins/sdk"
)

func TestBackendsAreRankedByOverlapThenByLiveTime(t *testing.T) {
	candidates := []Candidate{
		{"actions", sdk.Env, []string{"github", "aws:us-east-1"}},
		{"argo", sdk.Env, []string{"github", "kubernetes"}},
		{"env-new", sdk.Env, []string{"gitlab"}},
		{"files-new", sdk.File, []string{"ssh"}},
		{"files-old", sdk.File, []string{"bastion"}},
		{"push", sdk.Env, []string{"git"}},
	}
	live := map[string]LiveRun{
		"actions":   {To99: time.Second},
		"push":      {To99: 40 * time.Second},
		"files-old": {To99: 50 * time.Second},
	}
	got := Rank(candidates, []string{"AWS", "github"}, live)
	var names []string
	for _, s := range got {
		names = append(names, s.Name)
	}
	want := []string{"push", "files-old", "files-new", "env-new", "argo", "actions"}
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	last := got[len(got)-1]
	if !slices.Equal(last.Shared, []string{"github", "aws:us-east-1"}) || last.Live == nil || last.Live.To99 != time.Second {
		t.Errorf("the last one stands with %+v", last)
	}
	if argo := got[4]; !slices.Equal(argo.Shared, []string{"github"}) || argo.Live != nil {
		t.Errorf("argo stands with %+v", argo)
	}
}

func TestADependencyIsHitByItsWholeOrItsPart(t *testing.T) {
	for _, c := range []struct {
		own, hit string
		want     bool
	}{
		{"aws:us-east-1", "aws:us-east-1", true},
		{"aws:us-east-1", "aws", true},
		{"aws", "aws:us-east-1", true},
		{"aws:us-east-1", "aws:us-east-2", false},
		{"aws", "awstats", false},
		{"Git", "git", true},
	} {
		if got := len(shared([]string{c.own}, []string{c.hit})) == 1; got != c.want {
			t.Errorf("%s is hit by %s: %v, want %v", c.own, c.hit, got, c.want)
		}
	}
}
