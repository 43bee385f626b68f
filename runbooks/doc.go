// Package shipped holds the runbooks that ship: Markdown that people read at
// night and that ic follows. ic init and the demo write them beside a new policy,
// signed by those who sign it; README.md says what each is for.
//
// They use the names of the example shop (internal/policy/templates). May import
// internal/runbooks, internal/policy and what is below them. Must never grant
// anything, or replace a file that is there.
package shipped
