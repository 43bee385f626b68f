package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// ErrHung is wrapped when a folder did not answer within the deadline, or has
// not finished an earlier write yet.
var ErrHung = errors.New("the disk does not answer")

var errFull = errors.New("the file has reached its greatest length")

// extension of a segment's file.
const extension = ".jsonl"

// Folder is where the logs of an incident are in a state folder.
func Folder(state, incident string) string {
	return filepath.Join(state, "incidents", incident)
}

// segment is the file that takes entries now.
type segment struct {
	place  *place
	file   File
	chain  chain
	length int64
}

// place is one folder. At most one job is ever left behind in it, so a hung disk
// costs one goroutine and no more.
type place struct {
	folder string
	ended  func() bool // whether the job that was left behind has ended; nil: there is none
}

// busy reports whether a job that was left behind is still at work.
func (p *place) busy() bool {
	if p.ended != nil && p.ended() {
		p.ended = nil
	}
	return p.ended != nil
}

// within runs job and waits for it no longer than limit. A job that takes longer
// is left alone, and the file that it returns in the end is closed.
func (p *place) within(limit time.Duration, job func() (File, error)) (File, error) {
	if p.busy() {
		return nil, fmt.Errorf("%w: an earlier write has not ended", ErrHung)
	}
	type result struct {
		file File
		err  error
	}
	done := make(chan result, 1)
	go func() {
		file, err := job()
		done <- result{file, err}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.file, r.err
	case <-timer.C:
		p.ended = func() bool {
			select {
			case r := <-done:
				letGo(r.file)
				return true
			default:
				return false
			}
		}
		return nil, fmt.Errorf("%w within %s", ErrHung, limit)
	}
}

// commit writes d to the open segment. If that fails the segment is sealed, and
// d goes into a new one: in the first folder, or in the second.
func (w *Writer) commit(d draft) error {
	if w.segment != nil {
		err := w.write(d)
		if err == nil || errors.Is(err, ErrBody) {
			return err
		}
		w.seal(err)
	}
	if err := w.reopen(d); err != nil {
		return fmt.Errorf("%w: %w", ErrNotDurable, err)
	}
	return nil
}

// reopen begins a segment with drafts in the first folder that takes it.
func (w *Writer) reopen(drafts ...draft) error {
	var failed []error
	for _, p := range w.places {
		err := w.begin(p, drafts)
		taken := w.number == 1 && errors.Is(err, fs.ErrExist) // another session's log
		if err == nil || taken || errors.Is(err, ErrBody) {
			return err
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// block is one write: the entry and the checkpoint over everything up to it. The
// chain moves on; if the write fails, the chain is never used again.
func (w *Writer) block(c *chain, d draft) ([]byte, error) {
	line, err := d.line(w.o.Session, c.tree.size+1, c.prev)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBody, err)
	}
	if len(line) > MaxLine {
		return nil, fmt.Errorf("%w: the line has %d bytes, at most %d", ErrBody, len(line), MaxLine)
	}
	if err := c.add(line); err != nil {
		return nil, err
	}
	checkpoint, err := c.checkpoint(w.signer)
	if err != nil {
		return nil, err
	}
	block := make([]byte, 0, len(line)+len(checkpoint)+2)
	block = append(append(block, line...), '\n')
	block = append(append(block, checkpoint...), '\n')
	c.close(block)
	return block, nil
}

// write appends d to the open segment, after making sure that it is still the
// file that readers find.
func (w *Writer) write(d draft) error {
	s := w.segment
	if s.length >= MaxSegment-2*MaxLine {
		return errFull
	}
	block, err := w.block(&s.chain, d)
	if err != nil {
		return err
	}
	file, length := s.file, s.length
	_, err = s.place.within(w.o.Limit, func() (File, error) {
		there, err := file.Length()
		if err != nil {
			return file, fmt.Errorf("the file is not where it was: %w", err)
		}
		if there != length {
			return file, fmt.Errorf("the file has %d bytes and should have %d: someone else wrote to it", there, length)
		}
		return file, writeDurably(file, block)
	})
	if err != nil {
		return err
	}
	s.length += int64(len(block))
	w.acknowledge(s.chain.head())
	return nil
}

// begin opens the next segment in p with its first entry and drafts. Either all
// of it becomes durable or the segment does not count.
func (w *Writer) begin(p *place, drafts []draft) error {
	w.number++
	c := newChain(w.name, w.number)
	start, err := newDraft(w.o.Clock.Now(), w.o.Actor, SessionStart{
		Segment: w.number, Statement: w.statement, Certificate: w.certificate,
		BeganBoot: w.began.BootID, BeganNS: int64(w.began.Boot), Sealed: w.sealed,
	})
	if err != nil {
		return err
	}
	var blocks [][]byte
	var length int64
	for _, d := range append([]draft{start}, drafts...) {
		block, err := w.block(&c, d)
		if err != nil {
			return err
		}
		blocks, length = append(blocks, block), length+int64(len(block))
	}
	on, path := w.o.FS, filepath.Join(p.folder, segmentOf(w.o.Session, w.number)+extension)
	file, err := p.within(w.o.Limit, func() (File, error) {
		f, err := createDurably(on, path)
		if err != nil {
			return nil, err
		}
		for _, block := range blocks {
			if err := writeDurably(f, block); err != nil {
				return nil, errors.Join(err, f.Close(), on.Remove(path))
			}
		}
		return f, nil
	})
	if err != nil {
		return err
	}
	w.segment = &segment{place: p, file: file, chain: c, length: length}
	w.acknowledge(c.head())
	return nil
}

// seal leaves the open segment for good. Its last acknowledged entry is what the
// next one names; what may lie behind that in the file was never relied upon.
func (w *Writer) seal(why error) {
	s := w.segment
	w.segment = nil
	head := w.Head()
	w.sealed = &Sealed{Origin: head.Origin, Size: head.Size, Root: head.Root, Why: cause(why)}
	if s.place.ended != nil {
		return // the job left behind still holds the file, and closes it
	}
	letGo(s.file)
}

func (w *Writer) acknowledge(h model.LogHead) { w.lastHead.Store(&h) }

// letGo closes a file that is given up. Everything acknowledged in it is synced,
// so nothing can be learned from an error.
func letGo(f File) {
	if f != nil {
		_ = f.Close()
	}
}
