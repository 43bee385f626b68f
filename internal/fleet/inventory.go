package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
	"go.yaml.in/yaml/v3"
)

// Limits of an inventory.
const (
	MaxInventory = 8 << 20 // bytes of the file: MaxHosts with long addresses
	MaxHosts     = 20_000  // twice the largest fleet that is measured
	MaxServices  = 64      // services on one host
	maxURL       = 1024    // bytes of report_url
	maxQuoted    = 80      // bytes quoted of a wrong file
)

// Inventory is the denominator: which hosts there should be. It comes from a
// file of its own, from the policy, or from a query that the policy names.
type Inventory struct {
	Hosts  []Host
	MaxAge model.Duration // how old a report may be and still count; 0: any age
}

// Host is one host of the inventory. Without a ReportURL it is only seen by way
// of Prometheus or a backend.
type Host struct {
	Name      string
	Services  []string
	ReportURL string
}

// ParseInventory reads the YAML form:
//
//	max_age: 90s
//	hosts:
//	  - host: checkout-01
//	    services: [checkout]
//	    report_url: http://checkout-01:7070/report
//
// Unknown and doubled keys, anchors, a host twice and a second document are
// errors with line and column. There is at least one host.
func ParseInventory(text []byte) (Inventory, error) {
	if len(text) > MaxInventory {
		return Inventory{}, fmt.Errorf("inventory: %d bytes, at most %d", len(text), MaxInventory)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return Inventory{}, fmt.Errorf("inventory: %s", untrusted.Text(err.Error(), maxDetail))
	}
	if err := dec.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return Inventory{}, errors.New("inventory: one document, and something follows it")
	}
	var inv Inventory
	err := mapping(doc.Content[0], map[string]func(*yaml.Node) error{
		"max_age": func(n *yaml.Node) error { return inv.setMaxAge(n) },
		"hosts":   func(n *yaml.Node) error { return inv.setHosts(n) },
	})
	if err == nil && len(inv.Hosts) == 0 {
		err = wrong(doc.Content[0], "it has no hosts")
	}
	if err != nil {
		return Inventory{}, fmt.Errorf("inventory: %w", err)
	}
	return inv, nil
}

func (inv *Inventory) setMaxAge(n *yaml.Node) error {
	text, err := scalar(n)
	if err != nil {
		return err
	}
	if inv.MaxAge, err = model.ParseDuration(text); err != nil {
		return wrong(n, "%s", err)
	}
	return nil
}

func (inv *Inventory) setHosts(n *yaml.Node) error {
	seen := make(map[string]bool)
	return sequence(n, MaxHosts, func(n *yaml.Node) error {
		var h Host
		err := mapping(n, map[string]func(*yaml.Node) error{
			"host":       func(n *yaml.Node) (err error) { h.Name, err = name(n); return err },
			"services":   func(n *yaml.Node) error { return h.setServices(n) },
			"report_url": func(n *yaml.Node) (err error) { h.ReportURL, err = reportURL(n); return err },
		})
		switch {
		case err != nil:
			return err
		case h.Name == "" || len(h.Services) == 0:
			return wrong(n, "a host has a name and at least one service")
		case seen[h.Name]:
			return wrong(n, "host %s is listed twice", h.Name)
		}
		seen[h.Name] = true
		inv.Hosts = append(inv.Hosts, h)
		return nil
	})
}

func (h *Host) setServices(n *yaml.Node) error {
	return sequence(n, MaxServices, func(n *yaml.Node) error {
		s, err := name(n)
		h.Services = append(h.Services, s)
		return err
	})
}

func reportURL(n *yaml.Node) (string, error) {
	text, err := scalar(n)
	if err != nil {
		return "", err
	}
	if !isReportURL(text) {
		return "", wrong(n, wrongURL, maxURL)
	}
	return text, nil
}

const wrongURL = "a report_url is http or https with a host, without a user, at most %d bytes"

func isReportURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && len(text) <= maxURL && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil
}

func name(n *yaml.Node) (string, error) {
	text, err := scalar(n)
	if err == nil && !directive.Name(text) {
		err = wrong(n, "%q is not a name of a-z, 0-9, '-', '.', '_'", untrusted.Text(text, maxQuoted))
	}
	return text, err
}

func scalar(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Anchor != "" {
		return "", wrong(n, "here stands one plain value")
	}
	return n.Value, nil
}

func sequence(n *yaml.Node, most int, each func(*yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode || n.Anchor != "" || len(n.Content) > most {
		return wrong(n, "here stands a list of at most %d", most)
	}
	for _, item := range n.Content {
		if err := each(item); err != nil {
			return err
		}
	}
	return nil
}

func mapping(n *yaml.Node, fields map[string]func(*yaml.Node) error) error {
	if n.Kind != yaml.MappingNode || n.Anchor != "" {
		return wrong(n, "here stand keys and values")
	}
	seen := make(map[string]bool)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		set, known := fields[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || !known:
			return wrong(key, "unknown key %q", untrusted.Text(key.Value, maxQuoted))
		case seen[key.Value]:
			return wrong(key, "%s is given twice", key.Value)
		}
		seen[key.Value] = true
		if err := set(n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func wrong(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d, column %d: %s", n.Line, n.Column, fmt.Sprintf(format, args...))
}
