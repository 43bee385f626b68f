package untrusted_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/degradedmode/ic/internal/untrusted"
)

func TestNetworkSaysWhyInAFewCleanWords(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("read: %w", context.DeadlineExceeded), "no answer in time"},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "no answer in time"},
		{&url.Error{Op: "Get", URL: "http://h/", Err: context.Canceled}, "stopped before it had answered"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "connection refused: nothing listens there"},
		{&url.Error{Op: "Get", URL: "http://h/", Err: &net.DNSError{Name: "h\x1b", Err: "no such host"}}, `DNS does not know the name h\x1b`},
		{&url.Error{Op: "Get", URL: "http://h/?q=long", Err: errors.New("tls: bad\rcertificate")}, `tls: bad\rcertificate`},
		{errors.New("unexpected EOF"), "unexpected EOF"},
	} {
		if got := untrusted.Network(c.err); got != c.want {
			t.Errorf("Network(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}
