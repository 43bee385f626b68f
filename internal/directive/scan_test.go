package directive_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

// A payload that was changed in one place is another directive in its one spelling,
// or none: quick reading must take nothing that Encode would print in another way.
func TestNoChangeInOnePlaceMakesASecondSpelling(t *testing.T) {
	const changes = "0\".\\" // a digit, the ends of texts and fractions, an escape
	readable := 0
	for name, d := range map[string]model.Directive{
		"shed": shed(), "bypass": bypass(), "dimmer": dimmer(), "freeze": timed(model.Freeze),
		"recovery": recovery(3, 10), "end of a freeze": ending(model.Freeze, olderID, firstID),
	} {
		good := encode(t, d)
		try := func(payload []byte) {
			got, err := directive.Parse(payload)
			if err != nil {
				return
			}
			readable++
			if again, err := directive.Encode(got); err != nil || !bytes.Equal(again, payload) {
				t.Errorf("%s: %s is read and written again as %s: %v", name, payload, again, err)
			}
		}
		for i := range good {
			try(slices.Delete(slices.Clone(good), i, i+1))
			try(slices.Insert(slices.Clone(good), i, good[i]))
			try(slices.Replace(slices.Clone(good), i, i+1, '0'))
			for _, c := range []byte(changes) {
				try(slices.Insert(slices.Clone(good), i, c))
			}
		}
	}
	if readable < 500 {
		t.Errorf("only %d changed payloads could be read", readable)
	}
}
