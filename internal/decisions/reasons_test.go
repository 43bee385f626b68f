package decisions

import (
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// TestASentenceSaysWhatThereIs: who, which tier next, how long, and where nothing is
// known.
func TestASentenceSaysWhatThereIs(t *testing.T) {
	days := func(n float64) model.Duration { return model.Duration(n * 24 * float64(time.Hour)) }
	for _, c := range []struct {
		r       model.Reason
		says    string
		without string
	}{
		{model.Reason{Code: NoLease}, "nobody holds command", "holds command: ask"},
		{model.Reason{Code: NoLease, Name: "dev"}, "dev holds command: ask", "nobody"},
		{model.Reason{Code: OneTier, N: 3, M: 1}, "go to tier 2 first", "possible in"},
		{model.Reason{Code: OneTier, N: 3, M: 1, Wait: model.Duration(time.Minute)}, "tier 2 is possible in", "go to tier"},
		{model.Reason{Code: NoExit}, "no signal is in force", "leaving tier"},
		{model.Reason{Code: NoExit, N: 2}, "leaving tier 2", "no signal"},
		{model.Reason{Code: NotRehearsed, Name: "r", Wait: days(1.5), M: 3600, At: day0}, "36h", "days"},
		{model.Reason{Code: NotRehearsed, Name: "r", Wait: days(2), M: 3600, At: day0}, "2 days", "48h"},
	} {
		if s := Sentence(c.r); !strings.Contains(s, c.says) || strings.Contains(s, c.without) {
			t.Errorf("%+v: %q, want %q", c.r, s, c.says)
		}
	}
}
