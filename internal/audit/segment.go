package audit

import (
	"errors"
	"fmt"
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

// within runs job and waits for it no longer than limit. A job that takes longer
// is left alone; what it makes in the end is dropped.
func within[T any](p *place, limit time.Duration, job func() (T, error), drop func(T)) (T, error) {
	var none T
	if p.ended != nil && !p.ended() {
		return none, fmt.Errorf("%w: an earlier write has not ended", ErrHung)
	}
	p.ended = nil
	type result struct {
		made T
		err  error
	}
	done := make(chan result, 1)
	go func() {
		made, err := job()
		done <- result{made, err}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.made, r.err
	case <-timer.C:
		p.ended = func() bool {
			select {
			case r := <-done:
				if r.err == nil {
					drop(r.made)
				}
				return true
			default:
				return false
			}
		}
		return none, fmt.Errorf("%w within %s", ErrHung, limit)
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
	var failed []error
	for _, p := range w.places {
		err := w.begin(p)
		if err == nil {
			if err = w.write(d); err == nil || errors.Is(err, ErrBody) {
				return err
			}
			w.seal(err)
		}
		failed = append(failed, err)
	}
	w.why = errors.Join(failed...)
	return fmt.Errorf("%w: %w", ErrNotDurable, w.why)
}

// reopen opens a segment in the first folder that takes one.
func (w *Writer) reopen() {
	var failed []error
	for _, p := range w.places {
		err := w.begin(p)
		if err == nil {
			return
		}
		failed = append(failed, err)
	}
	w.why = errors.Join(failed...)
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
	_, err = within(s.place, w.o.Limit, func() (File, error) {
		there, err := file.Length()
		if err != nil {
			return nil, fmt.Errorf("the file is not where it was: %w", err)
		}
		if there != length {
			return nil, fmt.Errorf("the file has %d bytes and should have %d: someone else wrote to it", there, length)
		}
		return file, writeDurably(file, block)
	}, closeFile)
	if err != nil {
		return err
	}
	s.length += int64(len(block))
	w.acknowledge(s.chain.head())
	return nil
}

// begin opens the next segment in p and writes its first entry.
func (w *Writer) begin(p *place) error {
	w.number++
	c := newChain(w.name, w.number)
	d, err := newDraft(w.o.Clock.Now(), w.o.Actor, SessionStart{
		Segment: w.number, Statement: w.statement, Certificate: w.certificate,
		BeganNS: int64(w.began.Boot), Sealed: w.sealed,
	})
	if err != nil {
		return err
	}
	block, err := w.block(&c, d)
	if err != nil {
		return err
	}
	on, path := w.o.FS, filepath.Join(p.folder, segmentOf(w.o.Session, w.number)+extension)
	file, err := within(p, w.o.Limit, func() (File, error) {
		f, err := createDurably(on, path)
		if err != nil {
			return nil, err
		}
		if err := writeDurably(f, block); err != nil {
			return nil, errors.Join(err, f.Close(), on.Remove(path))
		}
		return f, nil
	}, closeFile)
	if err != nil {
		return err
	}
	w.segment = &segment{place: p, file: file, chain: c, length: int64(len(block))}
	w.acknowledge(c.head())
	return nil
}

// seal leaves the open segment for good. Its last acknowledged entry is what the
// next one names; what may lie behind that in the file was never relied upon.
func (w *Writer) seal(why error) {
	s := w.segment
	w.segment, w.why = nil, why
	head := w.Head()
	w.sealed = &Sealed{Origin: head.Origin, Size: head.Size, Root: head.Root, Why: cause(why)}
	if s.place.ended != nil {
		return // the job left behind still holds the file, and closes it
	}
	closeFile(s.file)
}

func (w *Writer) acknowledge(h model.LogHead) { w.lastHead.Store(&h) }

// closeFile lets go of a file that is given up: everything acknowledged in it is
// synced, so nothing can be learned from an error.
func closeFile(f File) { _ = f.Close() }
