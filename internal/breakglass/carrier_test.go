package breakglass

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/plugins/sdk"
)

func ranked(id string, kind, ends model.Kind, size int) Ranked {
	return Ranked{Directive: model.Directive{ID: id, Kind: kind, Ends: ends}, Token: strings.Repeat("x", size)}
}

func TestWhatClosesComesFirstAndWhatOpensLast(t *testing.T) {
	in := []Ranked{
		ranked("01", model.Bypass, "", 10),
		ranked("02", model.End, model.Shed, 10),
		ranked("03", model.Freeze, "", 10),
		ranked("04", model.Off, "", 10),
		ranked("05", model.Shed, "", 10),
		ranked("06", model.End, model.Bypass, 10),
		ranked("07", model.Ping, "", 10),
		ranked("08", model.End, model.Off, 10),
		ranked("09", model.End, model.Bypass, 10),
		ranked("10", model.End, model.Freeze, 10),
	}
	given := slices.Clone(in)
	var got []string
	for _, token := range InOrder(in) {
		got = append(got, token.ID)
	}
	want := []string{"09", "06", "05", "04", "03", "08", "02", "10", "07", "01"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for i := range in {
		if in[i].Directive.ID != given[i].Directive.ID {
			t.Fatal("the caller's list was sorted")
		}
	}
}

func TestACarrierValueIsNeverLongerThanItsLimitAndCutsAtTheEnd(t *testing.T) {
	shed, freeze, bypass := ranked("01", model.Shed, "", 100), ranked("02", model.Freeze, "", 100), ranked("03", model.Bypass, "", 10)
	for _, c := range []struct {
		limit   int
		length  int
		leftOut []string
	}{
		{0, 212, nil},
		{212, 212, nil},
		{211, 201, []string{"03"}},
		{201, 201, []string{"03"}},
		{200, 100, []string{"02", "03"}}, // the bypass would fit, and does not take the freeze's place
		{99, 0, []string{"01", "02", "03"}},
	} {
		value, leftOut := CarrierValue([]Ranked{bypass, freeze, shed}, c.limit)
		if len(value) != c.length || !slices.Equal(leftOut, c.leftOut) {
			t.Errorf("limit %d: %d bytes without %v, want %d without %v", c.limit, len(value), leftOut, c.length, c.leftOut)
		}
	}
	var many []Ranked
	for i := range 20 {
		many = append(many, ranked(fmt.Sprintf("%02d", i), model.Shed, "", 1000))
	}
	value, leftOut := CarrierValue(many, 1<<20)
	if len(value) != 16*1001-1 || len(leftOut) != 4 {
		t.Errorf("%d bytes without %v: a host reads 16,384", len(value), leftOut)
	}
	if sdk.MaxCarrier != directive.MaxCarrier {
		t.Errorf("backends carry %d bytes, hosts read %d", sdk.MaxCarrier, directive.MaxCarrier)
	}
}

func TestAValueIsTakenApartIntoTheTokensItWasMadeOf(t *testing.T) {
	value, _ := CarrierValue([]Ranked{ranked("01", model.Shed, "", 5), ranked("02", model.Off, "", 6)}, 0)
	if got := directive.SplitCarrier(value + "\n"); len(got) != 2 || len(got[0]) != 6 || len(got[1]) != 5 {
		t.Errorf("hosts read %q from %q", got, value)
	}
}

func TestAPlanIsCheckedAgainstTheRequest(t *testing.T) {
	request := sdk.PlanRequest{
		Tokens:  []sdk.Token{{ID: "A", Text: "a"}, {ID: "B", Text: "b"}},
		Targets: []string{"edge-01", "edge-02"},
	}
	sound := func() sdk.Plan {
		return sdk.Plan{
			Changes: []sdk.Change{{Target: "f", Hosts: []string{"edge-01", "edge-02"}, After: "a", Restarts: true}},
			Targets: 2, Restarts: 2, LeftOut: []string{"B"},
		}
	}
	for _, c := range []struct {
		wrong string
		spoil func(p *sdk.Plan)
	}{
		{"", func(*sdk.Plan) {}},
		{"something else than the tokens", func(p *sdk.Plan) { p.Changes[0].After = "b" }},
		{"something else than the tokens", func(p *sdk.Plan) { p.LeftOut = nil }},
		{"another token than the last", func(p *sdk.Plan) { p.LeftOut = []string{"A"} }},
		{"carries nothing", func(p *sdk.Plan) { p.LeftOut = []string{"A", "B"} }},
		{"not asked for", func(p *sdk.Plan) { p.Changes[0].Hosts = append(p.Changes[0].Hosts, "edge-03") }},
		{"twice", func(p *sdk.Plan) { p.Changes[0].Hosts = append(p.Changes[0].Hosts, "edge-02") }},
		{"does not reach 1", func(p *sdk.Plan) { p.Changes[0].Hosts = p.Changes[0].Hosts[:1] }},
		{"counts", func(p *sdk.Plan) { p.Targets = 1; p.Restarts = 1 }},
		{"counts", func(p *sdk.Plan) { p.Restarts = 3 }},
	} {
		p := sound()
		c.spoil(&p)
		p.Digest = sdk.PlanDigest(&p)
		if got := faultOf(&p, request); (got == "") != (c.wrong == "") || !strings.Contains(got, c.wrong) {
			t.Errorf("got %q, want %q", got, c.wrong)
		}
	}
	p := sound()
	p.Digest = sdk.PlanDigest(&p)
	p.Changes[0].Before = "slipped in afterwards"
	if got := faultOf(&p, request); !strings.Contains(got, "digest") {
		t.Errorf("a digest of another plan passes: %q", got)
	}
}
