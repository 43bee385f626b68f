package ofrep

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// asked is what a client gets.
type asked struct {
	status int
	header http.Header
	body   string
}

func ask(t *testing.T, h http.Handler, path, body string) asked {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
	return asked{w.Code, w.Header(), strings.TrimSpace(w.Body.String())}
}

func serving(t *testing.T, flags ...Flag) http.Handler {
	t.Helper()
	set, err := NewSet(flags, map[string]any{"ageSeconds": 3})
	if err != nil {
		t.Fatal(err)
	}
	return Handler(func() (*Set, error) { return set, nil })
}

func two(t *testing.T) http.Handler {
	return serving(t,
		Flag{Key: "tier.checkout", Value: 2, Reason: Matched, Variant: "tier-2"},
		Flag{Key: "reviews", Value: true, Reason: Static, Variant: "on", Metadata: map[string]any{"how": "the newest three"}})
}

func TestAnswersHaveTheShapesOfTheProtocol(t *testing.T) {
	h := two(t)
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{BulkPath, `{"context":{"targetingKey":"u1","plan":"gold"}}`, 200, `{"flags":[{"key":"reviews","value":true,"reason":"STATIC","variant":"on","metadata":{"how":"the newest three"}},{"key":"tier.checkout","value":2,"reason":"TARGETING_MATCH","variant":"tier-2"}],"metadata":{"ageSeconds":3}}`},
		{BulkPath + "/reviews", `{"context":{}}`, 200, `{"key":"reviews","value":true,"reason":"STATIC","variant":"on","metadata":{"ageSeconds":3,"how":"the newest three"}}`},
		{BulkPath + "/tier.checkout", "", 200, `{"key":"tier.checkout","value":2,"reason":"TARGETING_MATCH","variant":"tier-2","metadata":{"ageSeconds":3}}`},
		{BulkPath + "/tier%2Echeckout", `{}`, 200, `{"key":"tier.checkout","value":2,"reason":"TARGETING_MATCH","variant":"tier-2","metadata":{"ageSeconds":3}}`},
	} {
		got := ask(t, h, c.path, c.body)
		if got.status != c.status || got.body != c.want || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s:\n%d %s\nwant\n%d %s", c.path, c.body, got.status, got.body, c.status, c.want)
		}
	}
}

func TestWhatCannotBeAnsweredHasACode(t *testing.T) {
	h := two(t)
	for _, c := range []struct {
		name, path, body string
		status           int
		code, key        string
	}{
		{"a flag nobody knows", BulkPath + "/nothing", `{}`, 404, "FLAG_NOT_FOUND", "nothing"},
		{"a name with a slash", BulkPath + "/a/b", `{}`, 404, "FLAG_NOT_FOUND", "a/b"},
		{"no name", BulkPath + "/", `{}`, 404, "FLAG_NOT_FOUND", ""},
		{"a name to paint a terminal with", BulkPath + "/%1b%5b31m", `{}`, 404, "FLAG_NOT_FOUND", `\x1b[31m`},
		{"a long name", BulkPath + "/" + strings.Repeat("x", 4000), `{}`, 404, "FLAG_NOT_FOUND", ""},
		{"no JSON", BulkPath, `context`, 400, "PARSE_ERROR", ""},
		{"no JSON for one", BulkPath + "/reviews", `{"context":`, 400, "PARSE_ERROR", "reviews"},
		{"a list", BulkPath, `[]`, 400, "PARSE_ERROR", ""},
		{"null", BulkPath, `null`, 400, "PARSE_ERROR", ""},
		{"two of them", BulkPath, `{} {}`, 400, "PARSE_ERROR", ""},
		{"too long", BulkPath, `{"context":{"a":"` + strings.Repeat("x", maxBody) + `"}}`, 400, "PARSE_ERROR", ""},
		{"a context that is none", BulkPath, `{"context":"gold"}`, 400, "INVALID_CONTEXT", ""},
		{"a context that is none, for one", BulkPath + "/reviews", `{"context":[1]}`, 400, "INVALID_CONTEXT", "reviews"},
		{"a key that is a number", BulkPath + "/reviews", `{"context":{"targetingKey":7}}`, 400, "INVALID_CONTEXT", "reviews"},
	} {
		got := ask(t, h, c.path, c.body)
		var body failure
		if err := json.Unmarshal([]byte(got.body), &body); err != nil {
			t.Errorf("%s: %v in %s", c.name, err, got.body)
			continue
		}
		if got.status != c.status || body.Code != c.code || body.Details == "" || c.key != "" && body.Key != c.key || len(got.body) > 700 {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
	}
}

func TestAContextMayBeLeftOutInEveryWay(t *testing.T) {
	h := two(t)
	for _, body := range []string{"", " \n", `{}`, `{"context":null}`, `{"context":{}}`, `{"context":{"targetingKey":""}}`, `{"context":{"a":1},"later":true}`} {
		if got := ask(t, h, BulkPath, body); got.status != http.StatusOK {
			t.Errorf("%q: %d %s", body, got.status, got.body)
		}
	}
}

func TestTheTagFollowsFromWhatTheFlagsSayAndNotFromTheirAge(t *testing.T) {
	tag := func(f Flag, metadata map[string]any) string {
		s, err := NewSet([]Flag{f}, metadata)
		if err != nil {
			t.Fatal(err)
		}
		return s.Tag()
	}
	f := Flag{Key: "a", Value: true, Reason: Static, Variant: "on"}
	first := tag(f, map[string]any{"ageSeconds": 1})
	aged := f
	aged.Metadata = map[string]any{"x": "y"}
	if tag(f, map[string]any{"ageSeconds": 2}) != first || tag(aged, nil) != first {
		t.Error("metadata changes the tag")
	}
	for _, change := range []func(*Flag){
		func(f *Flag) { f.Key = "b" }, func(f *Flag) { f.Value = false },
		func(f *Flag) { f.Reason = Stale }, func(f *Flag) { f.Variant = "off" },
	} {
		other := f
		change(&other)
		if tag(other, nil) == first {
			t.Errorf("%+v has the tag of %+v", other, f)
		}
	}
	if got := first; len(got) != 34 || got[0] != '"' || got[33] != '"' {
		t.Errorf("no entity tag: %s", got)
	}
}

func TestSetsAreTheSameInWhateverOrderTheyAreMade(t *testing.T) {
	a, b := Flag{Key: "a", Value: 1}, Flag{Key: "b", Value: 2}
	one, err := NewSet([]Flag{a, b}, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewSet([]Flag{b, a}, nil)
	if err != nil || !reflect.DeepEqual(one, other) {
		t.Errorf("%v: %+v and %+v", err, one, other)
	}
	if _, err := NewSet([]Flag{a, a}, nil); err == nil {
		t.Error("one key stands for two flags")
	}
}

func TestAHostThatCannotAnswerSaysSo(t *testing.T) {
	h := Handler(func() (*Set, error) { return nil, errors.New("no flags now") })
	for _, path := range []string{BulkPath, BulkPath + "/reviews"} {
		if got := ask(t, h, path, `{}`); got.status != http.StatusInternalServerError || got.body != `{"errorDetails":"no flags now"}` {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}
