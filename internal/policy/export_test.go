package policy

import "io/fs"

// ParseForTest reads a canonical document.
func ParseForTest(name string, src []byte, doc any) error { return parseCanonical(name, src, doc) }

// JudgeForTest loads roots and manifest once and returns what judges a domain as
// Load does, as if the manifest named whatever content the file has now.
func JudgeForTest(fsys fs.FS, opts LoadOptions) (func(Domain) (DomainState, error), error) {
	l := loader{fsys: fsys, opts: opts}
	if _, err := l.load(); err != nil {
		return nil, err
	}
	return func(domain Domain) (DomainState, error) {
		raw, err := readFile(fsys, fileOf(domain), MaxDocument)
		if err != nil {
			return DomainState{}, err
		}
		l.manifest.Files[fileOf(domain)] = ManifestFile{Version: l.manifest.Files[fileOf(domain)].Version, SHA256: digest(raw)}
		state, _ := l.domain(domain)
		return state, nil
	}, nil
}

// LintTableForTest lists the severity of every code of a rule, and whether an
// exception may name it.
func LintTableForTest() (severities map[string]Severity, standard map[string]bool) {
	severities = map[string]Severity{codeSyntax: LintError, codeNotCanonical: LintError, codeRoot: LintError, codeExceptionIdle: LintWarning}
	for _, r := range lintRules() {
		severities[r.code] = r.severity
	}
	return severities, standardCodes()
}
