package places

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	json "github.com/go-json-experiment/json/v1"
)

// event is what an engine tells when something happens to an object.
type event struct {
	Type   string
	Action string
	Actor  struct {
		ID         string
		Attributes map[string]string
	}
}

// subscribe asks an engine to tell what happens from now on. The engine answers before
// it begins to listen to itself, so that what happens in between would be told to nobody:
// it is asked for what has been since a moment ago.
func (o *Observer) subscribe(ctx context.Context) (io.ReadCloser, error) {
	const moment = 2 * time.Second
	since := time.Now().Add(-moment)
	stream, err := o.engine.get(ctx, "/events", url.Values{"since": {fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond())}})
	if err != nil {
		return nil, fmt.Errorf("cannot follow the engine at %s: %w", o.features.Endpoint, err)
	}
	return stream, nil
}

// unread is what has happened to objects that haven't been read again since.
type unread struct {
	all        bool // whatever there is
	networks   bool
	volumes    bool
	images     bool
	containers map[string]bool // by id
}

func (u *unread) any() bool {
	return u.all || u.networks || u.volumes || u.images || len(u.containers) > 0
}

// note marks what an event makes out of date, and reports whether there is any. An
// action that isn't known counts: one read too many does no harm.
func (u *unread) note(e event) bool {
	switch e.Type {
	case "container":
		return u.noteContainer(e.Actor.ID, e.Action)
	case "network":
		switch e.Action {
		case "connect", "disconnect":
			// A network's members are told by the containers.
			return u.noteContainer(e.Actor.Attributes["container"], e.Action)
		}
		u.networks = true
	case "volume":
		switch e.Action {
		case "mount", "unmount":
			return false // who mounts it is told by the containers
		}
		u.volumes = true
	case "image":
		switch e.Action {
		case "push", "save":
			return false
		}
		u.images = true
	case "daemon":
		u.all = true
	default:
		return false // plugins, builds, a swarm's objects
	}
	return true
}

func (u *unread) noteContainer(id, action string) bool {
	// "exec_create: /bin/sh -c …", "health_status: healthy".
	name, _, _ := strings.Cut(action, ":")
	switch name {
	case "attach", "commit", "copy", "archive-path", "detach", "export", "extract-to-dir", "resize", "top",
		"exec_create", "exec_start", "exec_detach", "exec_die":
		return false // a health check runs one every few seconds
	}
	if id == "" {
		return false // "prune": each one that went was told of
	}
	if u.containers == nil {
		u.containers = map[string]bool{}
	}
	u.containers[id] = true
	return true
}

// add takes back what could not be read.
func (u *unread) add(other unread) {
	u.all = u.all || other.all
	u.networks = u.networks || other.networks
	u.volumes = u.volumes || other.volumes
	u.images = u.images || other.images
	for id := range other.containers {
		u.noteContainer(id, "")
	}
}

// decodeEvents reads a stream until it ends, which is an error always.
func decodeEvents(stream io.Reader, hear func(event)) error {
	in := json.NewDecoder(stream)
	for {
		var e event
		if err := in.Decode(&e); err != nil {
			return err
		}
		hear(e)
	}
}
