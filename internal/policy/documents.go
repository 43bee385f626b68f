package policy

import "time"

// Domain names a document of the bundle by its file name without ".yaml".
type Domain string

// The fixed domains. Every protected control has a domain of its own, of
// DocumentControls, named freely (payments, inventory, …).
const (
	Features Domain = "features"
	Ladder   Domain = "ladder"
	Rights   Domain = "rights"
	Backends Domain = "backends"
	Journeys Domain = "journeys"
)

// fixed reports whether d is one of the fixed domains; every other one is a
// document of controls.
func (d Domain) fixed() bool {
	switch d {
	case Features, Ladder, Rights, Backends, Journeys:
		return true
	}
	return false
}

// Header is what every domain document starts with. Fleet is the audience: a
// document of another fleet is refused whatever its signatures.
type Header struct {
	V       int       `yaml:"v"`       // version of the format: 1
	Fleet   string    `yaml:"fleet"`   // audience: a name of at most 64 bytes, the fleet of the root
	Domain  Domain    `yaml:"domain"`  // the file's name without .yaml
	Version int64     `yaml:"version"` // version of the content: 1 or more, only ever rises
	Expires time.Time `yaml:"expires"` // UTC, whole seconds; afterwards the document loosens nothing
	Why     string    `yaml:"why"`     // what the document is for, for whoever signs it; at most 1,000 bytes
}

// JourneysDoc names what a user does across services.
type JourneysDoc struct {
	Header   `yaml:",inline"`
	Journeys map[string]Journey `yaml:"journeys"` // by name
}

// Journey is broken when every feature of one of its BrokenBy sets is off.
type Journey struct {
	Text     string     `yaml:"text"`      // what a user comes to do
	BrokenBy [][]string `yaml:"broken_by"` // sets of features: when all of one set are off together, nobody can do it
}

// Manifest binds versions of all files to one version of the whole, so that no
// mix of old and new files can be offered.
type Manifest struct {
	V       int                     `yaml:"v"`                // version of the format: 1
	Fleet   string                  `yaml:"fleet"`            // audience
	Version int64                   `yaml:"version"`          // version of the whole: 1 or more, only ever rises
	Files   map[string]ManifestFile `yaml:"files" keys:"any"` // by name: every domain document and exactly one root
}

// ManifestFile pins one file.
type ManifestFile struct {
	Version int64  `yaml:"version"` // the version inside the file, 1 or more
	SHA256  string `yaml:"sha256"`  // of its bytes, 64 lower-case hex digits
}
