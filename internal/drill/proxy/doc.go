// Package proxy stands between a group of hosts and a service on loopback, and
// can be cut: a network partition made of real sockets.
//
// May import: the standard library. Must never listen on anything but loopback
// and never change the bytes that pass.
package proxy
