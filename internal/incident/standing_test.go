package incident

import (
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// A rollout takes its time. What runs out or is ended on the way need not be on
// any host for the push to have arrived.
func TestAPushDoesNotWaitForWhatHasRunOut(t *testing.T) {
	now := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	w := model.World{Now: now, Issued: []model.Issued{
		{Directive: model.Directive{ID: "shed", NotBefore: now.Add(-time.Hour)}},
		{Directive: model.Directive{ID: "over", NotBefore: now.Add(-time.Hour), NotAfter: now}},
		{Directive: model.Directive{ID: "open", NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Second)}},
		{Directive: model.Directive{ID: "later", NotBefore: now.Add(time.Minute), NotAfter: now.Add(time.Hour)}},
		{Directive: model.Directive{ID: "ended", NotBefore: now.Add(-time.Hour)}, EndedBy: "other"},
	}}
	got := standing(&w, []string{"shed", "over", "open", "later", "ended", "unknown"})
	if want := []string{"shed", "open", "later", "unknown"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
