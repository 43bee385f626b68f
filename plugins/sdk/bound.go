package sdk

import (
	"os/exec"
	"runtime"
)

// StartBound starts cmd so that it does not outlive this process, as far as the
// platform allows: on Linux the kernel kills it even when this process is killed
// with SIGKILL. The caller must call wait, once, and must have set everything of
// cmd before, SysProcAttr included.
//
// The kernel ties a child to the thread that started it, and Go ends threads as
// it likes. So one goroutine keeps its thread until the child has ended, and
// takes it along.
func StartBound(cmd *exec.Cmd) (wait func() error, err error) {
	bind(cmd)
	started := make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := cmd.Start()
		started <- err
		if err == nil {
			<-ended
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return func() error {
		defer close(ended)
		return cmd.Wait()
	}, nil
}
