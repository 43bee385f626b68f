package incident

import (
	"context"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
)

func TestASimulatedRehearsalIsShownAndIsNoLiveOne(t *testing.T) {
	s := newShop(t)
	practised := s.clock.Now().Wall.Add(-24 * time.Hour)
	d := s.desk("ines", func(o *Options) {
		o.Simulated = func() map[string]time.Time { return map[string]time.Time{"shed": practised, "backend/git": practised} }
	})
	d.Refresh(context.Background())
	before := d.Snapshot().World.Rehearsals["shed"]
	if !before.Simulated.Equal(practised) || !before.Live.IsZero() {
		t.Errorf("shed was rehearsed %+v, want simulated %s and never live", before, practised)
	}
	s.must(d, decisions.Ask{Right: "shed", Tier: 2, Reason: "load"})
	d.Refresh(context.Background())
	after := d.Snapshot().World.Rehearsals["shed"]
	if !after.Simulated.Equal(practised) || after.Live.IsZero() {
		t.Errorf("after a use shed was rehearsed %+v, want both dates", after)
	}
}
