package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/degradedmode/ic/internal/directive"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Cell is one value under compare-and-swap. Revision is 0 when nobody has
// written it.
type Cell struct {
	Value    string
	Revision int64
}

// LeaseGet reads who has command, as the store knows it.
func (c *Carrier) LeaseGet(ctx context.Context) (Cell, error) {
	return c.get(ctx, "read the lease", c.prefix+"lease")
}

// LeaseSwap writes the lease if it is still at revision previous (0: if there is
// none) and returns the new revision. ErrExists means that somebody else was
// faster: read again and decide again.
func (c *Carrier) LeaseSwap(ctx context.Context, previous int64, value string) (int64, error) {
	return c.swap(ctx, "write the lease", c.prefix+"lease", previous, value)
}

// CosignGet reads the directive id that waits for signatures.
func (c *Carrier) CosignGet(ctx context.Context, id string) (Cell, error) {
	if err := checkID(id); err != nil {
		return Cell{}, err
	}
	return c.get(ctx, "read the proposal "+id, c.prefix+"cosign/"+id)
}

// CosignSwap writes it with the signatures it has now, under the same rule as
// LeaseSwap, so that two people who sign at once do not lose one another's.
func (c *Carrier) CosignSwap(ctx context.Context, id string, previous int64, value string) (int64, error) {
	if err := checkID(id); err != nil {
		return 0, err
	}
	return c.swap(ctx, "write the proposal "+id, c.prefix+"cosign/"+id, previous, value)
}

// MaxProposals is how many proposals are listed: none is ever deleted, and the
// newest are those that still wait.
const MaxProposals = 256

// CosignList reads the newest proposals, by id. What is no proposal by form and
// length is left out.
func (c *Carrier) CosignList(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, WriteLimit)
	defer cancel()
	under := c.prefix + "cosign/"
	out := make(map[string]string)
	err := c.retry(ctx, func(client *clientv3.Client) error {
		// Ids begin with their time, so the last keys are the newest.
		got, err := client.Get(ctx, under, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend), clientv3.WithLimit(MaxProposals))
		if err != nil {
			return err
		}
		for _, kv := range got.Kvs {
			if id, token := strings.TrimPrefix(string(kv.Key), under), string(kv.Value); deliverable(id, token) {
				out[id] = token
			}
		}
		return nil
	})
	if err != nil {
		return nil, c.explain("list the proposals", err)
	}
	return out, nil
}

func (c *Carrier) get(ctx context.Context, what, key string) (Cell, error) {
	ctx, cancel := context.WithTimeout(ctx, WriteLimit)
	defer cancel()
	var cell Cell
	err := c.retry(ctx, func(client *clientv3.Client) error {
		got, err := client.Get(ctx, key)
		if err == nil && len(got.Kvs) == 1 {
			cell = Cell{string(got.Kvs[0].Value), got.Kvs[0].ModRevision}
		}
		return err
	})
	if err != nil {
		return Cell{}, c.explain(what, err)
	}
	return cell, nil
}

// swap writes key if its revision is previous. When an answer is lost it asks
// again, and its own value in place is success; so is the very value that is
// there already, whoever wrote it.
func (c *Carrier) swap(ctx context.Context, what, key string, previous int64, value string) (int64, error) {
	if len(value) > directive.MaxToken {
		return 0, fmt.Errorf("%s: %d bytes, at most %d", what, len(value), directive.MaxToken)
	}
	ctx, cancel := context.WithTimeout(ctx, WriteLimit)
	defer cancel()
	var revision int64
	err := c.retry(ctx, func(client *clientv3.Client) error {
		answer, err := client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(key), "=", previous)).
			Then(clientv3.OpPut(key, value)).
			Else(clientv3.OpGet(key)).Commit()
		if err != nil {
			return err
		}
		if answer.Succeeded {
			revision = answer.Header.Revision
			return nil
		}
		held := answer.Responses[0].GetResponseRange().Kvs
		if len(held) != 1 || string(held[0].Value) != value {
			return ErrExists
		}
		revision = held[0].ModRevision
		return nil
	})
	if errors.Is(err, ErrExists) {
		return 0, fmt.Errorf("%s: %w", what, ErrExists)
	}
	if err != nil {
		return 0, c.explain(what, err)
	}
	return revision, nil
}
