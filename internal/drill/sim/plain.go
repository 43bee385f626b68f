package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/drill/kernel"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/model"
)

// Flags of a world without ic.
const (
	FlagBypassRisk = "bypass-risk" // off, on (orders under plainUnder), all
	FlagTier       = "tier"        // 0 to 4, of every service
	FlagOff        = "off-"        // + feature: on, off
)

// plainUnder is what the flag bypass-risk lets through: the document's 50 dollars.
// Nothing counts it, and nothing ends it.
const plainUnder = 50_00

// Plain is the world without ic: flags without a signature, a bound or an end, held
// in the memory of each host and lost when it restarts.
type Plain struct {
	w       *World
	flags   map[string]string
	version int64
}

// Plain takes ic out of the world: from the first call on hosts obey naive flags and
// nothing else. A world is one or the other; call it before anything happens.
func (w *World) Plain() *Plain {
	if w.plain == nil {
		w.plain = &Plain{w: w, flags: map[string]string{}}
	}
	return w.plain
}

// Set changes a flag at the flag service. It reaches the hosts that the service
// reaches; the others keep what they have.
func (p *Plain) Set(name, value string) error {
	if err := checkFlag(name, value); err != nil {
		return err
	}
	if p.w.flags.down {
		return fmt.Errorf("set the flag %s: %w", name, errFlagsDown)
	}
	p.flags = clone(p.flags) // hosts share what they have read
	p.flags[name] = value
	p.version++
	p.w.k.Log("flags", "set", kernel.Word("flag", name), kernel.Word("value", value))
	at := p.w.k.Now()
	if p.w.flags.slow {
		at = at.Add(slowBy)
	}
	version, flags := p.version, p.flags
	for _, h := range p.w.hosts {
		p.w.k.At(at.Add(p.w.jitter("flags", watchLeast, watchMost)), func() {
			if p.w.flags.reaches(h) && h.awake() && h.plain.version < version {
				h.plain.flags, h.plain.version = flags, version
			}
		})
	}
	return nil
}

// Override writes a flag into the deploy pipeline: hosts restart batch by batch
// and boot with it. With an empty value it is taken out again.
func (p *Plain) Override(name, value string) error {
	if value != "" {
		if err := checkFlag(name, value); err != nil {
			return err
		}
	}
	d := p.w.deploy
	if d.denied {
		return fmt.Errorf("override the flag %s: the token of the pipeline has expired", name)
	}
	d.plain = clone(d.plain)
	if d.plain[name] = value; value == "" {
		delete(d.plain, name)
	}
	p.w.k.Log("pipeline", "override", kernel.Word("flag", name), kernel.Word("value", value))
	d.owner = "a person"
	d.roll()
	return nil
}

func checkFlag(name, value string) error {
	ok := false
	switch {
	case name == FlagBypassRisk:
		ok = value == "on" || value == "off" || value == "all"
	case name == FlagTier:
		n, err := strconv.Atoi(value)
		ok = err == nil && n >= 0 && n <= 4
	case strings.HasPrefix(name, FlagOff):
		ok = value == "on" || value == "off"
	default:
		return fmt.Errorf("the flag %q is not known: %s, %s and %sFEATURE are", name, FlagBypassRisk, FlagTier, FlagOff)
	}
	if !ok {
		return fmt.Errorf("the flag %s cannot be %q", name, value)
	}
	return nil
}

// plainHost is what one host without ic knows. What the pipeline gave it counts
// before what the flag service says.
type plainHost struct {
	flags   map[string]string
	env     map[string]string
	version int64
}

// take reads everything afresh.
func (h *plainHost) take(p *Plain) {
	if p != nil && h.version < p.version {
		h.flags, h.version = p.flags, p.version
	}
}

func (h *plainHost) get(name string) string {
	if v, ok := h.env[name]; ok {
		return v
	}
	return h.flags[name]
}

func (h *plainHost) tier() int {
	n, _ := strconv.Atoi(h.get(FlagTier)) // unset is 0
	return n
}

func (h *plainHost) off(feature string) bool {
	return len(h.flags)+len(h.env) > 0 && h.get(FlagOff+feature) == "on"
}

// bypass is how the control is bypassed, "" when it is not.
func (h *plainHost) bypass(control string) string {
	if v := h.get(FlagBypassRisk); control == shop.PaymentRisk && v != "off" {
		return v
	}
	return ""
}

func (h *plainHost) allows(control string, amount model.Money) bool {
	switch h.bypass(control) {
	case "all":
		return true
	case "on":
		return amount.Minor < plainUnder
	}
	return false
}
