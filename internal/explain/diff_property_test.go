package explain_test

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/explain"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"pgregory.net/rapid"
)

// No change is silent: whatever makes two documents print differently is
// reported, at its path; what prints alike is not.
func TestNoChangeIsSilent(t *testing.T) {
	files, err := templates.Shop(policytest.Params())
	if err != nil {
		t.Fatal(err)
	}
	document := func(src *explain.Source, file string) any {
		switch file {
		case "features.yaml":
			return src.Docs.Features
		case "ladder.yaml":
			return src.Docs.Ladder
		case "rights.yaml":
			return src.Docs.Rights
		case "backends.yaml":
			return src.Docs.Backends
		case "journeys.yaml":
			return src.Docs.Journeys
		case "payments.yaml":
			return src.Docs.Controls[templates.PaymentsDomain]
		}
		return src.Root
	}
	names := slices.Sorted(maps.Keys(files))
	rapid.Check(t, func(rt *rapid.T) {
		file := rapid.SampledFrom(names).Draw(rt, "document")
		only := map[string][]byte{file: files[file], "roots/1.yaml": files["roots/1.yaml"]}
		before, after := readDrafts(rt, only), readDrafts(rt, only)
		old, new := document(&before, file), document(&after, file)
		path := mutate(rt, reflect.ValueOf(new).Elem(), "")
		differs := !bytes.Equal(policy.Canonical(old), policy.Canonical(new))
		d := explain.Diff(before, after)
		if differs == d.Empty() {
			rt.Fatalf("%s: printed differently %v, and the difference is empty %v", path, differs, d.Empty())
		}
		if differs && (len(d.Files) != 1 || !namesPath(d.Files[0].Changes, path)) {
			rt.Fatalf("%s is not named: %+v", path, d.Files)
		}
	})
}

// namesPath accepts the path itself, the list it is an element of, and the thing
// that is another one when what identifies it is another.
func namesPath(changes []explain.Change, path string) bool {
	return slices.ContainsFunc(changes, func(c explain.Change) bool {
		return c.Path == path || c.Text != "" && c.Path != "" && (strings.HasPrefix(path, c.Path+"[") || strings.HasPrefix(path, c.Path+".")) && c.How != "changed" ||
			strings.HasPrefix(path, c.Path+"[") && c.How == "changed"
	})
}

// mutate changes one value at random below v and returns its path.
func mutate(rt *rapid.T, v reflect.Value, path string) string {
	switch x := v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(x.Add(time.Duration(rapid.IntRange(-2, 2).Draw(rt, "seconds")) * time.Second)))
		return path
	case model.Money:
		v.Set(reflect.ValueOf(rapid.SampledFrom([]model.Money{{Minor: x.Minor + 1, Currency: x.Currency}, {Minor: x.Minor, Currency: "EUR"}, x}).Draw(rt, "money")))
		return path
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || rapid.IntRange(0, 5).Draw(rt, "nil") == 0 {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			} else {
				v.SetZero()
			}
			return path
		}
		return mutate(rt, v.Elem(), path)
	case reflect.Struct:
		i := rapid.IntRange(0, v.NumField()-1).Draw(rt, "field")
		f := v.Type().Field(i)
		if !f.IsExported() {
			return path
		}
		key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if options == "inline" {
			return mutate(rt, v.Field(i), path)
		}
		return mutate(rt, v.Field(i), strings.TrimPrefix(path+"."+key, "."))
	case reflect.Map:
		return mutateMap(rt, v, path)
	case reflect.Slice:
		return mutateSlice(rt, v, path)
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{v.String() + "x", "a, b", v.String()}).Draw(rt, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(rt, "bool"))
	case reflect.Float64:
		v.SetFloat(rapid.Float64Range(0, 1e8).Draw(rt, "number"))
	default:
		v.SetInt(rapid.Int64Range(0, 100).Draw(rt, "integer"))
	}
	return path
}

func mutateMap(rt *rapid.T, v reflect.Value, path string) string {
	key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	keys := v.MapKeys()
	if len(keys) == 0 || rapid.IntRange(0, 5).Draw(rt, "new") == 0 {
		if key.Kind() == reflect.String {
			key.SetString("brand-new")
		} else {
			key.SetInt(7)
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		v.SetMapIndex(key, element)
		return fmt.Sprintf("%s.%v", path, key)
	}
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	key = keys[rapid.IntRange(0, len(keys)-1).Draw(rt, "key")]
	next := fmt.Sprintf("%s.%v", path, key)
	if rapid.IntRange(0, 5).Draw(rt, "delete") == 0 {
		v.SetMapIndex(key, reflect.Value{})
		return next
	}
	element.Set(v.MapIndex(key))
	next = mutate(rt, element, next)
	v.SetMapIndex(key, element)
	return next
}

func mutateSlice(rt *rapid.T, v reflect.Value, path string) string {
	how := rapid.IntRange(0, 6).Draw(rt, "how")
	switch {
	case v.Len() == 0 || how == 0:
		v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
		return fmt.Sprintf("%s[%d]", path, v.Len()-1)
	case how == 1:
		i := rapid.IntRange(0, v.Len()-1).Draw(rt, "drop")
		v.Set(reflect.AppendSlice(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v.Slice(0, i)), v.Slice(i+1, v.Len())))
		return fmt.Sprintf("%s[%d]", path, i)
	case how == 2 && v.Len() > 1:
		first, last := reflect.New(v.Type().Elem()).Elem(), reflect.New(v.Type().Elem()).Elem()
		first.Set(v.Index(0))
		last.Set(v.Index(v.Len() - 1))
		v.Index(0).Set(last)
		v.Index(v.Len() - 1).Set(first)
		return path
	}
	i := rapid.IntRange(0, v.Len()-1).Draw(rt, "item")
	return mutate(rt, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
}
