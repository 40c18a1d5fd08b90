package reconcile

import (
	"strings"
	"testing"
)

// healthy is a machine with nothing in the way.
func healthy() MachineFacts {
	return MachineFacts{
		UID: 1000, RuntimeDir: "/run/user/1000", RuntimeDirOwner: 1000, Systemd: true, Lingers: true,
		SubUIDs: 65536, SubGIDs: 65536, UnprivilegedPort: 1024, CgroupVersion: 2, Controllers: []string{"cpu", "io", "memory", "pids"},
		Keys: 12, MaxKeys: 200, InotifyWatches: 65536, InotifyInstances: 128, Git: "2.39.5",
		DataRoot: "/home/me/.local/state/spaces/p", LockFile: "/lock", Endpoint: "unix:///e.sock",
		Engine: EngineFacts{Known: true, Driver: "overlay2", Engine: Engine{Name: "Docker 28.0.0", Endpoint: "unix:///e.sock", Rootless: true}},
	}
}

func TestExamine(t *testing.T) {
	for _, f := range Examine(healthy()) {
		if f.Rating != RatingFine || f.Text == "" || f.Fix != "" || f.Check == "" {
			t.Errorf("on a machine with nothing in the way: %+v", f)
		}
	}
	refusal := &Refusal{Code: CodeDataRoot, Text: "it is open to others", Fix: "chmod"}
	for _, tt := range []struct {
		name   string
		change func(*MachineFacts)
		want   string // of each check that isn't fine: "check rating"
	}{
		{"endpoint", func(m *MachineFacts) {
			m.EndpointRefusal, m.Engine = &Refusal{Code: CodeNotRootless, Text: "none listens"}, EngineFacts{}
		}, "endpoint refused, engine release unknown, storage driver unknown"},
		{"rootful, and accepted", func(m *MachineFacts) { m.Engine.Rootless = false }, "endpoint warning"},
		{"no release", func(m *MachineFacts) { m.Engine.Name = "Docker dev" }, "engine release warning"},
		{"newer", func(m *MachineFacts) { m.Engine.Name = "Docker 99.1.0" }, "engine release warning"},
		{"leaks names", func(m *MachineFacts) { m.Engine.InternalDNSLeaks = true }, "engine release warning"},
		{"vfs", func(m *MachineFacts) { m.Engine.Driver = "vfs" }, "storage driver warning"},
		{"cgroup v1", func(m *MachineFacts) { m.CgroupVersion = 1 }, "cgroups warning"},
		{"no cgroups", func(m *MachineFacts) { m.CgroupVersion = 0 }, "cgroups unknown"},
		{"processors not delegated", func(m *MachineFacts) { m.Controllers = []string{"memory", "pids"} }, "cgroups warning"},
		{"keys run out", func(m *MachineFacts) { m.Keys = 170 }, "key quota warning"},
		{"no key left", func(m *MachineFacts) { m.Keys = 200 }, "key quota warning"},
		{"keys not told", func(m *MachineFacts) { m.Keys = -1 }, "key quota unknown"},
		{"few ids", func(m *MachineFacts) { m.SubGIDs = 0 }, "ids for containers warning"},
		{"ids not told", func(m *MachineFacts) { m.SubUIDs = -1 }, "ids for containers unknown"},
		{"no runtime directory", func(m *MachineFacts) { m.RuntimeDir = "" }, "runtime directory warning"},
		{"a missing one", func(m *MachineFacts) { m.RuntimeDirOwner = -1 }, "runtime directory warning"},
		{"another's", func(m *MachineFacts) { m.RuntimeDirOwner = 0 }, "runtime directory warning"},
		{"doesn't linger", func(m *MachineFacts) { m.Lingers = false }, "lingering warning"},
		{"ports not told", func(m *MachineFacts) { m.UnprivilegedPort = -1 }, "low ports unknown"},
		{"few watches", func(m *MachineFacts) { m.InotifyWatches = 100 }, "inotify warning"},
		{"watches not told", func(m *MachineFacts) { m.InotifyInstances = -1 }, "inotify unknown"},
		{"data root", func(m *MachineFacts) { m.DataRootRefusal = refusal }, "data root refused, apply lock unknown"},
		{"data root far away", func(m *MachineFacts) { m.DataRootFileSystem = "nfs" }, "data root warning"},
		{"no project", func(m *MachineFacts) { m.DataRoot = "" }, "data root unknown, apply lock unknown"},
		{"locked", func(m *MachineFacts) { m.Lock = "spaces apply (pid 7)" }, "apply lock warning"},
		{"no git", func(m *MachineFacts) { m.Git = "" }, "git warning"},
	} {
		m := healthy()
		tt.change(&m)
		var got []string
		for _, f := range Examine(m) {
			if f.Rating != RatingFine {
				got = append(got, f.Check+" "+string(f.Rating))
			}
			if f.Rating == RatingRefused && f.Code == "" {
				t.Errorf("%s: a refusal without a code: %+v", tt.name, f)
			}
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, strings.Join(got, ", "), tt.want)
		}
	}
}

// Root's own engine has none of a user's bounds.
func TestExamineOfRoot(t *testing.T) {
	m := healthy()
	m.UID, m.RuntimeDirOwner, m.Engine.Rootless = 0, 0, false
	m.CgroupVersion, m.SubUIDs, m.SubGIDs, m.Keys, m.UnprivilegedPort, m.Lingers = 1, 0, 0, 200, -1, false
	for _, f := range Examine(m) {
		if f.Rating != RatingFine && f.Check != "endpoint" {
			t.Errorf("%+v", f)
		}
	}
}

// What an engine alone would have refused is told by the plan's own words.
func TestExamineEngine(t *testing.T) {
	if got := ExamineEngine(healthy().Engine.Engine); len(got) > 0 {
		t.Errorf("refused %+v", got)
	}
	got := ExamineEngine(Engine{Unenforced: []string{"pids"}, InternalReachesHost: true, Lacks: []string{LacksSeccomp}})
	var codes []string
	for _, r := range got {
		codes = append(codes, r.Code)
	}
	if strings.Join(codes, " ") != "limits-unenforced network-not-isolated engine-lacks" {
		t.Errorf("refused %v", codes)
	}
}
