package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/degradedmode/ic/plugins/sdk"
)

const (
	headRef  = "refs/ic/head"
	notesRef = "refs/notes/ic-receipts" // where a pipeline may leave receipts

	// The history is fetched as deep as a question needs: most are answered by the
	// last few commits, and a whole monorepo does not come through at 3am.
	firstDepth = 64
	deepStep   = 8
	maxDepth   = firstDepth * deepStep * deepStep

	maxFile = 1 << 20 // bytes of the environment file: a larger one is something else
)

// head is the state of the file at the tip of the branch.
type head struct {
	commit string
	mode   string // of the file; empty if there is none
	text   []byte
	line   entry
	odd    error // why the line cannot be edited
}

// fetch brings the tip of the branch, at least depth commits of its history, and
// the pipeline's receipts.
func (b *Backend) fetch(ctx context.Context, depth int) error {
	if _, err := b.git.dial(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--force", fmt.Sprintf("--depth=%d", depth),
		"--", b.settings.repo, "+refs/heads/"+b.settings.branch+":"+headRef, "+"+notesRef+"*:"+notesRef+"*"); err != nil {
		return err
	}
	b.depth = depth
	return nil
}

// readHead reads the file at the tip of what was fetched.
func (b *Backend) readHead(ctx context.Context) (head, error) {
	commit, err := b.git.run(ctx, nil, "rev-parse", "--verify", "--end-of-options", headRef+"^{commit}")
	if err != nil {
		return head{}, err
	}
	return b.readAt(ctx, string(bytes.TrimSpace(commit)))
}

// readAt reads the file in one commit.
func (b *Backend) readAt(ctx context.Context, commit string) (head, error) {
	out := head{commit: commit}
	listed, err := b.git.run(ctx, nil, "ls-tree", "-z", "--full-tree", commit, "--", b.settings.path)
	if err != nil || len(listed) == 0 {
		return out, err
	}
	meta, name, _ := strings.Cut(strings.TrimSuffix(string(listed), "\x00"), "\t")
	fields := strings.Fields(meta)
	if len(fields) != 3 || name != b.settings.path || fields[1] != "blob" || fields[0] == "120000" {
		return out, sdk.Refuse(sdk.CodeBadConfig, "git path %q is not a plain file on branch %s", b.settings.path, b.settings.branch)
	}
	out.mode = fields[0]
	if out.text, err = b.git.run(ctx, nil, "cat-file", "blob", fields[2]); err != nil {
		return out, err
	}
	if len(out.text) > maxFile {
		return out, sdk.Refuse(sdk.CodeBadConfig, "git path %q has %d bytes, an environment file has at most %d", b.settings.path, len(out.text), maxFile)
	}
	out.line, out.odd = find(out.text)
	return out, nil
}

// edit is one commit, with the trailers that concern us.
type edit struct{ commit, author, operation, undo string }

func (e edit) ours() bool { return e.operation != "" || e.undo != "" }

// log lists commits, newest first.
func (b *Backend) log(ctx context.Context, args ...string) ([]edit, error) {
	trailer := func(key string) string { return "%(trailers:key=" + key + ",valueonly,separator=%x2C)" }
	format := "%H%x00%an%x00" + trailer("Ic-Operation") + "%x00" + trailer("Ic-Undo")
	out, err := b.git.run(ctx, nil, append([]string{"log", "-z", "--format=tformat:" + format}, args...)...)
	if err != nil {
		return nil, err
	}
	fields := strings.Split(string(out), "\x00")
	var edits []edit
	for ; len(fields) >= 4; fields = fields[4:] {
		edits = append(edits, edit{commit: fields[0], author: fields[1], operation: fields[2], undo: fields[3]})
	}
	return edits, nil
}

// deeper fetches more history. It reports false when there is no more, or no
// more is wanted.
func (b *Backend) deeper(ctx context.Context) (bool, error) {
	shallow, err := b.git.run(ctx, nil, "rev-parse", "--is-shallow-repository")
	if err != nil || string(bytes.TrimSpace(shallow)) != "true" || b.depth >= maxDepth {
		return false, err
	}
	return true, b.fetch(ctx, b.depth*deepStep)
}

// owner says who wrote the line that stands in h. A line with the value that a
// commit of ours gave it is ours, whoever brought it back.
func (b *Backend) owner(ctx context.Context, h head) (who string, ours bool, err error) {
	if h.odd == nil && h.line.value == "" {
		return "", true, nil // nothing, or a place kept free for us
	}
	for {
		who, ours, settled, err := b.writer(ctx, h)
		if err != nil || settled {
			return who, ours, err
		}
		more, err := b.deeper(ctx)
		if err != nil {
			return "", false, err
		}
		if !more {
			return who, false, nil
		}
	}
}

// writer looks through the history at hand. It is not settled while the line may
// be older than that.
func (b *Backend) writer(ctx context.Context, h head) (who string, ours, settled bool, err error) {
	edits, err := b.log(ctx, h.commit, "--", b.settings.path)
	if err != nil {
		return "", false, false, err
	}
	standing := true // the line has been as it is since this commit
	for _, e := range edits {
		if !standing && !e.ours() {
			continue
		}
		then, err := b.readAt(ctx, e.commit)
		if err != nil {
			return "", false, false, err
		}
		same := then.line.found && then.line.value == h.line.value && (then.odd == nil) == (h.odd == nil)
		if same && e.ours() && h.odd == nil {
			return "ic/" + e.operation + e.undo, true, true, nil
		}
		standing = standing && same
		if standing || who == "" {
			who = e.author
		}
	}
	return who, false, !standing, nil
}

// sent is an operation as the history has it.
type sent struct {
	edit   edit
	parent string // empty: it is the first commit of all
	undo   string // commit that took it back; empty if none
}

// operation looks for the commit of an operation, as deep as allowed.
func (b *Backend) operation(ctx context.Context, id string, deep bool) (out sent, found bool, err error) {
	for {
		out, found, err := b.look(ctx, id)
		if err != nil || found || !deep {
			return out, found, err
		}
		if more, err := b.deeper(ctx); err != nil || !more {
			return sent{}, false, err
		}
	}
}

func (b *Backend) look(ctx context.Context, id string) (out sent, found bool, err error) {
	edits, err := b.log(ctx, headRef, "--fixed-strings", "--grep=Ic-Operation: "+id, "--grep=Ic-Undo: "+id)
	if err != nil {
		return sent{}, false, err
	}
	for _, e := range edits {
		if e.undo == id && out.undo == "" {
			out.undo = e.commit
		}
		if e.operation == id {
			out.edit, found = e, true
		}
	}
	if !found {
		return sent{}, false, nil
	}
	parents, err := b.git.run(ctx, nil, "cat-file", "commit", out.edit.commit)
	if err != nil {
		return sent{}, false, err
	}
	// The commit itself names its parent also where a shallow history ends.
	if _, after, has := strings.Cut(string(parents), "\nparent "); has {
		out.parent = after[:strings.IndexByte(after, '\n')]
		if _, err := b.git.run(ctx, nil, "cat-file", "-e", out.parent); err != nil {
			return sent{}, false, ctx.Err() // one commit deeper
		}
	}
	return out, true, nil
}

// receipts are the lines that a pipeline has attached to a commit.
func (b *Backend) receipts(ctx context.Context, commit string) ([]string, error) {
	refs, err := b.git.run(ctx, nil, "for-each-ref", "--format=%(refname)", notesRef)
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	listed, err := b.git.run(ctx, nil, "notes", "--ref="+notesRef, "list")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(listed)) {
		note, about, _ := strings.Cut(strings.TrimSpace(line), " ")
		if about != commit {
			continue
		}
		text, err := b.git.run(ctx, nil, "cat-file", "blob", note)
		if err != nil {
			return nil, err
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n"), nil
	}
	return nil, nil
}

// write makes a commit on top of parent, in which the file has text; nil removes
// the file. Nothing is checked out.
func (b *Backend) write(ctx context.Context, parent head, text []byte, message string) (string, error) {
	if _, err := b.git.run(ctx, nil, "read-tree", parent.commit); err != nil {
		return "", err
	}
	entry := "0 " + strings.Repeat("0", len(parent.commit)) // removes
	if text != nil {
		blob, err := b.git.run(ctx, text, "hash-object", "-w", "--no-filters", "--stdin")
		if err != nil {
			return "", err
		}
		mode := parent.mode
		if mode == "" {
			mode = "100644"
		}
		entry = mode + " " + string(bytes.TrimSpace(blob))
	}
	if _, err := b.git.run(ctx, []byte(entry+"\t"+b.settings.path+"\x00"), "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	tree, err := b.git.run(ctx, nil, "write-tree")
	if err != nil {
		return "", err
	}
	commit, err := b.git.run(ctx, []byte(message), "commit-tree", "-p", parent.commit, "-F", "-", string(bytes.TrimSpace(tree)))
	return string(bytes.TrimSpace(commit)), err
}

// errOvertaken says that somebody else has pushed since we fetched.
var errOvertaken = errors.New("the branch has moved on")

// push moves the branch forward to commit.
func (b *Backend) push(ctx context.Context, commit string) error {
	out, err := b.git.dial(ctx, "push", "--porcelain", "--no-verify", "--", b.settings.repo, commit+":refs/heads/"+b.settings.branch)
	if err == nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "!") {
			continue
		}
		for _, sign := range []string{"[rejected]", "failed to update ref", "cannot lock ref", "failed to lock", "incorrect old value"} {
			if strings.Contains(line, sign) {
				return errOvertaken
			}
		}
		_, reason, _ := strings.Cut(line, "refs/heads/"+b.settings.branch+"\t")
		return sdk.Refuse(sdk.CodeDenied, "git push to %s was refused by the other side: %s", b.settings.branch, strings.TrimSpace(reason))
	}
	return err
}
