package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
)

// starterLife is how long a policy lasts that somebody starts: a year, in which it
// is changed anyway.
const starterLife = 365 * 24 * time.Hour

// laterFolder holds, in a new policy folder, what needs more than one person.
const laterFolder = "later"

// starting is how a policy is started.
type starting struct {
	template string
	key      enrolment
}

func (s *starting) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.template, "template", "", "what it begins with: "+strings.Join(templates.Names(), ", "))
	cmd.Flags().BoolVar(&s.key.plain, "no-passphrase", false, "for a new key: whoever can read the file has the key")
	cmd.Flags().StringVar(&s.key.fingerprint, "fingerprint", "", "with --key agent: which key")
}

// started is a policy folder that was made.
type started struct {
	Fleet      string `json:"fleet"`
	Person     string `json:"person"`
	Policy     string `json:"policy"`
	RootSHA256 string `json:"root_sha256"`
	Key        string `json:"key"`     // a file, or agent
	NewKey     bool   `json:"new_key"` // it was made now
	Later      string `json:"later"`   // the folder of what needs a second person
	givenRunbooks

	public string // the line of the key
}

func (a *app) policyInitCmd() *cobra.Command {
	var s starting
	dir := ""
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Start a policy: a signed folder that lints and can be used at once",
		Long: `Write a policy folder out of a template, with you as every group of its trust root, and sign
it with your key (--key, or a new one). It lists no hosts: until it does, what is decided is
advice, logged and done by hand. The folder must not be there yet. Rights that want a second
person, and example pipelines, lie in its folder later/ until somebody is there to sign.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load(cmd)
			if err != nil {
				return err
			}
			c.Policy = orElse(orElse(dir, c.Policy), "policy")
			if s.template == "" {
				return fail(exitUsage, "which template?").hinting("--template %s", strings.Join(templates.Names(), "|"))
			}
			out, err := a.startPolicy(cmd.Context(), c, s)
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) { out.print(w) })
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&dir, "dir", "", "the folder to make (default: policy of the configuration, or policy)")
	return cmd
}

func (s *started) print(w io.Writer) {
	fmt.Fprintf(w, "%s is the policy of %s, signed by %s\n", s.Policy, s.Fleet, s.Person)
	if s.NewKey {
		fmt.Fprintf(w, "  new key: %s\n", s.Key)
	}
	fmt.Fprintf(w, "  root_sha256: %s (pin it in every configuration)\n", s.RootSHA256)
	fmt.Fprintf(w, "next: read it; edit copies and stage them: ic policy stage FILE, ic policy sign FILE, ic policy apply\n")
	fmt.Fprintf(w, "  a second person: ic policy invite NAME; then the rights that want two: ic policy stage %s/*.yaml\n", s.Later)
	s.givenRunbooks.print(w)
}

// nameable refuses what could not be a fleet or a person.
func nameable(what, name string) error {
	switch {
	case name == "":
		return fail(exitUsage, "which %s?", what).hinting("--%s NAME", what)
	case !directive.Name(name):
		return fail(exitUsage, "%.80q is no name for a %s: lower-case letters, digits, '-', '.', '_', at most %d", name, what, directive.MaxName)
	}
	return nil
}

// startPolicy makes a key if there is none, and the folder as a whole or not at
// all.
func (a *app) startPolicy(ctx context.Context, c config, s starting) (started, error) {
	out := started{Fleet: c.Fleet, Person: c.Person, Policy: c.Policy}
	if err := errors.Join(nameable("fleet", c.Fleet), nameable("person", c.Person)); err != nil {
		return out, err
	}
	if !slices.Contains(templates.Names(), s.template) {
		return out, fail(exitUsage, "there is no template %.80q", s.template).hinting("--template %s", strings.Join(templates.Names(), "|"))
	}
	if _, err := os.Lstat(c.Policy); !errors.Is(err, fs.ErrNotExist) {
		return out, fail(exitUsage, "%s is there already, and is not replaced", c.Policy).hinting("ic policy stage changes a policy that is there; --dir names another folder")
	}
	stand, err := a.files(c)
	if err != nil {
		return out, err
	}
	key, signer, err := a.starterKey(ctx, &c, s.key)
	if err != nil {
		return out, err
	}
	out.Key, out.NewKey, out.public = c.Key, key.made, keys.Line(signer.PublicKey())
	now := stand.clock.Now().Wall
	starter, err := templates.Start(templates.StartParams{
		Template: s.template, Fleet: c.Fleet, Person: c.Person, Key: signer.PublicKey(), Now: now, Expires: now.Add(starterLife).Truncate(24 * time.Hour),
	})
	if err != nil {
		return out, fail(exitFailed, "start the policy: %w", err)
	}
	signing := templates.Signing{Signers: map[string]ssh.Signer{c.Person: signer}, Rand: randReader, Realm: stand.realm(), Fleet: c.Fleet, Version: 1}
	if out.RootSHA256, err = writeStarter(c.Policy, starter, signing); err != nil {
		return out, fail(exitFailed, "write %s: %w", c.Policy, err)
	}
	out.Later = filepath.Join(c.Policy, laterFolder)
	out.givenRunbooks, err = giveRunbooks(c, starter, signing, now)
	return out, err
}

// writeStarter writes beside dir and renames: half a policy is never there.
func writeStarter(dir string, starter templates.Starter, s templates.Signing) (pin string, err error) {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	draft, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".init-*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(draft))
		}
	}()
	if pin, err = templates.Sign(draft, starter.Files, s); err != nil {
		return "", err
	}
	if err := errors.Join(os.Chmod(draft, 0o755), os.Mkdir(filepath.Join(draft, laterFolder), 0o755)); err != nil {
		return "", err
	}
	for file, content := range starter.Later {
		if err := os.WriteFile(filepath.Join(draft, laterFolder, file), content, 0o644); err != nil {
			return "", err
		}
	}
	return pin, os.Rename(draft, dir)
}

// starterKeyOf is the key that will sign, and whether it was made for that.
type starterKeyOf struct {
	keys.Key
	made bool
}

// starterKey is the key that the configuration names, the one that ic keys enrol
// has made, or a new one; c names it afterwards.
func (a *app) starterKey(ctx context.Context, c *config, e enrolment) (out starterKeyOf, signer ssh.Signer, err error) {
	if c.Key == "" {
		path := ownKeyFile(*c)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			e.file = path
			if out.Key, err = a.newKey(ctx, *c, e); err != nil {
				return out, nil, err
			}
			out.made = true
		}
		c.Key = path
	}
	sources, err := a.namedKey(*c)
	if err != nil {
		return out, nil, err
	}
	if c.Key == agentKey {
		out.Key, err = a.chosen(ctx, e)
	} else {
		var listed []keys.Key
		if listed, err = keys.List(ctx, sources); err == nil {
			out.Key = listed[0]
		}
	}
	if err != nil {
		return out, nil, keyFailure(err)
	}
	if signer, err = keys.Find(ctx, sources, out.Fingerprint, sshsig.ForDirective); err != nil {
		return out, nil, keyFailure(err)
	}
	return out, signer, nil
}

// pinOf is the SHA-256 of the first root of a folder.
func pinOf(dir string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "roots", "1.yaml"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
