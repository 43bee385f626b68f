package explain

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

func timeOf(v reflect.Value) (time.Time, bool) {
	t, ok := v.Interface().(time.Time)
	return t, ok
}

// word is one value as a person reads it.
func word(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Time:
		return when(x)
	case model.Money:
		return x.String()
	case model.Duration:
		return x.String()
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Float64:
		return number(v.Float())
	default:
		return strconv.FormatInt(v.Int(), 10)
	}
}

// compact is any value on one line: what a sentence cannot say stands there.
func compact(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return compact(v.Elem())
	case policy.Scalar(v.Type()):
		return word(v)
	case v.Kind() == reflect.Struct:
		var out []string
		for _, f := range policy.FieldsOf(v.Type()) {
			value := v.FieldByIndex(f.Index)
			if !f.Optional || !absent(value) {
				out = append(out, f.Key+": "+inside(value))
			}
		}
		return "{" + strings.Join(out, ", ") + "}"
	case v.Kind() == reflect.Map:
		var out []string
		for _, key := range unionOfKeys(v, v) {
			out = append(out, inside(key)+": "+inside(v.MapIndex(key)))
		}
		return "{" + strings.Join(out, ", ") + "}"
	default:
		out := make([]string, v.Len())
		for i := range out {
			out[i] = inside(v.Index(i))
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
}

// inside is compact within brackets, where a text says where it ends: two lists
// that differ never look alike.
func inside(v reflect.Value) string {
	if text := compact(v); v.Kind() != reflect.String || plainText(text) {
		return text
	}
	return strconv.Quote(v.String())
}

func plainText(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_*/") == ""
}

func absent(v reflect.Value) bool {
	if v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}

// unionOfKeys lists the keys of both maps in order, numbers as numbers.
func unionOfKeys(a, b reflect.Value) []reflect.Value {
	out := a.MapKeys()
	for _, key := range b.MapKeys() {
		if !a.MapIndex(key).IsValid() {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, func(x, y reflect.Value) int {
		if x.Kind() == reflect.String {
			return compare(x.String(), y.String())
		}
		return compare(x.Int(), y.Int())
	})
	return out
}
