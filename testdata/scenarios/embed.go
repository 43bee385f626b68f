// Package scenarios holds the drills that ship. They are text: documentation,
// tests and game days at once. docs/scenario-format.md is their format.
package scenarios

import "embed"

// Files are the scenarios, one file each, named NAME.scenario.
//
//go:embed *.scenario
var Files embed.FS
