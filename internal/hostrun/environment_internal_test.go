package hostrun

import (
	"os/exec"
	"testing"
)

func TestAShellTakesAQuotedValueForWhatItIs(t *testing.T) {
	for _, value := range []string{
		"", "2", "2026-11-30T02:30:00Z", "two words", "it's", "$HOME", "`id`", "$(id)", "a;b", "a\nIC_TIER_CHECKOUT=0", `\`, `"`, "a#b", "#", "é", "~", "*",
	} {
		out, err := exec.Command("sh", "-c", "V="+quoted(value)+"\nprintf '%s' \"$V\"").Output()
		if err != nil || string(out) != value {
			t.Errorf("%q is quoted as %s, and a shell reads %q (%v)", value, quoted(value), out, err)
		}
	}
	if got := quoted("safe-safe:1.0/2+3_4"); got != "safe-safe:1.0/2+3_4" {
		t.Errorf("a plain value is quoted: %s", got)
	}
}
