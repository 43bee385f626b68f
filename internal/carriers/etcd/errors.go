package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/degradedmode/ic/internal/untrusted"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Errors that a caller may decide on.
var (
	// ErrExists: the key holds something else than the caller thought. A
	// directive is written once; a lease or a proposal has moved on.
	ErrExists = errors.New("etcd holds another value there already; read it again")
	// ErrUnreachable: nobody answered in time. A write may have happened; the
	// same write may be repeated.
	ErrUnreachable = errors.New("etcd is unreachable; hosts keep what they hold, and breaking glass does not need it")
	// ErrReadOnly: the store is full and takes no writes; reads still work.
	ErrReadOnly = errors.New("etcd is full and read-only: compact and defragment it, then disarm its alarm; until then use another carrier")
	// ErrCorrupt: its members hold different data, and it says so itself.
	ErrCorrupt = errors.New("etcd has found its own data corrupt and is read-only: restore it from a backup, then ic reissue; until then use another carrier")
	// ErrBusy: it answered that it has too much to do.
	ErrBusy = errors.New("etcd has more requests than it can serve: try again, or use another carrier")
	// ErrAuth: etcd answered and refused the credentials.
	ErrAuth = errors.New("etcd refuses the credentials: check user, password or client certificate and the role's permission on /ic/")
	// ErrNoQuorum: a member answered and cannot reach enough of the others.
	ErrNoQuorum = errors.New("etcd has no leader: too many of its members are down or cut off; hosts keep what they hold, use another carrier")
)

// maxDetail bounds what is quoted of etcd's own words, in bytes.
const maxDetail = 200

// explain says in plain words what was tried, on what, and why it failed.
func (c *Carrier) explain(what string, err error) error {
	where, detail := strings.Join(c.opts.Endpoints, ", "), untrusted.Text(reason(err), maxDetail)
	if kind := kindOf(err); kind != nil {
		return fmt.Errorf("%s at %s: %w (%s)", what, where, kind, detail)
	}
	return fmt.Errorf("%s in etcd at %s: %s", what, where, detail)
}

// kindOf sorts an error of the client into one that a caller knows, nil if none
// fits.
func kindOf(err error) error {
	for _, known := range []struct {
		kind error
		of   []error
	}{
		{ErrReadOnly, []error{rpctypes.ErrNoSpace}},
		{ErrCorrupt, []error{rpctypes.ErrCorrupt}},
		{ErrBusy, []error{rpctypes.ErrTooManyRequests}},
		{ErrAuth, []error{
			rpctypes.ErrPermissionDenied, rpctypes.ErrAuthFailed, rpctypes.ErrInvalidAuthToken, rpctypes.ErrUserEmpty,
			rpctypes.ErrUserNotFound, rpctypes.ErrAuthOldRevision,
		}},
		{ErrNoQuorum, []error{rpctypes.ErrNoLeader, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrUnhealthy}},
		{context.Canceled, []error{context.Canceled}},
		{ErrUnreachable, []error{context.DeadlineExceeded}},
	} {
		for _, e := range known.of {
			if errors.Is(err, e) {
				return known.kind
			}
		}
	}
	if unavailable(err) {
		return ErrUnreachable
	}
	return nil
}

// reason is the innermost text, without gRPC's framing.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	s, ok := status.FromError(err)
	if !ok {
		return err.Error()
	}
	text := s.Message()
	if _, cause, found := strings.Cut(text, "Error while dialing: "); found {
		text = strings.TrimSuffix(cause, `"`)
	}
	return text
}

// isUnknownCall: something stands in for etcd that serves its keys only.
func isUnknownCall(err error) bool { return codeOf(err) == codes.Unimplemented }

func unavailable(err error) bool { return codeOf(err) == codes.Unavailable }

// tooLarge means that the answer, not the store, has no room.
func tooLarge(err error) bool {
	return codeOf(err) == codes.ResourceExhausted && !errors.Is(err, rpctypes.ErrNoSpace)
}

func codeOf(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}
