package fleet_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

const (
	shedID   = "01JDZ8K3V5Q2M7N9P4R6S8T0W1"
	bypassID = "01JDZ8K3V5Q2M7N9P4R6S8T0W2"
	endID    = "01JDZ8K3V5Q2M7N9P4R6S8T0W3"
)

var t0 = time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)

// report is what a host of fleet shop would say that holds ids.
func report(host string, ids ...string) model.Report {
	r := model.Report{
		V: 1, Fleet: "shop", Host: host, Services: []string{"checkout"}, At: t0, State: "ok",
		Posture: directive.Posture(ids),
		Sources: []model.ReportSource{{Name: "etcd", AgeS: 2}, {Name: "file", AgeS: 1}},
		Clock:   model.ReportClock{State: model.ClockOK, Floor: t0},
	}
	for _, id := range ids {
		r.Live = append(r.Live, model.ReportLive{ID: id, Source: "etcd", Since: t0})
	}
	return r
}

func encode(t *testing.T, r model.Report) []byte {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
