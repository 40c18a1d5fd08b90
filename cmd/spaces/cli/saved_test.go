package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf16"

	"spaces/reconcile"
)

// keptPlan is a plan as plan --out keeps it.
func keptPlan(t testing.TB) string {
	t.Helper()
	b, err := json.MarshalIndent(hostilePlan("a", 2).Record(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

func TestKeptPlansThatAreNone(t *testing.T) {
	whole := keptPlan(t)
	deep := `{"format_version": 1, "later": ` + strings.Repeat(`{"a":`, 200_000)
	for name, c := range map[string]struct{ content, code, says string }{
		"empty":           {"", "usage", "holds no plan"},
		"no JSON":         {"plan", "usage", "holds no plan: at byte 0"},
		"truncated":       {whole[:len(whole)/2], "usage", "holds no plan"},
		"another version": {strings.Replace(whole, `"format_version": 1`, `"format_version": 2`, 1), "plan-stale", "format 2"},
		"other and wrong": {`{"format_version": 7, "items": "elsewhere"}`, "plan-stale", "format 7"},
		"no version":      {`{"project": "acme"}`, "usage", "no format_version"},
		"version of text": {`{"format_version": "1"}`, "usage", "at byte"},
		"huge version":    {`{"format_version": 1e99}`, "usage", "at byte"},
		"a list":          {"[]", "usage", "holds no plan"},
		"null":            {"null", "usage", "no format_version"},
		"twice":           {strings.Replace(whole, `"project"`, `"project": "b", "project"`, 1), "usage", "duplicate"},
		"version twice":   {`{"format_version": 1, "format_version": 1}`, "usage", "duplicate"},
		"deep":            {deep, "usage", "exceeded max depth"},
		"deep and closed": {deep + "1" + strings.Repeat("}", 200_001), "usage", "exceeded max depth"},
		"much of nothing": {`{"format_version": 1, "items": [null` + strings.Repeat(",null", 100_000) + "]}", "usage", "more than a plan's do"},
		"more behind":     {whole + "{}", "usage", "holds no plan"},
		"no UTF-8":        {strings.Replace(whole, `"a"`, "\"\xff\"", 1), "usage", "UTF-8"},
		"unknown step":    {strings.Replace(whole, "update_space", "dance", 1), "usage", "there is no step"},
		"wrong kind":      {strings.Replace(whole, `"items": [`, `"items": 7, "later": [`, 1), "usage", "at byte"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "main.hcl", small, "kept.json", c.content)
			for _, args := range [][]string{{"show", "kept.json"}, {"show", "--json", "kept.json"}, {"apply", "kept.json"}} {
				w.want(3, args...)
				says(t, w.out.String()+w.err.String(), c.code, c.says)
			}
			if len(w.engine.steps) > 0 {
				t.Errorf("it did %v", w.engine.steps)
			}
		})
	}
}

// What isn't a file, and what is too long for a plan, isn't read.
func TestKeptPlansThatAreNoFiles(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	pipe, long := filepath.Join(w.env.Dir, "pipe"), filepath.Join(w.env.Dir, "long")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(long, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(long, maxSaved+1); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"pipe": "is no file", "/dev/zero": "is no file", ".": "is no file", "long": "more than 64 MiB", "nothing": "Cannot read",
	} {
		w.want(3, "show", name)
		says(t, w.err.String(), "usage", text)
	}
}

// A later release's fields don't keep a plan from being read.
func TestKeptPlanOfALaterRelease(t *testing.T) {
	later := strings.Replace(keptPlan(t), `"project"`, `"later": {"deep": [1]}, "project"`, 1)
	r, err := decodePlan(strings.NewReader(later))
	if err != nil || r.Project != "a" {
		t.Errorf("%v, %+v", err, r)
	}
}

// Whatever a file holds, it is a plan that can be shown in each form and compared, or an
// error; what is read of it says the same when it is written again.
func FuzzKeptPlan(f *testing.F) {
	whole := keptPlan(f)
	f.Add([]byte(whole))
	f.Add([]byte(whole[:len(whole)/2]))
	f.Add([]byte(`{"format_version": 1}`))
	f.Add([]byte(`{"format_version": 1, "items": [{"step": "create_space", "changes": [{"before": null}], "origin": {"line": -1}}]}`))
	f.Add([]byte(`{"format_version": 1, "format_version": 2}`))
	f.Add([]byte(strings.Repeat(`{"items":[`, 1000)))
	now := hostilePlan("a", 1).Record()
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodePlan(bytes.NewReader(b))
		if err != nil {
			var version *otherFormatError
			if text := err.Error(); len(text) > 500 && !errors.As(err, &version) {
				t.Errorf("the error is as long as the file: %s", text)
			}
			return
		}
		plan, err := planOf(*r)
		if err != nil {
			t.Fatal(err)
		}
		_ = plan.String()
		if err := contained(planDocument(plan, "`spaces plan` prints all of it.").String()); err != nil {
			t.Error(err)
		}
		r.Moved(now)
		now.Moved(*r)
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		same, err := decodePlan(bytes.NewReader(again))
		if err != nil {
			t.Fatalf("%v\n%s", err, again)
		}
		if moved := r.Moved(*same); len(moved) > 0 {
			t.Errorf("moved: %q", moved)
		}
	})
}

// However deep, broken or long a text is, what writeJSON breaks into lines says the same.
func FuzzIndent(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"\"{[,:"}],"c":{},"d":[]}`))
	f.Add([]byte(keptPlan(f)))
	f.Add([]byte(`{"a":"\u009b2J\u202e\u007f \ud83d\ude00 \udb40\udc01"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var v any
		if json.Unmarshal(b, &v) != nil {
			return
		}
		var record reconcile.Record
		_ = json.Unmarshal(b, &record)
		for _, v := range []any{v, record} {
			got, want := spelt(t, v), new(bytes.Buffer)
			e := json.NewEncoder(want)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			if err := e.Encode(v); err != nil {
				t.Fatal(err)
			}
			if unspelt(got) != unspelt(want.String()) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			for _, r := range got {
				if r != '\n' && !unicode.IsPrint(r) {
					t.Errorf("%q reaches the terminal in %q", r, got)
				}
			}
		}
	})
}

// unspelt is JSON with every character that is no ASCII spelt out, as either may be.
func unspelt(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < 0x7f:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func spelt(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	if err := writeJSON(w, v); err != nil {
		t.Fatal(err)
	}
	w.Flush()
	return out.String()
}
