package signals

import (
	"errors"
	"fmt"

	"github.com/degradedmode/ic/internal/untrusted"
	promapi "github.com/prometheus/client_golang/api/prometheus/v1"
)

// explain says in one sentence why Prometheus gave no result.
func explain(err error) string {
	var f *finding
	var w *wrongAnswer
	var p *promapi.Error
	switch {
	case errors.As(err, &f):
		return f.detail
	case errors.As(err, &w):
		return w.what
	case !errors.As(err, &p):
		return "Prometheus cannot be asked: " + untrusted.Network(err)
	}
	switch p.Type {
	case promapi.ErrBadData, promapi.ErrExec:
		return "Prometheus refuses the query: " + p.Msg
	case promapi.ErrTimeout, promapi.ErrCanceled:
		return "the query takes too long inside Prometheus: " + p.Msg
	case promapi.ErrBadResponse:
		return "the answer is not one of Prometheus: " + p.Msg
	}
	return fmt.Sprintf("Prometheus answers with a %s", p.Msg)
}
