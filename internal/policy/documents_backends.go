package policy

import "github.com/degradedmode/ic/internal/model"

// BackendsDoc lists the deploy pipelines that break glass, and the inventory.
type BackendsDoc struct {
	Header      `yaml:",inline"`
	Backends    map[string]Backend `yaml:"backends"`     // by name
	FlagService FlagService        `yaml:"flag_service"` // what they have to survive
	Inventory   Inventory          `yaml:"inventory"`    // which hosts there should be
}

// FlagService is what backends have to survive: the everyday carrier and what it
// depends on itself.
type FlagService struct {
	Dependencies []string `yaml:"dependencies"` // everything it needs that can fail
	Why          string   `yaml:"why"`          // what the everyday carrier is
}

// Backend is one deploy pipeline. A bundled one lives in ic; a foreign one is
// named by an absolute path and one SHA-256 per OS and architecture.
type Backend struct {
	Bundled      string            `yaml:"bundled,omitempty"`           // a backend that lives in ic; or path
	Path         string            `yaml:"path,omitempty"`              // absolute path of a program; or bundled
	SHA256       map[string]string `yaml:"sha256,omitempty" keys:"any"` // path: digest by "linux/amd64" and the like, 64 lower-case hex digits
	Config       map[string]string `yaml:"config"`                      // handed to the backend; never a secret
	Targets      []string          `yaml:"targets"`                     // services that it reaches, or "*" for any
	Dependencies []string          `yaml:"dependencies"`                // everything it needs that can fail; none of the flag service's
	Secrets      []string          `yaml:"secrets"`                     // names in the token store
	Why          string            `yaml:"why"`                         // how it reaches hosts, and what it costs them
}

// Inventory is the denominator of every "n of m hosts".
type Inventory struct {
	MaxAge model.Duration  `yaml:"max_age"`         // oldest list that still counts, above 0
	Hosts  []InventoryHost `yaml:"hosts,omitempty"` // the list; or query
	Query  string          `yaml:"query,omitempty"` // PromQL with a series per host and service, labels host, service and perhaps report_url; or hosts
}

// InventoryHost is one host and where it serves its report.
type InventoryHost struct {
	Host      string   `yaml:"host"`       // its name, unique
	Services  []string `yaml:"services"`   // what it runs
	ReportURL string   `yaml:"report_url"` // http or https; "" when it is not asked directly
}
