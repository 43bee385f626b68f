package main

import "golang.org/x/sys/unix"

// hideTyping switches the echo of a terminal off and returns what switches it on
// again. It comes before the question: whoever types fast must not be seen
// either. Lines and ctrl-c stay as they are.
func hideTyping(fd int) (show func() error, err error) {
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	hidden := *before
	hidden.Lflag &^= unix.ECHO
	hidden.Lflag |= unix.ICANON | unix.ISIG
	hidden.Iflag |= unix.ICRNL
	if err := unix.IoctlSetTermios(fd, setTermios, &hidden); err != nil {
		return nil, err
	}
	return func() error { return unix.IoctlSetTermios(fd, setTermios, before) }, nil
}
