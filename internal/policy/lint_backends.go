package policy

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/model"
)

func backendRules() []rule {
	each := func(check func(l *lint, say say, path string, b *Backend)) func(*lint, say) {
		return func(l *lint, say say) {
			if l.Backends == nil {
				return
			}
			for _, name := range sortedKeys(l.Backends.Backends) {
				b := l.Backends.Backends[name]
				check(l, say, "backends."+name, &b)
			}
		}
	}
	file := fileOf(Backends)
	return []rule{
		{"backend-kind", LintError, each(func(_ *lint, say say, path string, b *Backend) {
			if (b.Bundled == "") == (b.Path == "") {
				say(file, path, "a backend is either bundled or a program at a path")
			}
		})},
		{"unknown-backend", LintError, each(func(l *lint, say say, path string, b *Backend) {
			if b.Bundled != "" && l.names.Bundled != nil && !slices.Contains(l.names.Bundled, b.Bundled) {
				say(file, path+".bundled", "ic has no backend %q; it has %s", b.Bundled, strings.Join(l.names.Bundled, ", "))
			}
		})},
		{"foreign-unpinned", LintError, each(foreignUnpinned)},
		{"shared-fate", LintWarning, each(func(l *lint, say say, path string, b *Backend) {
			for _, d := range b.Dependencies {
				if slices.Contains(l.Backends.FlagService.Dependencies, d) {
					say(file, path+".dependencies", "it needs %s, and so does the flag service that it has to survive", d)
				}
			}
		})},
		{"backend-targets", LintError, each(func(l *lint, say say, path string, b *Backend) {
			if len(b.Targets) == 0 {
				say(file, path+".targets", "a backend names the services that it reaches, or \"*\" for any")
			}
			for _, name := range b.Targets {
				if name != model.AnyScope && !l.service(name) {
					say(file, path+".targets", "the ladder names no service %q", name)
				}
			}
		})},
		{"inventory", LintError, inventory},
		{"inventory-empty", LintWarning, func(l *lint, say say) {
			if l.Backends != nil && len(l.Backends.Inventory.Hosts) == 0 && l.Backends.Inventory.Query == "" {
				say(file, "inventory", "the inventory has neither hosts nor a query: everything that is decided is done by hand")
			}
		}},
	}
}

// foreignUnpinned wants what is executed to be exactly what was signed.
func foreignUnpinned(_ *lint, say say, at string, b *Backend) {
	file := fileOf(Backends)
	if b.Path == "" {
		if len(b.SHA256) > 0 {
			say(file, at+".sha256", "a bundled backend is part of ic and has no digest of its own")
		}
		return
	}
	if !path.IsAbs(b.Path) || path.Clean(b.Path) != b.Path {
		say(file, at+".path", "%q is not an absolute path without detours", b.Path)
	}
	if len(b.SHA256) == 0 {
		say(file, at, "a program at a path is pinned by one SHA-256 per system, like \"linux/amd64\"")
	}
	for _, platform := range sortedKeys(b.SHA256) {
		if system, arch, ok := strings.Cut(platform, "/"); !ok || system == "" || arch == "" {
			say(file, at+".sha256."+platform, "%q is not a system and an architecture, like \"linux/amd64\"", platform)
		}
		if !hexDigest(b.SHA256[platform]) {
			say(file, at+".sha256."+platform, "it is not a SHA-256 in lower-case hex")
		}
	}
}

func hexDigest(s string) bool {
	return len(s) == sha256HexLen && strings.Trim(s, "0123456789abcdef") == ""
}

func inventory(l *lint, say say) {
	if l.Backends == nil {
		return
	}
	file, inv := fileOf(Backends), l.Backends.Inventory
	if len(inv.Hosts) > 0 && inv.Query != "" {
		say(file, "inventory", "the inventory is either a list of hosts or a query")
	}
	if inv.MaxAge <= 0 {
		say(file, "inventory.max_age", "the inventory has a max_age above zero")
	}
	seen := make(map[string]bool)
	for i, h := range inv.Hosts {
		at := "inventory.hosts[" + strconv.Itoa(i) + "]"
		if h.Host == "" || seen[h.Host] {
			say(file, at+".host", "host %q has no name or is listed twice", h.Host)
		}
		seen[h.Host] = true
		for _, name := range h.Services {
			if !l.service(name) {
				say(file, at+".services", "the ladder names no service %q", name)
			}
		}
	}
}
