package audit

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/sshsig"
)

// MaxStatement is the longest text of a sign-off in bytes: a finding, not a
// report.
const MaxStatement = 2000

// maxSubject bounds what a sign-off is about: a directive's id, or a word and a
// name.
const maxSubject = 200

// ErrSignoff is wrapped by every error about a sign-off that is not one.
var ErrSignoff = errors.New("not a sign-off")

// SignoffStatement is what a person signs about something that is owed. Subject
// is the id of a directive whose use is reviewed, or "override/<operation>" or
// "host/<name>" for what an owner waives when an incident is closed.
type SignoffStatement struct {
	V         int    `json:"v"`
	Fleet     string `json:"fleet"`
	Incident  string `json:"incident"`
	Subject   string `json:"subject"`
	Statement string `json:"statement"`
	At        string `json:"at"` // UTC, whole seconds
}

// NewSignoff gives the exact bytes of a statement, which are then signed.
func NewSignoff(fleet, incident, subject, statement string, at time.Time) ([]byte, error) {
	raw, err := canonical(SignoffStatement{V: formatVersion, Fleet: fleet, Incident: incident, Subject: subject,
		Statement: statement, At: at.UTC().Format(certificateLayout)})
	if err != nil {
		return nil, err
	}
	_, err = Signoff{Statement: string(raw)}.Read()
	return raw, err
}

// Read takes the statement apart. It does not look at the signature: SignedBy
// does.
func (s Signoff) Read() (SignoffStatement, error) {
	var out SignoffStatement
	if err := strict([]byte(s.Statement), &out); err != nil {
		return out, fmt.Errorf("%w: %w", ErrSignoff, err)
	}
	again, err := canonical(out)
	if err != nil {
		return out, err
	}
	_, badTime := time.Parse(certificateLayout, out.At)
	switch {
	case !bytes.Equal(again, []byte(s.Statement)):
		return out, fmt.Errorf("%w: the bytes are not canonical", ErrSignoff)
	case out.V != formatVersion:
		return out, fmt.Errorf("%w: version %d, this software reads %d", ErrSignoff, out.V, formatVersion)
	case badTime != nil:
		return out, fmt.Errorf("%w: %w", ErrSignoff, badTime)
	case out.Subject == "" || len(out.Subject) > maxSubject:
		return out, fmt.Errorf("%w: the subject has %d bytes, 1 to %d are possible", ErrSignoff, len(out.Subject), maxSubject)
	case out.Statement == "" || len(out.Statement) > MaxStatement:
		return out, fmt.Errorf("%w: the statement has %d bytes, 1 to %d are possible", ErrSignoff, len(out.Statement), MaxStatement)
	}
	return out, nil
}

// SignedBy checks the signature and returns the statement and the fingerprint of
// the key that made it. Whose key that is, and whether it may sign this off, the
// caller has to find out.
func (s Signoff) SignedBy(realm directive.Realm, fleet string) (SignoffStatement, string, error) {
	out, err := s.Read()
	if err != nil {
		return out, "", err
	}
	if out.Fleet != fleet {
		return out, "", fmt.Errorf("%w: it is of fleet %q, this is %q", ErrSignoff, out.Fleet, fleet)
	}
	sig, err := sshsig.Parse(s.Signature, sshsig.ForDirective)
	if err != nil {
		return out, "", fmt.Errorf("%w: %w", ErrSignoff, err)
	}
	if err := sig.Verify([]byte(s.Statement), realm.Namespace("signoff", fleet)); err != nil {
		return out, "", fmt.Errorf("%w: %w", ErrSignoff, err)
	}
	return out, sig.Fingerprint, nil
}
