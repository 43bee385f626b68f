// Package etcd carries signed tokens through an etcd v3 cluster.
//
// Each directive is its own key, written once and never overwritten or deleted,
// so nobody's write can undo another's and a reader that missed events needs
// nothing but a full read:
//
//	/ic/<fleet>/d/<id>       a token; endings too
//	/ic/<fleet>/cosign/<id>  a directive that waits for signatures, by compare-and-swap
//	/ic/<fleet>/lease        command of the incident, by compare-and-swap
//
// Leases of the store itself are not used: what ends a directive is written in
// it. A reader watches, and reads everything again after each break, after a
// compaction and on a timer; an event that was lost is late, never gone.
//
// May import: model, directive, untrusted, carriers, the etcd client. Must never
// delete a key, overwrite a directive, wait without a deadline, or log: gRPC's
// own error log is switched off once, where the binary is put together.
package etcd
