package fleet

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// The metrics by which a host reports through Prometheus. Their names, labels
// and meaning are part of the format. Every one has the labels fleet and host.
const (
	MetricPosture   = "ic_host_posture_info"             // {posture} is 1
	MetricLive      = "ic_host_live"                     // {id, source} is since when, in Unix seconds
	MetricReport    = "ic_host_report_timestamp_seconds" // when the host made it, by its own clock
	MetricState     = "ic_host_state_info"               // {state} is 1
	MetricSourceAge = "ic_host_source_age_seconds"       // {source} is the age of its last full read; -1: never
)

// metricHelp is in the order in which WriteMetrics prints.
var metricHelp = [...]struct{ name, text string }{
	{MetricPosture, "Fingerprint of the directives in force on this host."},
	{MetricLive, "Directives in force, by id and source; the value is since when, in Unix seconds."},
	{MetricReport, "When this report was made, by the host's clock."},
	{MetricState, "State of the host's engine."},
	{MetricSourceAge, "Seconds since each source was last read in full; -1 if it never was."},
}

// WriteMetrics prints a report in the text format of Prometheus. Everything that
// skew is made of is in it; a host reached only by Prometheus still says which
// ids it lacks.
func WriteMetrics(w io.Writer, r model.Report) error {
	var out bytes.Buffer
	for _, m := range metricHelp {
		fmt.Fprintf(&out, "# HELP %s %s\n# TYPE %s gauge\n", m.name, m.text, m.name)
		switch m.name {
		case MetricPosture:
			series(&out, m.name, r, "1", "posture", r.Posture)
		case MetricLive:
			for _, l := range r.Live {
				series(&out, m.name, r, seconds(l.Since), "id", l.ID, "source", l.Source)
			}
		case MetricReport:
			series(&out, m.name, r, seconds(r.At))
		case MetricState:
			series(&out, m.name, r, "1", "state", r.State)
		case MetricSourceAge:
			for _, s := range r.Sources {
				series(&out, m.name, r, strconv.FormatInt(s.AgeS, 10), "source", s.Name)
			}
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

// series prints one line; labels are names and values in turn.
func series(out *bytes.Buffer, name string, r model.Report, value string, labels ...string) {
	fmt.Fprintf(out, `%s{fleet="%s",host="%s"`, name, label(r.Fleet), label(r.Host))
	for i := 0; i < len(labels); i += 2 {
		fmt.Fprintf(out, `,%s="%s"`, labels[i], label(labels[i+1]))
	}
	fmt.Fprintf(out, "} %s\n", value)
}

// label escapes what the format gives a meaning to. Bytes that are not UTF-8
// would make Prometheus drop the whole scrape.
func label(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(s, "\ufffd"))
}

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
