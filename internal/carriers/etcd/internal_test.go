package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

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
