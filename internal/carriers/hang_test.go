package carriers

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestAFileSystemThatHangsIsSaidAndEndsWithTheContext(t *testing.T) {
	release := make(chan struct{})
	said := make(chan Status, 4)
	w := fileWatch{
		File:   File{Path: "/mnt/hung/directives", Now: time.Now},
		sink:   func([]string) {},
		status: func(s Status) { said <- s },
		read:   func(string) ([]string, error) { <-release; return nil, nil },
		limit:  time.Millisecond,
	}
	done := make(chan bool)
	go func() { done <- w.once(t.Context()) }()
	if s := <-said; s.Connected || !strings.Contains(s.Err, "hangs") {
		t.Errorf("status is %+v", s)
	}
	close(release)
	if s := <-said; !s.Connected || !<-done {
		t.Errorf("after the file system came back the status is %+v", s)
	}

	w.read = func(string) ([]string, error) { select {} }
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- w.once(ctx) }()
	<-said
	cancel()
	if <-done {
		t.Error("the watch goes on after its context")
	}
}
