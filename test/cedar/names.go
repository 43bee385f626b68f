package cedar

import (
	"maps"
	"slices"
)

// sorted lists the keys of a map.
func sorted[K ~string, V any](m map[K]V) []string {
	out := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, string(k))
	}
	return out
}
