// Package git is the bundled backend for teams that deploy by git push: it
// commits the carrier value to one file of a repository, and the pipeline that
// watches the repository takes it to the hosts.
//
// It writes one line, IC_DIRECTIVES=<value>, of an environment file, and leaves
// every other line byte for byte. A commit it makes carries the trailers
// Ic-Operation and Ic-Plan, or Ic-Undo; they are all the memory it has, so
// Observe and Undo work in a process that never saw the plan. The branch moves
// forward only: when somebody else was faster and left our line alone, the commit
// is made again on top of theirs, and otherwise the plan is void.
//
// It works in a private bare repository without a work tree, through the git
// program, with no configuration of the user's or the machine's, no hooks, no
// prompt, and no secret in an argument or an environment.
//
// May import: plugins/sdk and the standard library. Must never force a push, nor
// touch a line that it does not own.
package git
