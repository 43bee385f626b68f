package git

import (
	"net"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/degradedmode/ic/plugins/sdk"
)

// defaultUser goes with a token in basic authentication. GitHub takes it as it
// is, the others take any.
const defaultUser = "x-access-token"

// settings is the checked configuration.
type settings struct {
	repo, branch, path      string
	authorName, authorEmail string
	user, token, sshKey     string
}

var (
	// branchName is what we accept of git's own rules: no option, no revision
	// syntax, no way out of refs/heads.
	branchName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/-]*$`)
	authorForm = regexp.MustCompile(`^([^<>\x00-\x1f]+) <([^<>\x00-\x20]+)>$`)
	plainURL   = regexp.MustCompile(`^[A-Za-z0-9/][!#-&(-\[\]-~]*$`) // visible ASCII without quotes and backslash; no option
)

func bad(format string, args ...any) error {
	return sdk.Refuse(sdk.CodeBadConfig, "git "+format, args...)
}

func parseSettings(config, secrets map[string]string) (settings, error) {
	s := settings{branch: "main", user: defaultUser}
	author := "ic <ic@localhost>"
	fields := map[string]*string{"repo": &s.repo, "branch": &s.branch, "path": &s.path, "author": &author, "user": &s.user}
	for key, value := range config {
		field, ok := fields[key]
		if !ok {
			return settings{}, bad("has no setting %q: it takes repo, branch, path, author, user", key)
		}
		*field = value
	}
	hidden := map[string]*string{"token": &s.token, "ssh_key": &s.sshKey}
	for key, value := range secrets {
		field, ok := hidden[key]
		if !ok {
			return settings{}, bad("has no secret %q: it takes token and ssh_key", key)
		}
		*field = value
	}
	if !branchName.MatchString(s.branch) || strings.Contains(s.branch, "..") || strings.Contains(s.branch, "//") ||
		strings.HasSuffix(s.branch, "/") || strings.HasSuffix(s.branch, ".lock") {
		return settings{}, bad("branch %q is not a branch's plain name", s.branch)
	}
	if s.path == "" || path.IsAbs(s.path) || path.Clean(s.path) != s.path || strings.HasPrefix(s.path, "../") ||
		strings.HasPrefix(s.path, ":") || strings.ContainsAny(s.path, "\x00\n") || s.path == "." || s.path == ".." {
		return settings{}, bad("path %q is not a file inside the repository, like fleet/ic.env", s.path)
	}
	parts := authorForm.FindStringSubmatch(author)
	if parts == nil {
		return settings{}, bad(`author %q is not like "Name <mail@example.org>"`, author)
	}
	s.authorName, s.authorEmail = parts[1], parts[2]
	return s, s.checkAccess()
}

// checkAccess checks where the repository is and how we get in.
func (s *settings) checkAccess() error {
	if !plainURL.MatchString(s.repo) || strings.Contains(s.repo, "::") { // "::" calls a program as a transport
		return bad("repo %q is not a URL or an absolute path", s.repo)
	}
	u, err := url.Parse(s.repo)
	web := err == nil && (u.Scheme == "https" || u.Scheme == "http")
	scp := !strings.Contains(s.repo, "://") && strings.Contains(s.repo, ":")
	ssh := scp || err == nil && u.Scheme == "ssh"
	if !web && !ssh && !filepath.IsAbs(s.repo) && !strings.HasPrefix(s.repo, "file:///") {
		return bad("repo %q is not an absolute path and not a https, ssh or file URL", s.repo)
	}
	if err == nil && u.User != nil {
		if _, has := u.User.Password(); has {
			return bad("repo has a password in its URL, where every process can read it: give it as the secret token")
		}
	}
	switch {
	case s.token != "" && !web:
		return bad("takes a token with a https URL only")
	case s.token != "" && u.Scheme == "http" && !loopback(u.Hostname()):
		return bad("does not send a token over plain http: use https")
	case strings.ContainsAny(s.token, "\x00\r\n") || strings.ContainsAny(s.user, ":\x00\r\n"):
		return bad("token or user has a character that cannot be sent")
	case s.sshKey != "" && (!ssh || !filepath.IsAbs(s.sshKey) || strings.ContainsAny(s.sshKey, "'\"\\\n")):
		return bad("takes ssh_key as the absolute path of a key file, without quotes, with an ssh URL only")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// host names the repository's host as a dependency; a path has none.
func (s *settings) host() string {
	if u, err := url.Parse(s.repo); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	if before, _, ok := strings.Cut(s.repo, ":"); ok && !filepath.IsAbs(s.repo) {
		return before[strings.LastIndexByte(before, '@')+1:]
	}
	return ""
}
