package hostrun

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Names of what a host says in the environment of a program and in the env file.
const (
	EnvTier      = "IC_TIER_"     // of a service: its number
	EnvOff       = "IC_OFF_"      // of a feature: 1 or 0
	EnvAt        = "IC_AT"        // when this was said
	EnvAsOf      = "IC_AS_OF"     // up to when all watched sources had been heard
	EnvCondition = "IC_CONDITION" // as in a report
	EnvPosture   = "IC_POSTURE"
)

// Environment is what is in force, one NAME=VALUE each, sorted. A bypass is not
// among it: nothing would end a variable. Two names that look the same as a
// variable share one, and it says what is tighter.
func (r *Runner) Environment() []string {
	s := r.State()
	return s.environment()
}

func (s *State) environment() []string {
	values := map[string]int{}
	for service, is := range s.Services {
		name := EnvTier + variable(service)
		values[name] = max(values[name], is.Tier)
	}
	for feature, is := range s.Features {
		name, off := EnvOff+variable(feature), 0
		if !is.On {
			off = 1
		}
		values[name] = max(values[name], off)
	}
	out := []string{
		EnvAt + "=" + s.At.Format(time.RFC3339), EnvCondition + "=" + s.Condition, EnvPosture + "=" + s.Posture,
	}
	if !s.AsOf.IsZero() {
		out = append(out, EnvAsOf+"="+s.AsOf.Format(time.RFC3339))
	}
	for name, value := range values {
		out = append(out, name+"="+strconv.Itoa(value))
	}
	slices.Sort(out)
	return out
}

// envLines is the env file: for a shell's ".", for systemd's EnvironmentFile and
// for whatever takes lines as they are.
func envLines(s *State) []byte {
	var out bytes.Buffer
	for _, line := range s.environment() {
		name, value, _ := strings.Cut(line, "=")
		out.WriteString(name + "=" + quoted(value) + "\n")
	}
	return out.Bytes()
}

// variable is a name of the policy as a part of a variable's.
func variable(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return c
		}
		return '_'
	}, name)
}

// quoted leaves alone what no reader gives a meaning to, and puts everything else
// between single quotes.
func quoted(value string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.:+/", c)
	}
	if !strings.ContainsFunc(value, func(c rune) bool { return !plain(c) }) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
