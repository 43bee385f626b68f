package hostfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/degradedmode/ic/plugins/sdk"
)

const (
	receiptSuffix = ".receipt"

	// maxReceipts is how many operations a host remembers: more than an incident
	// makes, and few enough to read on every plan.
	maxReceipts = 32
)

// state is how far an operation got on one host.
type state string

const (
	writing state = "writing"
	written state = "written"
	undone  state = "undone"
)

// receipt is what one operation did to one host.
type receipt struct {
	V         int    `json:"v"`
	Operation string `json:"operation"`
	Plan      string `json:"plan"`
	Host      string `json:"host"`
	Total     int    `json:"total"` // hosts of the whole operation
	Existed   bool   `json:"existed"`
	Before    []byte `json:"before"` // the whole file, byte for byte
	After     string `json:"after"`
	State     state  `json:"state"`
}

// restored reports whether now is what stood there before the operation.
func (r *receipt) restored(now content) bool {
	return now.exists == r.Existed && bytes.Equal([]byte(now.text), r.Before) && now.value() != r.After
}

func (w watched) receiptPath(operation string) string {
	return filepath.Join(filepath.Dir(w.path), "."+filepath.Base(w.path)+"."+operation+receiptSuffix)
}

// keep writes a receipt durably.
func (w watched) keep(r receipt) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return replace(w.receiptPath(r.Operation), append(text, '\n'))
}

func (w watched) receipt(operation string) (r receipt, found bool, err error) {
	r, err = readReceipt(w.receiptPath(operation))
	if errors.Is(err, fs.ErrNotExist) {
		return receipt{}, false, nil
	}
	return r, err == nil, err
}

func readReceipt(path string) (receipt, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return receipt{}, err
	}
	var r receipt
	if err := json.Unmarshal(text, &r); err != nil {
		return receipt{}, fmt.Errorf("receipt %s cannot be read: %w", path, err)
	}
	if r.V != 1 {
		return receipt{}, fmt.Errorf("receipt %s has version %d, this software reads 1", path, r.V)
	}
	return r, nil
}

// receipts lists what operations did to this host, newest first.
func (w watched) receipts() ([]receipt, error) {
	paths, err := w.receiptPaths()
	if err != nil {
		return nil, err
	}
	var out []receipt
	for _, path := range paths {
		r, err := readReceipt(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // pruned in between
		}
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// receiptPaths lists the receipts by age, newest first.
func (w watched) receiptPaths() ([]string, error) {
	dir := filepath.Dir(w.path)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	type aged struct {
		path string
		at   int64
	}
	var found []aged
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "."+filepath.Base(w.path)+".") || !strings.HasSuffix(e.Name(), receiptSuffix) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // pruned in between
		}
		found = append(found, aged{filepath.Join(dir, e.Name()), info.ModTime().UnixNano()})
	}
	slices.SortFunc(found, func(a, b aged) int {
		if a.at != b.at {
			return int(max(-1, min(1, b.at-a.at)))
		}
		return strings.Compare(b.path, a.path)
	})
	out := make([]string, len(found))
	for i, f := range found {
		out[i] = f.path
	}
	return out, nil
}

// prune forgets the oldest operations, and what a killed writer left.
func (w watched) prune() error {
	paths, err := w.receiptPaths()
	if err != nil {
		return err
	}
	for _, path := range paths[min(maxReceipts, len(paths)):] {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	left, err := filepath.Glob(filepath.Join(escapeGlob(filepath.Dir(w.path)), tempPrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		os.Remove(path) // litter: if it stays, the next operation tries again
	}
	return nil
}

// receipts finds an operation on every host.
func (b *Backend) receipts(operation string) ([]receipt, error) {
	pattern := watched{path: strings.ReplaceAll(escapeGlob(b.template), placeholder, "*")}
	paths, err := filepath.Glob(pattern.receiptPath(operation))
	if err != nil {
		return nil, sdk.Refuse(sdk.CodeFailed, "looking for receipts under %s: %v", b.root(), err)
	}
	out := make([]receipt, 0, len(paths))
	for _, path := range paths {
		r, err := readReceipt(path)
		if err != nil {
			return nil, failure(err, path)
		}
		if b.file(r.Host).receiptPath(operation) != path {
			return nil, sdk.Refuse(sdk.CodeFailed, "receipt %s speaks about host %q: it has been moved or edited", path, r.Host)
		}
		out = append(out, r)
	}
	return out, nil
}
