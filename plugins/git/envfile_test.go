package git

import "testing"

func TestOurLineIsChangedAndEveryOtherIsLeft(t *testing.T) {
	for _, c := range []struct{ before, set, unset string }{
		{"", "IC_DIRECTIVES=v\n", ""},
		{"A=1\n", "A=1\nIC_DIRECTIVES=v\n", "A=1\n"},
		{"A=1", "A=1\nIC_DIRECTIVES=v\n", "A=1\n"},
		{"A=1\r\n\r\n# IC_DIRECTIVES=no\n", "A=1\r\n\r\n# IC_DIRECTIVES=no\nIC_DIRECTIVES=v\n", "A=1\r\n\r\n# IC_DIRECTIVES=no\n"},
		{"A=1\nIC_DIRECTIVES=old one\nB=2\n", "A=1\nIC_DIRECTIVES=v\nB=2\n", "A=1\nB=2\n"},
		{"IC_DIRECTIVES=old\r\nB=2", "IC_DIRECTIVES=v\r\nB=2", "B=2"},
		{"A=1\nIC_DIRECTIVES=", "A=1\nIC_DIRECTIVES=v", "A=1\n"},
		{"IC_DIRECTIVES_OLD=x\nMY_IC_DIRECTIVES=y\n", "IC_DIRECTIVES_OLD=x\nMY_IC_DIRECTIVES=y\nIC_DIRECTIVES=v\n", "IC_DIRECTIVES_OLD=x\nMY_IC_DIRECTIVES=y\n"},
		{"\xff\xfe=\x00\n", "\xff\xfe=\x00\nIC_DIRECTIVES=v\n", "\xff\xfe=\x00\n"},
	} {
		at, err := find([]byte(c.before))
		if err != nil {
			t.Errorf("%q: %v", c.before, err)
			continue
		}
		set := set([]byte(c.before), at, "v")
		if string(set) != c.set {
			t.Errorf("%q set is %q, want %q", c.before, set, c.set)
		}
		again, err := find(set)
		if err != nil || !again.found || again.value != "v" {
			t.Errorf("%q is read back as %+v, %v", set, again, err)
			continue
		}
		if got := unset(set, again); string(got) != c.unset {
			t.Errorf("%q unset is %q, want %q", set, got, c.unset)
		}
	}
}

func TestALineThatCannotBeEditedWithoutGuessingIsNotEdited(t *testing.T) {
	for _, text := range []string{
		"IC_DIRECTIVES=a\nIC_DIRECTIVES=b\n",
		"export IC_DIRECTIVES=a\n",
		"  IC_DIRECTIVES=a\n",
		"A=1\nIC_DIRECTIVES = a\n",
		"IC_DIRECTIVES=a\n\texport IC_DIRECTIVES=b\n",
	} {
		if at, err := find([]byte(text)); err == nil {
			t.Errorf("%q is read as %+v", text, at)
		}
	}
}
