package places

import (
	"fmt"
	"strings"
	"sync"

	"spaces/reconcile"
)

// MovedError says that an object isn't what the plan saw: someone else changed it
// since. Nothing was done to it; a new plan shows it as it is.
type MovedError struct {
	What string // "container acme-web"
	How  string // "it was removed"
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("%s has moved since the plan: %s; plan again", e.What, e.How)
}

// appeared is the error for an object that is to be made and exists.
func (a *Applier) appeared(kind, name string, labels map[string]string) error {
	q := Query{Project: a.options.Project, Store: a.options.Store}
	owner := labelOwner(labels)
	if owner.is(q) {
		return &MovedError{What: kind + " " + name, How: "it exists now"}
	}
	return &reconcile.Refusal{
		Code: reconcile.CodeNameTaken,
		Text: fmt.Sprintf("The name %s is taken by %s.", name, owner.describe(kind, q)),
		Fix:  "Remove or rename it, or choose another name in the files.",
	}
}

// seen are the revisions of what the plan saw, as this apply's own steps have changed
// them. What isn't in it did not exist.
type seen struct {
	mu        sync.Mutex
	revisions map[string]string
}

func containerKey(name string) string { return "container " + name }
func networkKey(name string) string   { return "network " + name }
func volumeKey(name string) string    { return "volume " + name }

func seenIn(a reconcile.Actual) seen {
	revisions := make(map[string]string, len(a.Containers)+len(a.Networks)+len(a.Volumes))
	for _, c := range a.Containers {
		revisions[containerKey(c.Name)] = c.Revision
	}
	for _, n := range a.Networks { // sorted: of those of one name, as namesakes spell them
		key := networkKey(n.Name)
		revisions[key] = strings.TrimPrefix(revisions[key]+" "+n.Revision, " ")
	}
	for _, v := range a.Volumes {
		revisions[volumeKey(v.Name)] = v.Revision
	}
	return seen{revisions: revisions}
}

func (s *seen) container(c *live) { s.set(containerKey(c.name()), revisionOf(c.InspectResponse)) }

func (s *seen) set(key, revision string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revisions[key] = revision
}

// forget notes that an object is gone by our own doing.
func (s *seen) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.revisions, key)
}

// check compares a revision, empty where there is nothing, with the one known.
func (s *seen) check(key, now string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.revisions[key]
	how := "it was changed"
	switch {
	case known == now:
		return nil
	case known == "":
		how = "it exists now"
	case now == "":
		how = "it was removed"
	}
	return &MovedError{What: key, How: how}
}

// keyedMutex lets one step at a time work on a container. The names that a container
// has while it is replaced count as its own.
type keyedMutex struct {
	mu    sync.Mutex
	locks map[string]*sync.Mutex
}

// lock waits for a name and returns what lets go of it.
func (k *keyedMutex) lock(name string) (unlock func()) {
	name = baseName(name)
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*sync.Mutex{}
	}
	l, ok := k.locks[name]
	if !ok {
		l = new(sync.Mutex)
		k.locks[name] = l
	}
	k.mu.Unlock()
	l.Lock()
	return l.Unlock
}

func baseName(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, reconcile.SuffixNew), reconcile.SuffixOld)
}
