package places

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"spaces/reconcile"
)

// limits are what the files of the container's control groups say, of either version.
func (v kernelView) limits() reconcile.LimitEvidence {
	g := cgroups{view: v, mounted: v.hierarchies(), found: reconcile.LimitEvidence{Unread: map[string]string{}}}
	if of, err := os.ReadFile(v.file(v.pid, "cgroup")); err == nil {
		g.of = string(of)
	}
	g.read(limitMemory, g.memory)
	g.read(limitSwap, g.swap)
	g.read(limitPIDs, g.pids)
	g.read(limitCPUs, g.cpus)
	return g.found
}

// hierarchy is where the files of some controllers are; none is version 2.
type hierarchy struct {
	controllers []string
	at          string
	root        string
}

// hierarchies are those that are mounted here.
func (v kernelView) hierarchies() []hierarchy {
	mounts, err := v.mounts("self")
	if err != nil {
		return nil // then no limit is found, and each is told so
	}
	var out []hierarchy
	for _, m := range mounts {
		switch m.Type {
		case "cgroup":
			out = append(out, hierarchy{controllers: m.Super, at: m.Target, root: m.Root})
		case "cgroup2":
			out = append(out, hierarchy{at: m.Target, root: m.Root})
		}
	}
	return out
}

// cgroups reads a container's control groups.
type cgroups struct {
	view    kernelView
	mounted []hierarchy
	of      string // the process's own file
	found   reconcile.LimitEvidence
}

var errNoController = errors.New("no control group of its holds it")

func (g *cgroups) read(limit string, read func() error) {
	if slices.Contains(g.view.features.Unenforced, limit) {
		return
	}
	if err := read(); err != nil {
		g.found.Unread[limit] = err.Error()
	}
}

// directory is where a controller's files of the container are, and of which version.
func (g *cgroups) directory(controller string) (dir string, unified bool, err error) {
	for line := range strings.Lines(g.of) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 || !slices.Contains(strings.Split(parts[1], ","), controller) {
			continue
		}
		return g.under(parts[2], controller)
	}
	for line := range strings.Lines(g.of) {
		if path, is := strings.CutPrefix(strings.TrimSpace(line), "0::"); is {
			return g.under(path, "")
		}
	}
	return "", false, errNoController
}

func (g *cgroups) under(path, controller string) (string, bool, error) {
	for _, h := range g.mounted {
		unified := len(h.controllers) == 0
		if unified != (controller == "") || !unified && !slices.Contains(h.controllers, controller) {
			continue
		}
		if rest, in := strings.CutPrefix(path, strings.TrimSuffix(h.root, "/")); in && !strings.HasPrefix(path, "/..") {
			return filepath.Join(h.at, rest), unified, nil
		}
	}
	return "", false, errNoController
}

// number reads a file that holds a number or "max", which is -1.
func (g *cgroups) number(dir, file string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, bare(err)
	}
	return limitNumber(strings.TrimSpace(string(text)))
}

// unlimited is from where on version 1 means no limit: it spells none as the most pages
// that there can be.
const unlimited = int64(1) << 62

func limitNumber(text string) (int64, error) {
	if text == "max" || text == "-1" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no limit", text)
	}
	if n >= unlimited {
		return 0, nil
	}
	return n, nil
}

func (g *cgroups) memory() (err error) {
	dir, unified, err := g.directory("memory")
	if err != nil {
		return err
	}
	file := map[bool]string{true: "memory.max", false: "memory.limit_in_bytes"}[unified]
	g.found.Memory, err = g.number(dir, file)
	return err
}

// swap is memory and swap together, which version 2 tells apart.
func (g *cgroups) swap() error {
	dir, unified, err := g.directory("memory")
	if err != nil {
		return err
	}
	if !unified {
		g.found.MemorySwap, err = g.number(dir, "memory.memsw.limit_in_bytes")
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "memory.swap.max"))
	if err != nil {
		return bare(err)
	}
	memory, err := g.number(dir, "memory.max")
	if err != nil || memory == 0 || strings.TrimSpace(string(text)) == "max" {
		return err // without a bound
	}
	swap, err := limitNumber(strings.TrimSpace(string(text)))
	g.found.MemorySwap = memory + swap
	return err
}

func (g *cgroups) pids() error {
	dir, _, err := g.directory("pids")
	if err != nil {
		return err
	}
	g.found.PIDs, err = g.number(dir, "pids.max")
	return err
}

func (g *cgroups) cpus() error {
	dir, unified, err := g.directory("cpu")
	if err != nil {
		return err
	}
	var quota, period int64
	if unified {
		text, err := os.ReadFile(filepath.Join(dir, "cpu.max"))
		if err != nil {
			return bare(err)
		}
		spelt, each, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		if quota, err = limitNumber(spelt); err != nil {
			return err
		}
		if period, err = limitNumber(each); err != nil {
			return err
		}
	} else {
		if quota, err = g.number(dir, "cpu.cfs_quota_us"); err != nil {
			return err
		}
		if period, err = g.number(dir, "cpu.cfs_period_us"); err != nil {
			return err
		}
	}
	if quota > 0 && period > 0 {
		g.found.NanoCPUs = quota * 1e9 / period
	}
	return nil
}
