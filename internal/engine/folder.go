package engine

import "io"

// Folder is the one place where a host keeps what it knows. Dir is a real one,
// Memory one for simulated hosts.
type Folder interface {
	// Names lists the files of the folder.
	Names() ([]string, error)
	// Read returns the content of a file.
	Read(name string) ([]byte, error)
	// Create makes an empty file and replaces one of that name.
	Create(name string) (File, error)
	// Rename gives a file another name and replaces one that has it.
	Rename(from, to string) error
	// Remove takes a file away.
	Remove(name string) error
	// Sync makes the names in the folder durable.
	Sync() error
	// Close gives the folder free for another process.
	Close() error
}

// File is one file being written, from its beginning to its end.
type File interface {
	io.Writer
	Sync() error
	Close() error
}
