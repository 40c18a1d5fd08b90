package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spaces/reconcile"
)

// What an apply found protected stays so when its block is gone, until somebody says
// otherwise: in the files, or by name.
func TestProtectedIsRemembered(t *testing.T) {
	protected := strings.Replace(small, "networks = [network.inside]\n", "networks = [network.inside]\n  protect  = true\n", 1)
	gone, _, _ := strings.Cut(small, "space \"web\"")
	w := newWorld(t, "main.hcl", protected)
	w.want(0, "apply", "--auto-approve")
	memory := filepath.Join(w.dataRoot(), "state/protected.json")
	remembered := func() string {
		t.Helper()
		b, err := os.ReadFile(memory)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	says(t, remembered(), `"address": "space.web"`, `"file": "main.hcl"`)

	w.engine.actual.Containers = []reconcile.ObservedContainer{w.running("web")}
	w.engine.steps = nil
	w.write("main.hcl", gone)
	for _, verb := range []string{"plan", "apply --auto-approve", "destroy --auto-approve"} {
		w.want(3, strings.Fields(verb)...)
		says(t, w.out.String(), "- remove space.web")
		says(t, w.err.String(), "protected", "space.web is protected and this plan would destroy it", "It was protected at main.hcl:")
	}
	w.want(3, "destroy", "--project", "acme", "--endpoint", fakeEndpoint, "--auto-approve")
	says(t, w.err.String(), "space.web is protected", "--allow-destroy 'space.web'")
	if len(w.engine.steps) > 0 {
		t.Fatalf("steps ran: %v", w.engine.steps)
	}
	w.want(0, "plan", "--exclude", "space.web")
	w.want(0, "plan", "--allow-destroy", "space.web")
	says(t, w.out.String(), "! unprotected  space.web  it is protected, and goes all the same: --allow-destroy names it")

	// Another apply doesn't forget it, and one of files that say otherwise does.
	w.want(0, "apply", "--auto-approve", "--exclude", "space.web")
	says(t, remembered(), `"address": "space.web"`)
	w.write("main.hcl", small)
	w.want(0, "apply", "--auto-approve", "--exclude", "space.web")
	says(t, w.out.String(), "! unprotected")
	if strings.Contains(remembered(), "space.web") {
		t.Errorf("it is still remembered: %s", remembered())
	}
	w.write("main.hcl", gone)
	w.want(0, "plan")
}

// Protection is remembered, and forgotten, by an apply that has nothing else to do.
func TestProtectionAlone(t *testing.T) {
	project, _, _ := strings.Cut(small, "image \"ref\"")
	w := newWorld(t, "main.hcl", project+"grant \"data\" {\n  volume  = \"data\"\n  target  = \"/data\"\n  protect = true\n}\n")
	w.engine.actual.Volumes = []reconcile.ObservedVolume{{Volume: reconcile.Volume{
		Name: "acme-data", Driver: "local", Labels: w.running("").Labels,
	}}}
	w.engine.actual.Volumes[0].Labels[reconcile.LabelKind] = string(reconcile.KindVolume)
	w.engine.actual.Volumes[0].Labels[reconcile.LabelName] = "data"
	w.want(0, "apply", "--auto-approve")
	says(t, w.out.String(), "No changes")
	w.write("main.hcl", project)
	w.want(0, "apply", "--auto-approve")
	w.want(3, "destroy", "--auto-approve", "--volumes")
	says(t, w.err.String(), "volume.data is protected")
	w.want(0, "destroy", "--auto-approve")
	w.want(0, "destroy", "--auto-approve", "--volumes", "--exclude", "volume.data")
}

// A memory that can't be read holds everything back.
func TestProtectionUnread(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.want(0, "apply", "--auto-approve")
	if err := os.WriteFile(filepath.Join(w.dataRoot(), "state/protected.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.want(3, "plan")
	says(t, w.err.String(), "data-root-unfit", "it doesn't say what is protected")
}

// The flags are in the record, in every verb that has them, and one that names nothing
// is refused before anything is shown.
func TestPartFlags(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.want(0, "plan", "--offline", "--json", "--target", "network.inside", "--exclude", "image.ref")
	var r reconcile.Record
	if err := json.Unmarshal(w.out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if got := r.Asked().String(); got != "--exclude image.ref --target network.inside" {
		t.Errorf("the record's flags are %q", got)
	}
	if len(r.Items) != 1 || r.Items[0].ID != "create network.inside" || strings.Join(r.LeftOut, " ") != "image.ref space.web" {
		t.Errorf("items %v, left out %v", r.Items, r.LeftOut)
	}
	for _, command := range []string{
		"plan --target space.wib", "apply --auto-approve --exclude space.wib", "drift --target space.wib",
		"destroy --auto-approve --allow-destroy space.wib", "plan --replace space.wib", "plan --offline --exclude space.wib",
	} {
		w.want(3, strings.Fields(command)...)
		says(t, w.err.String(), "usage", "Did you mean space.web?")
		if w.out.Len() > 0 {
			t.Errorf("%s printed %s", command, w.out.String())
		}
	}
	if len(w.engine.steps) > 0 {
		t.Errorf("steps ran: %v", w.engine.steps)
	}
}
