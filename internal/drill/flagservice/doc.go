// Package flagservice runs the demo's flag service: one embedded etcd on
// loopback that can be killed and started again on the same port and the same
// data.
//
// May import: the standard library and etcd's server. Must never listen on
// anything but loopback, write outside its folder, or be linked into ic-agent.
package flagservice
