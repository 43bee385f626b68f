package policy

import (
	"reflect"
	"strings"
)

// Field is one key of a mapping of a document, by the tags that the canonical form
// is read and printed by; inlined structs are flattened.
type Field struct {
	Key      string
	Index    []int // for reflect's FieldByIndex
	Optional bool  // left out where it does not apply
	anyKey   bool  // keys of this map need not be names
}

// FieldsOf lists the keys of a struct of this package, in the order in which they
// are printed.
func FieldsOf(t reflect.Type) []Field {
	var out []Field
	for i := range t.NumField() {
		sf := t.Field(i)
		key, options, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
		if options == "inline" {
			for _, f := range FieldsOf(sf.Type) {
				f.Index = append([]int{i}, f.Index...)
				out = append(out, f)
			}
			continue
		}
		out = append(out, Field{Key: key, Index: []int{i}, Optional: options == "omitempty", anyKey: sf.Tag.Get("keys") == "any"})
	}
	return out
}

// Scalar reports whether values of a type are written as one word.
func Scalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int64, reflect.Bool, reflect.Float64:
		return true
	}
	return t == timeType || t == moneyType
}
