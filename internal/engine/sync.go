package engine

// durable returns once what was written to f survives a loss of power. Every
// promise about what a host still knows after a crash stands on this one call.
func durable(f syncer) error { return f.Sync() }

type syncer interface{ Sync() error }
