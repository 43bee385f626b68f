package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestWaitsAreCappedBeforeTheyAreSpread(t *testing.T) {
	for _, c := range []struct {
		failures int
		jitter   float64
		want     time.Duration
	}{
		{0, 0, 125 * time.Millisecond},
		{0, 0.5, 250 * time.Millisecond},
		{1, 0.5, 500 * time.Millisecond},
		{5, 0.5, 8 * time.Second},
		{6, 0.5, 10 * time.Second},
		{6, 0, 5 * time.Second},
		{6, 0.75, 12500 * time.Millisecond},
		{1 << 30, 0.5, 10 * time.Second},
	} {
		if got := waitAfter(c.failures, c.jitter); got != c.want {
			t.Errorf("waitAfter(%d, %v) = %s, want %s", c.failures, c.jitter, got, c.want)
		}
	}
}

func TestErrorsOfTheClientAreSorted(t *testing.T) {
	for _, c := range []struct {
		err, want error
	}{
		{rpctypes.ErrNoSpace, ErrReadOnly},
		{rpctypes.ErrPermissionDenied, ErrAuth},
		{rpctypes.ErrNoLeader, ErrNoQuorum},
		{rpctypes.ErrTimeout, ErrNoQuorum},
		{rpctypes.ErrUnhealthy, ErrNoQuorum},
		{rpctypes.ErrCorrupt, ErrCorrupt},
		{rpctypes.ErrTooManyRequests, ErrBusy},
		{fmt.Errorf("get: %w", context.DeadlineExceeded), ErrUnreachable},
		{status.Error(codes.Unavailable, "connection refused"), ErrUnreachable},
		{context.Canceled, context.Canceled},
		{errors.New("odd"), nil},
	} {
		if got := kindOf(c.err); !errors.Is(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%v is %v, want %v", c.err, got, c.want)
		}
	}
}

func TestWhatIsWrongWithAStoreThatAnswersIsSaid(t *testing.T) {
	const gib = 1_000_000_000
	for _, c := range []struct {
		what   string
		status *pb.StatusResponse
		want   string
	}{
		{"nothing", &pb.StatusResponse{Leader: 1, DbSize: gib, DbSizeQuota: 2 * gib}, ""},
		{"no quota told", &pb.StatusResponse{Leader: 1, DbSize: gib}, ""},
		{"no quota at all", &pb.StatusResponse{Leader: 1, DbSize: gib, DbSizeQuota: -1}, ""},
		{"nearly full", &pb.StatusResponse{Leader: 1, DbSize: 1.6 * gib, DbSizeQuota: 2 * gib}, "has used 80 % of its quota"},
		{"just not", &pb.StatusResponse{Leader: 1, DbSize: 1.59 * gib, DbSizeQuota: 2 * gib}, ""},
		{"full", &pb.StatusResponse{Leader: 1, DbSize: 2 * gib, DbSizeQuota: 2 * gib, Errors: []string{"memberID:1 alarm:NOSPACE "}}, "full and read-only"},
		{"corrupt is worse than full", &pb.StatusResponse{Leader: 1, Errors: []string{"memberID:1 alarm:NOSPACE ", "memberID:2 alarm:CORRUPT "}}, "corrupt"},
		{"a member alone", &pb.StatusResponse{Errors: []string{"etcdserver: no leader"}}, "has no leader"},
	} {
		if got := healthOf(c.status); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
