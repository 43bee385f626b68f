package ofrep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/degradedmode/ic/internal/untrusted"
)

// Codes of OpenFeature for what could not be answered.
const (
	codeNotFound = "FLAG_NOT_FOUND"
	codeContext  = "INVALID_CONTEXT"
	codeParse    = "PARSE_ERROR"
)

const (
	maxBody   = 64 << 10 // a context is a page of attributes at most
	maxKey    = 128      // bytes of a flag's name in an error
	maxDetail = 300      // bytes of a sentence about an error
)

// The two questions of the protocol.
const (
	BulkPath = "/ofrep/v1/evaluate/flags"
	onePath  = BulkPath + "/{key...}" // also what no flag is named: its answer is one of the protocol
)

// Handler answers both questions from what now gives at that moment.
func Handler(now func() (*Set, error)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+BulkPath, func(w http.ResponseWriter, r *http.Request) { bulk(w, r, now) })
	mux.HandleFunc("POST "+onePath, func(w http.ResponseWriter, r *http.Request) { one(w, r, now) })
	return mux
}

// failure is what the protocol sends instead of an evaluation.
type failure struct {
	Key     string `json:"key,omitempty"`
	Code    string `json:"errorCode,omitempty"`
	Details string `json:"errorDetails,omitempty"`
}

func bulk(w http.ResponseWriter, r *http.Request, now func() (*Set, error)) {
	if code, err := readContext(w, r); err != nil {
		fail(w, http.StatusBadRequest, failure{Code: code, Details: err.Error()})
		return
	}
	set, err := now()
	if err != nil {
		fail(w, http.StatusInternalServerError, failure{Details: err.Error()})
		return
	}
	w.Header().Set("ETag", set.tag)
	w.Header().Set("Cache-Control", "no-cache")
	if set.has(strings.Join(r.Header.Values("If-None-Match"), ",")) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, http.StatusOK, set.bulk)
}

func one(w http.ResponseWriter, r *http.Request, now func() (*Set, error)) {
	key := r.PathValue("key")
	clean := untrusted.Text(key, maxKey)
	w.Header().Set("Cache-Control", "no-store")
	if code, err := readContext(w, r); err != nil {
		fail(w, http.StatusBadRequest, failure{Key: clean, Code: code, Details: err.Error()})
		return
	}
	set, err := now()
	if err != nil {
		fail(w, http.StatusInternalServerError, failure{Details: err.Error()})
		return
	}
	body, ok := set.one[key]
	if !ok {
		fail(w, http.StatusNotFound, failure{Key: clean, Code: codeNotFound, Details: "this host knows no such flag; POST " + BulkPath + " lists those it knows"})
		return
	}
	send(w, http.StatusOK, body)
}

// readContext looks at the form of what was sent, and uses nothing of it: every
// item of a host is under the same directives. No body at all is an empty
// context.
func readContext(w http.ResponseWriter, r *http.Request) (code string, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return codeParse, fmt.Errorf("read the request: %s", untrusted.Text(err.Error(), maxDetail))
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return "", nil
	}
	var ask map[string]json.RawMessage
	if err := json.Unmarshal(body, &ask); err != nil || ask == nil {
		return codeParse, errors.New(`want a JSON object like {"context": {"targetingKey": "…"}}`)
	}
	raw := ask["context"]
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return "", nil
	}
	var context map[string]json.RawMessage
	if err := json.Unmarshal(raw, &context); err != nil {
		return codeContext, errors.New("context has to be an object")
	}
	key, ok := context["targetingKey"]
	if ok && (len(key) == 0 || key[0] != '"') {
		return codeContext, errors.New("context.targetingKey has to be a text")
	}
	return "", nil
}

func fail(w http.ResponseWriter, status int, f failure) {
	body, err := json.Marshal(f)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte("{}")
	}
	send(w, status, body)
}

func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body[:len(body):len(body)], '\n')) // the asker has gone
}
