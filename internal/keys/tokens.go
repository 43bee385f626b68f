package keys

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/degradedmode/ic/internal/directive"
)

// Service is the name under which tokens stand in a keyring; the user is the
// name of the service that they are for, such as "prometheus".
const Service = "ic"

// KeyringSource is what Token.From says of the operating system's keyring.
const KeyringSource = "keyring"

// MaxToken is the longest token in bytes: what the smallest keyring holds.
const MaxToken = 2560

// ErrNoToken means that no source has one; a service without authentication
// needs none.
var ErrNoToken = errors.New("no token")

// TokenStore finds the tokens of other services: in a file that a person has
// named, else in the environment, else in the keyring of the operating system,
// else in an age file that a person has chosen. A source that has been named and
// fails is an error and never skipped.
type TokenStore struct {
	Getenv func(string) string // nil: no environment
	Ring   *Ring               // nil: no keyring
	Age    *AgeFile            // nil: not chosen
}

// Token is a secret and where it came from.
type Token struct {
	Value string `json:"-"`
	From  string // for a person: a path, a variable's name, KeyringSource
}

// String keeps a token out of whatever prints it.
func (t Token) String() string { return "token from " + t.From }

// GoString keeps it out of %#v.
func (t Token) GoString() string { return t.String() }

// EnvName is the variable that holds the token for name: IC_PROMETHEUS_TOKEN.
func EnvName(name string) string {
	return "IC_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name)) + "_TOKEN"
}

// Get finds the token for name. file is a file named by a flag, "" none.
func (s TokenStore) Get(ctx context.Context, name, file string) (Token, error) {
	if err := checkName(name); err != nil {
		return Token{}, err
	}
	if file != "" {
		text, err := readSecret(file, MaxToken+1)
		if err != nil {
			return Token{}, fmt.Errorf("token for %s: %w", name, err)
		}
		return checked(name, strings.TrimRight(string(text), "\r\n"), file)
	}
	if s.Getenv != nil {
		if value := s.Getenv(EnvName(name)); value != "" {
			return checked(name, value, EnvName(name))
		}
	}
	value, from, err := s.stored(ctx, name)
	switch {
	case errors.Is(err, ErrNoToken):
		return Token{}, fmt.Errorf("token for %s: %w; run `ic login %s`, set %s, or give --token-file %s=FILE", name, err, name, EnvName(name), name)
	case err != nil:
		return Token{}, fmt.Errorf("token for %s: %w; or set %s, or give --token-file %s=FILE", name, err, EnvName(name), name)
	}
	return checked(name, value, from)
}

// stored asks the keyring and then the age file. Somebody who has chosen an age
// file has it because his keyring fails, so a failing keyring is no end then.
func (s TokenStore) stored(ctx context.Context, name string) (value, from string, err error) {
	err = ErrNoToken
	if s.Ring != nil {
		if value, err = s.Ring.get(ctx, name); err == nil {
			return value, KeyringSource, nil
		}
	}
	if s.Age != nil {
		value, err = s.Age.get(ctx, name)
		return value, s.Age.Path, err
	}
	if noRing(err) {
		err = fmt.Errorf("%w: %w", ErrNoToken, err)
	}
	return "", "", err
}

// noRing means that there is no keyring at all, so that nothing can be in it. A
// locked or silent one is another matter.
func noRing(err error) bool { return errors.Is(err, ErrNoBus) || errors.Is(err, ErrNoDaemon) }

// Set stores the token for name: in the age file if one was chosen, else in the
// keyring. There is no third place, and no way to write it in the clear.
func (s TokenStore) Set(ctx context.Context, name, value string) (from string, err error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	if _, err := checked(name, value, ""); err != nil {
		return "", err
	}
	switch {
	case s.Age != nil:
		from, err = s.Age.Path, s.Age.set(ctx, name, value)
	case s.Ring != nil:
		from, err = KeyringSource, s.Ring.set(ctx, name, value)
	default:
		err = errors.New("there is no keyring here; choose an age file")
	}
	if err != nil {
		return "", fmt.Errorf("store the token for %s: %w", name, err)
	}
	return from, nil
}

// Delete removes the token for name from the places where Set may have put it.
// One that is not there is no error.
func (s TokenStore) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	var failed []error
	if s.Ring != nil {
		if err := s.Ring.delete(ctx, name); !noRing(err) {
			failed = append(failed, err)
		}
	}
	if s.Age != nil {
		failed = append(failed, s.Age.delete(ctx, name))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("delete the token for %s: %w", name, err)
	}
	return nil
}

func checkName(name string) error {
	if !directive.Name(name) {
		return fmt.Errorf("%.40q is not the name of a service", name)
	}
	return nil
}

// checked wants one word of printable ASCII, as a header takes it, and never
// quotes what it got.
func checked(name, value, from string) (Token, error) {
	if value == "" || len(value) > MaxToken {
		return Token{}, fmt.Errorf("the token for %s from %s has %d bytes; 1 to %d are possible", name, from, len(value), MaxToken)
	}
	for i := range len(value) {
		if value[i] <= ' ' || value[i] > '~' {
			return Token{}, fmt.Errorf("the token for %s from %s is not one word of printable ASCII", name, from)
		}
	}
	return Token{Value: value, From: from}, nil
}
