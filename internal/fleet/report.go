package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
	"github.com/oklog/ulid/v2"
)

// MaxReport is the longest report in bytes. 512 log heads of one origin are
// about 80 KiB.
const MaxReport = 256 << 10

// maxField bounds one text of a report, maxDetail one sentence, in bytes.
const (
	maxField  = 200
	maxDetail = 300
)

// ParseReport reads the report that host of fleet should have made. A report of
// anybody else, of another version, with a field that this version does not
// know, or whose posture is not that of the ids it lists, is an error: half
// understood it would count as a host that is as issued.
func ParseReport(body []byte, fleet, host string) (*model.Report, error) {
	if len(body) > MaxReport {
		return nil, fmt.Errorf("the report is longer than %d bytes", MaxReport)
	}
	var r model.Report
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return nil, fmt.Errorf("it is not a report: %s", untrusted.Text(err.Error(), maxDetail))
	}
	if rest := bytes.TrimSpace(body[dec.InputOffset():]); len(rest) > 0 {
		return nil, fmt.Errorf("something follows the report")
	}
	clean(&r)
	switch {
	case r.V != 1:
		return nil, fmt.Errorf("it is a report of version %d, this software reads 1", r.V)
	case r.Fleet != fleet:
		return nil, fmt.Errorf("it reports for fleet %q, this is %q", r.Fleet, fleet)
	case r.Host != host:
		return nil, fmt.Errorf("it reports as host %q, the inventory has %q at this address", r.Host, host)
	}
	return &r, checkLive(&r)
}

// checkLive wants ids that are ids and a posture that is theirs.
func checkLive(r *model.Report) error {
	ids := make([]string, len(r.Live))
	for i, l := range r.Live {
		if _, err := ulid.ParseStrict(l.ID); err != nil {
			return fmt.Errorf("it lists %q, which is no directive's id", l.ID)
		}
		ids[i] = l.ID
	}
	if directive.Posture(ids) != r.Posture {
		return fmt.Errorf("its posture is not that of the %d ids it lists", len(ids))
	}
	return nil
}

// clean makes every text of a report safe to show.
func clean(r *model.Report) {
	texts := []*string{&r.Fleet, &r.Host, &r.Boot, &r.State, &r.Posture, (*string)(&r.Clock.State), &r.Policy.Digest, &r.Versions.IC}
	for i := range r.Services {
		texts = append(texts, &r.Services[i])
	}
	for i := range r.Live {
		texts = append(texts, &r.Live[i].ID, &r.Live[i].Source)
	}
	for i := range r.Sources {
		s := &r.Sources[i]
		texts = append(texts, &s.Name, &s.Error)
		for j := range s.PresentIDs {
			texts = append(texts, &s.PresentIDs[j])
		}
	}
	for i := range r.Refused {
		texts = append(texts, &r.Refused[i].ID, &r.Refused[i].Code)
	}
	for i := range r.Budgets {
		texts = append(texts, &r.Budgets[i].Right, &r.Budgets[i].Control, &r.Budgets[i].Period)
	}
	for i := range r.Heads {
		texts = append(texts, &r.Heads[i].Origin, &r.Heads[i].Root)
	}
	for _, t := range texts {
		*t = untrusted.Text(*t, maxField)
	}
}
