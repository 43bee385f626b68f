//go:build !linux

package main

import "syscall"

// diesWithUs has no such word outside of Linux, where agents are only tried out.
func diesWithUs() *syscall.SysProcAttr { return nil }
