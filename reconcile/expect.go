package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"spaces/schema"
)

// WithImage adds to a container what its image brings, as the engine itself does at
// create (moby's daemon/commit.go, merge): what the container says wins, environment
// and labels join by name, the image's command counts only where neither entrypoint
// nor command was said, a health check joins by part. A volume of the image that
// nothing is mounted on becomes a tmpfs, so that no anonymous volume is made. Adding
// the same image twice changes nothing.
func WithImage(c Container, i ImageFacts) Container {
	c.ImageID = i.ID
	if len(c.Entrypoint) == 0 {
		if len(c.Command) == 0 {
			c.Command = i.Command
		}
		c.Entrypoint = i.Entrypoint
	}
	if c.User == "" {
		c.User = i.User
	}
	if c.WorkingDir == "" {
		c.WorkingDir = i.WorkingDir
	}
	if c.StopSignal == "" {
		c.StopSignal = i.StopSignal
	}
	env := make(map[string]EnvValue, len(c.Env)+len(i.Env))
	for name, value := range i.Env {
		env[name] = EnvValue{Value: value}
	}
	maps.Copy(env, c.Env)
	c.Env = env
	c.Labels = union(i.Labels, c.Labels)
	c.Healthcheck = withHealthcheck(c.Healthcheck, i.Healthcheck)
	if volumes := uncovered(c, i.Volumes); len(volumes) > 0 {
		c.Tmpfs = maps.Clone(c.Tmpfs)
		for _, v := range volumes {
			c.Tmpfs[v] = imageVolumeOptions
		}
	}
	return c
}

// imageVolumeOptions are those of the tmpfs in place of an image's volume.
const imageVolumeOptions = "noexec,nosuid"

// uncovered are an image's volumes that no mount or tmpfs of the container takes.
func uncovered(c Container, volumes []string) []string {
	var out []string
	for _, v := range volumes {
		_, mounted := c.Mounts[v]
		_, tmpfs := c.Tmpfs[v]
		if !mounted && !tmpfs {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

func withHealthcheck(own, image *Healthcheck) *Healthcheck {
	switch {
	case own == nil:
		return image
	case image == nil:
		return own
	case len(own.Test) > 0 && own.Test[0] == "NONE":
		return own
	}
	h := *own
	if len(h.Test) == 0 {
		h.Test = image.Test
	}
	h.Interval = orElse(h.Interval, image.Interval)
	h.Timeout = orElse(h.Timeout, image.Timeout)
	h.StartPeriod = orElse(h.StartPeriod, image.StartPeriod)
	h.StartInterval = orElse(h.StartInterval, image.StartInterval)
	h.Retries = orElse(h.Retries, image.Retries)
	return &h
}

func orElse[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func union(under, over map[string]string) map[string]string {
	m := make(map[string]string, len(under)+len(over))
	maps.Copy(m, under)
	maps.Copy(m, over)
	return m
}

// onHost fits a container to the host and the engine: sources with their symlinks
// resolved, no limit that the engine would drop without a word, no way for names to
// leave an internal network.
func (w *world) onHost(s Space) Container {
	c := s.Container
	c.Mounts = make(map[string]Mount, len(s.Container.Mounts))
	for target, m := range s.Container.Mounts {
		if facts, known := w.host.Paths[m.Source]; m.Type == "bind" && known {
			m.Source = facts.Resolved
			m.Content = facts.Content
		}
		c.Mounts[target] = m
	}
	c = c.enforced(w.actual.Engine)
	if len(c.DNS) == 0 && w.actual.Engine.InternalDNSLeaks && w.internalOnly(c) {
		// On these releases a name that the engine's own resolver doesn't know goes out
		// through the host (CVE-2024-29018); a resolver that isn't there answers nothing.
		c.DNS = []string{"127.0.0.1"}
	}
	return c
}

// enforced leaves out the limits that an engine would drop without a word.
func (c Container) enforced(e Engine) Container {
	for _, limit := range e.Unenforced {
		switch limit {
		case "memory":
			c.Memory, c.MemorySwap = 0, 0
		case "swap":
			c.MemorySwap = 0
		case "pids":
			c.PIDs = 0
		case "cpus":
			c.NanoCPUs = 0
		}
	}
	return c
}

// internalOnly is true where none of a container's networks leads out.
func (w *world) internalOnly(c Container) bool {
	if len(c.Networks) == 0 {
		return false
	}
	for name := range c.Networks {
		if n, ours := w.wantNetworks[name]; !ours || !n.Internal {
			return false
		}
	}
	return true
}

// onEngine fits a network to the engine.
func (w *world) onEngine(n Network) Network {
	if n.Internal && w.actual.Engine.IsolatedGateway {
		n.Options = union(n.Options, map[string]string{isolatedGateway: "isolated"})
	}
	return n
}

// isolatedGateway keeps an internal network's gateway address off the host, from
// Engine 28 on.
const isolatedGateway = "com.docker.network.bridge.gateway_mode_ipv4"

// comparableTo drops from an inspected network what the files leave to the engine. A
// range is never the engine's idea.
func (n Network) comparableTo(want Network) Network {
	if want.Subnet == "" {
		n.Subnet = ""
	}
	return n
}

// LabelRefusal refuses an image that carries labels of the program's own prefix, since
// each of its containers would inherit them; nil for one that doesn't.
func (i ImageFacts) LabelRefusal(reference string, at schema.Origin) *Refusal {
	var labels []string
	for _, name := range sortedKeys(i.Labels) {
		if strings.HasPrefix(name, LabelPrefix) && !strings.HasPrefix(name, LabelImagePrefix) {
			labels = append(labels, name)
		}
	}
	if len(labels) == 0 {
		return nil
	}
	return &Refusal{
		Code:   CodeImageLabels,
		Text:   fmt.Sprintf("The image %s carries %s, which each of its containers would inherit.", reference, strings.Join(labels, ", ")),
		Fix:    "Make the image without labels that begin with \"spaces.\".",
		Origin: at,
	}
}
