package carriers

import "time"

// Status is what a carrier says about its own link, for the report of a host
// and the status line of a console.
type Status struct {
	// Connected is false from the moment a read or the watch has failed until
	// the next full read.
	Connected bool
	// LastFullRead is when everything the carrier holds was last read; zero:
	// never. Only a full read bounds the age of a source.
	LastFullRead time.Time
	// Present lists the ids that were there at the last full read, sorted. It gets
	// shorter when a store is emptied or put back, unlike what was delivered. A
	// file, which delivers everything it holds each time, leaves it out.
	Present []string
	// Err says in one clean sentence what is wrong; empty when nothing is. It
	// may be set while Connected: something was ignored.
	Err string
}
