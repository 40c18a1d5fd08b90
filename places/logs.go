package places

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	json "github.com/go-json-experiment/json/v1"

	cerrdefs "github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"

	"spaces/reconcile"
)

// maxLogLine is how many bytes of one line are kept. The engine splits longer ones, at
// 16 KiB, so that a program can't make it hold one in memory; neither can it make us.
const maxLogLine = 64 << 10

// LogQuery says whose logs to read, and how much of them.
type LogQuery struct {
	// Project and Store are whose containers are ours: another by the same name isn't read.
	Project string
	Store   string
	// Names are those of the containers.
	Names []string
	// Since leaves out what is older; zero for none.
	Since time.Time
	// Tail is how many lines of each to begin with, negative for all.
	Tail int
	// Follow goes on with what comes, through restarts and replacements, until the
	// context ends.
	Follow bool
	// Notice, if set, hears what becomes of a container that is read: that it isn't there,
	// ended, or came back as another. Calls may come at once.
	Notice func(container, what string)
}

// LogLine is a line that a container printed.
type LogLine struct {
	Container string
	Stream    LogStream
	At        time.Time
	// Text is as it was printed, without its end of line: bytes of a program that isn't
	// trusted.
	Text string
	// Cut is how many bytes of it were left out.
	Cut int
}

// LogStream is where a container printed to.
type LogStream string

// The streams. A container with a terminal has one, which counts as standard output.
const (
	StreamOut LogStream = "stdout"
	StreamErr LogStream = "stderr"
)

// Logs reads the logs of containers and calls hear with each line, one at a time: those
// that are there in the order of time, then, if it is to follow, each as it comes. An
// error of hear ends it. A context that ended while it follows is no error.
func (o *Observer) Logs(ctx context.Context, q LogQuery, hear func(LogLine) error) error {
	if q.Notice == nil {
		q.Notice = func(string, string) {}
	}
	r := logReader{Observer: o, query: q, poll: 500 * time.Millisecond}
	followers, err := r.history(ctx, hear)
	if err != nil || !q.Follow {
		return err
	}
	return r.follow(ctx, followers, hear)
}

// logReader is one reading of logs.
type logReader struct {
	*Observer
	query LogQuery
	poll  time.Duration // between looks for a container that is to come back
}

// follower is how far the log of one container has been read.
type follower struct {
	name string
	id   string // empty before there is one
	// last is the time of the newest line, and same how many lines of that time were read:
	// the engine gives them again when it is asked for what came since.
	last time.Time
	same int
}

func (f *follower) heard(at time.Time) {
	switch {
	case at.Before(f.last): // it was in two parts, and another line came between
		return
	case at.After(f.last):
		f.last, f.same = at, 0
	}
	f.same++
}

// found is a container of ours by its name.
type found struct {
	id    string
	state reconcile.State
}

// find looks for our container of a name. Nil is none.
func (r *logReader) find(ctx context.Context, name string) (*found, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	filters, err := json.Marshal(map[string][]string{
		"label": {reconcile.LabelProject + "=" + r.query.Project}, "name": {name},
	})
	if err != nil {
		return nil, err
	}
	body, err := r.engine.get(ctx, "/containers/json", url.Values{"all": {"1"}, "filters": {string(filters)}})
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // only read
	var list []summary
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return nil, err
	}
	for _, s := range list {
		c := s.listed()
		// The filter takes a part of a name for it, and knows one of our two labels.
		if c.name == name && c.owner.is(Query{Project: r.query.Project, Store: r.query.Store}) {
			return &found{c.id, reconcile.State(s.State)}, nil
		}
	}
	return nil, nil
}

// history reads what is there, merged by time.
func (r *logReader) history(ctx context.Context, hear func(LogLine) error) ([]*follower, error) {
	var followers []*follower
	var streams []*logStream
	began := time.Now()
	defer func() {
		for _, f := range followers {
			// Of what was left out by then, or is no line yet, following doesn't begin.
			if f.id != "" && f.last.IsZero() {
				f.last = began
			}
		}
	}()
	defer func() {
		for _, s := range streams {
			s.body.Close() //nolint:errcheck // only read
		}
	}()
	for _, name := range r.query.Names {
		f := &follower{name: name}
		followers = append(followers, f)
		c, err := r.find(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("cannot look for container %s: %w", name, err)
		}
		if c == nil {
			r.query.Notice(name, "there is no such container")
			continue
		}
		f.id = c.id
		s, err := r.open(ctx, f, r.query.Since, r.query.Tail, false)
		if err != nil {
			if ctx.Err() != nil || IsTransient(err) {
				return nil, fmt.Errorf("cannot read the log of %s: %w", name, err)
			}
			r.query.Notice(name, "its log can't be read: "+plain(err))
			continue
		}
		streams = append(streams, s)
	}
	return followers, merge(ctx, streams, hear)
}

// merge hears the lines of all streams, the oldest first.
func merge(ctx context.Context, streams []*logStream, hear func(LogLine) error) error {
	type head struct {
		line LogLine
		from *logStream
	}
	var heads []head
	advance := func(s *logStream) error {
		line, err := s.next()
		switch {
		case errors.Is(err, io.EOF), cerrdefs.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("cannot read the log of %s: %w", s.of.name, err)
		}
		at, _ := slices.BinarySearchFunc(heads, line, func(h head, l LogLine) int {
			return cmp.Or(h.line.At.Compare(l.At), strings.Compare(h.line.Container, l.Container))
		})
		heads = slices.Insert(heads, at, head{line, s})
		return nil
	}
	for _, s := range streams {
		if err := advance(s); err != nil {
			return err
		}
	}
	for len(heads) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		first := heads[0]
		heads = slices.Delete(heads, 0, 1)
		first.from.of.heard(first.line.At)
		if err := hear(first.line); err != nil {
			return err
		}
		if err := advance(first.from); err != nil {
			return err
		}
	}
	return nil
}

// follow hears what every container prints from now on.
func (r *logReader) follow(ctx context.Context, followers []*follower, hear func(LogLine) error) error {
	lines := make(chan LogLine)
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range followers {
		group.Go(func() error { return r.keep(ctx, f, lines) })
	}
	group.Go(func() error {
		for {
			select {
			case line := <-lines:
				if err := hear(line); err != nil {
					return err
				}
			case <-ctx.Done():
				return nil
			}
		}
	})
	return group.Wait()
}

// keep follows one container by its name: when its log ends, the container is looked for
// again, and what then has the name is read on.
func (r *logReader) keep(ctx context.Context, f *follower, lines chan<- LogLine) error {
	told := "" // the last notice: each is given once
	notice := func(what string) {
		if what != told {
			r.query.Notice(f.name, what)
		}
		told = what
	}
	for ctx.Err() == nil {
		c, err := r.find(ctx, f.name)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !IsTransient(err):
			return fmt.Errorf("cannot look for container %s: %w", f.name, err)
		case err != nil:
			notice("the engine doesn't answer; waiting for it")
		case c == nil:
			if f.id != "" || told != "" {
				notice("it is gone; waiting for another")
			}
		case c.id != f.id:
			if f.id != "" {
				notice("another took its place")
			}
			*f = follower{name: f.name, id: c.id}
			fallthrough
		default:
			if err := r.readOn(ctx, f, lines); err != nil && ctx.Err() == nil && !IsTransient(err) && !cerrdefs.IsNotFound(err) {
				notice("its log can't be read: " + plain(err))
			} else if err == nil && c.state != reconcile.StateRunning {
				notice("it isn't running; waiting")
			} else if err == nil {
				told = ""
			}
		}
		if pause(ctx, r.poll) != nil {
			return nil
		}
	}
	return nil
}

// readOn hears what a container printed since it was last read, until its log ends.
func (r *logReader) readOn(ctx context.Context, f *follower, lines chan<- LogLine) error {
	since, skip := f.last, f.same
	if since.IsZero() {
		since, skip = r.query.Since, 0
	}
	s, err := r.open(ctx, f, since, -1, true)
	if err != nil {
		return err
	}
	defer s.body.Close() //nolint:errcheck // only read
	for {
		line, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if skip > 0 && line.At.Equal(since) {
			skip--
			continue
		}
		if line.At.Before(since) {
			continue
		}
		f.heard(line.At)
		select {
		case lines <- line:
		case <-ctx.Done():
			return nil
		}
	}
}

// open asks for a log. The body closes with ctx.
func (r *logReader) open(ctx context.Context, f *follower, since time.Time, tail int, follow bool) (*logStream, error) {
	tty, err := r.hasTerminal(ctx, f.id)
	if err != nil {
		return nil, err
	}
	query := url.Values{"stdout": {"1"}, "stderr": {"1"}, "timestamps": {"1"}}
	if !since.IsZero() {
		query.Set("since", fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond()))
	}
	if tail >= 0 {
		query.Set("tail", strconv.Itoa(tail))
	}
	if follow {
		query.Set("follow", "1")
	}
	body, err := r.engine.get(ctx, "/containers/"+url.PathEscape(f.id)+"/logs", query)
	if err != nil {
		return nil, err
	}
	return newLogStream(f, body, tty), nil
}

// hasTerminal tells how a log is framed: that of a container with a terminal isn't. Ours
// have none, but somebody may have made one by hand.
func (r *logReader) hasTerminal(ctx context.Context, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	body, err := r.engine.get(ctx, "/containers/"+url.PathEscape(id)+"/json", nil)
	if err != nil {
		return false, err
	}
	defer body.Close() //nolint:errcheck // only read
	var c struct{ Config struct{ Tty bool } }
	if err := json.NewDecoder(body).Decode(&c); err != nil {
		return false, err
	}
	return c.Config.Tty, nil
}

// logStream is the log of one container as the engine sends it: frames of one message
// each, which begins with its time. A line that the engine split is put together again.
type logStream struct {
	of   *follower
	body io.ReadCloser
	in   *bufio.Reader
	tty  bool
	open [2]*LogLine // by stream, lines that have no end yet
}

func newLogStream(of *follower, body io.ReadCloser, tty bool) *logStream {
	return &logStream{of: of, body: body, in: bufio.NewReaderSize(body, 32<<10), tty: tty}
}

// next is the next whole line.
func (s *logStream) next() (LogLine, error) {
	for {
		stream, message, whole, cut, err := s.message()
		if errors.Is(err, io.EOF) {
			for i, line := range s.open {
				if line != nil { // the program ended in the middle of it
					s.open[i] = nil
					return *line, nil
				}
			}
		}
		if err != nil {
			return LogLine{}, err
		}
		at, text, ok := stamped(message)
		if !ok {
			return LogLine{}, fmt.Errorf("the engine sent a line without a time: %q", message[:min(len(message), 64)])
		}
		line := s.open[stream]
		if line == nil {
			line = &LogLine{Container: s.of.name, Stream: []LogStream{StreamOut, StreamErr}[stream], At: at}
			s.open[stream] = line
		}
		room := min(len(text), maxLogLine-len(line.Text))
		line.Text += string(text[:room])
		line.Cut += len(text) - room + cut
		if whole {
			s.open[stream] = nil
			line.Text = strings.TrimSuffix(line.Text, "\r")
			return *line, nil
		}
	}
}

// The frames of a log: a byte that says which stream, three of nothing, and the length.
const (
	frameHeader = 8
	// maxFrame is more than an engine sends of one message.
	maxFrame = 16 << 20
)

// message reads one message; whole is true where it ends a line, and cut is how much of
// it was left out.
func (s *logStream) message() (stream int, message []byte, whole bool, cut int, err error) {
	if s.tty {
		message, cut, err = s.upToLine()
		if errors.Is(err, io.EOF) && len(message) > 0 {
			return 0, message, true, cut, nil
		}
		return 0, message, true, cut, err
	}
	var header [frameHeader]byte
	if _, err := io.ReadFull(s.in, header[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF // the engine went away between two
		}
		return 0, nil, false, 0, err
	}
	size := binary.BigEndian.Uint32(header[4:])
	if header[0] < 1 || header[0] > 2 || size > maxFrame {
		return 0, nil, false, 0, fmt.Errorf("the engine sent a log that isn't framed as logs are: % x", header)
	}
	const stamp = 64 // is shorter
	keep := min(int(size), maxLogLine+stamp)
	message = make([]byte, keep)
	if _, err := io.ReadFull(s.in, message); err != nil {
		return 0, nil, false, 0, io.EOF
	}
	cut = int(size) - keep
	if cut > 0 {
		// The line's end is in what is left out.
		if _, err := io.CopyN(io.Discard, s.in, int64(cut)); err != nil {
			return 0, nil, false, 0, io.EOF
		}
		return int(header[0]) - 1, message, true, cut, nil
	}
	message, whole = bytes.CutSuffix(message, []byte("\n"))
	return int(header[0]) - 1, message, whole, 0, nil
}

// upToLine reads a line and keeps as much of it as there is room for.
func (s *logStream) upToLine() (line []byte, cut int, err error) {
	for {
		part, err := s.in.ReadSlice('\n')
		room := min(len(part), maxLogLine-len(line))
		line = append(line, part[:room]...)
		cut += len(part) - room
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(line, []byte("\n")), cut, err
		}
	}
}

// stamped takes the time off a message.
func stamped(message []byte) (at time.Time, text []byte, ok bool) {
	stamp, text, ok := bytes.Cut(message, []byte(" "))
	if !ok {
		return time.Time{}, nil, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	return at, text, err == nil
}
