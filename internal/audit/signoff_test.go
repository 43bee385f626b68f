package audit

import (
	"errors"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/sshsig"
)

func signoff(t *testing.T, subject, statement string) Signoff {
	t.Helper()
	raw, err := NewSignoff(fleet, incident, subject, statement, noon)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := sshsig.Sign(sshKey(t, 0), random(3), raw, directive.Production.Namespace("signoff", fleet))
	if err != nil {
		t.Fatal(err)
	}
	return Signoff{Statement: string(raw), Signature: sig.Blob}
}

func TestASignoffIsWrittenReadAndVerified(t *testing.T) {
	s := signoff(t, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "looked at, \x1b[31mfine")
	state := t.TempDir()
	w := open(t, state, options(t, "laptop-7"))
	mustAppend(t, w, IncidentOpen{Title: "risk"}, IncidentClose{Note: "over", Signoffs: []Signoff{s}}, s)
	if err := w.Close("quit"); err != nil {
		t.Fatal(err)
	}
	mustVerify(t, trusting(t), state)
	got := Fold(mustRead(t, state))
	if len(got.Signoffs) != 1 || got.IsOpen() {
		t.Fatalf("%d sign-offs, open %v", len(got.Signoffs), got.IsOpen())
	}
	said, fp, err := got.Signoffs[0].SignedBy(directive.Production, fleet)
	if err != nil || said.Subject != "01ARZ3NDEKTSV4RRFFQ69G5FAV" || !strings.HasPrefix(fp, "SHA256:") {
		t.Errorf("%+v %s %v", said, fp, err)
	}
	found := false
	for _, l := range got.Lines {
		found = found || l.Kind == KindSignoff && strings.HasPrefix(l.Text, "signed off 01ARZ3NDEKTSV4RRFFQ69G5FAV: looked at, ") && !strings.Contains(l.Text, "\x1b")
	}
	if !found {
		t.Errorf("the history does not tell it: %+v", got.Lines)
	}
}

func TestASignoffThatIsNoneIsSaidToBe(t *testing.T) {
	good := signoff(t, "host/edge-1", "scrapped")
	for name, s := range map[string]Signoff{
		"no text":          {Signature: good.Signature},
		"prose":            {Statement: "fine", Signature: good.Signature},
		"a field more":     {Statement: strings.Replace(good.Statement, `"v":1`, `"v":1,"king":1`, 1), Signature: good.Signature},
		"a space":          {Statement: strings.Replace(good.Statement, `"v":1`, `"v": 1`, 1), Signature: good.Signature},
		"another version":  {Statement: strings.Replace(good.Statement, `"v":1`, `"v":2`, 1), Signature: good.Signature},
		"no time":          {Statement: strings.Replace(good.Statement, "Z", "", 1), Signature: good.Signature},
		"no subject":       {Statement: strings.Replace(good.Statement, "host/edge-1", "", 1), Signature: good.Signature},
		"a long subject":   {Statement: strings.Replace(good.Statement, "edge", strings.Repeat("e", maxSubject), 1), Signature: good.Signature},
		"nothing said":     {Statement: strings.Replace(good.Statement, "scrapped", "", 1), Signature: good.Signature},
		"another word":     {Statement: strings.Replace(good.Statement, "scrapped", "scrubbed", 1), Signature: good.Signature},
		"no signature":     {Statement: good.Statement},
		"half a signature": {Statement: good.Statement, Signature: good.Signature[:40]},
	} {
		if _, _, err := s.SignedBy(directive.Production, fleet); !errors.Is(err, ErrSignoff) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := good.SignedBy(directive.Production, "bank"); !errors.Is(err, ErrSignoff) {
		t.Errorf("of another fleet: %v", err)
	}
	if _, _, err := good.SignedBy(directive.Drill, fleet); !errors.Is(err, ErrSignoff) {
		t.Errorf("of a drill: %v", err)
	}
	if _, err := NewSignoff(fleet, incident, "x", strings.Repeat("x", MaxStatement+1), noon); !errors.Is(err, ErrSignoff) {
		t.Errorf("a long statement: %v", err)
	}
}
