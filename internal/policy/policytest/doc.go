// Package policytest gives tests of other packages a complete signed policy with
// fixed keys: the example shop.
//
// May import: policy, policy/templates, testing. Only tests may import it: its
// keys are public.
package policytest
