package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/degradedmode/ic/internal/incident"
	runs "github.com/degradedmode/ic/internal/runbooks/run"
)

// maxAnswers bounds a script of answers: 200 steps with a long sentence each.
const maxAnswers = 256 << 10

// waitLineEvery is how often somebody who waits is told that we wait too.
const waitLineEvery = 10 * time.Second

// answers are the lines of a script by step, in their order.
type answers map[string][]string

func parseAnswers(name, text string) (answers, error) {
	out := answers{}
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		step, answer, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(step) == "" {
			return nil, fail(exitUsage, "%s: line %d: an answer is a line \"STEP: ANSWER\"", name, i+1)
		}
		step = strings.TrimSpace(step)
		out[step] = append(out[step], strings.TrimSpace(answer))
	}
	return out, nil
}

// walked is a run as a command prints it.
type walked struct {
	runs.View
	Incident string          `json:"incident"`
	Question *runs.Question  `json:"question,omitempty"` // what it waits for
	Stopped  string          `json:"stopped,omitempty"`  // why it goes no further by itself
	Undos    []runs.Undoable `json:"undos,omitempty"`    // of a run that was aborted
	Receipts []string        `json:"receipts,omitempty"`
}

func (w *walk) state(ctx context.Context, r *runs.Run, stopped error) walked {
	v := walked{View: r.View(), Incident: w.desk.Snapshot().World.Incident.ID, Receipts: r.Receipts()}
	if stopped != nil {
		v.Stopped = stopped.Error()
		if errors.Is(stopped, runs.ErrAnswer) {
			v.Question, _ = r.Question(ctx) // what cannot be shown is in Stopped
		}
	}
	if v.End == runs.Aborted {
		v.Undos = r.Undos()
	}
	return v
}

// print prints where a run stands, and settles the exit code of one that stopped.
func (w *walk) print(ctx context.Context, r *runs.Run, stopped error) error {
	v := w.state(ctx, r, stopped)
	if stopped != nil {
		w.a.code = codeOf(hinted(stopped))
		if ctx.Err() != nil {
			w.a.code = exitInterrupted
		}
	}
	return w.a.print(v, func(out io.Writer) { printRun(out, v) })
}

// errLeft is what becomes of a run that somebody leaves where it stands.
var errLeft error = fail(exitInterrupted, "left where it stands")

// follow takes a run as far as it goes.
func (w *walk) follow(ctx context.Context, r *runs.Run) error {
	if w.talks() {
		w.a.note("/skip REASON, /abort REASON and /leave are understood at every question")
	}
	shown := ""
	for {
		v := r.View()
		if v.Finished {
			return w.print(ctx, r, nil)
		}
		if v.Current != shown {
			shown = v.Current
			w.show(r, v.Current)
		}
		err := w.step(ctx, r)
		switch {
		case err == nil:
		case errors.Is(err, errLeft):
			return w.print(ctx, r, err)
		case w.talks() && ctx.Err() == nil && !errors.Is(err, runs.ErrTaken) && !errors.Is(err, runs.ErrOver):
			if err = w.afterStop(ctx, r, err); err != nil {
				return w.print(ctx, r, err)
			}
		case errors.Is(err, runs.ErrStopped) && w.scripted(ctx, r, v.Current):
		default:
			return w.print(ctx, r, err)
		}
	}
}

// scripted: the step that did not hold asks something, and the script has
// something to say to it.
func (w *walk) scripted(ctx context.Context, r *runs.Run, step string) bool {
	q, err := r.Question(ctx)
	return err == nil && q != nil && len(w.answers[step]) > 0
}

// talks: a person sits here.
func (w *walk) talks() bool { return w.answers == nil && w.a.terminal() }

// show prints the step that comes, and what it means.
func (w *walk) show(r *runs.Run, id string) {
	rb := r.Runbook()
	for i := range rb.Steps {
		if rb.Steps[i].ID == id && !w.a.json {
			printStep(w.a.err, i, &rb.Steps[i])
		}
	}
}

// step asks and takes one step.
func (w *walk) step(ctx context.Context, r *runs.Run) error {
	q, err := r.Question(ctx)
	if err != nil {
		return err
	}
	answer, err := w.answer(ctx, r, q)
	if errors.Is(err, errCommand) {
		return nil
	}
	if err != nil {
		return err
	}
	w.told, w.stays = time.Time{}, answer.Choose == runs.ChooseStop
	v, err := r.Next(ctx, answer)
	if err == nil && !w.a.json {
		fmt.Fprintf(w.a.err, "  = %s\n", stepLine(&v))
	}
	return err
}

// answer finds the answer to a question: of a person, of the script, or of --yes.
func (w *walk) answer(ctx context.Context, r *runs.Run, q *runs.Question) (runs.Answer, error) {
	if q == nil {
		return runs.Answer{}, nil
	}
	if !w.a.json || w.talks() {
		w.describe(q)
	}
	if w.talks() {
		line, err := w.ask(ctx, r, q)
		if err != nil {
			return runs.Answer{}, err
		}
		a, err := answerOf(q, line)
		a.Asked = true
		return a, err
	}
	lines := w.answers[q.Step]
	switch {
	case len(lines) > 0:
		w.answers[q.Step] = lines[1:]
		return answerOf(q, lines[0])
	case q.Kind == runs.AskConfirm && w.a.yes:
		return runs.Answer{Confirm: true}, nil
	}
	return runs.Answer{}, fmt.Errorf("%w: step %s: %s", runs.ErrAnswer, q.Step, q.Text)
}

// answerOf reads an answer as the question wants it.
func answerOf(q *runs.Question, line string) (runs.Answer, error) {
	line = strings.TrimSpace(line)
	switch q.Kind {
	case runs.AskConfirm:
		if want := orElse(q.Typed, "yes"); line != want {
			return runs.Answer{}, fmt.Errorf("%w: step %s: nothing was done: %q was not typed", runs.ErrAnswer, q.Step, want)
		}
		return runs.Answer{Confirm: true}, nil
	case runs.AskSeen:
		return runs.Answer{Seen: line}, nil
	}
	word, seen, _ := strings.Cut(line, " ")
	return runs.Answer{Choose: word, Seen: strings.TrimSpace(seen)}, nil
}

// describe shows what is asked.
func (w *walk) describe(q *runs.Question) {
	out := w.a.err
	switch {
	case q.Preview != nil:
		describePreview(out, q.Preview)
	case q.Plan != nil:
		printPlan(out, q.Plan)
	default:
		fmt.Fprintf(out, "%s\n", q.Text)
	}
	for _, o := range q.Options {
		to := ""
		if o.Goto != "" {
			to = "  -> " + o.Goto
		}
		fmt.Fprintf(out, "  %-10s %s%s\n", o.Choose, o.Means, to)
	}
}

// errCommand means that the line was one of ours and no answer.
var errCommand = errors.New("a command")

// ask reads one line of a person.
func (w *walk) ask(ctx context.Context, r *runs.Run, q *runs.Question) (string, error) {
	prompt := "> "
	if q.Kind == runs.AskConfirm {
		prompt = fmt.Sprintf("type %q to go on: ", orElse(q.Typed, "yes"))
	}
	fmt.Fprint(w.a.err, prompt)
	line, err := readLine(w.a.in)
	if err != nil {
		return "", errLeft
	}
	if !strings.HasPrefix(line, "/") {
		return line, nil
	}
	return "", w.command(ctx, r, line)
}

// command obeys a line that begins with a slash.
func (w *walk) command(ctx context.Context, r *runs.Run, line string) error {
	verb, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch verb {
	case "/skip":
		v, err := r.Skip(ctx, reason)
		if err != nil {
			return err
		}
		fmt.Fprintf(w.a.err, "  = %s\n", stepLine(&v))
		return errCommand
	case "/abort":
		if err := r.Abort(ctx, reason); err != nil {
			return err
		}
		return errCommand
	case "/leave":
		return errLeft
	}
	return fmt.Errorf("%w: %s is not understood: /skip REASON, /abort REASON, /leave", runs.ErrAnswer, verb)
}

// afterStop says why a step did not go on, and asks the person what to do.
func (w *walk) afterStop(ctx context.Context, r *runs.Run, why error) error {
	w.a.note("%v", why)
	if errors.Is(why, runs.ErrAnswer) {
		return nil
	}
	if errors.Is(why, runs.ErrStopped) && !w.stays {
		if q, err := r.Question(ctx); err == nil && q != nil {
			return nil // what to do now is what the step asks
		}
	}
	for {
		fmt.Fprint(w.a.err, "Enter tries again, or /skip REASON, /abort REASON, /leave: ")
		line, err := readLine(w.a.in)
		if err != nil {
			return errLeft
		}
		if strings.TrimSpace(line) == "" {
			return nil
		}
		err = w.command(ctx, r, line)
		if errors.Is(err, errCommand) {
			return nil
		}
		if errors.Is(err, errLeft) {
			return err
		}
		w.a.note("%v", err)
	}
}

// undoAll takes the effects of a run back, the last one first. One that cannot be
// taken back now does not hold up the others.
func (w *walk) undoAll(ctx context.Context, r *runs.Run) error {
	for _, u := range r.Undos() {
		if u.What == "" {
			w.a.note("%s stays: %s", u.Step, u.Why)
			continue
		}
		w.a.note("undo %s: %s", u.Step, u.What)
		q, err := r.UndoQuestion(ctx, u.Step)
		if err == nil {
			var answer runs.Answer
			if q != nil {
				q.Step = u.Step + "/undo"
			}
			if answer, err = w.answer(ctx, r, q); err == nil {
				_, err = r.Undo(ctx, u.Step, answer)
			}
		}
		if errors.Is(err, errLeft) {
			return nil
		}
		if err != nil {
			w.a.note("%s is not undone: %v", u.Step, err)
			w.a.code = max(w.a.code, codeOf(hinted(err)))
		}
	}
	return nil
}

// progress tells somebody who waits what is waited for.
func (w *walk) progress(text string) {
	now := w.a.real()
	if now.Sub(w.told) < waitLineEvery {
		return
	}
	w.told = now
	w.a.note("%s", text)
}

// printRun prints a run for a person: what is done, on what evidence, and what
// comes.
func printRun(out io.Writer, v walked) {
	word := "goes on"
	if v.End != "" {
		word = v.End
	}
	fmt.Fprintf(out, "run %s of %s: %s\n", v.Run, v.Runbook, word)
	fmt.Fprintf(out, "  %s; begun by %s at %s, followed by %s; sha256 %.12s, %s\n", v.Title, v.By, v.At.UTC().Format("15:04:05Z"), v.TakenBy, v.Digest, v.Signature)
	for _, warning := range v.Warnings {
		fmt.Fprintf(out, "  ! %s\n", warning)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := range v.Steps {
		s := &v.Steps[i]
		fmt.Fprintf(t, "  %s\t%s\t%s\n", s.ID, s.State, evidence(s))
	}
	t.Flush()
	for _, u := range v.Undos {
		if u.What == "" {
			fmt.Fprintf(out, "  stays    %s: %s\n", u.Step, u.Why)
			continue
		}
		fmt.Fprintf(out, "  to undo  %s: %s (ic runbook abort %s --undo)\n", u.Step, u.What, v.Run)
	}
	if v.Stopped != "" {
		fmt.Fprintf(out, "stopped: %s\n  ic runbook resume %s goes on; ic runbook skip, ic runbook abort\n", v.Stopped, v.Run)
	}
	for _, r := range v.Receipts {
		fmt.Fprintf(out, "\nthe record is not on disk yet; keep this text:\n%s\n", r)
	}
}

func stepLine(s *runs.StepView) string { return s.ID + " " + s.State + "  " + evidence(s) }

// evidence is what a step left behind, in one line.
func evidence(s *runs.StepView) string {
	var parts []string
	if s.Choice != "" {
		parts = append(parts, "chose "+s.Choice)
	}
	if s.Value != "" {
		parts = append(parts, fmt.Sprintf("%s (%d s old)", s.Value, s.AgeS))
	}
	parts = append(parts, s.Seen, s.Detail)
	if len(s.Directive) > 0 {
		parts = append(parts, incident.ShortID(s.Directive))
	}
	if s.By != "" {
		parts = append(parts, fmt.Sprintf("%s at %s", s.By, s.At.UTC().Format("15:04:05Z")))
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}
