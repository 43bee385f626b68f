package world

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/templates"
	shipped "github.com/degradedmode/ic/runbooks"
	"golang.org/x/crypto/ssh"
)

// Fleet is the name of the demo's fleet.
const Fleet = "shop-demo"

// fleetSize is the number of hosts.
const fleetSize = 60

// Names of files and folders in the state folder of a demo.
const (
	InfoFile    = "world.json"  // how to reach the world; there while it runs
	ConfigFile  = "config.yaml" // of the console
	keysDir     = "keys"
	policyDir   = "policy"
	hostsDir    = "hosts"
	runbooksDir = "runbooks" // beside the policy, where a console looks for them
	etcdDir     = "etcd"
	deployDir   = "pipeline"
	serialFile  = "serial" // version of the policy last signed
	clockFile   = "clock"  // virtual time last seen, so that it never runs backwards
	LogFile     = "world.log"
)

// policyLife is how long the demo's policy lasts from the start of its world.
const policyLife = 90 * 24 * time.Hour

// Info is how a console finds its world. Realm is always a drill's.
type Info struct {
	V          int             `json:"v"`
	Realm      directive.Realm `json:"realm"`
	PID        int             `json:"pid"`
	Control    string          `json:"control"`    // URL of the clock, the faults and the reports
	Prometheus string          `json:"prometheus"` // URL
	Etcd       string          `json:"etcd"`
	Speed      int             `json:"speed"`
	Seed       uint64          `json:"seed"`
}

// ReadInfo reads how to reach the world of a state folder. It is nil without an
// error when there is none.
func ReadInfo(state string) (*Info, error) {
	raw, err := os.ReadFile(filepath.Join(state, InfoFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for a drill's world: %w", err)
	}
	var i Info
	if err := json.Unmarshal(raw, &i); err != nil || i.V != 1 || i.Realm != directive.Drill {
		return nil, fmt.Errorf("%s does not describe a drill's world; remove it", filepath.Join(state, InfoFile))
	}
	return &i, nil
}

// IsDrill reports whether a state folder belongs to a demo, running or not: its
// console must never take itself for one before a real fleet.
func IsDrill(state string) (bool, error) {
	_, err := os.Stat(filepath.Join(state, serialFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// setup is what a start prepares before anything runs.
type setup struct {
	people  map[string]ssh.Signer
	machine ssh.Signer
	rootSHA string
	dir     string // the signed policy
}

// place says where the parts of this run can be reached.
type place struct {
	control, prometheus, etcd, repo string
}

// prepare makes keys on the first run, and signs a policy that names the ports of
// this one: five people sign, each with a key of their own.
func prepare(o *Options, at place, now time.Time, specs []shop.Spec) (*setup, error) {
	s := &setup{people: map[string]ssh.Signer{}, dir: filepath.Join(o.State, policyDir)}
	for _, name := range append(templates.ShopPeople(), templates.LadderController) {
		signer, err := keyOf(o, name)
		if err != nil {
			return nil, err
		}
		if name == templates.LadderController {
			s.machine = signer
			continue
		}
		s.people[name] = signer
	}
	version, err := nextSerial(o.State)
	if err != nil {
		return nil, err
	}
	files, err := templates.Shop(s.params(o, at, now, specs, version))
	if err != nil {
		return nil, fmt.Errorf("render the demo's policy: %w", err)
	}
	if version > 1 {
		// The trust root of the first run stays: it is pinned.
		if files["roots/1.yaml"], err = os.ReadFile(filepath.Join(s.dir, "roots", "1.yaml")); err != nil {
			return nil, fmt.Errorf("read the demo's trust root: %w", err)
		}
	}
	s.rootSHA, err = templates.Sign(s.dir, files, templates.Signing{
		Signers: s.people, Rand: o.Rand, Realm: directive.Drill, Fleet: Fleet, Version: version,
	})
	if err != nil {
		return nil, fmt.Errorf("sign the demo's policy: %w", err)
	}
	return s, s.giveRunbooks(o, now.Add(policyLife))
}

// giveRunbooks writes the runbooks that ship beside the policy, signed by the people
// who sign them. What somebody has made of them since the first run stays.
func (s *setup) giveRunbooks(o *Options, until time.Time) error {
	root, err := policy.NewestRoot(s.dir)
	if err != nil {
		return err
	}
	texts, err := shipped.Texts(until)
	if err != nil {
		return err
	}
	err = shipped.Write(filepath.Join(o.State, runbooksDir), texts, shipped.Signing{
		Root: root, Signers: s.people, Rand: o.Rand, Realm: directive.Drill, Fleet: Fleet,
	})
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (s *setup) params(o *Options, at place, now time.Time, specs []shop.Spec, version int64) templates.ShopParams {
	p := templates.ShopParams{
		Fleet: Fleet, Version: version, Expires: now.Add(policyLife).Truncate(time.Second), Pace: o.Pace,
		People:   map[string]ssh.PublicKey{},
		Machines: map[string]ssh.PublicKey{templates.LadderController: s.machine.PublicKey()},
		Git:      map[string]string{"repo": at.repo, "branch": "main", "path": "fleet/ic.env"},
		HostFile: map[string]string{"path": filepath.Join(o.State, hostsDir, "{host}", watchedFile)},
		Queries:  queries(o.window()),
		Reviewed: now.AddDate(0, -2, 0).Truncate(24 * time.Hour),
	}
	for name, signer := range s.people {
		p.People[name] = signer.PublicKey()
	}
	for _, spec := range specs {
		p.Hosts = append(p.Hosts, policy.InventoryHost{
			Host: spec.Name, Services: []string{spec.Service}, ReportURL: at.control + reportPath(spec.Name),
		})
	}
	return p
}

// queries are the signals of the policy in the words of the shop's metrics.
func queries(window time.Duration) map[string]string {
	w := "[" + strconv.Itoa(int(window/time.Second)) + "s]"
	failed := `outcome=~"failed_dependency|rejected_capacity"`
	return map[string]string{
		templates.CheckoutP99:    `histogram_quantile(0.99, sum by (le) (rate(shop_request_duration_seconds_bucket{service="checkout"}` + w + `)))`,
		templates.CheckoutErrors: `100 * sum(rate(shop_requests_total{service="checkout",` + failed + `}` + w + `)) / sum(rate(shop_requests_total{service="checkout"}` + w + `))`,
		templates.CPU:            `100 * max(avg by (service) (shop_cpu_share))`,
		templates.PaymentRiskUp:  `avg(up{service="payment-risk"})`,
	}
}

// keyOf is the key of a person of the demo, made on the first run.
func keyOf(o *Options, name string) (ssh.Signer, error) {
	path := filepath.Join(o.State, keysDir, name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fmt.Errorf("make the demo's keys: %w", err)
		}
		if _, err := keys.Generate(o.Rand, path, name+" of the demo", nil); err != nil {
			return nil, fmt.Errorf("make the demo's keys: %w", err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the demo's keys: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(raw)
	if err != nil {
		return nil, fmt.Errorf("read the demo's key %s: %w", path, err)
	}
	return signer, nil
}

// nextSerial counts the policies that this state folder has seen: hosts refuse an
// older one, and the same version with other bytes.
func nextSerial(state string) (int64, error) {
	path := filepath.Join(state, serialFile)
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("read the demo's policy version: %w", err)
	}
	last, _ := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	next := last + 1
	return next, writeFile(path, []byte(strconv.FormatInt(next, 10)+"\n"))
}

// writeConfig writes what the console has to be told.
func writeConfig(o *Options, at place, rootSHA string) error {
	text := fmt.Sprintf(`fleet: %s
root_sha256: %s
policy: %s
person: %s
key: %s
etcd: %s
prometheus: %s
`, Fleet, rootSHA, policyDir, templates.Ines, filepath.Join(keysDir, templates.Ines), at.etcd, at.prometheus)
	return writeFile(filepath.Join(o.State, ConfigFile), []byte(text))
}

// writeFile replaces a small file, so that a reader sees the old or the new one.
func writeFile(path string, content []byte) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, content, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// startTime is when the virtual clock begins: now, or later when an earlier world
// of this folder had already been further. Hosts would not trust a clock that
// went back.
func startTime(state string, now time.Time) time.Time {
	raw, err := os.ReadFile(filepath.Join(state, clockFile))
	if err != nil {
		return now
	}
	if last, err := time.Parse(time.RFC3339, strings.TrimSpace(string(raw))); err == nil && last.After(now) {
		return last
	}
	return now
}

// Options of a world.
type Options struct {
	State  string
	Speed  int
	Seed   uint64
	Pace   templates.Pace // zero: what a shop would sign
	Getenv func(string) string
	Real   func() time.Time
	Rand   io.Reader
	Log    io.Writer     // what the world has to say; a file
	Idle   time.Duration // without a client for so long, the world ends; 0: DefaultIdle
}

// DefaultIdle is how long a world waits for a client before it ends.
const DefaultIdle = 30 * time.Minute

// quick reports a policy whose bounds are seconds.
func (o *Options) quick() bool { return o.Pace.Enter != 0 && o.Pace.Enter.Std() < 30*time.Second }

// scrape is the distance of two samples, in virtual seconds.
func (o *Options) scrape() int64 {
	if o.quick() {
		return 1
	}
	return 5
}

// window is how far back a rate looks: long enough for a smooth line, short
// enough for the policy's own windows.
func (o *Options) window() time.Duration {
	if o.quick() {
		return 5 * time.Second
	}
	return 30 * time.Second
}
