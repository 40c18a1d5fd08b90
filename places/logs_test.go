package places

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"spaces/reconcile"
)

// logWorld is an engine whose containers have logs.
type logWorld struct {
	fakeEngine
	mu         sync.Mutex
	containers []container.Summary
	logs       map[string][]byte // by id, as the engine sends them
	tty        map[string]bool
	asked      []string
	follows    int
	onFollow   func(w *logWorld, n int) // after the nth log that was followed ended
}

func newLogWorld() *logWorld {
	return &logWorld{fakeEngine: docker("28.5.2", "1.51", "name=rootless"), logs: map[string][]byte{}, tty: map[string]bool{}}
}

func (w *logWorld) add(id, name string, labels map[string]string, log ...[]byte) {
	w.containers = append(w.containers, container.Summary{ID: id, Names: []string{"/" + name}, Labels: labels, State: "running"})
	for _, l := range log {
		w.logs[id] = append(w.logs[id], l...)
	}
}

func (w *logWorld) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	parts := strings.Split(path, "/")
	switch {
	case path == "containers/json":
		_ = json.NewEncoder(out).Encode(w.containers)
	case parts[0] == "containers" && parts[2] == "json":
		fmt.Fprintf(out, `{"Config": {"Tty": %t}}`, w.tty[parts[1]])
	case parts[0] == "containers" && parts[2] == "logs":
		w.asked = append(w.asked, parts[1]+"?"+r.URL.RawQuery)
		if r.URL.Query().Get("tail") != "0" {
			_, _ = out.Write(w.logs[parts[1]])
		}
		if r.URL.Query().Get("follow") != "" {
			w.follows++
			if w.onFollow != nil {
				w.onFollow(w, w.follows)
			}
		}
	default:
		w.fakeEngine.ServeHTTP(out, r)
	}
}

// frame is a message as an engine sends it, at so many seconds.
func frame(stream byte, second int, text string) []byte {
	text = at(second).Format(time.RFC3339Nano) + " " + text
	out := make([]byte, frameHeader, frameHeader+len(text))
	out[0] = stream
	binary.BigEndian.PutUint32(out[4:], uint32(len(text)))
	return append(out, text...)
}

func at(second int) time.Time { return time.Date(2026, 1, 31, 12, 0, second, 0, time.UTC) }

// follow hears the logs of containers until enough lines came.
func (w *logWorld) follow(t *testing.T, q LogQuery, enough int) ([]string, error) {
	t.Helper()
	e, err := Open(t.Context(), serve(t, w), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q.Project, q.Store = "p", "/s"
	var got []string
	hear := func(l LogLine) error {
		got = append(got, fmt.Sprintf("%s %s %d %s", l.Container, l.Stream, l.At.Second(), l.Text))
		if len(got) == enough {
			cancel()
		}
		return nil
	}
	r := logReader{Observer: e.Observer(), query: q, poll: time.Millisecond}
	followers, err := r.history(ctx, hear)
	if err == nil {
		err = r.follow(ctx, followers, hear)
	}
	return got, err
}

func TestLogsAreMerged(t *testing.T) {
	w := newLogWorld()
	w.add("1", "p-web", oursLabels, frame(1, 1, "a\n"), frame(2, 3, "c\n"), frame(1, 5, "no end"))
	w.add("2", "p-db", oursLabels, frame(1, 2, "b\n"), frame(1, 4, "d\r\n"))
	var notices []string
	got, err := w.gather(t, LogQuery{
		Names: []string{"p-web", "p-db", "p-none"}, Tail: 7, Since: at(1),
		Notice: func(c, what string) { notices = append(notices, c+": "+what) },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"p-web stdout 1 a", "p-db stdout 2 b", "p-web stderr 3 c", "p-db stdout 4 d", "p-web stdout 5 no end"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if strings.Join(notices, "|") != "p-none: there is no such container" {
		t.Errorf("notices %q", notices)
	}
	for _, asked := range w.asked {
		if !strings.Contains(asked, "tail=7") || !strings.Contains(asked, fmt.Sprintf("since=%d.000000000", at(1).Unix())) || strings.Contains(asked, "follow") {
			t.Errorf("asked %s", asked)
		}
	}
}

// gather hears the logs that are there.
func (w *logWorld) gather(t *testing.T, q LogQuery) (got []string, err error) {
	t.Helper()
	e, err := Open(t.Context(), serve(t, w), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	q.Project, q.Store = "p", "/s"
	err = e.Observer().Logs(t.Context(), q, func(l LogLine) error {
		got = append(got, fmt.Sprintf("%s %s %d %s", l.Container, l.Stream, l.At.Second(), l.Text))
		return nil
	})
	return got, err
}

// Another's container by the name of ours is not read.
func TestLogsOfStrangers(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"nobody's":            nil,
		"another data root's": {reconcile.LabelProject: "p", reconcile.LabelStore: "/other"},
		"another project's":   {reconcile.LabelProject: "q", reconcile.LabelStore: "/s"},
	} {
		w := newLogWorld()
		w.add("1", "p-web", labels, frame(1, 1, "secret\n"))
		w.add("2", "p-web-2", oursLabels, frame(1, 1, "its name begins alike\n"))
		got, err := w.gather(t, LogQuery{Names: []string{"p-web"}, Tail: -1})
		if err != nil || len(got) > 0 || len(w.asked) > 0 {
			t.Errorf("%s: read %q, asked %q (%v)", name, got, w.asked, err)
		}
	}
}

func TestLongLines(t *testing.T) {
	w := newLogWorld()
	part := strings.Repeat("x", 16<<10)
	for range 5 {
		w.add("1", "p-web", oursLabels, frame(1, 1, part))
	}
	w.add("1", "p-web", oursLabels, frame(2, 2, "between\n"), frame(1, 3, "end\n"), frame(1, 4, strings.Repeat("y", 3*maxLogLine)+"\n"))
	w.containers = w.containers[:1]
	e, err := Open(t.Context(), serve(t, w), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []LogLine
	if err := e.Observer().Logs(t.Context(), LogQuery{Project: "p", Store: "/s", Names: []string{"p-web"}, Tail: -1}, func(l LogLine) error {
		got = append(got, l)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0].Text != "between" || len(got[1].Text) != maxLogLine || got[1].Cut != (16<<10)+len("end") || got[1].At != at(1) ||
		len(got[2].Text) != maxLogLine || got[2].Cut < 2*maxLogLine {
		for _, l := range got {
			t.Errorf("%s at %v: %d bytes, %d cut", l.Stream, l.At, len(l.Text), l.Cut)
		}
	}
}

func TestLogsOfATerminal(t *testing.T) {
	w := newLogWorld()
	w.tty["1"] = true
	w.add("1", "p-web", oursLabels, []byte("2026-01-31T12:00:01Z a\r\n2026-01-31T12:00:02Z no end"))
	got, err := w.gather(t, LogQuery{Names: []string{"p-web"}, Tail: -1})
	if err != nil || strings.Join(got, "|") != "p-web stdout 1 a|p-web stdout 2 no end" {
		t.Errorf("got %q (%v)", got, err)
	}
}

func TestLogsOfGarbage(t *testing.T) {
	for name, log := range map[string][]byte{
		"no stream": append([]byte{9, 0, 0, 0, 0, 0, 0, 1}, 'x'),
		"too long":  {1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		"no time":   append([]byte{1, 0, 0, 0, 0, 0, 0, 3}, "x y"...),
	} {
		w := newLogWorld()
		w.add("1", "p-web", oursLabels, log)
		if got, err := w.gather(t, LogQuery{Names: []string{"p-web"}, Tail: -1}); err == nil {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func FuzzLog(f *testing.F) {
	f.Add(frame(1, 1, "a\n"), false)
	f.Add([]byte("2026-01-31T12:00:01Z a\n"), true)
	f.Fuzz(func(t *testing.T, log []byte, tty bool) {
		s := newLogStream(&follower{name: "c"}, io.NopCloser(strings.NewReader(string(log))), tty)
		for range len(log) + 2 {
			line, err := s.next()
			if err != nil {
				return
			}
			if len(line.Text) > maxLogLine {
				t.Fatalf("a line of %d bytes", len(line.Text))
			}
		}
		t.Fatal("there is no end to it")
	})
}

// A follower goes on when the container's log ends: after a restart nothing comes twice,
// and what takes the name is read from its beginning.
func TestLogsFollow(t *testing.T) {
	w := newLogWorld()
	w.add("1", "p-web", oursLabels, frame(1, 1, "a\n"), frame(1, 2, "b\n"), frame(2, 2, "c\n"))
	w.onFollow = func(w *logWorld, n int) {
		switch n {
		case 1: // it was restarted, and printed at the same time as before
			w.logs["1"] = append(w.logs["1"], append(frame(1, 2, "d\n"), frame(1, 3, "e\n")...)...)
		case 2: // a stranger took its name
			w.containers = nil
			w.add("2", "p-web", nil, frame(1, 4, "secret\n"))
			w.add("3", "p-db", oursLabels)
		}
	}
	gone := make(chan bool, 1)
	notices := map[string]bool{}
	var mu sync.Mutex
	q := LogQuery{Names: []string{"p-web"}, Tail: -1, Follow: true, Notice: func(_, what string) {
		mu.Lock()
		defer mu.Unlock()
		notices[what] = true
		if strings.HasPrefix(what, "it is gone") {
			select {
			case gone <- true:
			default:
			}
		}
	}}
	go func() {
		<-gone
		w.mu.Lock()
		defer w.mu.Unlock()
		w.containers = nil
		w.add("4", "p-web", oursLabels, frame(1, 5, "f\n"))
	}()
	got, err := w.follow(t, q, 6)
	if err != nil {
		t.Fatal(err)
	}
	want := "p-web stdout 1 a|p-web stdout 2 b|p-web stderr 2 c|p-web stdout 2 d|p-web stdout 3 e|p-web stdout 5 f"
	if strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if !notices["another took its place"] {
		t.Errorf("notices %v", notices)
	}
}

// Of a log of which nothing was asked, following tells what is new.
func TestLogsFollowWithoutHistory(t *testing.T) {
	w := newLogWorld()
	w.add("1", "p-web", oursLabels, frame(1, 1, "old\n"))
	const years = 3 * 365 * 24 * 60 * 60 // it is printed after the test began
	w.onFollow = func(w *logWorld, _ int) { w.logs["1"] = append(w.logs["1"], frame(1, years, "new\n")...) }
	got, err := w.follow(t, LogQuery{Names: []string{"p-web"}, Tail: 0, Follow: true, Notice: func(string, string) {}}, 1)
	if err != nil || strings.Join(got, "|") != "p-web stdout 0 new" {
		t.Errorf("got %q, %v", got, err)
	}
}

// What hears may stop it all.
func TestLogsStop(t *testing.T) {
	w := newLogWorld()
	w.add("1", "p-web", oursLabels, frame(1, 1, "a\n"))
	e, err := Open(t.Context(), serve(t, w), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, follow := range []bool{false, true} {
		q := LogQuery{Project: "p", Store: "/s", Names: []string{"p-web"}, Tail: -1, Follow: follow}
		if err := e.Observer().Logs(t.Context(), q, func(LogLine) error { return io.ErrClosedPipe }); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("follow %t: %v", follow, err)
		}
	}
}
