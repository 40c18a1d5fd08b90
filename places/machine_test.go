package places

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"spaces/reconcile"
)

func TestSurveyMachine(t *testing.T) {
	root := t.TempDir()
	for path, content := range map[string]string{
		"run/systemd/system/x":                         "",
		"var/lib/systemd/linger/4242":                  "",
		"etc/subuid":                                   "other:1:5\n4242:100000:65536\n4242:1:x\n4242:200000:10\n",
		"etc/subgid":                                   "",
		"sys/fs/cgroup/cgroup.controllers":             "cpu memory pids\n",
		"proc/sys/net/ipv4/ip_unprivileged_port_start": "1024\n",
		"proc/sys/fs/inotify/max_user_watches":         "8192\n",
		"proc/key-users":                               "    0:    12 11/11 6/1000000 250/25000000\n 4242:    11 11/11 37/200 770/20000\n",
		"sys/fs/cgroup/user.slice/user-4242.slice/user@4242.service/cgroup.controllers": "memory pids\n",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := surveyMachine(t.Context(), Host{UID: 4242, RuntimeDir: root}, root)
	got.Git = ""
	want := reconcile.MachineFacts{
		UID: 4242, RuntimeDir: root, RuntimeDirOwner: os.Getuid(), Systemd: true, Lingers: true,
		SubUIDs: 65546, UnprivilegedPort: 1024, CgroupVersion: 2, Controllers: []string{"memory", "pids"},
		Keys: 37, MaxKeys: 200, InotifyWatches: 8192, InotifyInstances: -1,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// Where there is nothing to see, nothing is made up.
	got = surveyMachine(t.Context(), Host{UID: 4242}, filepath.Join(root, "none"))
	got.Git = ""
	want = reconcile.MachineFacts{
		UID: 4242, RuntimeDirOwner: -1, SubUIDs: -1, SubGIDs: -1, UnprivilegedPort: -1,
		Keys: -1, MaxKeys: -1, InotifyWatches: -1, InotifyInstances: -1,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestSurveyDataRoot(t *testing.T) {
	h := Host{UID: os.Getuid()}
	r := DataRoot(filepath.Join(locate(t.TempDir()).resolved, "root"))
	look := func() reconcile.MachineFacts {
		var m reconcile.MachineFacts
		SurveyDataRoot(&m, h, r)
		return m
	}
	if m := look(); m.DataRoot != string(r) || m.DataRootRefusal != nil || m.Lock != "" {
		t.Errorf("before there is one: %+v", m)
	}
	if _, err := os.Stat(string(r)); err == nil {
		t.Error("looking made it")
	}
	if err := r.Ensure(h); err != nil {
		t.Fatal(err)
	}
	lock, err := Acquire(t.Context(), r.ApplyLock(), Holder{PID: os.Getpid(), Verb: "apply", Folder: "/f", Since: time.Unix(0, 0)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if m := look(); m.DataRootRefusal != nil || !strings.Contains(m.Lock, "spaces apply (pid ") {
		t.Errorf("while it is held: %+v", m)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	// What a holder that died left in the file holds nothing.
	if err := os.WriteFile(r.ApplyLock(), []byte(`{"pid":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if m := look(); m.Lock != "" {
		t.Errorf("held by nobody: %q", m.Lock)
	}
	if err := os.Chmod(r.Part(PartStore), 0o755); err != nil {
		t.Fatal(err)
	}
	if m := look(); m.DataRootRefusal == nil || m.DataRootRefusal.Code != reconcile.CodeDataRoot {
		t.Errorf("open to others: %+v", m.DataRootRefusal)
	}
}
