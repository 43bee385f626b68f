package runbooks

import (
	"fmt"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// skeletonValid is how long a new runbook is valid: half a year, after which
// somebody reads it again.
const skeletonValid = 182 * 24 * time.Hour

// Skeleton is a new runbook of this id in which lint finds nothing: with a shed
// of the policy at hand, if there is one, and with manual steps otherwise.
func Skeleton(id, owner string, now time.Time, known Known) []byte {
	known.Now = now
	with := func(step string) []byte {
		return []byte(skeleton(id, owner, now.Add(skeletonValid).UTC().Format(dateForm), step))
	}
	for _, step := range skeletonSheds(known) {
		text := with(step)
		if len(LintSource(id+markdownExt, text, known)) == 0 {
			return text
		}
	}
	return with("")
}

// skeletonSheds are steps that shed, one for each right and service that one
// person alone may shed.
func skeletonSheds(known Known) []string {
	var out []string
	for _, name := range keysOf(known.Rights) {
		right := known.Rights[name]
		if right.Kind != model.Shed || right.Cosign.Count > 0 || right.Tiers == nil || len(known.Roles[right.Who].Members) == 0 {
			continue
		}
		for _, service := range keysOf(known.Services) {
			for tier := right.Tiers.From; covers(right.Scope, service) && tier <= right.Tiers.To; tier++ {
				out = append(out, skeletonShed(name, &right, service, tier, known.Tiers))
			}
		}
	}
	return out
}

func skeletonShed(name string, right *policy.Right, service string, tier int, tiers []policy.Tier) string {
	percent := percentMax
	for _, t := range tiers {
		if t.Tier == tier && len(t.Ramp) > 0 {
			percent = t.Ramp[0]
		}
	}
	return fmt.Sprintf(`
## 3. Shed

Say here what users will see, and what gets better.

%sic-step
id: shed
do: {right: %s, scope: %s, tier: %d, reason: 'say why in one line'}
role: %s
timeout: 5m
on_timeout: ask
probe: {reach: {at_least: 95}}
undo: {recover: {scope: %s, to: %d, percent: %d}}
%s
`, "```", name, service, tier, right.Who, service, tier-1, percent, "```")
}

func skeleton(id, owner, until, shed string) string {
	next := "seen"
	if shed != "" {
		next = "shed"
	}
	return strings.ReplaceAll(fmt.Sprintf(`---
v: 1
id: %s
owner: %s
use_when: Say in one sentence when to take this runbook.
valid_until: %s
max_duration: 1h
---
# %s

What you see: say what a page or a graph shows.
What it means: say what is broken and what is not.
When to stop: say what would show that this is the wrong runbook.

## 1. Look

'''ic-step
id: look
note: {ask: 'Which graph did you look at, and what did it show?'}
'''

## 2. Is it this?

'''ic-step
id: decide
decide:
  ask: 'Is it what this runbook is for?'
  options:
    - {choose: this, means: 'it looks as described above', goto: %s}
    - {choose: other, means: 'it is something else', goto: end}
'''
%s
## Last. What did it do?

'''ic-step
id: seen
note: {ask: 'What do you see now, and where?'}
'''
`, id, owner, until, strings.ToUpper(id[:1])+strings.ReplaceAll(id[1:], "-", " "), next, shed), "'''", "```")
}
