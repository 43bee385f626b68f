package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// quotaWarning is the share of its quota, in percent, at which a store that still
// takes writes is said to be nearly full: there is time to make room.
const quotaWarning = 80

// Health asks the member that answers what is wrong with the store although it can
// be read: full or nearly full, corrupt, without a leader. It says so in one
// clean sentence, "" when nothing is. A store that may not be asked, or does not
// know the question, has nothing wrong with it as far as is known.
func (c *Carrier) Health(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, WriteLimit)
	defer cancel()
	var status *pb.StatusResponse
	err := c.retry(ctx, func(client *clientv3.Client) (err error) {
		// By the connection that is there: the client's own call opens another one.
		status, err = pb.NewMaintenanceClient(client.ActiveConnection()).Status(ctx, &pb.StatusRequest{})
		return rpctypes.Error(err)
	})
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied), isUnknownCall(err):
		return "", nil
	case err != nil:
		return "", c.explain("ask for the health of the store", err)
	}
	return healthOf(status), nil
}

func healthOf(s *pb.StatusResponse) string {
	said := strings.Join(s.Errors, "; ")
	used := int64(0)
	if s.DbSizeQuota > 0 {
		used = s.DbSize * 100 / s.DbSizeQuota
	}
	switch {
	case strings.Contains(said, pb.AlarmType_CORRUPT.String()):
		return ErrCorrupt.Error()
	case strings.Contains(said, pb.AlarmType_NOSPACE.String()):
		return ErrReadOnly.Error()
	case s.Leader == 0:
		return ErrNoQuorum.Error()
	case used >= quotaWarning:
		return fmt.Sprintf("etcd has used %d %% of its quota, and takes no writes when it is full: compact and defragment it", used)
	}
	return ""
}
