package main

import (
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/spf13/cobra"
)

// invitation is what somebody needs who has OpenSSH and no ic.
type invitation struct {
	Person string       `json:"person"`
	Make   string       `json:"make"` // makes a key
	Show   string       `json:"show"` // prints its public line, to be sent
	Sign   []signingOne `json:"sign"`
	Add    string       `json:"add"` // for us: puts the person into the next root; "" when he or she is in it
}

// signingOne is how one file is signed, there and here.
type signingOne struct {
	File  string `json:"file"`
	There string `json:"there"` // writes the signature beside the file
	Here  string `json:"here"`  // verifies it and puts it in its place
}

// inviting is what the command was told.
type inviting struct {
	files  []string
	person policy.NewPerson
}

func (a *app) policyInviteCmd() *cobra.Command {
	var in inviting
	cmd := &cobra.Command{
		Use:   "invite PERSON",
		Short: "What somebody types who signs without ic: make a key, show it, sign a file",
		Long: `Print the three ssh-keygen lines with which PERSON makes a key and signs, and the line that
puts the signature in its place here. Without --file they are for the files that wait for
PERSON.

With --add, the public line that came back, put PERSON into the next trust root and stage it.`,
		Example: `  ic policy invite fiona
  ic policy invite fiona --add 'ssh-ed25519 AAAA…' --group finance --full 'Fiona Lindqvist, finance lead'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, c, err := a.policyDir(cmd)
			if err != nil {
				return err
			}
			in.person.Name = args[0]
			if in.person.Key != "" {
				return a.addPerson(c, dir, in.person)
			}
			out, err := a.invite(c, dir, in)
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) { out.print(w) })
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&in.files, "file", nil, "FILE to be signed, as it is named in the policy folder (repeatable)")
	f.StringVar(&in.person.Key, "add", "", "public line of the person's key: stage a root that has it")
	f.StringArrayVar(&in.person.Groups, "group", nil, "with --add: group that the person joins (repeatable)")
	f.StringArrayVar(&in.person.Roles, "role", nil, "with --add: role that the person gets (repeatable)")
	f.StringVar(&in.person.Full, "full", "", "with --add: the name in full, with what the person answers for")
	f.StringVar(&in.person.Reach, "reach", "", "with --add: how the person is reached at night")
	return cmd
}

func (a *app) invite(c config, dir string, in inviting) (invitation, error) {
	name := in.person.Name
	if !directive.Name(name) {
		return invitation{}, fail(exitUsage, "%.80q is no name for a person: lower-case letters, digits, '-', '.', '_', at most %d", name, directive.MaxName)
	}
	if err := nameable("fleet", c.Fleet); err != nil {
		return invitation{}, err
	}
	stand, err := a.files(c)
	if err != nil {
		return invitation{}, err
	}
	if staged, ok := policy.IsStaged(dir); ok {
		dir = staged
	}
	files := in.files
	if len(files) == 0 {
		// A folder that cannot be read has nothing that waits; the lines are the same.
		if files, _ = policy.Unsigned(dir, name, stand.realm(), c.Fleet); len(files) == 0 {
			files = []string{"rights.yaml"}
		}
	}
	key := "~/.ssh/ic-" + name
	out := invitation{
		Person: name,
		Make:   fmt.Sprintf("ssh-keygen -t ed25519 -C %s@%s -f %s", name, c.Fleet, key),
		Show:   "ssh-keygen -y -f " + key,
	}
	for _, file := range files {
		namespace, err := policy.Namespace(file, stand.realm(), c.Fleet)
		if err != nil {
			return out, fail(exitUsage, "%w", err)
		}
		sent := path.Base(file) // as it arrives in a mail
		out.Sign = append(out.Sign, signingOne{
			File:  file,
			There: fmt.Sprintf("ssh-keygen -Y sign -f %s -n %s %s", key, namespace, sent),
			Here:  fmt.Sprintf("ic policy sign %s --as %s --signature %s.sig", file, name, sent),
		})
	}
	if root, err := policy.NewestRoot(dir); err != nil || root.People[name].Keys == nil {
		out.Add = fmt.Sprintf("ic policy invite %s --add 'LINE' --group GROUP", name)
	}
	return out, nil
}

func (i *invitation) print(w io.Writer) {
	fmt.Fprintf(w, "%s needs OpenSSH and nothing else.\n\n", i.Person)
	fmt.Fprintf(w, "Once: make a key, and keep its passphrase to yourself\n  %s\n", i.Make)
	fmt.Fprintf(w, "Send back the line that this prints; it is public\n  %s\n", i.Show)
	fmt.Fprintln(w, "Each time: read the file that was sent, sign it, send back the .sig beside it")
	for _, s := range i.Sign {
		fmt.Fprintf(w, "  %s\n", s.There)
	}
	fmt.Fprintln(w, "\nHere:")
	if i.Add != "" {
		fmt.Fprintf(w, "  %s\n", i.Add)
	}
	for _, s := range i.Sign {
		fmt.Fprintf(w, "  %s\n", s.Here)
	}
}

// addPerson stages a root with one more person.
func (a *app) addPerson(c config, dir string, p policy.NewPerson) error {
	if p.Full == "" {
		p.Full = p.Name
	}
	from := dir
	if staged, ok := policy.IsStaged(dir); ok {
		from = staged
	}
	root, err := policy.WithPerson(from, p)
	if err != nil {
		return fail(exitUsage, "%w", err)
	}
	if strings.TrimSpace(p.Reach) == "" {
		a.note("nothing says how %s is reached at night: --reach, or an edit of the staged root", p.Name)
	}
	return a.stage(c, dir, map[string][]byte{"root.yaml": root}, "")
}
