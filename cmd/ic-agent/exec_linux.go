package main

import "syscall"

// diesWithUs lets a program end in order when its agent is killed: whoever starts
// it again must not find the old one in its place.
func diesWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
