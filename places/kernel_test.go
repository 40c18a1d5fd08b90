package places

import (
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"spaces/reconcile"
)

// cgroupView is a process in control groups whose files a test lays out.
func cgroupView(t *testing.T, of string, mounts []string, files map[string]string) kernelView {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("proc/7/cgroup", of)
	table := ""
	for _, m := range mounts {
		table += "1 0 0:1 / " + dir + m + "\n"
	}
	write("proc/self/mountinfo", table)
	for name, content := range files {
		write("sys/"+name, content+"\n")
	}
	return kernelView{Observer: &Observer{proc: filepath.Join(dir, "proc")}, pid: 7}
}

var version1 = []string{
	"/sys/memory rw - cgroup cgroup rw,memory", "/sys/pids rw - cgroup cgroup rw,pids", "/sys/cpu rw - cgroup cgroup rw,cpu,cpuacct",
}

const inVersion1 = "3:cpu,cpuacct:/e/1\n2:pids:/e/1\n1:memory:/e/1\n0::/e/1\n"

func TestLimitsAreReadOfEitherVersion(t *testing.T) {
	for _, c := range []struct {
		name   string
		of     string
		mounts []string
		files  map[string]string
		want   reconcile.LimitEvidence
		unread []string
	}{
		{
			"version 1", inVersion1, version1, map[string]string{
				"memory/e/1/memory.limit_in_bytes": "536870912", "memory/e/1/memory.memsw.limit_in_bytes": "536870912",
				"pids/e/1/pids.max": "128", "cpu/e/1/cpu.cfs_quota_us": "50000", "cpu/e/1/cpu.cfs_period_us": "100000",
			}, reconcile.LimitEvidence{Memory: 512 << 20, MemorySwap: 512 << 20, PIDs: 128, NanoCPUs: 5e8}, nil,
		},
		{
			"version 1, without limits", inVersion1, version1, map[string]string{
				"memory/e/1/memory.limit_in_bytes": "9223372036854771712", "memory/e/1/memory.memsw.limit_in_bytes": "9223372036854771712",
				"pids/e/1/pids.max": "max", "cpu/e/1/cpu.cfs_quota_us": "-1", "cpu/e/1/cpu.cfs_period_us": "100000",
			}, reconcile.LimitEvidence{}, nil,
		},
		{
			"version 2", "0::/e/1\n", []string{"/sys/all rw - cgroup2 cgroup2 rw"}, map[string]string{
				"all/e/1/memory.max": "536870912", "all/e/1/memory.swap.max": "0", "all/e/1/pids.max": "128", "all/e/1/cpu.max": "50000 100000",
			}, reconcile.LimitEvidence{Memory: 512 << 20, MemorySwap: 512 << 20, PIDs: 128, NanoCPUs: 5e8}, nil,
		},
		{
			"version 2, without limits", "0::/e/1\n", []string{"/sys/all rw - cgroup2 cgroup2 rw"}, map[string]string{
				"all/e/1/memory.max": "max", "all/e/1/memory.swap.max": "max", "all/e/1/pids.max": "max", "all/e/1/cpu.max": "max 100000",
			}, reconcile.LimitEvidence{}, nil,
		},
		{
			"version 2, with swap", "0::/e/1\n", []string{"/sys/all rw - cgroup2 cgroup2 rw"}, map[string]string{
				"all/e/1/memory.max": "536870912", "all/e/1/memory.swap.max": "max", "all/e/1/pids.max": "128", "all/e/1/cpu.max": "50000 100000",
			}, reconcile.LimitEvidence{Memory: 512 << 20, PIDs: 128, NanoCPUs: 5e8}, nil,
		},
		{"no files", inVersion1, version1, nil, reconcile.LimitEvidence{}, []string{"cpus", "memory", "pids", "swap"}},
		{"not mounted", inVersion1, nil, nil, reconcile.LimitEvidence{}, []string{"cpus", "memory", "pids", "swap"}},
		{"outside of what is mounted", "0::/../other\n", []string{"/sys/all rw - cgroup2 cgroup2 rw"}, nil, reconcile.LimitEvidence{}, []string{"cpus", "memory", "pids", "swap"}},
		{
			"no number", "0::/e/1\n", []string{"/sys/all rw - cgroup2 cgroup2 rw"}, map[string]string{
				"all/e/1/memory.max": "lots", "all/e/1/memory.swap.max": "0", "all/e/1/pids.max": "-7x", "all/e/1/cpu.max": "",
			}, reconcile.LimitEvidence{}, []string{"cpus", "memory", "pids", "swap"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cgroupView(t, c.of, c.mounts, c.files).limits()
			unread := slices.Sorted(maps.Keys(got.Unread))
			if !slices.Equal(unread, c.unread) {
				t.Errorf("unread %v", got.Unread)
			}
			got.Unread, c.want.Unread = nil, nil
			if got.Memory != c.want.Memory || got.MemorySwap != c.want.MemorySwap || got.PIDs != c.want.PIDs || got.NanoCPUs != c.want.NanoCPUs {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestLimitsThatAreNotEnforcedAreNotRead(t *testing.T) {
	v := cgroupView(t, inVersion1, version1, nil)
	v.features.Unenforced = []string{"cpus", "memory", "pids", "swap"}
	if got := v.limits(); len(got.Unread) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestSocketAddressesAreRead(t *testing.T) {
	for line, want := range map[string]string{
		"  1: 0100007F:1CA4 00000000:0000 07":                    "127.0.0.1:7332",
		"  2: 00000000:0035 00000000:0000 07":                    "0.0.0.0:53",
		"  3: 00000000000000000000000001000000:0035 0:0 07":      "[::1]:53",
		"  4: 0000000000000000FFFF00000100007F:0035 0:0 07":      "127.0.0.1:53",
		"  sl  local_address rem_address   st tx_queue rx_queue": "",
		"  5: 0100007:1CA4 0:0 07":                               "",
		"  6: 0100007F 0:0 07":                                   "",
		"  7: 0100007F01:1CA4 0:0 07":                            "",
		"":                                                       "",
	} {
		got, ok := socketAddress(line)
		if ok != (want != "") || ok && got != netip.MustParseAddrPort(want) {
			t.Errorf("%q: %v, %t", line, got, ok)
		}
	}
}

func FuzzSocketAddress(f *testing.F) {
	f.Add("  1: 0100007F:1CA4 00000000:0000 07")
	f.Fuzz(func(t *testing.T, line string) {
		if a, ok := socketAddress(line); ok && !a.IsValid() {
			t.Errorf("%q: %v", line, a)
		}
	})
}

// The init program is the very file that the first process runs.
func TestInitIsComparedWithWhatRuns(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"proc/7", "root/sbin"} {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"tini", "other"} {
		if err := os.WriteFile(filepath.Join(dir, path), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "tini"), filepath.Join(dir, "root", reconcile.InitTarget)); err != nil {
		t.Fatal(err)
	}
	root, err := unix.Open(filepath.Join(dir, "root"), unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root) //nolint:errcheck // nothing was written
	v := kernelView{Observer: &Observer{proc: filepath.Join(dir, "proc")}, pid: 7, root: root}
	for runs, same := range map[string]bool{"tini": true, "other": false} {
		exe := filepath.Join(dir, "proc/7/exe")
		_ = os.Remove(exe)
		if err := os.Symlink(filepath.Join(dir, runs), exe); err != nil {
			t.Fatal(err)
		}
		s, looked := v.sources([]reconcile.MountPoint{{Target: reconcile.InitTarget}})[reconcile.InitTarget]
		if !looked || s.Err != "" || (s.Inside == s.Outside) != same {
			t.Errorf("%s: %+v, %t", runs, s, looked)
		}
	}
}

// A device is known by its numbers, by whatever name it was asked for.
func TestHostDevicesAreKnownByTheirNumbers(t *testing.T) {
	link := filepath.Join(t.TempDir(), "nothing")
	if err := os.Symlink("/dev/null", link); err != nil {
		t.Fatal(err)
	}
	null := reconcile.Device{Path: "/dev/null", Number: "c 1:3"}
	got := hostDevices([]string{"/dev/null:/dev/x:rwm", link + ":/dev/y:r", "/dev/none:/dev/none:r", "/proc/self/status:/dev/z:r"})
	if want := map[string]reconcile.Device{"/dev/null": null, link: null}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	root, err := unix.Open("/", unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root) //nolint:errcheck // nothing was written
	inside, err := kernelView{root: root}.devices()
	if at := slices.IndexFunc(inside, func(d reconcile.Device) bool { return d.Path == "null" }); err != nil || at < 0 || inside[at].Number != "c 1:3" {
		t.Errorf("%v, %v", inside, err)
	}
}

// The engine's own mounts count beside this process's, and none are passed over.
func TestHostMountsAreTheEnginesToo(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	v := kernelView{Observer: &Observer{proc: dir}, pid: 7}
	write("7/status", "PPid:\t5\n")
	write("self/mountinfo", "1 0 0:23 / /run rw - tmpfs tmpfs rw\n")
	if got, err := v.hostMounts(); err == nil {
		t.Errorf("without the engine's: %v", got)
	}
	write("5/mountinfo", "1 0 0:23 / /host/run rw - tmpfs tmpfs rw\n1 0 0:40 / /run rw - tmpfs tmpfs rw\n")
	got, err := v.hostMounts()
	if err != nil || len(got) != 2 || !slices.Equal(got["0:23"], []string{"/host/run", "/run"}) || !slices.Equal(got["0:40"], []string{"/run"}) {
		t.Errorf("%v, %v", got, err)
	}
	write("7/status", "PPid:\t0\n")
	if got, err := v.hostMounts(); err == nil {
		t.Errorf("without a parent: %v", got)
	}
}

// What may not be looked at is an error, which Evidence tells of the space.
func TestProcessesOfOthersAreNotPassedOver(t *testing.T) {
	o := &Observer{proc: t.TempDir()}
	var e reconcile.Evidence
	err := o.lookAtKernel(reconcile.Proof{ID: "0123"}, 7, &e)
	if err == nil || !strings.Contains(err.Error(), "can't be looked at by uid") || len(e.Processes) > 0 {
		t.Errorf("%v, %+v", err, e)
	}
}
