package templates

import (
	"fmt"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"golang.org/x/crypto/ssh"
)

// The five people of the shop and its one machine.
const (
	Ines             = "ines"  // incident commander, head of reliability
	Dev              = "dev"   // deputy commander, platform lead
	Fiona            = "fiona" // finance lead
	Priya            = "priya" // product lead
	Ravi             = "ravi"  // risk lead
	LadderController = "ladder-controller"
)

// ShopPeople lists the five, sorted.
func ShopPeople() []string { return []string{Dev, Fiona, Ines, Priya, Ravi} }

// The four services of the shop.
const (
	Edge        = "edge"
	Catalog     = "catalog"
	Checkout    = "checkout"
	PaymentRisk = "payment-risk" // also the name of the control that it implements
)

// PaymentsDomain is the document of the control PaymentRisk.
const PaymentsDomain policy.Domain = "payments"

// Signals of the shop's ladder, and the label-free defaults of their queries.
const (
	CheckoutP99    = "checkout-p99"
	CheckoutErrors = "checkout-errors"
	CPU            = "cpu"
	PaymentRiskUp  = "payment-risk-up"
)

// Pace holds the durations of a policy that tests want short.
type Pace struct {
	Enter       model.Duration // how long a threshold holds before a tier is entered
	EnterErrors model.Duration // the same for errors, which are quicker evidence
	Leave       model.Duration
	Dwell       model.Duration
	RampStep    model.Duration
	MaxAge      model.Duration // of a reading
	Step        model.Duration // between two samples
	SmallOrders model.Duration // longest bypass of risk-bypass-small-orders
	MedOrders   model.Duration // longest bypass of risk-bypass-medium-orders
	Freeze      model.Duration
	Ping        model.Duration
	Lead        model.Duration // from proposal to start when two people are wanted
}

func seconds(n int) model.Duration { return model.Duration(time.Duration(n) * time.Second) }

// RealPace is what a shop would sign.
func RealPace() Pace {
	return Pace{
		Enter: seconds(120), EnterErrors: seconds(60), Leave: seconds(600), Dwell: seconds(600), RampStep: seconds(120),
		MaxAge: seconds(60), Step: seconds(10), SmallOrders: seconds(900), MedOrders: seconds(600),
		Freeze: seconds(3600), Ping: seconds(600), Lead: seconds(180),
	}
}

// TestPace has no bound over 60 s, so that no test waits for minutes.
func TestPace() Pace {
	return Pace{
		Enter: seconds(2), EnterErrors: seconds(2), Leave: seconds(6), Dwell: seconds(5), RampStep: seconds(2),
		MaxAge: seconds(10), Step: seconds(1), SmallOrders: seconds(60), MedOrders: seconds(45),
		Freeze: seconds(60), Ping: seconds(60), Lead: seconds(3),
	}
}

// ShopParams are what a world has to say about itself. Fleet, People, Machines
// and Expires are required; the rest has defaults.
type ShopParams struct {
	Fleet    string
	Version  int64 // of every document; 0 means 1
	People   map[string]ssh.PublicKey
	Machines map[string]ssh.PublicKey // LadderController
	Hosts    []policy.InventoryHost   // nil means ShopHosts without report URLs
	Expires  time.Time
	Reviewed time.Time         // of every feature; zero means a year before Expires
	Pace     Pace              // zero means RealPace
	Git      map[string]string // repo, branch, path of the git backend
	HostFile map[string]string // path of the hostfile backend
	Queries  map[string]string // PromQL by signal, in place of the defaults

	gameDay time.Time // of every service
}

// ShopHosts names the 60 hosts of the shop; reportURL may be nil.
func ShopHosts(reportURL func(host string) string) []policy.InventoryHost {
	var out []policy.InventoryHost
	for _, group := range []struct {
		service string
		hosts   int
	}{{Edge, 12}, {Catalog, 20}, {Checkout, 16}, {PaymentRisk, 12}} {
		for n := range group.hosts {
			host := policy.InventoryHost{Host: fmt.Sprintf("%s-%02d", group.service, n+1), Services: []string{group.service}}
			if reportURL != nil {
				host.ReportURL = reportURL(host.Host)
			}
			out = append(out, host)
		}
	}
	return out
}

// Shop renders the documents of the example shop by file name, unsigned and
// without the manifest, which Sign adds.
func Shop(p ShopParams) (map[string][]byte, error) {
	if err := p.complete(); err != nil {
		return nil, err
	}
	d := p.documents()
	if err := d.root.Validate(); err != nil {
		return nil, err
	}
	return d.render(), nil
}

func (p *ShopParams) documents() *documents {
	return &documents{
		root: p.root(), features: p.features(), ladder: p.ladder(), rights: p.rights(), backends: p.backends(), journeys: p.journeys(),
		controls: map[policy.Domain]*policy.ControlsDoc{PaymentsDomain: p.payments()},
	}
}

func (p *ShopParams) frame() *frame {
	return &frame{fleet: p.Fleet, version: p.Version, expires: p.Expires, reviewed: p.Reviewed, gameDay: p.gameDay, pace: p.Pace}
}

// complete refuses what is missing and has no default, and fills the rest.
func (p *ShopParams) complete() error {
	for _, name := range ShopPeople() {
		if p.People[name] == nil {
			return fmt.Errorf("the shop's policy needs a public key of %s", name)
		}
	}
	if p.Machines[LadderController] == nil {
		return fmt.Errorf("the shop's policy needs a public key of the machine %s", LadderController)
	}
	if p.Expires.IsZero() {
		return fmt.Errorf("the shop's policy needs an expiry")
	}
	p.fill()
	return nil
}

// fill puts a default wherever a world says nothing.
func (p *ShopParams) fill() {
	p.Expires = p.Expires.UTC().Truncate(time.Second)
	if p.Version == 0 {
		p.Version = 1
	}
	if p.Hosts == nil {
		p.Hosts = ShopHosts(nil)
	}
	if p.Reviewed.IsZero() {
		p.Reviewed = p.Expires.AddDate(-1, 0, 0)
	}
	p.gameDay = p.Reviewed
	if p.Pace == (Pace{}) {
		p.Pace = RealPace()
	}
	p.Git = withDefaults(p.Git, map[string]string{"repo": "ssh://git.shop.example/deploy.git", "branch": "main", "path": "env/ic.env"})
	p.HostFile = withDefaults(p.HostFile, map[string]string{"path": "/etc/ic/directives"})
	p.Queries = withDefaults(p.Queries, map[string]string{
		CheckoutP99:    `histogram_quantile(0.99, sum by (le) (rate(checkout_request_seconds_bucket[1m])))`,
		CheckoutErrors: `100 * sum(rate(checkout_requests_total{code=~"5.."}[1m])) / sum(rate(checkout_requests_total[1m]))`,
		CPU:            `100 * avg(host_cpu_utilisation{service="checkout"})`,
		PaymentRiskUp:  `avg(up{job="payment-risk"})`,
	})
}

func (p *ShopParams) root() *policy.Root {
	person := func(name, fullName, reach string) policy.Person {
		return policy.Person{Name: fullName, Reach: reach, Keys: []string{authorized(p.People[name])}}
	}
	return &policy.Root{
		V: 1, Fleet: p.Fleet, Version: 1, Expires: p.outlives(),
		People: map[string]policy.Person{
			Ines:  person(Ines, "Ines Duarte, head of reliability", "pager reliability"),
			Dev:   person(Dev, "Dev Anand, platform lead", "pager platform"),
			Fiona: person(Fiona, "Fiona Lindqvist, finance lead", "phone list, finance"),
			Priya: person(Priya, "Priya Raman, product lead", "phone list, product"),
			Ravi:  person(Ravi, "Ravi Okafor, risk lead", "phone list, risk"),
		},
		Machines: map[string]policy.Machine{LadderController: {Keys: []string{authorized(p.Machines[LadderController])}}},
		Groups: map[string]policy.Group{
			"everyone":      {Any: 3, Of: []string{Dev, Fiona, Ines, Priya, Ravi}},
			"reliability":   {Any: 1, Of: []string{Ines, Dev}},
			"platform":      {Any: 1, Of: []string{Dev}},
			"product":       {Any: 1, Of: []string{Priya}},
			"finance":       {Any: 2, Of: []string{Fiona, Ravi}},
			"business":      {Any: 1, Of: []string{Priya, Fiona, Ravi}},
			"rights-owners": {Any: 2, Of: []string{"reliability", "product"}},
		},
		Root: "everyone", Publish: "reliability",
		Domains: map[policy.Domain]policy.DomainRule{
			policy.Features: {Group: "product", Grants: []model.Kind{}},
			policy.Journeys: {Group: "product", Grants: []model.Kind{}},
			policy.Ladder:   {Group: "reliability", Grants: []model.Kind{}},
			policy.Backends: {Group: "platform", Grants: []model.Kind{}},
			policy.Rights: {Group: "rights-owners", Lasts: seconds(4 * 3600),
				Grants: []model.Kind{model.Shed, model.Off, model.Freeze, model.Ping, model.End}},
			PaymentsDomain: {Group: "finance", Grants: []model.Kind{model.Bypass}, Under: amount(250_00), Total: amount(50_000_00), Lasts: seconds(1800)},
		},
		Roles: map[string]policy.Role{
			Commander:        {Members: []string{Ines, Dev}, Machines: []string{}, Tightens: true, MaxTier: 4},
			LadderController: {Members: []string{}, Machines: []string{LadderController}, Tightens: true, MaxTier: 2},
		},
		Revoked: []string{},
	}
}

// outlives is how long the root and the one long-dated right go on after the
// documents: two quarters, in which somebody notices.
func (p *ShopParams) outlives() time.Time { return p.Expires.Add(184 * 24 * time.Hour) }

func (p *ShopParams) backends() *policy.BackendsDoc {
	return p.frame().pipelines(p.Git, p.HostFile, policy.Inventory{MaxAge: seconds(24 * 3600), Hosts: p.Hosts})
}

func (p *ShopParams) journeys() *policy.JourneysDoc {
	return &policy.JourneysDoc{
		Header: p.frame().header(policy.Journeys, "What a customer comes to do."),
		Journeys: map[string]policy.Journey{
			"browse": {Text: "find a product and look at it", BrokenBy: [][]string{{"browse-catalog"}, {"search-suggest", "recommendations", "reviews", "product-images"}}},
			"buy":    {Text: "pay for what is in the basket", BrokenBy: [][]string{{"place-order"}, {"sign-in"}}},
		},
	}
}

// hostsOf counts the hosts of the inventory that serve a service; at least 1, to
// divide by.
func (p *ShopParams) hostsOf(service string) int64 {
	n := int64(0)
	for _, h := range p.Hosts {
		if slices.Contains(h.Services, service) {
			n++
		}
	}
	return max(n, 1)
}
