// Package hostrun runs one host: it opens the engine on its folder, offers the
// environment, and only then watches a file and the flag service. What a host
// has on disk is in force before any network is asked.
//
// It is shared by the agent, the library for services and the demo's world, so
// that all of them are one thing.
//
// May import: engine, carriers and what they import. Must never judge a
// directive, nor wait for a network before it answers.
package hostrun
