package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/oklog/ulid/v2"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
)

// Limits of one call and of what is read.
const (
	WriteLimit    = 2 * time.Second  // a person waits for a put; then he uses another carrier
	ReadLimit     = 10 * time.Second // all pages of a full read
	MaxDirectives = 65_536           // keys of one fleet: years of incidents, 64 MiB in memory

	pageKeys    = 128     // keys of one page: 0.5 MiB when all are as long as a token may be
	maxResponse = 8 << 20 // bytes of one answer; a single value of etcd fits several times
	retryEvery  = 50 * time.Millisecond
	maxTries    = 10 // half a second: a connection that can be made is made
	maxEndpoint = 16 // more is a mistake in the configuration
)

// Limits of the connection. gRPC alone would wait up to two minutes between two
// attempts, and never notice a peer that has gone without a word.
const (
	defaultDial     = 2 * time.Second
	firstRedial     = 250 * time.Millisecond
	maxRedial       = 5 * time.Second
	redialFactor    = 1.6
	redialJitter    = 0.5
	keepAliveEvery  = 10 * time.Second // the least that gRPC allows
	keepAliveAnswer = 3 * time.Second
)

// Options say where etcd is and how time passes. Endpoints, Fleet, Now, After
// and Rand are required.
type Options struct {
	Endpoints   []string // http://host:port or https://host:port
	Fleet       string
	TLS         *tls.Config // nil: as the endpoints' scheme says, with the system's roots
	Username    string      // with Password, etcd's own authentication
	Password    string
	DialTimeout time.Duration // of authentication; 0: 2 s

	FullReadEvery time.Duration                        // 0: DefaultFullRead
	Spread        time.Duration                        // one of a fleet: FleetSpread; 0: a reader alone, which comes back at once
	Now           func() time.Time                     // for Status.LastFullRead
	After         func(time.Duration) <-chan time.Time // time.After outside of tests
	Rand          func() float64                       // jitter, in [0, 1)

	// Known is the copy that somebody holds of a token that a watch has read, "" if
	// nobody does, so that a host does not hold each of them twice. nil: nobody does.
	Known func(token []byte) string
}

// Carrier is one fleet's part of an etcd cluster. It is safe for concurrent use.
type Carrier struct {
	opts   Options
	prefix string
	most   int             // MaxDirectives; tests want fewer
	held   atomic.Bool     // no new connection now
	ctx    context.Context // of the connection, not of a call
	cancel context.CancelFunc

	turn   chan struct{}    // holds one element while somebody uses client's field
	client *clientv3.Client // nil until the first call that reached etcd
}

// New checks the options and connects to nothing: a host starts, and a console
// draws, whether or not etcd is there. The connection lives until Close or the
// end of ctx.
func New(ctx context.Context, o Options) (*Carrier, error) {
	if !directive.Name(o.Fleet) {
		return nil, fmt.Errorf("etcd: %q is not the name of a fleet", o.Fleet)
	}
	if len(o.Endpoints) == 0 || len(o.Endpoints) > maxEndpoint {
		return nil, fmt.Errorf("etcd: %d endpoints; give 1 to %d", len(o.Endpoints), maxEndpoint)
	}
	for _, e := range o.Endpoints {
		u, err := url.Parse(e)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			return nil, errors.New("etcd: an endpoint is like https://host:2379, without a user; check the configuration")
		}
	}
	if o.Now == nil || o.After == nil || o.Rand == nil {
		return nil, errors.New("etcd: Now, After and Rand are required")
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = defaultDial
	}
	if o.FullReadEvery == 0 {
		o.FullReadEvery = DefaultFullRead
	}
	ctx, cancel := context.WithCancel(ctx)
	return &Carrier{opts: o, prefix: "/ic/" + o.Fleet + "/", most: MaxDirectives, ctx: ctx, cancel: cancel, turn: make(chan struct{}, 1)}, nil
}

// Close ends the connection, every watch on it and every call under way.
func (c *Carrier) Close() {
	c.cancel()
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if c.client != nil {
		c.client.Close() // says only that its context has ended
		c.client = nil
	}
}

// connect makes the client at the first use. Without a password that reaches
// for nothing; with one it asks etcd for a token and may fail, and the next call
// tries again.
func (c *Carrier) connect(ctx context.Context) (*clientv3.Client, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case c.turn <- struct{}{}:
	}
	defer func() { <-c.turn }()
	if c.ctx.Err() != nil || c.client != nil {
		return c.client, c.ctx.Err()
	}
	dial := c.opts.DialTimeout
	if deadline, ok := ctx.Deadline(); ok {
		dial = min(dial, time.Until(deadline))
	}
	dialing := []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(failFast),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstRedial, Multiplier: redialFactor, Jitter: redialJitter, MaxDelay: maxRedial},
			MinConnectTimeout: c.opts.DialTimeout,
		}),
	}
	if c.opts.Spread > 0 {
		dialing = append(dialing, grpc.WithContextDialer(c.dial))
	}
	client, err := clientv3.New(clientv3.Config{
		Context: c.ctx, Endpoints: c.opts.Endpoints, TLS: c.opts.TLS,
		Username: c.opts.Username, Password: c.opts.Password, DialTimeout: dial,
		DialKeepAliveTime: keepAliveEvery, DialKeepAliveTimeout: keepAliveAnswer, PermitWithoutStream: true,
		MaxCallRecvMsgSize: maxResponse, MaxCallSendMsgSize: maxResponse,
		MaxUnaryRetries: 2, // the second is for a token of etcd's that has expired; ours are in retry
		Logger:          zap.NewNop(),
		DialOptions:     dialing,
	})
	if err != nil {
		return nil, err
	}
	c.client = client
	return client, nil
}

func (c *Carrier) directiveKey(id string) string { return c.prefix + "d/" + id }

// Put stores a token under its id, once. The same token again is no error, so a
// put whose answer was lost may be repeated; another token under the same id is
// ErrExists.
func (c *Carrier) Put(ctx context.Context, id, token string) error {
	if !deliverable(id, token) {
		return fmt.Errorf("put %.40q: it takes a ULID and a token of 1 to %d bytes, this one has %d", id, directive.MaxToken, len(token))
	}
	_, err := c.swap(ctx, "put "+id, c.directiveKey(id), 0, token)
	return err
}

// Full is everything a fleet has in etcd at one revision.
type Full struct {
	Tokens   map[string]string // by id
	Revision int64
	// Note says what was left out, in a clean sentence: a stranger's key is no
	// reason to hide the directives beside it.
	Note string

	ignored int // keys that are not ids, values that cannot be tokens
}

// All reads every token of the fleet, page by page at one revision.
func (c *Carrier) All(ctx context.Context) (Full, error) {
	return c.all(ctx, func(string, []byte) string { return "" })
}

// all is All for somebody who has tokens already: known gives his copy of one, or "".
func (c *Carrier) all(ctx context.Context, known func(id string, token []byte) string) (Full, error) {
	ctx, cancel := context.WithTimeout(ctx, ReadLimit)
	defer cancel()
	limit := int64(pageKeys)
	for {
		full, err := c.readPages(ctx, limit, known)
		switch {
		case err == nil:
			return full, nil
		case tooLarge(err) && limit > 1:
			limit /= 2 // long values of a stranger; one of them always fits
		case !errors.Is(err, rpctypes.ErrCompacted):
			return Full{}, c.explain("read all directives", err)
		}
	}
}

func (c *Carrier) readPages(ctx context.Context, limit int64, known func(id string, token []byte) string) (Full, error) {
	from := c.directiveKey("")
	end := clientv3.GetPrefixRangeEnd(from)
	full := Full{Tokens: make(map[string]string)}
	for {
		page, err := c.page(ctx, from, end, limit, full.Revision)
		if err != nil {
			return Full{}, err
		}
		if full.Revision == 0 {
			full.Revision = page.Header.Revision
		}
		for _, kv := range page.Kvs {
			from = string(kv.Key)
			id := strings.TrimPrefix(from, c.directiveKey(""))
			token := known(id, kv.Value)
			if token == "" {
				token = string(kv.Value)
			}
			full.add(id, token)
		}
		if !page.More {
			return full, nil
		}
		from += "\x00"
		if read := len(full.Tokens) + full.ignored; read >= c.most {
			full.Note = fmt.Sprintf("etcd holds more than %d keys of this fleet and only the first were read: somebody fills the store", read)
			return full, nil
		}
	}
}

func (f *Full) add(id, token string) {
	if !deliverable(id, token) {
		f.ignored++
		f.Note = fmt.Sprintf("%d keys of this fleet in etcd are no directives and were ignored", f.ignored)
		return
	}
	f.Tokens[id] = token
}

// deliverable looks at form and length only; what a token says is for others.
func deliverable(id, token string) bool {
	return checkID(id) == nil && token != "" && len(token) <= directive.MaxToken
}

// page reads at revision, 0 for the newest, so that all pages show one moment.
func (c *Carrier) page(ctx context.Context, from, end string, limit, revision int64) (*clientv3.GetResponse, error) {
	var out *clientv3.GetResponse
	err := c.retry(ctx, func(client *clientv3.Client) (err error) {
		out, err = client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(limit), clientv3.WithRev(revision))
		return err
	})
	return out, err
}

// retry repeats op for a moment while etcd cannot be reached: a connection that
// gRPC has given up for the time being is tried again at once, and the pace of
// further attempts is the caller's. It ends with etcd's last reason, which says
// more than "deadline exceeded".
func (c *Carrier) retry(ctx context.Context, op func(*clientv3.Client) error) error {
	var last error
	for try := 0; ; try++ {
		client, err := c.connect(ctx)
		if err == nil && try == 0 && client.ActiveConnection().GetState() == connectivity.TransientFailure {
			// Only then: it walks over a map that gRPC fills while it first connects.
			client.ActiveConnection().ResetConnectBackoff()
		}
		if err == nil {
			err = op(client)
		}
		if !unavailable(err) {
			if ctx.Err() != nil && last != nil {
				return last
			}
			return err
		}
		if last = err; try == maxTries {
			return last
		}
		select {
		case <-ctx.Done():
			return last
		case <-c.opts.After(retryEvery):
		}
	}
}

// failFast takes back the client's wish to wait for a connection, behind which
// the reason of a failure is lost.
func failFast(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoke(ctx, method, request, reply, conn, append(opts, grpc.WaitForReady(false))...)
}

func checkID(id string) error {
	if _, err := ulid.ParseStrict(id); err != nil || strings.ToUpper(id) != id {
		return fmt.Errorf("%q is not the id of a directive", id)
	}
	return nil
}
