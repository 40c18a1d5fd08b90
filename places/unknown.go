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
	keys map[string]*shape // of an object, in lower case as encoding/json matches them
	each *shape            // of a list's elements, or a map's values
}

// containerShape has the two parts of a container that say what was asked for. Other
// parts may have any key.
func containerShape() *shape {
	return &shape{keys: map[string]*shape{
		"config":     shapeOf(reflect.TypeFor[container.Config]()),
		"hostconfig": shapeOf(reflect.TypeFor[container.HostConfig]()),
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
		s.keys[strings.ToLower(jsonName(f))] = shapeOf(f.Type)
	}
}

// unknownFields are the settings in a container's JSON that a shape doesn't have,
// unless they are empty. The JSON has been decoded before, so it is valid.
func unknownFields(raw []byte, s *shape) []reconcile.Field {
	w := walker{raw: raw}
	w.space()
	for range w.object() {
		key := w.key()
		if part, ok := s.keys[strings.ToLower(key)]; ok {
			w.value(key, part)
		} else {
			w.skip()
		}
	}
	return w.found
}

// walker reads valid JSON once, from left to right, and decodes only what it reports.
type walker struct {
	raw   []byte
	at    int
	found []reconcile.Field
}

func (w *walker) space() {
	for w.at < len(w.raw) && w.raw[w.at] <= ' ' {
		w.at++
	}
}

// next is the byte of the next token.
func (w *walker) next() byte {
	w.space()
	if w.at >= len(w.raw) {
		return 0
	}
	return w.raw[w.at]
}

// object yields once for each member, whose key is to be read next; for anything but
// an object it skips the value.
func (w *walker) object() func(func() bool) { return w.members('{', '}') }

func (w *walker) list() func(func() bool) { return w.members('[', ']') }

func (w *walker) members(open, end byte) func(func() bool) {
	return func(yield func() bool) {
		if w.next() != open {
			w.skip()
			return
		}
		w.at++
		for w.next() != end && w.next() != 0 {
			if !yield() {
				return
			}
			if w.next() == ',' {
				w.at++
			}
		}
		w.at++
	}
}

// key reads a member's key and the colon after it.
func (w *walker) key() string {
	w.space()
	start := w.at
	w.text()
	quoted := w.raw[start:w.at]
	if w.next() == ':' {
		w.at++
	}
	key := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		var s string
		if json.Unmarshal(quoted, &s) == nil {
			return s
		}
	}
	return string(key)
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
			for w.at < len(w.raw) && !bytes.ContainsRune([]byte(" \t\r\n,:]}"), rune(w.raw[w.at])) {
				w.at++
			}
		}
		if depth <= 0 {
			return
		}
	}
}

// value looks for unknown keys in a value.
func (w *walker) value(path string, s *shape) {
	switch {
	case s == nil:
		w.skip()
	case s.keys != nil:
		for range w.object() {
			w.member(path, s)
		}
	case w.next() == '[':
		i := 0
		for range w.list() {
			w.value(path+"["+strconv.Itoa(i)+"]", s.each)
			i++
		}
	default:
		for range w.object() {
			w.value(path+"["+strconv.Quote(w.key())+"]", s.each)
		}
	}
}

func (w *walker) member(path string, s *shape) {
	key := w.key()
	if part, ok := s.keys[strings.ToLower(key)]; ok {
		w.value(path+"."+key, part)
		return
	}
	w.space()
	start := w.at
	w.skip()
	var compact bytes.Buffer
	if json.Compact(&compact, w.raw[start:w.at]) == nil && !isEmptyJSON(compact.String()) {
		w.found = append(w.found, reconcile.Field{Path: path + "." + key, Value: compact.String(), EngineFilled: true})
	}
}

func isEmptyJSON(s string) bool {
	switch s {
	case "null", "false", "0", `""`, "[]", "{}":
		return true
	}
	return false
}
