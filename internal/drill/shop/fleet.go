package shop

import "fmt"

// Spec is one host of a fleet that is to be built.
type Spec struct {
	Name    string
	Service string
	Half    int // 0 or 1: the side of a partition on which it stands
}

// shares of a fleet by service, of 60 hosts. Of the 25 at checkout 12 stand on
// the first side: the document's 48 % that still reach the flag service.
var shares = [...]struct {
	service string
	of60    int
}{{Catalog, 15}, {Checkout, 25}, {Edge, 10}, {PaymentRisk, 10}}

// MinFleet is the smallest fleet in which every service has a host on each side.
const MinFleet = 8

// tiny is below how many hosts the shares would leave a service without a second
// host: then each has two, and checkout the rest.
const tiny = 12

// Fleet lays out n hosts over the services, sorted by name. Fewer than MinFleet
// is a programming error.
func Fleet(n int) []Spec {
	if n < MinFleet {
		panic(fmt.Sprintf("shop: a fleet of %d hosts is smaller than %d", n, MinFleet))
	}
	width := len(fmt.Sprint(n))
	out := make([]Spec, 0, n)
	taken := 0
	for i, s := range shares {
		count := n * s.of60 / 60
		if n < tiny {
			count = 2
			if s.service == Checkout {
				count += n - MinFleet
			}
		}
		if i == len(shares)-1 {
			count = n - taken
		}
		taken += count
		for k := range count {
			out = append(out, Spec{Name: fmt.Sprintf("%s-%0*d", s.service, width, k+1), Service: s.service, Half: len(out) % 2})
		}
	}
	return out
}
