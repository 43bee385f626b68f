package runbooks

// KeysForTest lists the keys of every mapping.
func KeysForTest() map[string][]string {
	out := make(map[string][]string)
	for name, s := range shapes() {
		out[name] = s.names()
	}
	return out
}
