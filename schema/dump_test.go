package schema

import (
	"bytes"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"spaces/gatekeeper/policy"
)

// dump writes a Config for people: one line a field, in the order of the types,
// what is zero left out. With origins, each is shown as a line of the block it is in.
func dump(c *Config, origins bool) string {
	d := &dumper{origins: origins}
	shallow := *c
	shallow.Sources = nil
	if !origins {
		shallow.Files = nil
	}
	d.fields(reflect.ValueOf(shallow), 0)
	return d.out.String()
}

type dumper struct {
	out     bytes.Buffer
	origins bool
}

func (d *dumper) line(depth int, format string, args ...any) {
	d.out.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(&d.out, format, args...)
	d.out.WriteByte('\n')
}

func (d *dumper) fields(v reflect.Value, depth int) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			d.fields(v.Field(i), depth)
			continue
		}
		d.field(field.Name, v.Field(i), depth)
	}
}

func (d *dumper) field(name string, v reflect.Value, depth int) {
	if v.IsZero() || (v.Kind() == reflect.Map && v.Len() == 0) {
		return
	}
	switch value := v.Interface().(type) {
	case Origin:
		if d.origins {
			d.line(depth, "@ %s", span(value))
		}
	case map[string]Origin:
		if d.origins {
			keys := make([]string, 0, len(value))
			for key := range value {
				keys = append(keys, key)
			}
			slices.Sort(keys)
			for _, key := range keys {
				d.line(depth, "@ %s %s", span(value[key]), key)
			}
		}
	default:
		d.value(name, v, depth)
	}
}

func span(o Origin) string {
	return fmt.Sprintf("%s:%d,%d-%d,%d", o.File, o.Line, o.Column, o.EndLine, o.EndColumn)
}

func (d *dumper) value(name string, v reflect.Value, depth int) {
	switch value := v.Interface().(type) {
	case Address:
		d.line(depth, "%s = %s", name, value)
		return
	case *time.Duration:
		d.line(depth, "%s = %s", name, *value)
		return
	case time.Duration:
		d.line(depth, "%s = %s", name, value)
		return
	case policy.Entry:
		d.line(depth, "%s = %s", name, entryText(value))
	case []byte:
		d.line(depth, "%s = %s", name, value)
		return
	case netip.Prefix:
		d.line(depth, "%s = %s", name, value)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		d.value(name, v.Elem(), depth)
	case reflect.Struct:
		d.line(depth, "%s", name)
		d.fields(v, depth+1)
	case reflect.Slice:
		for i := range v.Len() {
			d.value(name, v.Index(i), depth)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			d.line(depth, "%s[%q] = %q", name, key.String(), v.MapIndex(key).String())
		}
	case reflect.String:
		d.line(depth, "%s = %q", name, v.String())
	default:
		d.line(depth, "%s = %v", name, v.Interface())
	}
}
