package signals

import "testing"

func TestOnlyAPlainSelectorCanBeAskedForTheTimeOfItsSample(t *testing.T) {
	for text, want := range map[string]bool{
		`up`:                        true,
		` job:errors:ratio5m `:      true,
		`up{job="a"}`:               true,
		`up {job="a",x=~"b{2}}"}`:   true,
		`up{job="a\"}"}`:            true,
		`up{job='}'}`:               true,
		"up{job=`}`}":               true,
		`{__name__="up"}`:           true,
		`sum(up)`:                   false,
		`up{job="a"} / up{job="b"}`: false,
		`up{job="a"} offset 5m`:     false,
		`up @ 0`:                    false,
		`up[5m]`:                    false,
		`up{job="a}`:                false,
		`a-b`:                       false,
		`1`:                         false,
		`NaN`:                       false,
		`inf`:                       false,
		``:                          false,
	} {
		if got := plainSelector(text); got != want {
			t.Errorf("plainSelector(%q) = %v, want %v", text, got, want)
		}
	}
}
