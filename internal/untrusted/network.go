package untrusted

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"syscall"
)

// maxNetwork bounds the sentence of Network in bytes.
const maxNetwork = 200

// Network says why a peer could not be talked to, in a few clean words and
// without the layers that the standard library puts around them: they repeat
// the address, and part of what they quote (names in DNS, certificates) was
// chosen by the other side.
func Network(err error) string {
	var dns *net.DNSError
	var outer *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, context.Canceled):
		return "stopped before it had answered"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused: nothing listens there"
	case errors.As(err, &dns):
		return Text("DNS does not know the name "+dns.Name, maxNetwork)
	case errors.As(err, &outer):
		return Text(outer.Err.Error(), maxNetwork)
	}
	return Text(err.Error(), maxNetwork)
}
