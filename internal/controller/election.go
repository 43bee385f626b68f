package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/degradedmode/ic/internal/untrusted"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	// electionTTL is how long a controller that has died goes on leading, in seconds:
	// three looks. The others only save work meanwhile; nothing waits for them.
	electionTTL = 30
	// electionLimit bounds one question to etcd.
	electionLimit = 2 * time.Second
)

// Election lets one of several controllers work and the others rest, by a key in
// etcd with a lease of its own: the only key of ours that etcd may drop. It is
// there to save queries, never for safety.
type Election struct {
	client *clientv3.Client
	key    string
	me     string
	lease  clientv3.LeaseID
}

// NewElection connects to nothing yet. me is new for every start.
func NewElection(endpoints []string, fleet, me string) (*Election, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: electionLimit, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("election: %s", untrusted.Network(err))
	}
	return &Election{client: client, key: "/ic/" + fleet + "/controller", me: me}, nil
}

// Leads stands for election, or stays in office. On an error nobody can say who
// leads.
func (e *Election) Leads(ctx context.Context) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, electionLimit)
	defer cancel()
	if e.lease != 0 {
		if _, err := e.client.KeepAliveOnce(limited, e.lease); err != nil {
			e.lease = 0 // it ran out while we were away, or etcd has forgotten it
		}
	}
	if e.lease == 0 {
		granted, err := e.client.Grant(limited, electionTTL)
		if err != nil {
			return false, e.unknown(err)
		}
		e.lease = granted.ID
	}
	answer, err := e.client.Txn(limited).
		If(clientv3.Compare(clientv3.CreateRevision(e.key), "=", 0)).
		Then(clientv3.OpPut(e.key, e.me, clientv3.WithLease(e.lease))).
		Else(clientv3.OpGet(e.key)).Commit()
	if err != nil {
		return false, e.unknown(err)
	}
	if answer.Succeeded {
		return true, nil
	}
	for _, kv := range answer.Responses[0].GetResponseRange().Kvs {
		return string(kv.Value) == e.me && clientv3.LeaseID(kv.Lease) == e.lease, nil
	}
	return false, nil // it was dropped in this very moment: at the next look
}

func (e *Election) unknown(err error) error {
	return fmt.Errorf("etcd does not say which controller leads, so this one acts: %s", untrusted.Network(err))
}

// Close leaves office, so that another takes over at its next look.
func (e *Election) Close(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, electionLimit)
	defer cancel()
	if e.lease != 0 {
		_, _ = e.client.Revoke(limited, e.lease) // else it runs out by itself
	}
	_ = e.client.Close() // nothing is under way
}
