// Package pipeline is the demo's deploy pipeline: a bare git repository whose
// post-receive hook exports an env file, and a rollout that restarts hosts in
// batches with what the file says. It is the way into the fleet that needs no
// flag service.
//
//	<dir>/repo.git     what a push goes to; the file is fleet/ic.env on main
//	<dir>/env/ic.env   what was pushed last, exported by the hook
//	<dir>/inbox/<id>   one empty file per pushed commit, until the rollout took it
//
// The hook needs sh and git and nothing of ours, so a push is taken while the
// world is down. The env file has one NAME=value a line; a value goes to the end
// of its line, without quotes; '#' begins a comment line.
//
// May import: the standard library and renameio. Must never run git with the
// environment of whoever started the demo, or believe that a push means that a
// host obeys: only a host's report says that.
package pipeline
