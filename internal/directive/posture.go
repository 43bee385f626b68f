package directive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/degradedmode/ic/internal/model"
)

// Posture is the fingerprint of what is in force on a host: the SHA-256, in
// hex, of the sorted live ids, each followed by a line feed. Order and doubles
// in ids carry no meaning. A person checks it with sort -u and sha256sum.
func Posture(ids []string) string {
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	sum := sha256.New()
	for _, id := range slices.Compact(sorted) {
		sum.Write([]byte(id + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Bucket places a host on a ramp, from 0 to 99: the first 8 bytes, big-endian,
// of SHA-256(host "\n" ramp), mod 100. The host is its inventory name. A host
// keeps its bucket through all steps of one ramp, so that none flips back.
func Bucket(host, ramp string) int {
	sum := sha256.Sum256([]byte(host + "\n" + ramp))
	return int(binary.BigEndian.Uint64(sum[:8]) % 100)
}

// TierOn is the tier that a live directive asks of host: that of a shed, or for
// a step of a recovery the lower tier on hosts whose bucket is below its
// percentage and the higher one on the others. Every other kind asks for 0.
func TierOn(d model.Directive, host string) int {
	switch {
	case d.Kind == model.Shed:
		return d.Tier
	case !d.IsRecovery():
		return 0
	case Bucket(host, d.Ramp) < d.Percent:
		return d.To
	default:
		return d.From
	}
}
