package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"golang.org/x/mod/sumdb/note"
)

// DefaultDeadline is how long one folder may take for one append, in real time.
// A disk that needs longer is treated as hung: the person is waiting.
const DefaultDeadline = 2 * time.Second

// maxLate bounds the receipts in memory: a night of acts by hand. Beyond it the
// oldest stay, because the first acts of an outage explain the rest.
const maxLate = 4096

var (
	// ErrNotDurable is wrapped by Append when no folder could take the entry.
	// Nothing that depends on the entry may happen.
	ErrNotDurable = errors.New("the log cannot be made durable")
	// ErrSessionOver is wrapped when the session's certificate has run out or the
	// writer was closed. Open a new session, with Late carried over.
	ErrSessionOver = errors.New("the session is over")
)

// Options say whose session it is and what it writes with.
type Options struct {
	Realm    directive.Realm
	Fleet    string
	Incident string
	Session  string // new for every start; [a-z0-9_-], at most 48 bytes
	Actor    string // the person or machine at work, as the policy names it

	// Second is another state folder, on another disk if there is one; "" is none.
	Second string
	// Certify signs the session's statement with the operator's SSH key in the
	// namespace <realm>-session-v1@<fleet> and returns the SSHSIG blob. It is
	// called once, by Open.
	Certify func(statement []byte) ([]byte, error)
	Clock   model.Clock
	Rand    io.Reader
	FS      FS            // nil: OS
	Limit   time.Duration // per folder and append; 0: DefaultDeadline
	Late    []Receipt     // receipts of an earlier session of this process
}

// Writer appends to the log of one session. It is safe for use by several
// goroutines. An append waits for at most three limits: the open segment and a
// new one in each folder; a disk that hangs costs one.
type Writer struct {
	o           Options
	name        string // origin of the first segment
	signer      note.Signer
	statement   string
	certificate []byte
	began       model.Instant

	mu       sync.Mutex
	places   []*place
	segment  *segment // nil: no file takes entries now
	number   int      // of the last segment that was tried
	sealed   *Sealed  // what the next segment continues
	late     []Receipt
	closed   bool
	lastHead atomic.Pointer[model.LogHead]
}

// Open begins a session. It fails if the options are wrong or the key is not
// certified. If no folder can take the log it does not fail: the writer then
// gives receipts, and Ready says why.
func Open(state string, o Options) (*Writer, error) {
	if o.FS == nil {
		o.FS = OS{}
	}
	if o.Limit == 0 {
		o.Limit = DefaultDeadline
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	w := &Writer{
		o: o, name: o.Fleet + "/" + o.Incident + "/" + o.Session, began: o.Clock.Now(),
		places: []*place{{folder: Folder(state, o.Incident)}}, late: slices.Clone(o.Late),
	}
	if o.Second != "" {
		w.places = append(w.places, &place{folder: Folder(o.Second, o.Incident)})
	}
	if err := w.certify(); err != nil {
		return nil, err
	}
	empty := newChain(w.name, 1)
	w.acknowledge(empty.head())
	if err := w.reopen(); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("open a log: %w: a session's name is used once", err)
	}
	return w, nil
}

func (o *Options) check() error {
	switch {
	case o.Realm == "" || o.Certify == nil || o.Clock == nil || o.Rand == nil:
		return errors.New("open a log: realm, certify, clock and rand are required")
	case !directive.Name(o.Fleet) || !directive.Name(o.Incident):
		return fmt.Errorf("open a log: %q/%q: fleet and incident are names of a-z, 0-9, '-', '.', '_'", o.Fleet, o.Incident)
	case !sessionName(o.Session):
		return fmt.Errorf("open a log: session %q is not a name of a-z, 0-9, '-', '_' and at most %d bytes", o.Session, maxSessionName)
	case o.Actor == "" || len(o.Actor) > maxActor:
		return fmt.Errorf("open a log: actor %q has to have 1 to %d bytes", o.Actor, maxActor)
	}
	return nil
}

// certify makes the checkpoint key and has the operator vouch for it.
func (w *Writer) certify() error {
	signer, key, err := newKey(w.o.Rand, w.name)
	if err != nil {
		return fmt.Errorf("make the session's key: %w", err)
	}
	from := w.began.Wall.UTC().Truncate(time.Second)
	raw, err := canonical(Statement{
		V: formatVersion, Fleet: w.o.Fleet, Session: w.o.Session, Person: w.o.Actor, Key: key,
		From: from.Format(certificateLayout), Until: from.Add(MaxSession).Format(certificateLayout),
	})
	if err != nil {
		return fmt.Errorf("write the session's statement: %w", err)
	}
	blob, err := w.o.Certify(raw)
	if err != nil {
		return fmt.Errorf("certify the session's key: %w", err)
	}
	statement, err := readStatement(string(raw))
	if err != nil {
		return fmt.Errorf("read back the session's statement: %w", err)
	}
	if _, err := statement.signedBy(string(raw), blob, w.o.Realm); err != nil {
		return err
	}
	w.signer, w.statement, w.certificate = signer, string(raw), blob
	return nil
}

// Append makes an entry durable or fails. It is what comes before a loosening or
// a recovery: an error means that the act must not happen.
func (w *Writer) Append(body Body) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	d, err := newDraft(w.o.Clock.Now(), w.o.Actor, body)
	if err != nil {
		return err
	}
	return w.append(d)
}

// AppendOrReceipt makes an entry durable if any folder allows it, and otherwise
// returns a receipt: show its Text, go on. The receipt is kept and chained as a
// late entry by the next append that succeeds. It is what accompanies a
// tightening, which no disk may hold up. The error is ErrBody only: an entry that
// the format cannot hold.
func (w *Writer) AppendOrReceipt(body Body) (*Receipt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d, err := newDraft(w.o.Clock.Now(), w.o.Actor, body)
	if err != nil {
		return nil, err
	}
	why := w.append(d)
	if why == nil {
		return nil, nil
	}
	r := d.receipt(why)
	if len(w.late) < maxLate {
		w.late = append(w.late, r)
	}
	return &r, nil
}

// Ready reports whether a durable entry can be made now. After a failure it
// tries: it opens a segment and chains what is late, within the deadline.
func (w *Writer) Ready() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.over(w.o.Clock.Now()); err != nil {
		return err
	}
	if w.segment == nil {
		if err := w.reopen(); err != nil {
			return fmt.Errorf("%w: %w", ErrNotDurable, err)
		}
	}
	return w.chainLate()
}

// Head is where the log stands: the last entry that was acknowledged. It never
// waits for a disk.
func (w *Writer) Head() model.LogHead { return *w.lastHead.Load() }

// Over reports whether the session has run out or was closed: the next entry
// needs a new one.
func (w *Writer) Over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over(w.o.Clock.Now()) != nil
}

// Late lists the receipts that are not chained yet.
func (w *Writer) Late() []Receipt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.late)
}

// Close ends the session in order. It fails if receipts stay unchained, which
// Late then lists, or the end could not be written; the session is over either
// way.
func (w *Writer) Close(why string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	err := w.chainLate()
	if err == nil {
		err = w.end(why)
	}
	w.closed = true
	if w.segment != nil {
		err = errors.Join(err, w.segment.file.Close())
		w.segment = nil
	}
	return err
}

// end writes the last entry, unless the certificate has run out: then the log
// ends where it was still covered.
func (w *Writer) end(why string) error {
	d, err := newDraft(w.o.Clock.Now(), w.o.Actor, SessionEnd{Why: why})
	if err == nil {
		err = w.over(d.now)
	}
	if err != nil {
		return err
	}
	return w.commit(d)
}

// over reports whether the certificate still covers now, by elapsed boot time
// where the boot is the same: a wall clock that jumps must not end a session.
func (w *Writer) over(now model.Instant) error {
	if w.closed {
		return fmt.Errorf("%w: it was closed", ErrSessionOver)
	}
	elapsed := now.Wall.Sub(w.began.Wall)
	if now.BootID == w.began.BootID {
		elapsed = now.Boot - w.began.Boot
	}
	if elapsed >= MaxSession {
		return fmt.Errorf("%w: it began %s ago and is certified for %s", ErrSessionOver, elapsed.Round(time.Second), MaxSession)
	}
	return nil
}

// append makes d durable, and then, while the person would not notice, what is
// late. Whether that succeeds says nothing about d: a receipt that is still not
// chained stays in memory.
func (w *Writer) append(d draft) error {
	if err := w.over(d.now); err != nil {
		return err
	}
	if err := w.commit(d); err != nil {
		return err
	}
	_ = w.chainLate()
	return nil
}

// chainLate writes the receipts in memory, oldest first, for at most one limit.
func (w *Writer) chainLate() error {
	began := time.Now() // real time, like every deadline of I/O
	for len(w.late) > 0 {
		if time.Since(began) > w.o.Limit {
			return fmt.Errorf("%w: %d receipts are not chained yet", ErrHung, len(w.late))
		}
		d, err := newDraft(w.o.Clock.Now(), w.o.Actor, Late{Receipt: w.late[0]})
		if err == nil {
			err = w.over(d.now)
		}
		if err == nil {
			err = w.commit(d)
		}
		if err != nil {
			return err
		}
		w.late = w.late[1:]
	}
	return nil
}
