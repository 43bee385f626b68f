package breakglass

import (
	"os"
	"path/filepath"
)

// pinned makes a program of a checked descriptor. The kernel executes what is
// open as descriptor 3 of the child, not what the path leads to.
func pinned(file *os.File, _ Foreign, _ string) (program, error) {
	return program{path: "/proc/self/fd/3", name: filepath.Base(file.Name()), files: []*os.File{file}}, nil
}
