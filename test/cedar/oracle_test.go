package cedar

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
)

const (
	perPolicy   = 200 // requests put to one policy
	perScene    = 4   // of them in one scene
	manyAsked   = 100_000
	manyEnv     = "IC_ORACLE_REQUESTS"
	seedEnv     = "IC_ORACLE_SEED"
	defaultSeed = 1
)

// Permitted is allow, and anything else is deny.
func TestCedarSaysTheSame(t *testing.T) {
	asked, permitted := number(t, manyEnv, manyAsked), 0
	seed := number(t, seedEnv, defaultSeed)
	kinds := map[string]int{}
	for n := 0; n < asked; n += perPolicy {
		r := rand.New(rand.NewPCG(uint64(seed), uint64(n)))
		p := drawRules(r)
		bundle, text := p.bundle(), p.text()
		set, err := cedar.NewPolicySetFromBytes("rights.cedar", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for range perPolicy / perScene {
			drawn := drawScene(r, p)
			for range perScene {
				s := *drawn
				q := drawRequest(r, p, &s)
				verdict := decisions.Evaluate(bundle, s.world(fleet, p.ref), &q.Request)
				decision, notes := cedar.Authorize(set, types.EntityMap{}, q.ask(p, &s))
				if len(notes.Errors) > 0 {
					t.Fatalf("cedar: %v\n%s", notes.Errors, text)
				}
				if (verdict.Outcome == model.Permitted) != (decision == cedar.Allow) {
					t.Fatalf("seed %d, policy %d: Evaluate says %s %v, Cedar says %v\nrequest %+v\nscene %+v\n%s", seed, n, verdict.Outcome, verdict.Reasons, decision, q, s, text)
				}
				if decision == cedar.Allow {
					permitted++
					kinds[string(q.Directive.Kind+q.Directive.Ends)]++
				}
			}
		}
	}
	t.Logf("%d requests, %d permitted by both: %v", asked, permitted, kinds)
	for _, kind := range []string{"shed", "off", "bypass", "freeze", "dimmer", "ping", "endshed", "endoff", "endbypass", "endfreeze", "endping"} {
		if kinds[kind] < asked/2000 {
			t.Errorf("only %d of %d requests permit a %s: that compares nothing", kinds[kind], asked, kind)
		}
	}
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatal(fmt.Errorf("%s is a number above zero, not %q", name, text))
	}
	return n
}
