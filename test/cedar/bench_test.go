package cedar

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
)

// asked is one request in both languages, made ahead of time.
type asked struct {
	world   *model.World
	request *model.Request
	cedar   cedar.Request
}

// BenchmarkBesideCedar puts the same requests to the same rules, in turn, and
// reports how much longer Cedar takes. Building a Cedar request from the world is
// not counted, nor is building the world.
func BenchmarkBesideCedar(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 7))
	p := drawRules(r)
	for !p.states["money"].Active || !p.states["rights"].Active || !p.states["features"].Active {
		p = drawRules(r)
	}
	bundle := p.bundle()
	set, err := cedar.NewPolicySetFromBytes("rights.cedar", []byte(p.text()))
	if err != nil {
		b.Fatal(err)
	}
	all := make([]asked, 256)
	for i := range all {
		s := drawScene(r, p)
		q := drawRequest(r, p, s)
		all[i] = asked{s.world(fleet, p.ref), &q.Request, q.ask(p, s)}
	}
	var ours, theirs time.Duration
	n := 0
	for b.Loop() {
		begin := time.Now()
		for i := range all {
			decisions.Evaluate(bundle, all[i].world, all[i].request)
		}
		middle := time.Now()
		for i := range all {
			cedar.Authorize(set, types.EntityMap{}, all[i].cedar)
		}
		ours, theirs, n = ours+middle.Sub(begin), theirs+time.Since(middle), n+len(all)
	}
	b.ReportMetric(float64(ours.Nanoseconds())/float64(n), "ns/evaluate")
	b.ReportMetric(float64(theirs.Nanoseconds())/float64(n), "ns/cedar")
	b.ReportMetric(float64(theirs)/float64(ours), "x")
	b.ReportMetric(float64(len(set.Map())), "cedar-policies")
}
