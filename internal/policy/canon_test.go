package policy_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
)

// journeys is a document as a person types it: any order, any quotes, lists in
// either style.
const typed = `why: 'what a customer comes to do'
domain: journeys
v: 1
fleet: "shop-demo"
version: 12
expires: "2027-11-30T00:00:00Z"
journeys:
    buy: {text: Pay for what is in the basket, broken_by: [[place-order], [sign-in, "off"]]}
    browse:
        broken_by:
        - - browse-catalog
        text: >-
            find a product
            and look at it
`

const printed = `v: 1
fleet: shop-demo
domain: journeys
version: 12
expires: 2027-11-30T00:00:00Z
why: "what a customer comes to do"
journeys:
  browse:
    text: "find a product and look at it"
    broken_by:
      - [browse-catalog]
  buy:
    text: "Pay for what is in the basket"
    broken_by:
      - [place-order]
      - [sign-in, "off"]
`

func TestFmtPrintsOneForm(t *testing.T) {
	got, err := policy.Fmt("journeys.yaml", []byte(typed))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != printed {
		t.Errorf("got\n%s\nwant\n%s", got, printed)
	}
	again, err := policy.Fmt("journeys.yaml", got)
	if err != nil || !bytes.Equal(again, got) {
		t.Errorf("printing what was printed changes it: %v\n%s", err, again)
	}
}

func TestFmtLeavesTheExamplePolicyAlone(t *testing.T) {
	files, err := templates.Shop(policytest.Params())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		got, err := policy.Fmt(name, content)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every value has one spelling; what reads differently for different readers is
// an error, with its place and what to write instead.
func TestWhatFmtRefuses(t *testing.T) {
	for _, c := range []struct {
		what, file, old, new, want string
	}{
		{"a comment on a line of its own", "payments.yaml", "controls:", "# small orders only\ncontrols:",
			"payments.yaml:7:1: comments are not kept by fmt; say it in a why: field"},
		{"a comment behind a value", "payments.yaml", "    kind: bypass\n", "    kind: bypass # for now\n", "comments are not kept"},
		{"a comment at the end", "payments.yaml", "nine in ten and lose little.\"\n", "nine in ten and lose little.\"\n# end\n", "comments are not kept"},
		{"an anchor", "payments.yaml", "    owner: fiona", "    owner: &who fiona", "anchors and aliases are not allowed; write the value out"},
		{"an alias", "payments.yaml", "    owner: fiona\n    text: \"every order is scored for fraud before it is paid\"",
			"    owner: &who fiona\n    text: *who", "anchors and aliases are not allowed"},
		{"a tag", "payments.yaml", "per_day: 4", "per_day: !!int 4", "tags such as !!int are not allowed; remove it"},
		{"a merge key", "payments.yaml", "      per_day: 4", "      <<: {per_day: 4}", "merge keys (<<) are not allowed"},
		{"a second document", "payments.yaml", "controls:", "---\ncontrols:", `payments.yaml:7:1: a file is one document without "---" lines; remove it`},
		{"text behind the end of the document", "payments.yaml", "nine in ten and lose little.\"\n", "nine in ten and lose little.\"\n...\nrights: {}\n", `one document without "..." lines`},
		{"a YAML directive", "payments.yaml", "v: 1\n", "%YAML 1.1\nv: 1\n", `without "%" lines`},
		{"U+2028 inside a comment", "payments.yaml", "controls:", "# safe\u2028rights: {}\ncontrols:", "payments.yaml:7:7: U+2028 ends a line for some readers only; remove it"},
		{"U+0085 inside a comment", "payments.yaml", "controls:", "# safe\u0085rights: {}\ncontrols:", "U+0085 ends a line for some readers only"},
		{"a bare CR inside a comment", "payments.yaml", "controls:", "# safe\rrights: {}\ncontrols:", "payments.yaml:7:7: a carriage return (U+000D) ends a line for some readers only; lines end in LF"},
		{"Windows line ends", "payments.yaml", "\n", "\r\n", "payments.yaml:1:5: a carriage return"},
		{"a tab", "payments.yaml", "  payment-risk:", "\tpayment-risk:", "a tab; indent with spaces"},
		{"a right-to-left override", "payments.yaml", "every order", "every \u202eorder", "U+202E is not a printable character; remove it"},
		{"a zero-width space", "payments.yaml", "every order", "every\u200b order", "U+200B is not a printable"},
		{"an escaped control character", "payments.yaml", "every order", `every \u0007order`, "characters that do not print"},
		{"bytes that are not UTF-8", "payments.yaml", "every order", "every \xff order", "payments.yaml:13:18: byte 0xff is not UTF-8"},
		{"an unknown field", "payments.yaml", "      per_day: 4", "      per_dya: 4", `unknown field "per_dya"; did you mean "per_day"?`},
		{"an unknown field like no other", "payments.yaml", "    owner: fiona", "    owner: fiona\n    zzzzzzzz: 1", `unknown field "zzzzzzzz"; known here: protects, fails, services, owner, text`},
		{"a field twice", "payments.yaml", "      per_day: 4", "      per_day: 4\n      per_day: 400", `:7: rights.risk-bypass-small-orders.bypass: "per_day" stands here twice; remove one`},
		{"a right twice", "payments.yaml", "  risk-bypass-medium-orders:\n", "  risk-bypass-small-orders:\n", `"risk-bypass-small-orders" stands here twice`},
		{"a missing bound", "payments.yaml", "      total: \"30000.00 USD\"\n", "",
			`:7: rights.risk-bypass-small-orders.bypass: "total" is missing; every field is written out, also when it is zero or empty`},
		{"a bound without a value", "payments.yaml", "      total: \"30000.00 USD\"\n", "      total:\n", "rights.risk-bypass-small-orders.bypass.total: there is no value here; write one or remove the field"},
		{"a truth value that only some readers take for one", "payments.yaml", "volatile_hosts: false", "volatile_hosts: no", `"no" is neither true nor false`},
		{"a truth value in quotes", "payments.yaml", "volatile_hosts: false", `volatile_hosts: "false"`, `"false" is neither true nor false`},
		{"a leading zero", "payments.yaml", "host_count: 100", "host_count: 05000", `"05000" is not a whole number in plain digits; write it like 5000`},
		{"a number in hex", "payments.yaml", "host_count: 100", "host_count: 0x64", `"0x64" is not a whole number`},
		{"a number with separators", "payments.yaml", "host_count: 100", "host_count: 1_000", `"1_000" is not a whole number`},
		{"a number with a fraction", "payments.yaml", "host_count: 100", "host_count: 1.5", `"1.5" is not a whole number`},
		{"a number beyond 64 bits", "payments.yaml", "host_count: 100", "host_count: 9223372036854775808", "is not a whole number"},
		{"minutes to the base of sixty", "payments.yaml", "lasts: 15m", "lasts: 1:30", `"1:30" is not a duration; write a number and the largest unit`},
		{"a duration without a unit", "payments.yaml", "lasts: 15m", "lasts: 15", `"15" has no unit; write it like 15s, 15m or 15h`},
		{"days", "payments.yaml", "lasts: 15m", "lasts: 1d", `"1d": there is no unit for days; write hours, like 24h`},
		{"a duration in a smaller unit than fits", "payments.yaml", "lasts: 15m", "lasts: 900s", `"900s" is not a duration`},
		{"a negative duration", "payments.yaml", "lasts: 15m", "lasts: -15m", `"-15m" is not a duration`},
		{"an amount without cents", "payments.yaml", `"50.00 USD"`, `"50 USD"`, `"50 USD" is not an amount; write it like "50.00 USD"`},
		{"an amount without a currency", "payments.yaml", `"50.00 USD"`, "50.00", `"50.00" is not an amount`},
		{"an amount that is a list", "payments.yaml", `"50.00 USD"`, `["50.00 USD"]`, "one value is expected here, not a list"},
		{"a local time", "payments.yaml", "expires: 2027-11-30T00:00:00Z", "expires: 2027-11-30T00:00:00+01:00", "is not a time; write UTC and whole seconds, like 2027-11-30T00:00:00Z"},
		{"a date", "payments.yaml", "expires: 2027-11-30T00:00:00Z", "expires: 2027-11-30", `"2027-11-30" is not a time`},
		{"a fraction of a second", "payments.yaml", "expires: 2027-11-30T00:00:00Z", "expires: 2027-11-30T00:00:00.5Z", "is not a time"},
		{"a text that is a truth value for some", "payments.yaml", "owner: fiona", "owner: off", "off without quotes is not a text for every reader; write it in double quotes"},
		{"a text that is a number", "payments.yaml", "owner: fiona", "owner: 7", "7 without quotes is not a text"},
		{"a text that is a time", "payments.yaml", "owner: fiona", "owner: 2027-11-30", "2027-11-30 without quotes is not a text"},
		{"a text that is nothing", "payments.yaml", "owner: fiona", "owner: ~", "there is no value here"},
		{"a text of two lines", "payments.yaml", "owner: fiona", "owner: |\n      fiona\n      ravi", "a text is one line; join the lines"},
		{"a text that is too long", "payments.yaml", "every order", strings.Repeat("every order ", 100), "at most 1000"},
		{"a kind that does not exist", "payments.yaml", "kind: bypass", "kind: bypas", `"bypas" is not one of shed, off, bypass, freeze, dimmer, ping, end`},
		{"what a control cannot protect", "payments.yaml", "protects: money", "protects: cash", `"cash" is not one of money, authorization, inventory, capacity`},
		{"a way of failing that does not exist", "payments.yaml", "fails: closed", "fails: soft", `"soft" is not one of closed, open`},
		{"a name with capitals", "payments.yaml", "  payment-risk:", "  Payment-Risk:", `"Payment-Risk" is not a name`},
		{"a list where fields belong", "payments.yaml", "    cosign:\n      count: 0\n      of: finance", "    cosign: [0, finance]", "fields are expected here (name: value), not a list"},
		{"fields where a list belongs", "payments.yaml", "scope: [checkout]", "scope: {checkout: 1}", "a list is expected here ([a, b]), not a group of fields"},
		{"a word where a list belongs", "payments.yaml", "scope: [checkout]", "scope: checkout", `a list is expected here ([a, b]), not the value "checkout"`},
		{"a list as the name of a field", "payments.yaml", "scope: [checkout]", "[scope]: [checkout]", "the name of a field is one word, not a list"},
		{"an unclosed quote", "payments.yaml", "every order", `every "order`, "not YAML: "},
		{"deep nesting", "payments.yaml", "scope: [checkout]", "scope: " + strings.Repeat("[", 30) + strings.Repeat("]", 30), "nested deeper than 16 levels"},
		{"a class that does not exist", "features.yaml", "class: critical", "class: vital", `"vital" is not one of critical, degradable, sheddable`},
		{"a tier number that is a word", "features.yaml", `      1: "no change"`, `      one: "no change"`, `"one" is not a whole number`},
		{"a tier number twice", "features.yaml", `      1: "no change"`, "      1: \"no change\"\n      1: \"no change\"", `"1" stands here twice`},
		{"a threshold with an exponent", "ladder.yaml", "above: 0.8", "above: 8e-1", `"8e-1" is not a number`},
		{"a threshold that is no number", "ladder.yaml", "above: 0.8", "above: .nan", `".nan" is not a number`},
		{"an endless threshold", "ladder.yaml", "above: 0.8", "above: .inf", `".inf" is not a number`},
		{"a threshold with a leading zero", "ladder.yaml", "above: 0.8", "above: 00.8", `"00.8" is not a number`},
		{"a threshold that ends in a point", "ladder.yaml", "above: 0.8", "above: 8.", `"8." is not a number`},
		{"a threshold of a size that loses digits", "ladder.yaml", "above: 0.8", "above: 10000000000000", "is not a number"},
		{"a missing header field", "journeys.yaml", "fleet: shop-demo\n", "", `journeys.yaml:1:1: "fleet" is missing`},
		{"a root without a revocation list", "roots/1.yaml", "revoked: []\n", "", `roots/1.yaml:1:1: "revoked" is missing`},
		{"a group without a threshold", "roots/1.yaml", "    any: 3\n", "", `groups.everyone: "any" is missing`},
		{"something else in a manifest", "manifest.yaml", "v: 1", "[]", "manifest.yaml:1:1: "},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := shop(t)
			text := string(f.read(c.file))
			if !strings.Contains(text, c.old) {
				t.Fatalf("%s does not hold %q", c.file, c.old)
			}
			_, err := policy.Fmt(c.file, []byte(strings.Replace(text, c.old, c.new, times(c.old))))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// times is how often strings.Replace changes a text: line ends everywhere,
// anything else once.
func times(old string) int {
	if old == "\n" {
		return -1
	}
	return 1
}

func TestFilesThatAreNoDocument(t *testing.T) {
	for _, c := range []struct{ what, content, want string }{
		{"an empty file", "", "payments.yaml: the file is empty"},
		{"one word", "hello\n", `payments.yaml:1:1: fields are expected here (name: value), not the value "hello"`},
		{"a list", "- a\n", "fields are expected here (name: value), not a list"},
		{"nothing", "~\n", "there is no value here"},
		{"a file over the limit", strings.Repeat("x", policy.MaxDocument+1), "payments.yaml: the file has 1048577 bytes, at most 1048576"},
	} {
		if _, err := policy.Fmt("payments.yaml", []byte(c.content)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.what, err, c.want)
		}
	}
}

// A person mends everything he can see at once.
func TestFmtReportsEveryErrorOfAFile(t *testing.T) {
	text := strings.NewReplacer("host_count: 100", "host_count: 0100", "lasts: 15m", "lasts: 15", "owner: fiona", "ownr: fiona").
		Replace(string(shop(t).read("payments.yaml")))
	_, err := policy.Fmt("payments.yaml", []byte(text))
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("want four lines (one of them about the owner that is missing now), got\n%v", err)
	}
	many := strings.Repeat("  x: 1\n", 1000)
	if _, err := policy.Fmt("payments.yaml", []byte("controls:\n"+many)); strings.Count(err.Error(), "\n") > 20 {
		t.Errorf("a thousand errors are too many: %d", strings.Count(err.Error(), "\n"))
	}
}

// What is printed bare is a text for YAML 1.1 and 1.2 alike.
func TestTextsAreQuotedWhenInDoubt(t *testing.T) {
	doc := policy.JourneysDoc{Journeys: map[string]policy.Journey{"buy": {BrokenBy: [][]string{{
		"off", "Yes", "n", "null", "1e3", "12", "0x1F", "1:30", "", "~", ".inf", "a b", `say "hi" \o/`, "größe", "plain-word_1.2", "2027-11-30",
	}}}}}
	const want = `- ["off", "Yes", "n", "null", "1e3", "12", "0x1F", "1:30", "", "~", ".inf", "a b", "say \"hi\" \\o/", "größe", plain-word_1.2, "2027-11-30"]`
	if got := string(policy.Canonical(&doc)); !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// People write names with marks and money with signs; only what nobody can see is
// refused.
func TestTextsOfEveryLanguageAreKept(t *testing.T) {
	for _, text := range []string{"Zoe\u0308 Müller", "हिन्दी", "日本語", "€ – ½", "say #1 and #2"} {
		src := strings.Replace(printed, "Pay for what is in the basket", text, 1)
		if got, err := policy.Fmt("journeys.yaml", []byte(src)); err != nil || string(got) != src {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A file full of mistakes takes no longer than one with a few.
func TestAThousandCommentsAreReportedOnce(t *testing.T) {
	src := strings.Repeat("# a comment\n\n", 1000) + printed
	_, err := policy.Fmt("journeys.yaml", []byte(src))
	if err == nil || !strings.HasPrefix(err.Error(), "journeys.yaml:1:1: comments are not kept") || strings.Count(err.Error(), "\n") > 20 {
		t.Errorf("got %v", err)
	}
}

func TestAnOptionalFieldIsLeftOutWhenItIsZero(t *testing.T) {
	text := strings.Replace(string(shop(t).read("payments.yaml")), "    lead: 3m\n", "    lead: 0s\n", 1)
	got, err := policy.Fmt("payments.yaml", []byte(text))
	if err != nil || strings.Contains(string(got), "lead:") {
		t.Errorf("%v\n%s", err, got)
	}
}
