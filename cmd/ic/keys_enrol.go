package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/spf13/cobra"
)

// enrolment is how somebody comes to a key.
type enrolment struct {
	file, public, fingerprint string
	plain, agent, fido        bool
}

// enrolled is a key that can go into the trust root.
type enrolled struct {
	Person      string `json:"person"`
	Fingerprint string `json:"fingerprint"`
	Type        string `json:"type"`
	From        string `json:"from"`   // ssh-agent, or a file
	Public      string `json:"public"` // the line of the trust root
	Private     string `json:"private,omitempty"`
	Directives  bool   `json:"may_sign_directives"`
	Detail      string `json:"detail,omitempty"`
	Proof       string `json:"proof"` // the command that proves it
}

func (a *app) keysEnrolCmd() *cobra.Command {
	var e enrolment
	cmd := &cobra.Command{
		Use: "enrol", Short: "Make or choose a key for signing, and print the line that belongs into the trust root", Args: cobra.NoArgs,
		Long: `Without a flag, make an Ed25519 key in a file under a passphrase. With --agent choose one
that ssh-agent holds, with --public the one of a .pub file, with --fido one on a security
key. Nothing is changed but that new file: the trust root is signed by its owners.`,
		Example: `  ic keys enrol --person ines
  ic keys enrol --agent --fingerprint SHA256:…
  ic keys enrol --public ~/.ssh/id_ed25519_sk.pub`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load(cmd)
			if err != nil {
				return err
			}
			if c.Person == "" {
				return fail(exitUsage, "whose key will it be?").hinting("--person NAME")
			}
			if err := e.check(); err != nil {
				return err
			}
			return a.enrol(cmd.Context(), c, e)
		},
	}
	f := cmd.Flags()
	f.StringVar(&e.file, "file", "", "where to put a new key (default: keys/<person> in the state folder)")
	f.BoolVar(&e.plain, "no-passphrase", false, "whoever can read the file has the key")
	f.BoolVar(&e.agent, "agent", false, "take a key that ssh-agent holds")
	f.StringVar(&e.public, "public", "", "take the key of this public key file")
	f.BoolVar(&e.fido, "fido", false, "take a security key; says how to make one where there is none")
	f.StringVar(&e.fingerprint, "fingerprint", "", "with --agent or --fido: which key")
	return cmd
}

func (e *enrolment) check() error {
	ways := 0
	for _, way := range []bool{e.agent, e.fido, e.public != "", e.file != "" || e.plain} {
		if way {
			ways++
		}
	}
	if ways > 1 {
		return fail(exitUsage, "a new key, --agent, --public and --fido are four ways to one key: choose one")
	}
	if e.fingerprint != "" && !e.agent && !e.fido {
		return fail(exitUsage, "--fingerprint chooses among the keys of ssh-agent").hinting("give --agent or --fido with it")
	}
	return nil
}

func (a *app) enrol(ctx context.Context, c config, e enrolment) error {
	var k keys.Key
	var err error
	private := ""
	switch {
	case e.public != "":
		k, err = keys.ReadPublic(e.public)
	case e.fido:
		var ok bool
		if k, ok, err = a.securityKey(ctx, c, e); err == nil && !ok {
			return a.howToFIDO(c)
		}
	case e.agent:
		k, err = a.chosen(ctx, e)
	default:
		k, err = a.newKey(ctx, c, e)
		private = k.From
	}
	if err != nil {
		return err
	}
	out, err := a.admitted(c, k)
	if err != nil {
		return err
	}
	out.Private = private
	return a.print(out, func(w io.Writer) { out.print(w) })
}

func (a *app) newKey(ctx context.Context, c config, e enrolment) (keys.Key, error) {
	path := orElse(e.file, ownKeyFile(c))
	var passphrase []byte
	if !e.plain {
		if !a.terminal() {
			return keys.Key{}, fail(exitUsage, "there is no terminal to ask for a passphrase on").hinting("--no-passphrase says that you want none")
		}
		var err error
		if passphrase, err = a.newPassphrase(ctx, "passphrase"); err != nil {
			return keys.Key{}, err
		}
		defer clear(passphrase)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return keys.Key{}, err
	}
	return keys.Generate(randReader, path, c.Person, passphrase)
}

// chosen is the key of ssh-agent that was named, or the only one that may sign
// directives.
func (a *app) chosen(ctx context.Context, e enrolment) (keys.Key, error) {
	listed, err := a.agentKeys(ctx)
	if err != nil {
		return keys.Key{}, err
	}
	return choose(listed, e.fingerprint)
}

func choose(listed []keys.Key, fingerprint string) (keys.Key, error) {
	var fitting []keys.Key
	var lines []string
	for _, k := range listed {
		if k.Fingerprint == fingerprint {
			return k, nil
		}
		rights := keys.RightsOf(k.Public)
		if rights.Directives {
			fitting = append(fitting, k)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", k.Fingerprint, k.Type, k.Comment, rights.Why)))
	}
	all := strings.Join(lines, "\n    ")
	switch {
	case len(listed) == 0:
		return keys.Key{}, fail(exitNeeds, "ssh-agent lists no key: it is empty, or locked").hinting("ssh-add FILE loads a key, ssh-add -X unlocks")
	case fingerprint != "":
		return keys.Key{}, fail(exitNeeds, "ssh-agent holds no key %.60q", fingerprint).hinting("%s", all)
	case len(fitting) == 1:
		return fitting[0], nil
	}
	return keys.Key{}, fail(exitNeeds, "%d of the %d keys in ssh-agent may sign directives: say which with --fingerprint", len(fitting), len(listed)).hinting("%s", all)
}

// securityKey is a key of ssh-agent that lives in a security key; ok is false
// where there is none.
func (a *app) securityKey(ctx context.Context, c config, e enrolment) (k keys.Key, ok bool, err error) {
	if a.getenv("SSH_AUTH_SOCK") == "" {
		return k, false, nil
	}
	listed, err := a.agentKeys(ctx)
	if err != nil {
		return k, false, err
	}
	var all []keys.Key
	for _, k := range listed {
		if k.NeedsTouch() {
			all = append(all, k)
		}
	}
	if len(all) == 0 {
		return k, false, nil
	}
	k, err = choose(all, e.fingerprint)
	return k, true, err
}

// howToFIDO prints the commands of OpenSSH that put a key onto a security key:
// only they speak to one.
func (a *app) howToFIDO(c config) error {
	path := ownKeyFile(c) + "-sk"
	next := []string{
		fmt.Sprintf("ssh-keygen -t ed25519-sk -C %s -f %s", quoted(c.Person), quoted(path)),
		"ssh-add " + quoted(path),
		"ic keys enrol --fido --person " + quoted(c.Person),
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	a.code = exitNeeds
	return a.print(map[string]any{"person": c.Person, "next": next}, func(w io.Writer) {
		fmt.Fprintf(w, "no security key is in ssh-agent; plug yours in and run:\n  %s\n", strings.Join(next, "\n  "))
		fmt.Fprintln(w, "-O verify-required makes it want its PIN as well; -O no-touch-required makes a key that nobody believes")
	})
}

// quoted is a word for a shell.
func quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// admitted says whether a key can go into the trust root as this person's.
func (a *app) admitted(c config, k keys.Key) (enrolled, error) {
	rights := keys.RightsOf(k.Public)
	if !rights.Policy {
		return enrolled{}, fail(exitDenied, "%s is refused: %s", k.Fingerprint, rights.Why)
	}
	out := enrolled{
		Person: c.Person, Fingerprint: k.Fingerprint, Type: k.Type, From: k.From, Public: keys.Line(k.Public),
		Directives: rights.Directives, Detail: rights.Why, Proof: "ic keys check " + k.Fingerprint,
	}
	b, err := a.bundle(c, false)
	if err != nil {
		return out, nil // most enrol before there is a policy
	}
	owner, known := b.SignerOf(k.Fingerprint)
	switch {
	case known && owner.Name != c.Person:
		return out, fail(exitDenied, "%s is %s's in the trust root: a key has one owner", k.Fingerprint, owner.Name)
	case known && owner.Revoked:
		return out, fail(exitDenied, "%s is revoked in the trust root: it does not come back", k.Fingerprint)
	case known:
		out.Detail = "it is in the trust root already"
	}
	return out, nil
}

func (e *enrolled) print(w io.Writer) {
	fmt.Fprintln(w, e.Fingerprint)
	if e.Private != "" {
		fmt.Fprintf(w, "private key: %s\n", e.Private)
	}
	if e.Detail != "" {
		fmt.Fprintln(w, e.Detail)
	}
	fmt.Fprintf(w, "the trust root lists under people.%s.keys:\n  %s\n", e.Person, e.Public)
	key := orElse(e.Private, agentKey)
	fmt.Fprintf(w, "the configuration says key: %s\nand this proves it: %s\n", key, e.Proof)
}
