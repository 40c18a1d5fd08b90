package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"spaces/schema"
)

// Fields flattens a container into its compared facts, sorted by path. What is unset
// has no field, so that a fact on one side alone is a difference.
func (c Container) Fields() []Field {
	// In the order of their paths, but for rare ones: sorting what is sorted is quick.
	f := fieldList{slices.Grow(slices.Clone(c.Excess), usualFields)}
	f.add("cap_add", strings.Join(c.CapAdd, ", "))
	f.add("cap_drop", strings.Join(c.CapDrop, ", "))
	f.add("command", argv(c.Command))
	f.add("devices", strings.Join(c.Devices, ", "))
	f.add("dns", strings.Join(c.DNS, ", "))
	f.add("entrypoint", argv(c.Entrypoint))
	for _, name := range sortedKeys(c.Env) {
		f.fields = append(f.fields, Field{Path: key("env", name), Value: c.Env[name].Value, Sensitive: c.Env[name].Sensitive})
	}
	f.add("group_add", strings.Join(c.GroupAdd, ", "))
	f.add("healthcheck", c.Healthcheck.String())
	f.add("image", imageValue(c.Image, c.ImageID))
	f.set("init", strconv.FormatBool(c.Init))
	for _, name := range sortedKeys(c.Labels) {
		if name != LabelApplied && name != LabelReplaces {
			f.set(key("labels", name), c.Labels[name])
		}
	}
	f.add("limits.cpus", cpusValue(c.NanoCPUs))
	f.add("limits.memory", bytesValue(c.Memory))
	f.add("limits.memory_swap", bytesValue(c.MemorySwap))
	f.add("limits.pids", countValue(c.PIDs))
	f.add("log_driver", c.LogDriver)
	f.settings("log_options", c.LogOptions)
	for _, target := range sortedKeys(c.Mounts) {
		f.set(key("mount", target), c.Mounts[target].String())
	}
	for _, name := range sortedKeys(c.Networks) {
		f.endpoint(key("network", name), c.Networks[name])
	}
	f.add("network_mode", c.NetworkMode)
	f.set("no_new_privileges", strconv.FormatBool(c.NoNewPrivileges))
	f.settings("publish", c.Publish)
	f.set("read_only", strconv.FormatBool(c.ReadOnlyRoot))
	f.add("restart", restartValue(c.Restart))
	f.add("seccomp", c.Seccomp)
	f.add("stop_signal", c.StopSignal)
	if c.StopTimeout != nil {
		f.add("stop_timeout", (time.Duration(*c.StopTimeout) * time.Second).String())
	}
	f.settings("sysctls", c.Sysctls)
	f.settings("tmpfs", c.Tmpfs)
	f.add("user", c.User)
	f.add("working_dir", c.WorkingDir)
	return f.sorted()
}

// usualFields are about as many as a hardened container has beside its excess.
const usualFields = 32

// Fields flattens a network into its compared facts, sorted by path.
func (n Network) Fields() []Field {
	var f fieldList
	f.add("driver", n.Driver)
	f.set("internal", strconv.FormatBool(n.Internal))
	f.add("subnet", n.Subnet)
	f.add("ip_range", n.IPRange)
	f.settings("options", n.Options)
	f.settings("labels", n.Labels)
	f.fields = append(f.fields, n.Excess...)
	return f.sorted()
}

// Fields flattens a volume into its compared facts, sorted by path.
func (v Volume) Fields() []Field {
	var f fieldList
	f.add("driver", v.Driver)
	f.settings("options", v.Options)
	f.settings("labels", v.Labels)
	f.fields = append(f.fields, v.Excess...)
	return f.sorted()
}

type fieldList struct{ fields []Field }

// add records a value that is unset when empty.
func (f *fieldList) add(path, value string) {
	if value != "" {
		f.set(path, value)
	}
}

// set records a value that may be empty.
func (f *fieldList) set(path, value string) {
	f.fields = append(f.fields, Field{Path: path, Value: value})
}

func (f *fieldList) settings(path string, m map[string]string) {
	for _, name := range sortedKeys(m) {
		f.set(key(path, name), m[name])
	}
}

func (f *fieldList) endpoint(path string, e Endpoint) {
	f.set(path, "attached")
	f.add(path+".aliases", strings.Join(e.Aliases, ", "))
	f.add(path+".address", e.Address)
	for _, x := range e.Excess {
		x.Path = path + "." + x.Path
		f.fields = append(f.fields, x)
	}
}

func (f *fieldList) sorted() []Field {
	slices.SortFunc(f.fields, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
	return f.fields
}

// key is the path of one element of a set: `env["TZ"]`.
func key(path, element string) string { return path + "[" + strconv.Quote(element) + "]" }

// cutKey undoes key for a path that may go on: `network["a"].aliases` is network, a,
// ".aliases". ok is false for a path without an element.
func cutKey(path string) (set, element, rest string, ok bool) {
	set, quoted, found := strings.Cut(path, "[")
	if !found {
		return path, "", "", false
	}
	quotedElement, err := strconv.QuotedPrefix(quoted)
	if err != nil {
		return path, "", "", false
	}
	element, err = strconv.Unquote(quotedElement)
	rest, closed := strings.CutPrefix(quoted[len(quotedElement):], "]")
	return set, element, rest, err == nil && closed
}

const knownAfterBuild = " (known after build)"

func imageValue(reference, id string) string {
	if id == "" {
		return reference + knownAfterBuild
	}
	return reference + " " + shortID(id)
}

// shortID keeps enough of a digest to tell images apart by eye and by comparison.
func shortID(id string) string {
	const prefix, keep = "sha256:", 32
	if rest, ok := strings.CutPrefix(id, prefix); ok && len(rest) > keep {
		return prefix + rest[:keep]
	}
	return id
}

// argv spells a command so that each argument's bounds are plain.
func argv(args []string) string {
	if len(args) == 0 {
		return ""
	}
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = strconv.Quote(a)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// String is the mount as a plan shows it.
func (m Mount) String() string {
	s := m.Type + " " + m.Source
	if m.Writable {
		s += " (writable)"
	} else {
		s += " (read-only)"
	}
	if m.Options != "" {
		s += " " + m.Options
	}
	return s
}

// String is the check as a plan shows it; empty for none.
func (h *Healthcheck) String() string {
	if h == nil || len(h.Test) == 0 {
		return ""
	}
	if h.Test[0] == "NONE" {
		return "none"
	}
	parts := []string{argv(h.Test)}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"interval", h.Interval},
		{"timeout", h.Timeout},
		{"start period", h.StartPeriod},
		{"start interval", h.StartInterval},
	} {
		if d.d != 0 {
			parts = append(parts, d.name+" "+d.d.String())
		}
	}
	if h.Retries != 0 {
		parts = append(parts, fmt.Sprintf("retries %d", h.Retries))
	}
	return strings.Join(parts, ", ")
}

func restartValue(r schema.Restart) string {
	switch {
	case r.Name == "":
		return "no"
	case r.MaxRetries > 0:
		return fmt.Sprintf("%s:%d", r.Name, r.MaxRetries)
	}
	return r.Name
}

func countValue(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func cpusValue(nano int64) string {
	if nano == 0 {
		return ""
	}
	whole, part := nano/1e9, nano%1e9
	if part == 0 {
		return strconv.FormatInt(whole, 10)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%09d", whole, part), "0")
}

// bytesValue spells a size in the largest unit that is exact.
func bytesValue(n int64) string {
	if n == 0 {
		return ""
	}
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// difference is one path at which two objects' fields differ; a nil side has none.
type difference struct {
	path      string
	got, want *Field
}

// differences compares what is with what is asked. Both are sorted by path.
func differences(got, want []Field) []difference {
	var out []difference
	for len(got) > 0 || len(want) > 0 {
		switch {
		case len(want) == 0 || len(got) > 0 && got[0].Path < want[0].Path:
			out = append(out, difference{path: got[0].Path, got: &got[0]})
			got = got[1:]
		case len(got) == 0 || want[0].Path < got[0].Path:
			out = append(out, difference{path: want[0].Path, want: &want[0]})
			want = want[1:]
		default:
			if got[0].Value != want[0].Value {
				out = append(out, difference{path: got[0].Path, got: &got[0], want: &want[0]})
			}
			got, want = got[1:], want[1:]
		}
	}
	return out
}

// Differences names the fields in which a container just made differs from what was
// asked for, but for those that the engine may fill from its own configuration; these
// it returns apart. After a create, both should be empty.
func Differences(asked, got Container) (paths []string, filled []Field) {
	for _, d := range differences(got.Fields(), asked.Fields()) {
		if d.want == nil && d.got.EngineFilled {
			filled = append(filled, *d.got)
			continue
		}
		paths = append(paths, d.path)
	}
	return paths, filled
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
