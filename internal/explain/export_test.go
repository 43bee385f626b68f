package explain

import "github.com/degradedmode/ic/internal/policy"

// PatternsForTest lists the fields of a document that have words of their own.
func PatternsForTest(document string) []string {
	if document == "root" {
		return sortedKeys(rootRules())
	}
	return sortedKeys(rulesOf(policy.Domain(document)))
}
