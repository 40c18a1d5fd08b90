package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"spaces/places"
	"spaces/reconcile"
)

func logWorld(t *testing.T) *world {
	w := newWorld(t, "main.hcl", small)
	at := time.Date(2026, 1, 31, 12, 0, 0, 5e6, time.UTC)
	w.engine.logs = []places.LogLine{
		{Container: "acme-web", Stream: places.StreamOut, At: at, Text: "\x1b[1;31mred\x1b[0m \x1b]0;title\a\x1b[2Jgone"},
		{Container: "acme-old", Stream: places.StreamErr, At: at.Add(time.Second), Text: "turned \u202e round \u009b1m", Cut: 7},
	}
	w.engine.actual.Containers = []reconcile.ObservedContainer{w.running("old")}
	return w
}

func TestLogs(t *testing.T) {
	w := logWorld(t)
	w.want(statusDone, "logs")
	want := "web | red ?]0;title??[2Jgone\nold | turned ? round ?1m … (7 bytes left out)\n"
	if w.out.String() != want {
		t.Errorf("printed\n%q\nwant\n%q", w.out.String(), want)
	}
	if q := w.engine.asked; strings.Join(q.Names, " ") != "acme-web acme-old" || q.Tail != -1 || q.Follow || !q.Since.IsZero() {
		t.Errorf("asked for %+v", q)
	}

	w.want(statusDone, "logs", "--timestamps", "space.web", "--tail", "3", "-f", "--since", "2026-01-31T12:00:00Z")
	says(t, w.out.String(), "web | 2026-01-31T12:00:00.005Z red")
	if q := w.engine.asked; strings.Join(q.Names, " ") != "acme-web" || q.Tail != 3 || !q.Follow || q.Since.Hour() != 12 || q.Project != "acme" || q.Store == "" {
		t.Errorf("asked for %+v", q)
	}
	w.engine.asked.Notice("acme-web", "another\x1b took its place")
	says(t, w.err.String(), "space.web: another? took its place\n")
}

func TestLogsJSON(t *testing.T) {
	w := logWorld(t)
	w.want(statusDone, "logs", "--json")
	lines := strings.Split(strings.TrimSpace(w.out.String()), "\n")
	var got []logRecord
	for _, line := range lines {
		for _, r := range line {
			if !unicode.IsPrint(r) {
				t.Errorf("%U stands in %q", r, line)
			}
		}
		var r logRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	if len(got) != 2 || got[0].Text != w.engine.logs[0].Text || got[1].Stream != places.StreamErr || got[1].Space != "space.old" || got[1].Cut != 7 {
		t.Errorf("got %+v", got)
	}
	if got[1].Text != w.engine.logs[1].Text {
		t.Errorf("text %q", got[1].Text)
	}
}

func TestLogsOfWhat(t *testing.T) {
	w := logWorld(t)
	w.want(statusRefused, "logs", "wen")
	says(t, w.err.String(), `Project acme has no space "wen"`, "Did you mean space.web?")
	w.want(statusRefused, "logs", "unlike-anything")
	says(t, w.err.String(), "`spaces status` lists them")
	w.want(statusRefused, "logs", "--since", "yesterday")
	says(t, w.err.String(), `"yesterday" is no time`)
	w.want(statusDone, "logs", "acme-web", "web", "space.web")
	if got := strings.Join(w.engine.asked.Names, " "); got != "acme-web" {
		t.Errorf("asked for %s", got)
	}
	w.engine.err = errInterrupted
	w.want(statusFailed, "logs")
}

// On a terminal each space has a colour of its own.
func TestLogsColours(t *testing.T) {
	w := logWorld(t)
	w.env.Stdout.Columns = 80
	w.want(statusDone, "logs")
	says(t, w.out.String(), "\x1b[36mweb |\x1b[0m red", "\x1b[33mold |\x1b[0m turned")
	w.want(statusDone, "logs", "--no-color")
	if strings.Contains(w.out.String(), "\x1b") {
		t.Errorf("painted %q", w.out.String())
	}
}

func TestSensitiveValues(t *testing.T) {
	d := reconcile.Desired{Spaces: []reconcile.Space{{Container: reconcile.Container{Env: map[string]reconcile.EnvValue{
		"A": {Value: "hunter2", Sensitive: true}, "B": {Value: "hunter2-long", Sensitive: true}, "C": {Value: "open"},
		"D": {Value: "{\n  \"key\": \"abcdef\"\n}\n", Sensitive: true}, "E": {Value: "token\n", Sensitive: true}, "F": {Value: "\n", Sensitive: true},
	}}}}}
	if got := sensitiveValues(d).Replace("{ \"key\": \"abcdef\" }, a token.\n"); got != "{ (sensitive) }, a (sensitive).\n" {
		t.Errorf("got %q", got)
	}
	if got := sensitiveValues(d).Replace("hunter2-long, hunter2, open"); got != "(sensitive), (sensitive), open" {
		t.Errorf("got %q", got)
	}
}

func FuzzHarmless(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[31mred\x1b[m", "\x1b[3", "\x1b[\x1b[1m1m", "\xff\u009b", "a\nb\r\t"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range harmless(s) {
			if r != '\t' && !unicode.IsPrint(r) {
				t.Errorf("%q leaves %U", s, r)
			}
		}
	})
}
