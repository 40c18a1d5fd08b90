package places

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"spaces/reconcile"
)

// Memory is what an engine holds, kept as the engine's events tell: Inspect gives what an
// Observer's would, and asks only for what an event named since. It has no method that
// changes anything, and sends nothing but GET and HEAD. It is safe for concurrent use.
type Memory struct {
	observer Observer
	cancel   context.CancelFunc
	changed  chan struct{}
	lost     chan struct{}
	err      error // why it was lost, once it is

	mu     sync.Mutex // over what the stream's reader writes
	unread unread
	heard  int // events that counted

	reading    sync.Mutex // over all below: one reads at a time
	query      Query
	containers map[string]listed   // by id, all of the engine's
	readings   map[string]*reading // by id, ours
	list       listing             // less its containers
	images     map[string]reconcile.ImageFacts
	absent     map[string]bool // references that lead to no image
	raw        map[string]imageExtras
	converter  *converter
	converted  map[string]reconcile.ObservedContainer // by id, as the converter and the images have it
	buffers    sync.Pool
}

// Remember begins to listen to the engine and remembers nothing yet: the first Inspect
// reads everything. Close it.
func (e *Engine) Remember(ctx context.Context) (*Memory, error) {
	ctx, cancel := context.WithCancel(ctx)
	m := &Memory{
		observer: *e.Observer(), cancel: cancel, changed: make(chan struct{}, 1), lost: make(chan struct{}),
		unread: unread{all: true}, buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
	m.observer.ahead = nil // a list from before anybody listened
	stream, err := m.observer.subscribe(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer close(m.lost)
		defer stream.Close() //nolint:errcheck // only read
		m.err = decodeEvents(stream, m.hear)
	}()
	return m, nil
}

// hear takes one event. It never waits for a reader: the engine drops the events of who
// is slow to take them.
func (m *Memory) hear(e event) {
	m.mu.Lock()
	counts := m.unread.note(e)
	if counts {
		m.heard++
	}
	m.mu.Unlock()
	if counts {
		m.signal()
	}
}

func (m *Memory) signal() {
	select {
	case m.changed <- struct{}{}:
	default: // whoever listens has yet to take the one before
	}
}

// Changed receives once events have told of something that Inspect hasn't given yet.
func (m *Memory) Changed() <-chan struct{} { return m.changed }

// Lost is closed once the engine tells nothing any more. What is remembered can't be
// trusted from then on.
func (m *Memory) Lost() <-chan struct{} { return m.lost }

// Err is why the engine was lost. It is for after Lost.
func (m *Memory) Err() error { return m.err }

// Forget makes the next Inspect read everything.
func (m *Memory) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unread.all = true
}

// Close stops listening.
func (m *Memory) Close() {
	m.cancel()
	<-m.lost
}

// Inspect is as an Observer's, with the same errors.
func (m *Memory) Inspect(ctx context.Context, q Query) (reconcile.Actual, error) {
	m.reading.Lock()
	defer m.reading.Unlock()
	m.mu.Lock()
	what := m.unread
	m.unread = unread{}
	m.mu.Unlock()
	if m.query.Project != q.Project || m.query.Store != q.Store {
		what.all = true
	}
	m.query = q
	if err := m.read(ctx, what); err != nil {
		m.mu.Lock()
		m.unread.add(what)
		m.mu.Unlock()
		return reconcile.Actual{}, fmt.Errorf("cannot inspect the engine at %s: %w", m.observer.features.Endpoint, err)
	}
	return m.actual(), nil
}

// read brings what is remembered up to date.
func (m *Memory) read(ctx context.Context, what unread) error {
	if what.all {
		if err := m.readAll(ctx); err != nil {
			return err
		}
	} else if err := m.readSome(ctx, what); err != nil {
		return err
	}
	if what.all || what.images {
		m.images, m.absent, m.raw = map[string]reconcile.ImageFacts{}, map[string]bool{}, map[string]imageExtras{}
		m.converted = nil // what an image brought is no excess
	}
	if err := m.readImages(ctx); err != nil {
		return err
	}
	if w := m.listing().world(m.query); m.converter == nil || what.all || !reflect.DeepEqual(w, m.converter.world) {
		m.converter, m.converted = newConverter(m.observer.features, m.observer.defaults, w), nil
	}
	return nil
}

func (m *Memory) readAll(ctx context.Context) error {
	l, err := m.observer.list(ctx)
	if err != nil {
		return err
	}
	m.containers, m.readings = make(map[string]listed, len(l.containers)), map[string]*reading{}
	m.list = listing{networks: l.networks, volumes: l.volumes}
	return m.take(ctx, l.containers)
}

// readSome reads what events named. What a list of theirs no longer has is gone.
func (m *Memory) readSome(ctx context.Context, what unread) error {
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(what.containers)), perList) {
		some, err := m.listSome(ctx, ids)
		if err != nil {
			return err
		}
		for _, id := range ids {
			delete(m.containers, id)
			delete(m.readings, id)
			delete(m.converted, id)
		}
		if err := m.take(ctx, some); err != nil {
			return err
		}
	}
	return m.readRest(ctx, what)
}

// perList is how many ids one request names: they are a part of its address.
const perList = 50

func (m *Memory) listSome(ctx context.Context, ids []string) ([]listed, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	some, err := listContainers(ctx, m.observer.engine, ids...)
	if err != nil {
		return nil, fmt.Errorf("containers: %w", err)
	}
	return some, nil
}

func (m *Memory) readRest(ctx context.Context, what unread) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if what.networks {
		networks, err := m.observer.networks(ctx)
		if err != nil {
			return err
		}
		m.list.networks = networks
	}
	if what.volumes {
		volumes, err := m.observer.volumes(ctx)
		if err != nil {
			return err
		}
		m.list.volumes = volumes
	}
	return nil
}

// take remembers containers that were just listed, and inspects those of ours.
func (m *Memory) take(ctx context.Context, some []listed) error {
	var ours []string
	for _, c := range some {
		m.containers[c.id] = c
		if c.owner.is(m.query) {
			ours = append(ours, c.id)
		}
	}
	s := m.survey()
	read := make([]*reading, len(ours))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inspectors)
	for i, id := range ours {
		group.Go(func() (err error) {
			read[i], err = s.inspectOne(ctx, id)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, id := range ours {
		if read[i] == nil {
			delete(m.containers, id) // it vanished meanwhile
			continue
		}
		m.readings[id] = read[i]
	}
	return nil
}

// readImages asks for the images that nobody asked for yet.
func (m *Memory) readImages(ctx context.Context) error {
	s := m.survey()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inspectors)
	var unknown []string // all of them first: what is read goes where this looks
	for ref := range m.wantedImages() {
		if _, known := m.images[ref]; !known && !m.absent[ref] {
			unknown = append(unknown, ref)
		}
	}
	for _, ref := range unknown {
		group.Go(func() error { return s.image(ctx, ref) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for ref := range m.wantedImages() {
		if _, known := m.images[ref]; !known {
			m.absent[ref] = true
		}
	}
	if len(unknown) > 0 {
		m.converted = nil
	}
	return nil
}

func (m *Memory) wantedImages() map[string]bool {
	wanted := map[string]bool{}
	for _, ref := range m.query.Images {
		wanted[ref] = true
	}
	for id := range m.readings {
		wanted[m.containers[id].imageID] = true
	}
	return wanted
}

// survey is a reading that goes on from what is remembered.
func (m *Memory) survey() *survey {
	converter := m.converter
	if converter == nil {
		converter = newConverter(m.observer.features, m.observer.defaults, world{})
	}
	return &survey{
		Observer: &m.observer, query: m.query, converter: converter, images: m.images, raw: m.raw,
		buffers: &m.buffers,
	}
}

func (m *Memory) listing() listing {
	l := m.list
	l.containers = slices.Collect(maps.Values(m.containers))
	return l
}

// actual is what is remembered, as an Observer would have given it. Files are looked at
// again: no event tells of those.
func (m *Memory) actual() reconcile.Actual {
	if m.converted == nil {
		m.converted = make(map[string]reconcile.ObservedContainer, len(m.readings))
	}
	s := m.survey()
	s.images = map[string]reconcile.ImageFacts{}
	for ref := range m.wantedImages() {
		if facts, known := m.images[ref]; known {
			s.images[ref] = facts
		}
	}
	observed := make([]reconcile.ObservedContainer, 0, len(m.readings))
	for id, r := range m.readings {
		c, known := m.converted[id]
		if !known {
			c = m.converter.observed(r.response, r.unknown)
			c.Excess = dropImage(c.Container, m.raw[c.ImageID])
			m.converted[id] = c
		}
		s.compareMounts(&c, r.pid)
		observed = append(observed, c)
	}
	return s.actual(m.listing(), observed)
}

// Audit reads everything again and says in what the memory was wrong, a line each. After
// a difference, which is a defect of this program or of the engine, everything is read.
func (m *Memory) Audit(ctx context.Context, q Query) ([]string, error) {
	// An event comes a little after what it tells. What is told while it is looked at
	// makes no difference a defect.
	const attempts, settle = 3, time.Second
	for range attempts {
		before := m.count()
		real, err := m.observer.Inspect(ctx, q)
		if err != nil {
			return nil, err
		}
		remembered, err := m.Inspect(ctx, q)
		if err != nil {
			return nil, err
		}
		wrong := differences(remembered, real)
		if len(wrong) == 0 {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(settle):
		}
		if m.count() == before {
			m.Forget()
			m.signal()
			return wrong, nil
		}
	}
	return nil, nil // it never was quiet; the next audit may have more luck
}

func (m *Memory) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heard
}

// differences name each object that is remembered otherwise than it is, and its parts.
func differences(remembered, real reconcile.Actual) []string {
	var out []string
	out = append(out, objectsDiffer("container", remembered.Containers, real.Containers, func(c reconcile.ObservedContainer) string { return c.Name })...)
	out = append(out, objectsDiffer("network", remembered.Networks, real.Networks, func(n reconcile.ObservedNetwork) string { return n.Name })...)
	out = append(out, objectsDiffer("volume", remembered.Volumes, real.Volumes, func(v reconcile.ObservedVolume) string { return v.Name })...)
	if !reflect.DeepEqual(remembered.Images, real.Images) {
		out = append(out, "images: remembered otherwise than they are")
	}
	if !reflect.DeepEqual(remembered.Taken, real.Taken) {
		out = append(out, "names of others: remembered otherwise than they are")
	}
	return out
}

func objectsDiffer[T any](kind string, remembered, real []T, name func(T) string) []string {
	// Two networks may have one name.
	was, is := map[string][]T{}, map[string][]T{}
	for _, o := range remembered {
		was[name(o)] = append(was[name(o)], o)
	}
	for _, o := range real {
		is[name(o)] = append(is[name(o)], o)
	}
	names := maps.Clone(was)
	maps.Copy(names, is)
	var out []string
	for _, n := range slices.Sorted(maps.Keys(names)) {
		then, now := was[n], is[n]
		switch {
		case reflect.DeepEqual(then, now):
		case len(then) == 0:
			out = append(out, fmt.Sprintf("%s %s: there, and not remembered", kind, n))
		case len(now) == 0:
			out = append(out, fmt.Sprintf("%s %s: remembered, and not there", kind, n))
		case len(then) != len(now):
			out = append(out, fmt.Sprintf("%s %s: %d remembered, %d there", kind, n, len(then), len(now)))
		default:
			out = append(out, fmt.Sprintf("%s %s: remembered otherwise than it is: %s", kind, n, strings.Join(partsDiffer(then[0], now[0]), ", ")))
		}
	}
	return out
}

// partsDiffer names the fields of two structs that aren't equal. What they hold may be
// secret and isn't told.
func partsDiffer(a, b any) []string {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	var out []string
	for i := range x.NumField() {
		f := x.Type().Field(i)
		switch {
		case reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()):
		case f.Anonymous:
			out = append(out, partsDiffer(x.Field(i).Interface(), y.Field(i).Interface())...)
		default:
			out = append(out, f.Name)
		}
	}
	return out
}
