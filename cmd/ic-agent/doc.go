// Command ic-agent is the host's binary: it keeps what this host validly knows,
// and answers the services beside it over HTTP on loopback or a socket, as files
// and, for a program that it runs, in its environment. It is read-only and has no
// authority of its own.
//
// May import: hostrun, and engine and model for the forms of values. Must never
// link the console, a server, a query engine or a plugin, and must start and
// answer with every network down.
package main
