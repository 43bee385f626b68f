package metrics

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Type is the type of a family in the text format.
type Type string

// The types that this library uses.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// ContentType is that of the text format.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Sample is one line of a family.
type Sample struct {
	Suffix string   // of a histogram: "_bucket", "_sum", "_count"
	Labels []string // names and values in turn
	Value  float64
}

// Family is everything under one name.
type Family struct {
	Name    string
	Help    string
	Type    Type
	Samples []Sample
}

// Source is a part that counts. What it returns is a copy.
type Source interface {
	Metrics() []Family
}

// Write prints the families of all sources, by name. What two sources call the
// same is one family: the format allows a name once.
func Write(w io.Writer, sources ...Source) error {
	families := map[string]Family{}
	for _, s := range sources {
		for _, f := range s.Metrics() {
			if known, ok := families[f.Name]; ok {
				f.Samples = append(known.Samples, f.Samples...)
			}
			families[f.Name] = f
		}
	}
	var out bytes.Buffer
	for _, f := range slices.SortedFunc(maps.Values(families), func(a, b Family) int { return cmp.Compare(a.Name, b.Name) }) {
		fmt.Fprintf(&out, "# HELP %s %s\n# TYPE %s %s\n", f.Name, help.Replace(f.Help), f.Name, f.Type)
		for _, s := range f.Samples {
			s.print(&out, f.Name)
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

// Handler serves what Write prints.
func Handler(sources ...Source) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ContentType)
		_ = Write(w, sources...) // the asker has gone
	})
}

// Escapes: a line feed would begin a line of somebody's own.
var (
	help  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	label = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
)

func (s Sample) print(out *bytes.Buffer, name string) {
	out.WriteString(name + s.Suffix)
	for i := 0; i+1 < len(s.Labels); i += 2 {
		before := ","
		if i == 0 {
			before = "{"
		}
		// Bytes that are not UTF-8 would make Prometheus drop the whole scrape.
		fmt.Fprintf(out, `%s%s="%s"`, before, s.Labels[i], label.Replace(strings.ToValidUTF8(s.Labels[i+1], "\ufffd")))
	}
	if len(s.Labels) > 1 {
		out.WriteByte('}')
	}
	out.WriteString(" " + number(s.Value) + "\n")
}

func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
