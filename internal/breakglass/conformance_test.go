package breakglass

import (
	"testing"

	"github.com/degradedmode/ic/plugins/sdk"
	"github.com/degradedmode/ic/plugins/sdk/conformance"
	"github.com/degradedmode/ic/plugins/sdk/conformance/worlds"
)

func TestGitAsAProcessConforms(t *testing.T) {
	conformance.Run(t, worlds.GitRepositories(t, asProcess(Git)))
}

func TestHostFileAsAProcessConforms(t *testing.T) {
	conformance.Run(t, worlds.HostFiles(asProcess(HostFile)))
}

func TestHostFileInProcessConforms(t *testing.T) {
	conformance.Run(t, worlds.HostFiles(func(t *testing.T, config map[string]string) sdk.Conn {
		opts := selfOptions(t)
		opts.Self = Program{Path: "/nonexistent"}
		c := opened(t, Spec{Name: "last", Bundled: HostFile, Config: config}, opts)
		if c.InProcess() == nil {
			t.Fatal("a program that does not exist was started")
		}
		return c
	}))
}

// asProcess opens a bundled backend as a process of this test binary.
func asProcess(name string) worlds.Open {
	return func(t *testing.T, config map[string]string) sdk.Conn {
		c := opened(t, Spec{Name: "the-" + name, Bundled: name, Config: config}, selfOptions(t))
		if c.InProcess() != nil {
			t.Fatal(c.InProcess())
		}
		return c
	}
}
