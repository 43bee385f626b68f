package breakglass

import (
	"os"

	"github.com/degradedmode/ic/plugins/git"
	"github.com/degradedmode/ic/plugins/hostfile"
	"github.com/degradedmode/ic/plugins/sdk"
)

// The bundled backends.
const (
	Git      = "git"
	HostFile = "hostfile"
)

// BundledNames lists the bundled backends.
func BundledNames() []string { return []string{Git, HostFile} }

// Bundled makes a bundled backend by name: what the hidden command
// "ic backend NAME" serves.
func Bundled(name string) (sdk.Backend, bool) {
	switch name {
	case Git:
		return git.New(os.Getenv), true
	case HostFile:
		return hostfile.New(), true
	default:
		return nil, false
	}
}
