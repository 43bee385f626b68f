package policy

import "errors"

// ErrPowerCut is what every step fails with after the power is gone.
var ErrPowerCut = errors.New("the power is gone")

// ApplyWithFaultForTest applies on a disk whose nth change, counted from 0, fails:
// for this once, or with everything after it. Without swap the disk cannot
// exchange two folders. It reports whether there was an nth change at all.
func ApplyWithFaultForTest(dir string, o ApplyOptions, n int, dead, swap bool) (reached bool, err error) {
	real, count := realDisk(), 0
	step := func(do func() error) error {
		count++
		if count-1 == n || dead && count-1 > n {
			reached = true
			return ErrPowerCut
		}
		return do()
	}
	d := disk{
		rename: func(from, to string) error { return step(func() error { return real.rename(from, to) }) },
		exchange: func(a, b string) error {
			if !swap {
				return errors.ErrUnsupported
			}
			return step(func() error { return real.exchange(a, b) })
		},
		// That something was synced is not seen after a fault of this kind; when it is, counts.
		syncDir:  func(string) error { return step(func() error { return nil }) },
		syncTree: func(string) error { return step(func() error { return nil }) },
	}
	_, err = applyOn(d, dir, o)
	return reached, err
}

// LockForTest holds the lock of a folder as another process would.
func LockForTest(dir string) (func() error, error) {
	p, err := placeOf(dir)
	if err != nil {
		return nil, err
	}
	return p.lock()
}
