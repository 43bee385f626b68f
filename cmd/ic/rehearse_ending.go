package main

import (
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/tui"
	"github.com/degradedmode/ic/internal/untrusted"
)

// maxWhy is the longest reason of a verdict that the last screen shows, in bytes: three
// lines of a window.
const maxWhy = 200

// shortCard are the axes of the console's last screen; an abnormal one is there too.
var shortCard = []string{"detect", "decide", "effect on 95 %", "stabilise", "recover", "unscored", "customer impact", "acts done", "bypass at the end", "evidence"}

// endingOf is a rehearsal that is over in the words of the console.
func endingOf(r *rehearsed) tui.Ending {
	s := &r.Score
	e := tui.Ending{Title: s.Heading(), Verdict: strings.ToUpper(string(s.Verdict)), Passed: s.Verdict == score.Passed}
	for _, why := range s.Why {
		e.Why = append(e.Why, untrusted.Text(why, maxWhy))
	}
	e.Columns = append([]string{"", "this run"}, s.Columns()...)
	for _, row := range s.Rows() {
		marked := row.Mark == score.Abnormal || row.Mark == score.Critical
		if !marked && !slices.Contains(shortCard, row.Name) {
			continue
		}
		value := row.Value
		if row.Word != "" {
			value += " " + row.Word
		}
		e.Rows = append(e.Rows, tui.EndingRow{Cells: append([]string{row.Name, value}, row.Others...), Abnormal: marked, Unknown: row.Mark == score.Unknown})
	}
	e.Notes = append(r.notes(), "the whole card is printed when you leave")
	return e
}
