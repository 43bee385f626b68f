package policytest_test

import (
	"testing"

	"github.com/degradedmode/ic/internal/policy/policytest"
)

func TestTheShopIsTheSameInEveryRun(t *testing.T) {
	_, first, _ := policytest.Shop(t)
	_, second, _ := policytest.Shop(t)
	if first.Ref != second.Ref {
		t.Errorf("two shops of the same seed have the references %v and %v", first.Ref, second.Ref)
	}
}
