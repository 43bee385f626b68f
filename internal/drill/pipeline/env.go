package pipeline

import (
	"fmt"
	"strings"
)

// Limits of an env file: what a carrier value needs (16 KiB) and room for a
// service's other settings.
const (
	MaxEnvFile = 64 << 10
	MaxEnvVars = 256
)

// ParseEnv reads an env file. A file that says one name twice is refused: which
// of the two a process gets would depend on who reads it.
func ParseEnv(text string) (map[string]string, error) {
	if len(text) > MaxEnvFile {
		return nil, fmt.Errorf("the env file has %d bytes, at most %d", len(text), MaxEnvFile)
	}
	vars := make(map[string]string)
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || !varName(name) {
			return nil, fmt.Errorf("line %d of the env file is not NAME=value", i+1)
		}
		if strings.ContainsFunc(value, control) {
			return nil, fmt.Errorf("line %d of the env file has a control character in the value of %s", i+1, name)
		}
		if _, twice := vars[name]; twice {
			return nil, fmt.Errorf("line %d of the env file sets %s again", i+1, name)
		}
		if len(vars) == MaxEnvVars {
			return nil, fmt.Errorf("the env file sets more than %d variables", MaxEnvVars)
		}
		vars[name] = value
	}
	return vars, nil
}

func varName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func control(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }
