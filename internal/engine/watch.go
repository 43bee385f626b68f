package engine

// Changed is closed at the next change: of what is in force, of the policy, or
// when a source has been read for the first time. Take it before asking, ask, and
// wait for it: then nothing is missed. Whoever waits holds up nobody.
func (e *Engine) Changed() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}

// SourceRead reports whether a source has been read in full since the start.
func (e *Engine) SourceRead(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.sources[name]
	return ok && s.ever
}

// change says that what is in force or the policy has changed.
func (e *Engine) change() {
	e.revision.Add(1)
	e.wake()
}

// readFirst wakes whoever waits for the first full read of a source.
func (e *Engine) readFirst(source string) {
	if s, ok := e.sources[source]; !ok || !s.ever {
		e.wake()
	}
}

func (e *Engine) wake() {
	close(e.changed)
	e.changed = make(chan struct{})
}
