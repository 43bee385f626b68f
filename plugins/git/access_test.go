package git

import (
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/degradedmode/ic/plugins/sdk"
	"github.com/degradedmode/ic/plugins/sdk/conformance/worlds"
)

const secret = "s3cret-token"

// overHTTP serves a repository as a forge would, to who has the token.
func overHTTP(t *testing.T, r *worlds.Repository) map[string]string {
	t.Helper()
	worlds.Git(t, r.Bare, "config", "http.receivepack", "true")
	git, err := exec.LookPath("git")
	must(t, err)
	backend := &cgi.Handler{
		Path: git, Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(r.Bare), "GIT_HTTP_EXPORT_ALL=1"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if user, token, _ := q.BasicAuth(); user != defaultUser || token != secret {
			w.Header().Set("WWW-Authenticate", `Basic realm="fleet"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, q)
	}))
	t.Cleanup(server.Close)
	config := r.Config()
	config["repo"] = server.URL + "/" + filepath.Base(r.Bare)
	return config
}

// spy puts a git before the real one that writes down what others could see of
// it: its arguments and its environment.
func spy(t *testing.T) (seen func() string) {
	t.Helper()
	real, err := exec.LookPath("git")
	must(t, err)
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := fmt.Sprintf("#!/bin/sh\n{ printf '%%s\\n' \"$@\"; env; } >>'%s'\nexec '%s' \"$@\"\n", log, real)
	must(t, os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() string {
		text, err := os.ReadFile(log)
		must(t, err)
		return string(text)
	}
}

func TestATokenGetsInAndIsSeenByNobody(t *testing.T) {
	r := worlds.NewRepository(t)
	config := overHTTP(t, r)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("GIT_TRACE_CURL", filepath.Join(tmp, "trace")) // a user's own setting must not reach our git
	seen := spy(t)
	s := configured(t, config, map[string]string{"token": secret})
	send(t, s, one, "OP1")
	text := seen()
	if got := r.Text(t, worlds.EnvFile); !strings.Contains(got, one) {
		t.Fatalf("nothing arrived: %q", got)
	}
	if !strings.Contains(text, "push") || strings.Contains(text, secret) || strings.Contains(text, "Authorization") || strings.Contains(text, "GIT_TRACE") {
		t.Errorf("arguments or environment of git give something away:\n%s", text)
	}
	must(t, filepath.Walk(tmp, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "Authorization") {
			t.Errorf("%s was left behind with the token", path)
		}
		return err
	}))
	must(t, s.Stop(t.Context()))
	left, err := os.ReadDir(tmp)
	must(t, err)
	if len(left) > 0 {
		t.Errorf("after Stop %s is left", left[0].Name())
	}
}

func TestAWrongTokenIsDeniedWithoutAQuestion(t *testing.T) {
	r := worlds.NewRepository(t)
	config := overHTTP(t, r)
	for _, secrets := range []map[string]string{nil, {"token": "wrong"}} {
		s := configured(t, config, secrets)
		_, err := s.Plan(t.Context(), sdk.PlanRequest{Tokens: []sdk.Token{{ID: "T", Text: one}}, Targets: []string{"edge-01"}})
		if sdk.CodeOf(err) != sdk.CodeDenied {
			t.Errorf("with %v: %q, %v", secrets, sdk.CodeOf(err), err)
		}
	}
}

func TestTheFileWithTheTokenIsOurs(t *testing.T) {
	s := settings{repo: "https://git.example.org/fleet", user: defaultUser, token: secret}
	text := s.access()
	if strings.Contains(text, secret) || !strings.Contains(text, `[http "https://git.example.org/fleet"]`) {
		t.Errorf("the token is plain, or goes to any server:\n%s", text)
	}
	s = settings{repo: "git@git.example.org:fleet", sshKey: "/keys/id one"}
	if text := s.access(); !strings.Contains(text, "-i '/keys/id one'") {
		t.Errorf("the key is not used:\n%s", text)
	}
}

func TestSettings(t *testing.T) {
	good := map[string]string{"repo": "/srv/fleet.git", "path": "fleet/ic.env"}
	for _, c := range []struct {
		name            string
		config, secrets map[string]string
		want            string // in the refusal; empty: taken
	}{
		{"a path", nil, nil, ""},
		{"a https URL with a token", map[string]string{"repo": "https://git.example.org/fleet"}, map[string]string{"token": "x"}, ""},
		{"a short ssh address with a key", map[string]string{"repo": "git@git.example.org:fleet"}, map[string]string{"ssh_key": "/k"}, ""},
		{"an ssh URL", map[string]string{"repo": "ssh://git@git.example.org/fleet"}, nil, ""},
		{"an unknown setting", map[string]string{"force": "true"}, nil, "no setting"},
		{"an unknown secret", nil, map[string]string{"password": "x"}, "no secret"},
		{"no repository", map[string]string{"repo": ""}, nil, "not a URL"},
		{"a relative path", map[string]string{"repo": "fleet.git"}, nil, "not an absolute path"},
		{"a program as a transport", map[string]string{"repo": "ext::sh -c id"}, nil, "not a URL"},
		{"a program as a transport, without blanks", map[string]string{"repo": "ext::id"}, nil, "not a URL"},
		{"an option as a repository", map[string]string{"repo": "--upload-pack=id"}, nil, "not a URL"},
		{"a password in the URL", map[string]string{"repo": "https://me:pw@git.example.org/fleet"}, nil, "password in its URL"},
		{"a token in the clear", map[string]string{"repo": "http://git.example.org/fleet"}, map[string]string{"token": "x"}, "plain http"},
		{"a token for a path", nil, map[string]string{"token": "x"}, "https URL only"},
		{"a key for a path", nil, map[string]string{"ssh_key": "/k"}, "ssh URL only"},
		{"a key with a quote", map[string]string{"repo": "ssh://h/fleet"}, map[string]string{"ssh_key": "/k' -o ProxyCommand='id"}, "without quotes"},
		{"a token with a newline", map[string]string{"repo": "https://h/fleet"}, map[string]string{"token": "x\n[core]"}, "cannot be sent"},
		{"an option as a branch", map[string]string{"branch": "--force"}, nil, "plain name"},
		{"a revision as a branch", map[string]string{"branch": "main..x"}, nil, "plain name"},
		{"no file", map[string]string{"path": ""}, nil, "a file inside"},
		{"a file outside", map[string]string{"path": "../x"}, nil, "a file inside"},
		{"an absolute file", map[string]string{"path": "/etc/passwd"}, nil, "a file inside"},
		{"a pattern as a file", map[string]string{"path": ":(glob)**"}, nil, "a file inside"},
		{"an author without an address", map[string]string{"author": "me"}, nil, "not like"},
	} {
		config := map[string]string{}
		for _, from := range []map[string]string{good, c.config} {
			for k, v := range from {
				config[k] = v
			}
		}
		err := New(os.Getenv).Configure(t.Context(), config, c.secrets)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || sdk.CodeOf(err) != sdk.CodeBadConfig) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
