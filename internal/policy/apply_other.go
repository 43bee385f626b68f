//go:build !linux && !darwin

package policy

import (
	"errors"
	"fmt"
)

// exchange is unknown to the other systems.
func exchange(a, b string) error {
	return fmt.Errorf("swap %s and %s: %w", a, b, errors.ErrUnsupported)
}
