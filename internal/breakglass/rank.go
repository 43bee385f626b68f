package breakglass

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/plugins/sdk"
)

// Candidate is a backend that may be chosen.
type Candidate struct {
	Name         string
	Carrier      sdk.Carrier
	Dependencies []string
}

// LiveRun is the last time a backend carried something to a real fleet, and how
// long it took until 99 % of the hosts reported it.
type LiveRun struct {
	At   time.Time
	To99 time.Duration
}

// Standing is a candidate with what speaks for and against it.
type Standing struct {
	Candidate
	Shared []string // dependencies that the incident has hit
	Live   *LiveRun // nil: never live, which is not a path one can count on
}

// Rank orders backends, the best first: the fewest dependencies in common with
// the incident, then the fastest that has proved itself live, then a watched
// file before an environment variable, then by name.
func Rank(candidates []Candidate, incident []string, live map[string]LiveRun) []Standing {
	out := make([]Standing, len(candidates))
	for i, c := range candidates {
		out[i] = Standing{Candidate: c, Shared: shared(c.Dependencies, incident)}
		if run, ok := live[c.Name]; ok {
			out[i].Live = &run
		}
	}
	slices.SortStableFunc(out, func(a, b Standing) int {
		return cmp.Or(
			cmp.Compare(len(a.Shared), len(b.Shared)),
			byLive(a.Live, b.Live),
			cmp.Compare(carrierOrder(a.Carrier), carrierOrder(b.Carrier)),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return out
}

func byLive(a, b *LiveRun) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	default:
		return cmp.Compare(a.To99, b.To99)
	}
}

func carrierOrder(c sdk.Carrier) int {
	if c == sdk.File {
		return 0
	}
	return 1
}

// shared lists the dependencies that the incident has hit. A name covers what
// stands under it: "aws" covers "aws:us-east-1", in either direction.
func shared(own, incident []string) []string {
	var out []string
	for _, d := range own {
		if slices.ContainsFunc(incident, func(hit string) bool { return covers(d, hit) || covers(hit, d) }) {
			out = append(out, d)
		}
	}
	return out
}

func covers(whole, part string) bool {
	whole, part = strings.ToLower(whole), strings.ToLower(part)
	return whole == part || strings.HasPrefix(part, whole+":")
}
