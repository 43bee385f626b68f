package main

// variants is the table: one row each, a line or two. old stands exactly once in file; new
// has to compile; test is red with new and green without.
//
// To add one, name the promise, the line that keeps it, and the test that says so.
var variants = []variant{
	{"signature check, in the format", "internal/directive/token.go", `err := sig.Verify(payload, namespace); err != nil`, `err := sig.Verify(payload, namespace); err != nil && false`, "./internal/directive", "TestEverySignatureCounts"},
	{"signature check, on a host", "internal/directive/token.go", `err := sig.Verify(payload, namespace); err != nil`, `err := sig.Verify(payload, namespace); err != nil && false`, "./internal/engine", "TestForgedTokenDoesNothing"},
	{"audience, in the format", "internal/directive/token.go", `	if d.Fleet != fleet {
		return out, refuse(model.CodeForeignFleet, "it is for fleet %q, this is %q", d.Fleet, fleet)
	}
	signers, err := verifyAll(payload, blobs, realm.Namespace("directive", fleet))`, `	signers, err := verifyAll(payload, blobs, realm.Namespace("directive", d.Fleet))`, "./internal/directive", "TestAudience"},
	{"audience, on a host", "internal/directive/token.go", `	if d.Fleet != fleet {
		return out, refuse(`, `	if false {
		return out, refuse(`, "./internal/engine", "TestForeignFleetIsRefused"},
	{"quorum, in the policy", "internal/policy/admit.go", `if right.Cosign.Count >= 0 && n >= right.Cosign.Count {`, `if n >= right.Cosign.Count || n == 0 {`, "./internal/policy", "TestAdmit"},
	{"quorum, on a host", "internal/policy/admit.go", `if right.Cosign.Count >= 0 && n >= right.Cosign.Count {`, `if n >= right.Cosign.Count || n == 0 {`, "./internal/engine", "TestQuorumIsRequired"},
	{"expiry", "internal/engine/held.go", `&& !expired(d, at.host, h.run.elapsed(at.Instant)) &&`, `&&`, "./internal/engine", "TestBypassEndsByItself"},
	{"expiry by a clock that nobody can set", "internal/engine/held.go", ` && (!host.Before(d.NotAfter) || elapsed >= d.NotAfter.Sub(d.NotBefore))`, ` && !host.Before(d.NotAfter)`, "./internal/engine", "TestABypassIsLateByAtMostTheClockErrorAtItsFirstAccept"},
	{"budget after a kill", "internal/engine/budget.go", `	b.used = b.reserved
`, ``, "./internal/engine", "TestAFlippedBitAnywhereForgetsNothing"},
	{"fsync of the log", "internal/audit/durable.go", `return f.Sync()`, `return nil`, "./internal/audit", "TestAckedEntrySurvivesPowerLoss"},
	{"fsync on a host", "internal/engine/sync.go", `{ return f.Sync() }`, `{ return nil }`, "./internal/engine", "TestPersistedBeforeObeyed"},
	{"partition of the fleet", "internal/drill/world/levers.go", `return w.proxies[1].Cut(proxy.Blackhole)`, `return w.proxies[1].Cut(proxy.None)`, "./internal/drill/world", "TestThePartitionCutsHalfOfTheFleet"},
	{"partition", "internal/drill/proxy/proxy.go", `	case how != None && isOpen(p.open):
		p.open = make(chan struct{})`, `	case how != None && isOpen(p.open):`, "./internal/drill/proxy", "TestABlackholeDeliversNothingUntilItIsHealed"},
}
