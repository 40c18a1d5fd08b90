package reconcile

import (
	"slices"
	"strings"
	"testing"

	"spaces/schema"
)

const provenFiles = `
project = "acme"

install {
  mode     = "containerized"
  endpoint = "unix:///run/user/1000/docker.sock"
}

image "core" {
  binary = "spaces"
}

network "inside" {
  egress = "none"
}

network "front" {
  internal = false
  reason   = "it publishes"
}

grant "work" {
  directory = "/srv/work"
  target    = "/work"
}

grant "cache" {
  volume = "cache"
  target = "/cache"
  access = "rw"
}

space "web" {
  image    = image.core
  command  = ["spaces", "pause"]
  networks = [network.inside]
  grants   = [grant.work, grant.cache]
  tmpfs    = ["/root"]
}

space "front" {
  image    = image.core
  command  = ["spaces", "pause"]
  networks = [network.front]

  publish {
    host      = "127.0.0.1"
    port      = 7332
    container = 80
  }

  loosen "cap_add" {
    value  = ["NET_BIND_SERVICE"]
    reason = "a test"
  }
  loosen "writable_root" {
    value  = true
    reason = "a test"
  }
  loosen "new_privileges" {
    value  = true
    reason = "a test"
  }
  loosen "seccomp" {
    value  = "unconfined"
    reason = "a test"
  }
}
`

// provenWorld is one in which both spaces run as the files say.
func provenWorld(t *testing.T, files string) []Proof {
	t.Helper()
	m := freshModel()
	m.host.Paths = pathFacts(t, files)
	m.apply(t, m.plan(t, load(t, files)))
	m.network("acme-front").Subnet = "172.19.0.0/16"
	proofs := Prove(Resolve(load(t, files), testRoots), m.host, m.actual)
	for i := range proofs {
		proofs[i].Engine = Engine{Rootless: true, IsolatedGateway: true, StorageDir: "/var/lib/docker"}
	}
	return proofs
}

// proofOf finds a space's.
func proofOf(t *testing.T, proofs []Proof, subject string) Proof {
	t.Helper()
	at := slices.IndexFunc(proofs, func(p Proof) bool { return p.Subject == subject })
	if at < 0 {
		t.Fatalf("%s is to prove nothing", subject)
	}
	return proofs[at]
}

// hardenedMounts are those of a container with an init on a machine with some of the masked
// paths, as a rootless engine mounts them.
const hardenedMounts = `
1 0 0:81 / / ro,relatime master:19 - overlay overlay rw
1 0 0:206 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
1 0 0:207 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
1 0 0:208 / /dev/pts rw,nosuid,noexec,relatime - devpts devpts rw
1 0 0:209 / /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs ro
1 0 0:214 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw
1 0 0:29 / /sys/fs/cgroup/cpu ro,nosuid,nodev,noexec,relatime - cgroup cgroup rw,cpu
1 0 0:202 / /dev/mqueue rw,nosuid,nodev,noexec,relatime - mqueue mqueue rw
1 0 0:216 / /dev/shm rw,nosuid,nodev,noexec,relatime - tmpfs shm rw,size=65536k
1 0 254:0 /usr/bin/tini /sbin/docker-init ro,relatime - ext4 /dev/vda rw
1 0 0:218 / /tmp rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw
1 0 0:218 / /data rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw
1 0 254:0 /d/containers/ID/resolv.conf /etc/resolv.conf ro,relatime - ext4 /dev/vda rw
1 0 254:0 /d/containers/ID/hostname /etc/hostname ro,relatime - ext4 /dev/vda rw
1 0 254:0 /d/containers/ID/hosts /etc/hosts ro,relatime - ext4 /dev/vda rw
1 0 0:6 /null /dev/null rw,relatime - devtmpfs devtmpfs rw
1 0 0:206 /sys /proc/sys ro,nosuid,nodev,noexec,relatime - proc proc rw
1 0 0:6 /null /proc/keys rw,relatime - devtmpfs devtmpfs rw
1 0 0:222 / /sys/firmware ro,relatime - tmpfs tmpfs ro
`

const webMounts = `
1 0 0:217 / /root rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw
1 0 254:0 /srv/work /work ro,relatime - ext4 /dev/vda rw
1 0 254:0 /v/acme-cache/_data /cache rw,relatime master:2 - ext4 /dev/vda rw
`

func mountTable(t *testing.T, id, text string) []MountPoint {
	t.Helper()
	var out []MountPoint
	for line := range strings.Lines(strings.ReplaceAll(text, "ID", id)) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		m, ok := ParseMount(line)
		if !ok {
			t.Fatalf("not a mount: %q", line)
		}
		out = append(out, m)
	}
	return out
}

// goodEvidence is what there is to see of a space that is as the files say.
func goodEvidence(t *testing.T, p Proof) Evidence {
	t.Helper()
	mounts := hardenedMounts
	e := Evidence{
		Processes: []Process{
			{PID: 1, Name: "docker-init", NoNewPrivs: true, Seccomp: 2, Bounding: capabilitySet(p.Container.CapAdd)},
			{PID: 7, Name: "spaces", NoNewPrivs: true, Seccomp: 2},
		},
		Masks:    []string{"/proc/sys", "/proc/keys", "/sys/firmware"},
		Devices:  []Device{{"console", "c 136:4"}, {"full", "c 1:7"}, {"null", "c 1:3"}, {"zero", "c 1:5"}},
		UserIDs:  []IDRange{{0, 1000, 1}, {1, 100000, 65536}},
		GroupIDs: []IDRange{{0, 1000, 1}, {1, 100000, 65536}},
		Limits:   LimitEvidence{Memory: 512 << 20, MemorySwap: 512 << 20, PIDs: 128, NanoCPUs: 5e8},
		Network: ProbeAnswer{
			Nameservers: []string{"127.0.0.11"},
			Connect:     map[string]Reach{"192.168.1.5": ReachUnreachable},
			Routes:      map[string]string{OutsideIPv4: "", OutsideIPv6: "", MetadataIP: ""},
		},
		HostAddresses: []string{"192.168.1.5"},
	}
	e.Sources = map[string]Source{InitTarget: {Inside: Inode{1, 4}, Outside: Inode{1, 4}}}
	switch p.Subject {
	case "space.web":
		mounts += webMounts
		e.Sources = map[string]Source{
			InitTarget: e.Sources[InitTarget],
			"/work":    {Inside: Inode{1, 2}, Outside: Inode{1, 2}, Host: "/srv/work"},
			"/cache":   {Inside: Inode{1, 3}, Outside: Inode{1, 3}, Host: "/v/_data"},
		}
		e.Network.Addresses = []string{"172.18.0.2/16"}
		e.Network.Names = map[string][]string{"web": {"172.18.0.2"}}
	case "space.front":
		e.Network.Addresses = []string{"172.19.0.2/16"}
		e.Network.Names = map[string][]string{"front": {"172.19.0.2"}}
		e.Ports = map[string]PortEvidence{PortKey("80/tcp", "127.0.0.1:7332"): {Answers: true}}
	}
	e.Mounts = mountTable(t, p.ID, mounts)
	e.HostMounts = map[string][]string{
		"0:23": {"/run"}, "0:25": {"/dev/shm"}, "254:0": {"/"}, "0:216": {"/d/containers/" + p.ID + "/mounts/shm"},
	}
	return e
}

func verdicts(checks []Check, v Verdict) []string {
	var out []string
	for _, c := range checks {
		if c.Verdict == v {
			out = append(out, c.Name+": "+c.Got)
		}
	}
	return out
}

func TestWhatIsAsTheFilesSayHolds(t *testing.T) {
	proofs := provenWorld(t, provenFiles)
	if len(proofs) != 2 {
		t.Fatalf("%d proofs", len(proofs))
	}
	for _, p := range proofs {
		checks := p.Judge(goodEvidence(t, p))
		for _, v := range []Verdict{VerdictDiffers, VerdictAccepted, VerdictUnproven} {
			if found := verdicts(checks, v); len(found) > 0 {
				t.Errorf("%s %s: %v", p.Subject, v, found)
			}
		}
		if n := len(verdicts(checks, VerdictHolds)); n < 14 {
			t.Errorf("%s: only %d checks", p.Subject, n)
		}
	}
}

// mountAt is one of the mounts, to be changed.
func mountAt(e *Evidence, target string) *MountPoint {
	return &e.Mounts[slices.IndexFunc(e.Mounts, func(m MountPoint) bool { return m.Target == target })]
}

func withoutOption(m *MountPoint, option string) {
	m.Options = slices.DeleteFunc(slices.Clone(m.Options), func(o string) bool { return o == option })
}

// giveTun asks for a device and gives it.
func giveTun(p *Proof, e *Evidence) {
	p.Container.Devices = []string{"/dev/net/tun:/dev/net/tun:rwm"}
	e.Devices = []Device{{"net/tun", "c 10:200"}}
	e.HostDevices = map[string]Device{"/dev/net/tun": {"/dev/net/tun", "c 10:200"}}
}

// Every check can fail, each by itself, and says what it found.
func TestWhatDiffersIsTold(t *testing.T) {
	proofs := provenWorld(t, provenFiles)
	for _, c := range []struct {
		check, says string
		wrong       func(p *Proof, e *Evidence)
	}{
		{CheckRunning, "missing", func(p *Proof, _ *Evidence) { p.ID = "" }},
		{CheckRunning, "exited", func(p *Proof, _ *Evidence) { p.State = StateExited }},
		{CheckRunning, "it runs", func(p *Proof, _ *Evidence) { p.Unasked = true }},
		{CheckProcesses, "another user's", func(_ *Proof, e *Evidence) { e.Unread = "another user's" }},
		{CheckProcesses, "no process", func(_ *Proof, e *Evidence) { e.Processes = nil }},
		{CheckCapabilities, "process 7 (spaces): effective SYS_ADMIN", func(_ *Proof, e *Evidence) { e.Processes[1].Effective = 1 << 21 }},
		{CheckCapabilities, "permitted CHOWN", func(_ *Proof, e *Evidence) { e.Processes[0].Permitted = 1 }},
		{CheckCapabilities, "inheritable CHOWN", func(_ *Proof, e *Evidence) { e.Processes[0].Inheritable = 1 }},
		{CheckCapabilities, "bounding CHOWN+DAC_OVERRIDE", func(_ *Proof, e *Evidence) { e.Processes[0].Bounding = 3 }},
		{CheckCapabilities, "ambient number 50", func(_ *Proof, e *Evidence) { e.Processes[0].Ambient = 1 << 50 }},
		{CheckCapabilities, "not given NET_RAW", func(p *Proof, _ *Evidence) { p.Container.CapAdd = []string{"NET_RAW"} }},
		{CheckPrivileges, "off", func(_ *Proof, e *Evidence) { e.Processes[1].NoNewPrivs = false }},
		{CheckSeccomp, "mode 0", func(_ *Proof, e *Evidence) { e.Processes[1].Seccomp = 0 }},
		{CheckNamespaces, "pid is the engine's", func(_ *Proof, e *Evidence) { e.Shared = []string{"pid"} }},
		{CheckNamespaces, "others are in its net: 1", func(_ *Proof, e *Evidence) { e.Joined = []string{"net: 1"} }},
		{CheckNamespaces, "in another mnt", func(_ *Proof, e *Evidence) { e.Processes[1].Elsewhere = []string{"mnt"} }},
		{CheckUserIDs, "user 0 in it is 0", func(_ *Proof, e *Evidence) { e.UserIDs = []IDRange{{0, 0, 1 << 32}} }},
		{CheckUserIDs, "group 5 in it is 0", func(_ *Proof, e *Evidence) { e.GroupIDs = []IDRange{{5, 0, 1}} }},
		{CheckUserIDs, "can't be read", func(_ *Proof, e *Evidence) { e.UserIDs = nil }},
		{CheckRoot, "writable", func(_ *Proof, e *Evidence) { mountAt(e, "/").Options = []string{"rw"} }},
		{CheckRoot, "shows on the host", func(_ *Proof, e *Evidence) { mountAt(e, "/").Shared = true }},
		{CheckMounts, "/work is writable", func(_ *Proof, e *Evidence) { mountAt(e, "/work").Options = []string{"rw"} }},
		{CheckMounts, "/work isn't what is at /srv/work", func(_ *Proof, e *Evidence) { e.Sources["/work"] = Source{Inside: Inode{1, 9}, Host: "/srv/work"} }},
		{CheckMounts, "/work can't be compared", func(_ *Proof, e *Evidence) { e.Sources["/work"] = Source{Err: "denied", Host: "/srv/work"} }},
		{CheckMounts, "/work was not compared", func(_ *Proof, e *Evidence) { delete(e.Sources, "/work") }},
		{CheckMounts, "/work follows", func(_ *Proof, e *Evidence) { mountAt(e, "/work").Follows = true }},
		{CheckMounts, "/cache is read-only", func(_ *Proof, e *Evidence) { mountAt(e, "/cache").Options = []string{"ro"} }},
		{CheckMounts, "/cache shows /etc, which isn't the volume's own", func(_ *Proof, e *Evidence) { mountAt(e, "/cache").Root = "/etc" }},
		{CheckMounts, "/cache shows on the host", func(_ *Proof, e *Evidence) { mountAt(e, "/cache").Shared = true }},
		{CheckMounts, "/work isn't mounted", func(_ *Proof, e *Evidence) { mountAt(e, "/work").Target = "/work " }},
		{CheckMounts, "/extra is nobody's: ext4 /srv", func(_ *Proof, e *Evidence) {
			e.Mounts = append(e.Mounts, MountPoint{Target: "/extra", Type: "ext4", Root: "/srv"})
		}},
		{CheckMounts, "/work is mounted over", func(_ *Proof, e *Evidence) { e.Mounts = append(e.Mounts, *mountAt(e, "/work")) }},
		{CheckMounts, "/work/sub is writable (in the grant at /work)", func(_ *Proof, e *Evidence) {
			e.Mounts = append(e.Mounts, MountPoint{Target: "/work/sub", Type: "ext4", Root: "/x", Options: []string{"rw"}})
			e.Sources["/work/sub"] = Source{}
		}},
		{CheckMounts, "/root lacks noexec", func(_ *Proof, e *Evidence) { withoutOption(mountAt(e, "/root"), "noexec") }},
		{CheckMounts, "/tmp lacks nosuid", func(_ *Proof, e *Evidence) { withoutOption(mountAt(e, "/tmp"), "nosuid") }},
		{CheckMounts, "/tmp is this host's own /run", func(_ *Proof, e *Evidence) { mountAt(e, "/tmp").Device = "0:23" }},
		{CheckMounts, "/tmp is this host's own /d/containers/", func(_ *Proof, e *Evidence) { mountAt(e, "/tmp").Device = "0:216" }},
		{CheckMounts, "/tmp shows /user", func(_ *Proof, e *Evidence) { mountAt(e, "/tmp").Root = "/user" }},
		{CheckMounts, "/dev/shm is this host's own /dev/shm", func(_ *Proof, e *Evidence) { mountAt(e, "/dev/shm").Device = "0:25" }},
		{CheckMounts, "/dev/shm is this host's own /d/containers/other/mounts/shm", func(_ *Proof, e *Evidence) {
			e.HostMounts["0:216"] = []string{"/d/containers/other/mounts/shm"}
		}},
		{CheckMounts, "/sys/firmware is this host's own /run", func(_ *Proof, e *Evidence) { mountAt(e, "/sys/firmware").Device = "0:23" }},
		{CheckMounts, "/tmp can't be told from this host's own", func(_ *Proof, e *Evidence) { e.HostMounts = nil }},
		{CheckMounts, "/tmp is of type ext4", func(_ *Proof, e *Evidence) { mountAt(e, "/tmp").Type = "ext4" }},
		{CheckMounts, "/tmp lacks size=1024k", func(p *Proof, _ *Evidence) { p.Container.Tmpfs["/tmp"] = "noexec,nosuid,size=1048576" }},
		{CheckMounts, "/tmp lacks mode=700", func(p *Proof, _ *Evidence) { p.Container.Tmpfs["/tmp"] = "mode=0700,noexec,nosuid" }},
		{CheckMounts, "/proc/keys isn't mounted", func(_ *Proof, e *Evidence) { mountAt(e, "/proc/keys").Target = "/proc/sched_debug" }},
		{CheckMounts, "/proc/sys lacks ro", func(_ *Proof, e *Evidence) { withoutOption(mountAt(e, "/proc/sys"), "ro") }},
		{CheckMounts, "/etc/hosts shows /srv/hosts", func(_ *Proof, e *Evidence) { mountAt(e, "/etc/hosts").Root = "/srv/hosts" }},
		{CheckMounts, "/dev/null shows /mem", func(_ *Proof, e *Evidence) { mountAt(e, "/dev/null").Root = "/mem" }},
		{CheckMounts, "/proc/asound is of type ext4", func(_ *Proof, e *Evidence) {
			e.Mounts = append(e.Mounts, MountPoint{Target: "/proc/asound", Type: "ext4", Root: "/etc", Options: []string{"ro"}})
		}},
		{CheckMounts, "/sbin/docker-init isn't mounted", func(_ *Proof, e *Evidence) {
			e.Mounts = slices.DeleteFunc(e.Mounts, func(m MountPoint) bool { return m.Target == "/sbin/docker-init" })
		}},
		{CheckMounts, "/sbin/docker-init isn't what the first process runs", func(_ *Proof, e *Evidence) { e.Sources[InitTarget] = Source{Inside: Inode{1, 9}} }},
		{CheckMounts, "/sbin/docker-init can't be compared with what the first process runs: denied", func(_ *Proof, e *Evidence) {
			e.Sources[InitTarget] = Source{Err: "denied"}
		}},
		{CheckMounts, "/sbin/docker-init was not compared", func(_ *Proof, e *Evidence) { delete(e.Sources, InitTarget) }},
		{CheckMounts, "/sbin/docker-init is nobody's", func(p *Proof, _ *Evidence) { p.Container.Init = false }},
		{CheckMounts, "/sys/fs/cgroup/cpu lacks ro", func(_ *Proof, e *Evidence) { withoutOption(mountAt(e, "/sys/fs/cgroup/cpu"), "ro") }},
		{CheckDevices, "/dev/kvm", func(_ *Proof, e *Evidence) { e.Devices = append(e.Devices, Device{"kvm", "c 10:232"}) }},
		{CheckDevices, "/dev/null is c 1:1, not c 1:3", func(_ *Proof, e *Evidence) { e.Devices[2].Number = "c 1:1" }},
		{CheckDevices, "/dev/zero is b 1:5, not c 1:5", func(_ *Proof, e *Evidence) { e.Devices[3].Number = "b 1:5" }},
		{CheckDevices, "/dev/console is c 5:1", func(_ *Proof, e *Evidence) { e.Devices[0].Number = "c 5:1" }},
		{CheckDevices, "/dev/net/tun is c 1:1, not c 10:200", func(p *Proof, e *Evidence) {
			giveTun(p, e)
			e.Devices[0].Number = "c 1:1"
		}},
		{CheckDevices, "/dev/net/tun can't be compared with /dev/net/tun", func(p *Proof, e *Evidence) {
			giveTun(p, e)
			e.HostDevices = nil
		}},
		{CheckMounts, "/dev/net/tun shows /mem, not /dev/net/tun", func(p *Proof, e *Evidence) {
			giveTun(p, e)
			e.Mounts = append(e.Mounts, MountPoint{Target: "/dev/net/tun", Type: "devtmpfs", Root: "/mem"})
		}},
		{CheckDevices, "/dev/net/other", func(p *Proof, e *Evidence) {
			giveTun(p, e)
			e.Mounts = append(e.Mounts, MountPoint{Target: "/dev/net/tun", Type: "devtmpfs", Root: "/net/tun"})
			e.Devices = append(e.Devices, Device{"net/other", "c 10:200"})
		}},
		{CheckLimits, "memory unlimited, not 536870912 bytes", func(_ *Proof, e *Evidence) { e.Limits.Memory = 0 }},
		{CheckLimits, "swap 1073741824 bytes", func(_ *Proof, e *Evidence) { e.Limits.MemorySwap = 1 << 30 }},
		{CheckLimits, "pids 129, not 128", func(_ *Proof, e *Evidence) { e.Limits.PIDs = 129 }},
		{CheckLimits, "cpus 2, not 0.5", func(_ *Proof, e *Evidence) { e.Limits.NanoCPUs = 2e9 }},
		{CheckLimits, "pids can't be read: denied", func(_ *Proof, e *Evidence) { e.Limits.Unread = map[string]string{"pids": "denied"} }},
		{CheckLimits, "doesn't enforce pids", func(p *Proof, _ *Evidence) { p.Engine.Unenforced = []string{"pids"} }},
		{CheckAddresses, "no docker", func(_ *Proof, e *Evidence) { e.NoProbe = "no docker" }},
		{CheckAddresses, "blind", func(_ *Proof, e *Evidence) { e.Network.Err = "blind" }},
		{CheckAddresses, "10.0.0.7/8 is in none", func(_ *Proof, e *Evidence) { e.Network.Addresses = append(e.Network.Addresses, "10.0.0.7/8") }},
		{CheckAddresses, "fd00::7/64 is in none", func(_ *Proof, e *Evidence) { e.Network.Addresses = append(e.Network.Addresses, "fd00::7/64") }},
		{CheckNames, "asks the resolver 9.9.9.9", func(_ *Proof, e *Evidence) { e.Network.Nameservers = append(e.Network.Nameservers, "9.9.9.9") }},
		{CheckNames, "it has no resolver", func(_ *Proof, e *Evidence) { e.Network.Nameservers = nil }},
		{CheckNames, "web doesn't resolve", func(_ *Proof, e *Evidence) { e.Network.Names = nil }},
		{CheckNames, "which isn't its own", func(_ *Proof, e *Evidence) { e.Network.Names["web"] = []string{"172.18.0.9"} }},
		{CheckForwarding, "spaces-probe.invalid: yes", func(_ *Proof, e *Evidence) { e.Network.Forwarded = "yes" }},
		{CheckForwarding, "no answer came", func(_ *Proof, e *Evidence) { e.Network.Forwarded = ForwardedSilent }},
		{CheckGateway, "172.18.0.1: reached a listener of this host", func(_ *Proof, e *Evidence) {
			e.Gateways, e.Network.Connect["172.18.0.1"] = []string{"172.18.0.1"}, ReachOurs
		}},
		{CheckGateway, "172.18.0.1: refused", func(_ *Proof, e *Evidence) {
			e.Gateways, e.Network.Connect["172.18.0.1"] = []string{"172.18.0.1"}, ReachRefused
		}},
		{CheckGateway, "172.18.0.1 was not tried", func(_ *Proof, e *Evidence) { e.Gateways = []string{"172.18.0.1"} }},
		{CheckHost, "192.168.1.5: connected", func(_ *Proof, e *Evidence) { e.Network.Connect["192.168.1.5"] = ReachOpen }},
		{CheckHost, "192.168.1.5 was not tried", func(_ *Proof, e *Evidence) { e.Network.Connect = nil }},
		{CheckRoutes, OutsideIPv4 + " is sent from 172.18.0.2", func(_ *Proof, e *Evidence) { e.Network.Routes[OutsideIPv4] = "172.18.0.2" }},
		{CheckRoutes, OutsideIPv6 + " is sent from fd00::2", func(_ *Proof, e *Evidence) { e.Network.Routes[OutsideIPv6] = "fd00::2" }},
		{CheckRoutes, MetadataIP + " is sent from 172.18.0.2", func(_ *Proof, e *Evidence) { e.Network.Routes[MetadataIP] = "172.18.0.2" }},
		{CheckRoutes, MetadataIP + " was not tried", func(_ *Proof, e *Evidence) { delete(e.Network.Routes, MetadataIP) }},
		{CheckProxy, "refused", func(p *Proof, e *Evidence) {
			p.Proxy, e.Network.Dial = "acme-egress-agents:3128", map[string]Reach{"acme-egress-agents:3128": ReachRefused}
		}},
		{CheckProxy, "was not tried", func(p *Proof, _ *Evidence) { p.Proxy = "acme-egress-agents:3128" }},
	} {
		t.Run(c.check+" "+c.says, func(t *testing.T) {
			p := proofOf(t, proofs, "space.web")
			tmpfs := map[string]string{}
			for path, options := range p.Container.Tmpfs {
				tmpfs[path] = options
			}
			p.Container.Tmpfs = tmpfs
			e := goodEvidence(t, p)
			c.wrong(&p, &e)
			found := verdicts(p.Judge(e), VerdictDiffers)
			if len(found) != 1 || !strings.HasPrefix(found[0], c.check+": ") || !strings.Contains(found[0], c.says) {
				t.Errorf("it differs in %q, and should in %s: %s", found, c.check, c.says)
			}
		})
	}
}

func TestPublishedPortsAreTold(t *testing.T) {
	p := proofOf(t, provenWorld(t, provenFiles), "space.front")
	key := PortKey("80/tcp", "127.0.0.1:7332")
	for says, ports := range map[string]map[string]PortEvidence{
		"it was not tried":                nil,
		"127.0.0.1:7332 doesn't answer":   {key: {}},
		"192.168.1.5:7332 answers too":    {key: {Answers: true, Elsewhere: []string{"192.168.1.5:7332"}}},
		"the kernel's sockets are hidden": {key: {Err: "the kernel's sockets are hidden"}},
	} {
		e := goodEvidence(t, p)
		e.Ports = ports
		checks := p.Judge(e)
		if found := verdicts(checks, VerdictDiffers); len(found) != 1 || !strings.Contains(found[0], says) {
			t.Errorf("it differs in %q, and should in %s", found, says)
		}
		at := slices.IndexFunc(checks, func(c Check) bool { return c.Name == CheckPorts })
		if o := checks[at].Origin; o.File != "main.hcl" || o.Line < p.Space.Origin.Line {
			t.Errorf("the port is at %v in the files", o)
		}
	}
}

// What an engine is known not to hold is accepted by a person, or differs.
func TestWhatAnEngineDoesNotHold(t *testing.T) {
	proofs := provenWorld(t, provenFiles)
	for _, c := range []struct {
		name    string
		engine  Engine
		accepts string
		wrong   func(e *Evidence)
		verdict Verdict
		says    string
	}{
		{"root, accepted", Engine{IsolatedGateway: true}, schema.AcceptNotRootless, func(e *Evidence) { e.UserIDs[0].Outside = 0 }, VerdictAccepted, "user 0 in it is 0"},
		{"root", Engine{IsolatedGateway: true}, "", func(e *Evidence) { e.UserIDs[0].Outside = 0 }, VerdictDiffers, "user 0 in it is 0"},
		{
			"root, on an engine that gives others",
			Engine{Remaps: true, IsolatedGateway: true},
			schema.AcceptNotRootless,
			func(e *Evidence) { e.UserIDs[0].Outside = 0 }, VerdictDiffers, "user 0 in it is 0",
		},
		{
			"limits, accepted",
			Engine{Rootless: true, IsolatedGateway: true, Unenforced: []string{"memory"}},
			schema.AcceptLimitsUnenforced,
			func(e *Evidence) { e.Limits.Memory = 0 }, VerdictAccepted, "doesn't enforce memory",
		},
		{
			"the host, accepted",
			Engine{Rootless: true, InternalReachesHost: true},
			schema.AcceptNetworkNotIsolated,
			func(e *Evidence) {
				e.Gateways, e.Network.Connect["172.18.0.1"] = []string{"172.18.0.1"}, ReachOurs
			},
			VerdictAccepted, "reached a listener of this host",
		},
		{
			"the host",
			Engine{Rootless: true, InternalReachesHost: true},
			"",
			func(e *Evidence) {
				e.Gateways, e.Network.Connect["172.18.0.1"] = []string{"172.18.0.1"}, ReachRefused
			},
			VerdictDiffers, "refused",
		},
		{
			"a resolver that stays silent",
			Engine{Rootless: true, IsolatedGateway: true, InternalDNSLeaks: true},
			"",
			func(e *Evidence) { e.Network.Forwarded = ForwardedSilent }, VerdictUnproven, "nor does this engine answer",
		},
		{
			"a way to the gateway",
			Engine{Rootless: true},
			"",
			func(e *Evidence) {
				e.Gateways, e.Network.Connect["172.18.0.1"] = []string{"172.18.0.1"}, ReachRefused
				e.Network.Routes[OutsideIPv4] = "172.18.0.2"
			},
			VerdictUnproven, "where this engine drops it",
		},
		{
			"a way to an address of IPv6",
			Engine{Rootless: true},
			"",
			func(e *Evidence) {
				e.Gateways, e.Network.Connect["172.18.0.1"] = []string{"172.18.0.1"}, ReachRefused
				e.Network.Routes[OutsideIPv6] = "fd00::2"
			},
			VerdictDiffers, "is sent from fd00::2",
		},
		{
			"the engine's own namespace, with a listener",
			Engine{Rootless: true},
			"",
			func(e *Evidence) {
				e.Gateways, e.Network.Connect["172.18.0.1"] = []string{"172.18.0.1"}, ReachOpen
			},
			VerdictDiffers, "connected",
		},
		{"no gateway", Engine{Rootless: true}, "", func(*Evidence) {}, VerdictDiffers, "no gateway is known"},
		{
			"no address of the host's",
			Engine{Rootless: true, IsolatedGateway: true},
			"",
			func(e *Evidence) { e.HostAddresses = nil }, VerdictUnproven, "no address but loopback",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := proofOf(t, proofs, "space.web")
			p.Engine, p.Accepts = c.engine, []string{c.accepts}
			e := goodEvidence(t, p)
			c.wrong(&e)
			// What is said of silence has a test of its own.
			checks := slices.DeleteFunc(p.Judge(e), func(k Check) bool { return strings.Contains(k.Got, "nothing answered") })
			found := slices.Concat(verdicts(checks, VerdictDiffers), verdicts(checks, VerdictAccepted), verdicts(checks, VerdictUnproven))
			if of := verdicts(checks, c.verdict); len(found) != 1 || len(of) != 1 || !strings.Contains(of[0], c.says) {
				t.Errorf("%s: %q, of %q", c.verdict, of, found)
			}
		})
	}
}

// Where an engine lets internal networks reach this host, that one port stays silent
// proves nothing of the others.
func TestSilenceIsNoProofWhereTheHostIsReached(t *testing.T) {
	for accepts, want := range map[string]Verdict{schema.AcceptNetworkNotIsolated: VerdictAccepted, "": VerdictUnproven} {
		p := proofOf(t, provenWorld(t, provenFiles), "space.web")
		p.Engine, p.Accepts = Engine{Rootless: true, InternalReachesHost: true}, []string{accepts}
		e := goodEvidence(t, p)
		e.Gateways, e.Network.Connect["172.18.0.1"] = []string{"172.18.0.1"}, ReachSilent
		const says = ": nothing answered on the port that was tried; this engine keeps nobody from the others"
		if found := verdicts(p.Judge(e), want); !slices.Equal(found, []string{CheckGateway + says, CheckHost + says}) {
			t.Errorf("accepted %q: %s %q", accepts, want, found)
		}
	}
}

// A probe has what every space starts from, and nothing of the space's own.
func TestProbeIsHardened(t *testing.T) {
	p := proofOf(t, provenWorld(t, provenFiles), "space.front")
	c := p.Probe("sha256:1")
	if !c.ReadOnlyRoot || !c.NoNewPrivileges || c.Seccomp != "default" || !slices.Equal(c.CapDrop, []string{"ALL"}) || len(c.CapAdd) > 0 {
		t.Errorf("it isn't hardened: %+v", c)
	}
	if len(c.Mounts) > 0 || len(c.Publish) > 0 || len(c.Networks) > 0 || c.Memory == 0 || c.PIDs == 0 {
		t.Errorf("it is given something: %+v", c)
	}
	if c.Labels[LabelKind] != string(KindProbe) || c.Labels[LabelProject] != "acme" || c.NetworkMode != "container:"+p.ID || c.Name != "acme-front.probe" {
		t.Errorf("it is another's: %+v", c)
	}
}

func TestParseMountReadsEveryField(t *testing.T) {
	m, ok := ParseMount(`36 35 98:0 /a\040b /mnt/x\134y rw,noatime shared:1 master:2 - ext3 /dev/root rw,errors=continue`)
	if !ok || m.Root != "/a b" || m.Device != "98:0" || m.Target != `/mnt/x\y` || m.Type != "ext3" || !m.Shared || !m.Follows ||
		!slices.Equal(m.Options, []string{"rw", "noatime"}) || !slices.Equal(m.Super, []string{"rw", "errors=continue"}) {
		t.Errorf("%+v, %v", m, ok)
	}
	for _, bad := range []string{"", "1 2 3 4 5 6", "1 2 3 4 5 6 -", "1 2 3 4 5 6 - ext4"} {
		if _, ok := ParseMount(bad); ok {
			t.Errorf("%q is a mount", bad)
		}
	}
}

func FuzzParseMount(f *testing.F) {
	for line := range strings.Lines(hardenedMounts) {
		f.Add(line)
	}
	f.Add(`1 2 0:1 /\ /\04 rw - x y z`)
	f.Fuzz(func(t *testing.T, line string) {
		if m, ok := ParseMount(line); ok && (m.Type == "" || len(m.Options) == 0) {
			t.Errorf("%q: %+v", line, m)
		}
	})
}

func FuzzParseIDMap(f *testing.F) {
	f.Add("         0        999          1\n         1     100000      65536\n")
	f.Add("0 0 4294967295")
	f.Fuzz(func(t *testing.T, text string) {
		if ranges, ok := ParseIDMap(text); ok != (len(ranges) > 0) {
			t.Errorf("%q: %v %v", text, ranges, ok)
		}
	})
}

func TestCapabilitiesAreAtTheirBits(t *testing.T) {
	for name, bit := range map[string]int{"CHOWN": 0, "NET_BIND_SERVICE": 10, "SYS_ADMIN": 21, "SETFCAP": 31, "CHECKPOINT_RESTORE": 40} {
		if got := capabilitySet([]string{name}); got != 1<<bit {
			t.Errorf("%s is %#x, not bit %d", name, got, bit)
		}
		if got := capabilityNames(1 << bit); got != name {
			t.Errorf("bit %d is %s, not %s", bit, got, name)
		}
	}
}
