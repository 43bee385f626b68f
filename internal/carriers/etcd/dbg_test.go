package etcd_test
import ("testing";"time";"fmt";"context";"google.golang.org/grpc/connectivity"
clientv3 "go.etcd.io/etcd/client/v3")
func TestDbg(t *testing.T){
 p := newProxy(t, shared.addr)
 c := raw(t, p.Addr().String())
 ctx,cancel:=context.WithTimeout(t.Context(),6*time.Second); defer cancel()
 c.Get(ctx,"x")
 fmt.Println(c.ActiveConnection().GetState())
 ch := c.Watch(ctx,"y")
 go func(){ for r := range ch { fmt.Println("ev", r.Err())}}()
 go func(){ s:=connectivity.Ready; for c.ActiveConnection().WaitForStateChange(ctx,s){ s=c.ActiveConnection().GetState(); fmt.Println(time.Now().Format("05.000"),s)} }()
 time.Sleep(500*time.Millisecond)
 fmt.Println(time.Now().Format("05.000"),"cut"); p.cut()
 <-ctx.Done()
 _ = clientv3.EventTypePut
}
