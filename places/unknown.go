package places

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"

	"spaces/reconcile"
)

// A newer engine may know settings that the client's structs don't have, and decoding
// would lose them without a word. So the keys of a container's Config and HostConfig
// are compared with the structs', down to the last element.

// shape is what keys a value may have; nil for one without any.
type shape struct {
	keys map[string]*shape // of an object
	each *shape            // of a list's elements, or a map's values
}

// part is the shape of an object's member. Keys match in any case, as encoding/json
// has it.
func (s *shape) part(key []byte) (*shape, bool) {
	if part, ok := s.keys[string(key)]; ok {
		return part, true
	}
	for name, part := range s.keys {
		if strings.EqualFold(name, string(key)) {
			return part, true
		}
	}
	return nil, false
}

// containerShape has the two parts of a container that say what was asked for. Other
// parts may have any key.
func containerShape() *shape {
	return &shape{keys: map[string]*shape{
		"Config":     shapeOf(reflect.TypeFor[container.Config]()),
		"HostConfig": shapeOf(reflect.TypeFor[container.HostConfig]()),
	}}
}

func shapeOf(t reflect.Type) *shape {
	unmarshaler := reflect.TypeFor[json.Unmarshaler]()
	switch {
	case t.Kind() == reflect.Pointer:
		return shapeOf(t.Elem())
	case t.Implements(unmarshaler), reflect.PointerTo(t).Implements(unmarshaler):
		return nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		if each := shapeOf(t.Elem()); each != nil {
			return &shape{each: each}
		}
	case reflect.Struct:
		s := &shape{keys: map[string]*shape{}}
		s.add(t)
		return s
	}
	return nil
}

func (s *shape) add(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Tag.Get("json") == "" {
			s.add(f.Type)
			continue
		}
		s.keys[jsonName(f)] = shapeOf(f.Type)
	}
}

// unknownFields are the settings in a container's JSON that a shape doesn't have,
// unless they are empty. The JSON has been decoded before, so it is valid.
func unknownFields(raw []byte, s *shape) []reconcile.Field {
	w := walker{raw: raw}
	for more := w.enter('{'); more; more = w.another('}') {
		key := w.key()
		if part, ok := s.part(key); ok {
			w.path = append(w.path[:0], key...)
			w.value(part)
		} else {
			w.skip()
		}
	}
	return w.found
}

// walker reads valid JSON once, from left to right. It keeps nothing but what it
// reports, as it reads every container.
type walker struct {
	raw   []byte
	at    int
	path  []byte // of the value it is at
	found []reconcile.Field
}

// next is the first byte of the next token, 0 at the end.
func (w *walker) next() byte {
	for w.at < len(w.raw) && w.raw[w.at] <= ' ' {
		w.at++
	}
	if w.at >= len(w.raw) {
		return 0
	}
	return w.raw[w.at]
}

// enter goes into an object or list and is true if it has a member. Any other value is
// passed over.
func (w *walker) enter(open byte) bool {
	if w.next() != open {
		w.skip()
		return false
	}
	w.at++
	return w.more(open + 2) // in ASCII, } is { and 2, as ] is [ and 2
}

// another goes on to the next member, if there is one.
func (w *walker) another(end byte) bool {
	if w.next() == ',' {
		w.at++
	}
	return w.more(end)
}

func (w *walker) more(end byte) bool {
	switch w.next() {
	case 0:
		return false
	case end:
		w.at++
		return false
	}
	return true
}

// key reads a member's key and the colon after it.
func (w *walker) key() []byte {
	w.next()
	start := w.at
	w.text()
	quoted := w.raw[start:w.at]
	if w.next() == ':' {
		w.at++
	}
	if bytes.IndexByte(quoted, '\\') >= 0 {
		var s string
		if json.Unmarshal(quoted, &s) == nil {
			return []byte(s)
		}
	}
	return quoted[1 : len(quoted)-1]
}

// text passes over a string.
func (w *walker) text() {
	for w.at++; w.at < len(w.raw) && w.raw[w.at] != '"'; w.at++ {
		if w.raw[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
}

// skip passes over a value.
func (w *walker) skip() {
	depth := 0
	for {
		switch w.next() {
		case 0:
			return
		case '"':
			w.text()
		case '{', '[':
			depth++
			w.at++
		case '}', ']':
			depth--
			w.at++
		case ',', ':':
			w.at++
			continue
		default:
			w.word()
		}
		if depth <= 0 {
			return
		}
	}
}

// word passes over a number, true, false or null.
func (w *walker) word() {
	for w.at < len(w.raw) {
		switch w.raw[w.at] {
		case ' ', '\t', '\r', '\n', ',', ':', ']', '}':
			return
		}
		w.at++
	}
}

// value looks for unknown keys in a value.
func (w *walker) value(s *shape) {
	depth := len(w.path)
	switch {
	case s == nil:
		w.skip()
	case s.keys != nil:
		for more := w.enter('{'); more; more = w.another('}') {
			w.member(s)
			w.path = w.path[:depth]
		}
	case w.next() == '[':
		i := 0
		for more := w.enter('['); more; more = w.another(']') {
			w.path = append(strconv.AppendInt(append(w.path, '['), int64(i), 10), ']')
			w.value(s.each)
			w.path = w.path[:depth]
			i++
		}
	default:
		for more := w.enter('{'); more; more = w.another('}') {
			w.path = append(strconv.AppendQuote(append(w.path, '['), string(w.key())), ']')
			w.value(s.each)
			w.path = w.path[:depth]
		}
	}
}

func (w *walker) member(s *shape) {
	key := w.key()
	w.path = append(append(w.path, '.'), key...)
	if part, ok := s.part(key); ok {
		w.value(part)
		return
	}
	w.next()
	start := w.at
	w.skip()
	var compact bytes.Buffer
	if json.Compact(&compact, w.raw[start:w.at]) == nil && !isEmptyJSON(compact.String()) {
		w.found = append(w.found, reconcile.Field{Path: string(w.path), Value: compact.String(), EngineFilled: true})
	}
}

func isEmptyJSON(s string) bool {
	switch s {
	case "null", "false", "0", `""`, "[]", "{}":
		return true
	}
	return false
}
