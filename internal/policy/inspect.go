package policy

import (
	"slices"
	"time"
)

// Report says what a policy folder holds, for people and as JSON.
type Report struct {
	V        int          `json:"v"`
	Fleet    string       `json:"fleet"`
	Error    string       `json:"error"` // why nothing may be obeyed; "" when it may
	Roots    []RootReport `json:"roots"`
	Manifest FileReport   `json:"manifest"`
	Domains  []FileReport `json:"domains"` // sorted by name
	Notes    []string     `json:"notes"`   // what is there and does not count
	Highest  Highest      `json:"highest"` // to be remembered; empty with an error
}

// FileReport is one signed file.
type FileReport struct {
	File     string    `json:"file"`
	Version  int64     `json:"version"`
	SHA256   string    `json:"sha256"`
	Active   bool      `json:"active"`
	Why      string    `json:"why"`     // one sentence when not active
	Group    string    `json:"group"`   // who has to sign
	Signed   []string  `json:"signed"`  // people whose signatures count
	Missing  []string  `json:"missing"` // people of the group who have not signed
	Needs    int       `json:"needs"`   // how many more of the group's members are wanted
	Expires  time.Time `json:"expires,omitzero"`
	DaysLeft int       `json:"days_left"` // whole days until expiry, negative after it
}

// Inspect describes the policy folder dir at opts.Now. A policy that may not be
// obeyed is described as far as it can be read, with the reason in Error; the
// returned error means only that the folder cannot be opened.
func Inspect(dir string, opts LoadOptions) (Report, error) {
	fsys, err := openDir(dir)
	if err != nil {
		return Report{}, err
	}
	l := loader{fsys: fsys, opts: opts}
	// Lists are never null in JSON.
	out := Report{V: 1, Fleet: opts.Fleet, Domains: []FileReport{}}
	if _, err := l.load(); err != nil {
		out.Error = err.Error()
	}
	out.Roots, out.Notes = append([]RootReport{}, l.roots...), append([]string{}, l.notes...)
	out.Highest = l.highest
	if l.root == nil {
		return out, fsys.Close()
	}
	out.Manifest = l.fileReport(ManifestFileName, l.root.Publish, l.manifestSigners)
	out.Manifest.Version, out.Manifest.SHA256 = l.manifestMark.Version, l.manifestMark.SHA256
	out.Manifest.Active, out.Manifest.Why = out.Error == "", out.Error
	for _, domain := range sortedKeys(l.states) {
		out.Domains = append(out.Domains, l.domainReport(l.states[domain]))
	}
	return out, fsys.Close()
}

func (l *loader) domainReport(s DomainState) FileReport {
	out := l.fileReport(fileOf(s.Domain), s.Group, s.Signers)
	out.Version, out.SHA256 = s.Version, l.manifest.Files[out.File].SHA256
	out.Active, out.Why, out.Expires = s.Active, s.Why, s.Expires
	if !s.Expires.IsZero() {
		out.DaysLeft = daysLeft(s.Expires, l.opts.Now)
	}
	return out
}

func (l *loader) fileReport(file, group string, signed []string) FileReport {
	out := FileReport{File: file, Group: group, Signed: append([]string{}, signed...), Missing: []string{}}
	for _, person := range sortedKeys(l.root.People) {
		if l.root.InGroup(group, person) && !slices.Contains(signed, person) {
			out.Missing = append(out.Missing, person)
		}
	}
	have := make(map[string]bool)
	for _, person := range signed {
		have[person] = true
	}
	out.Needs = l.root.Groups[group].Any - l.root.satisfiedMembers(group, have)
	out.Needs = max(out.Needs, 0)
	return out
}

const day = 24 * time.Hour

func daysLeft(expires, now time.Time) int {
	left := expires.Sub(now)
	if left < 0 {
		return int((left - day + 1) / day)
	}
	return int(left / day)
}
