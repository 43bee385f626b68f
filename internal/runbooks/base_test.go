package runbooks_test

import (
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/runbooks"
)

// base is a runbook that uses every kind and every key, and in which lint finds
// nothing.
const base = `---
v: 1
id: payment-risk-down
owner: payments-oncall
use_when: The payment-risk service has not answered for 2 minutes.
signals: [risk-errors]
valid_until: 2027-03-01
max_duration: 3h
---
# Payment risk is down

Orders wait. Nothing is lost yet.

` + "```sh\nkubectl get pods\n```" + `

## 1. Is it really down?

Look before you act.

` + "```ic-step" + `
id: confirm
check: {promql: 'max(risk_up)', is: '< 0.5', for: 1m, no_data: ask}
timeout: 3m
on_timeout: stop
` + "```" + `

The check reads again until it holds.

## 2. What do you see?

` + "```ic-step" + `
id: look
decide:
  ask: What does the queue do?
  options:
    - {choose: grows, means: the queue of orders grows, goto: shed}
    - {choose: stable, means: it stays as it is, goto: seen}
` + "```" + `

## 3. Shed

` + "```ic-step" + `
id: shed
do: {right: shed, scope: checkout, tier: 2, reason: payment risk is down}
role: commander
timeout: 5m
on_timeout: ask
probe: {tier: {scope: checkout, is: 2}}
undo: {recover: {scope: checkout, to: 1, percent: 10}}
` + "```" + `

## 4. Small orders without the check

` + "```ic-step" + `
id: open
do: {right: risk-bypass, scope: checkout, control: risk, for: 15m, caps: {under: "50.00 USD"}, reason: payment risk is down}
timeout: 5m
on_timeout: seen
probe: {bypass: {control: risk, is: open}}
undo: {do: {right: end-bypass, scope: checkout, reason: the check is back}}
` + "```" + `

## 5. Push it the other way

` + "```ic-step" + `
id: push
push: {backend: hostfile}
timeout: 5m
on_timeout: continue
probe: {skew: {at_least: 95}}
undo: {push: {undo: hostfile}}
` + "```" + `

## 6. Wait until it is back

` + "```ic-step" + `
id: back
wait: {until: {signal: risk-errors, is: normal}, at_most: 30m}
on_timeout: ask
` + "```" + `

` + "```ic-step" + `
id: settle
wait: {for: 10m}
` + "```" + `

## 7. Recover

` + "```ic-step" + `
id: first
recover: {scope: checkout, to: 1, percent: 10}
timeout: 30m
on_timeout: stop
probe: {reach: {at_least: 95}}
irreversible: a recovery is taken back by shedding again
` + "```" + `

## 8. What was seen

` + "```ic-step" + `
id: healthy
check: {http: {url: 'https://shop.example/healthz', status: 200}}
then: seen
` + "```" + `

` + "```ic-step" + `
id: seen
note: {ask: 'Which graph did you look at and what did it show?'}
then: end
` + "```" + `

## Afterwards

Write it up.
`

func parse(t *testing.T, text string) *runbooks.Runbook {
	t.Helper()
	rb, err := runbooks.Parse("payment-risk-down.md", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return rb
}

// bent is base with one place changed.
func bent(t *testing.T, old, new string) string {
	t.Helper()
	if strings.Count(base, old) != 1 {
		t.Fatalf("the base holds %q %d times", old, strings.Count(base, old))
	}
	return strings.Replace(base, old, new, 1)
}
