package controller

import (
	"context"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/drill/flagservice"
)

func TestOneOfTwoLeadsAndTheOtherFollowsOn(t *testing.T) {
	etcd, err := flagservice.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Kill)
	stand := func(me string) *Election {
		e, err := NewElection([]string{etcd.Endpoint()}, "shop", me)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close(context.WithoutCancel(t.Context())) })
		return e
	}
	leads := func(e *Election, want bool) {
		t.Helper()
		if got, err := e.Leads(t.Context()); err != nil || got != want {
			t.Fatalf("%s leads: %v, %v; want %v", e.me, got, err, want)
		}
	}
	one, two := stand("one"), stand("two")
	for range 3 {
		leads(one, true)
		leads(two, false)
	}
	one.Close(t.Context())
	leads(two, true)

	// A lease that has run out while its holder was stopped is another's by now.
	if _, err := two.client.Revoke(t.Context(), two.lease); err != nil {
		t.Fatal(err)
	}
	three := stand("three")
	leads(three, true)
	leads(two, false)

	etcd.Kill()
	if got, err := three.Leads(t.Context()); err == nil || got || !strings.Contains(err.Error(), "so this one acts") {
		t.Errorf("with etcd dead: %v, %v", got, err)
	}
}
