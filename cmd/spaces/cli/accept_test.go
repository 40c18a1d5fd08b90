package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAcceptWhatIsMissing(t *testing.T) {
	w := newWorld(t, "main.hcl", small)
	w.want(2, "drift", "--accept")
	says(t, w.out.String(), "diff a/main.hcl b/main.hcl\n--- a/main.hcl\n+++ b/main.hcl\n@@ ", "\n-space \"web\" {\n", "\n-network \"inside\" {\n")
	if strings.Contains(w.out.String(), "-image") {
		t.Errorf("an image goes, which needn't:\n%s", w.out.String())
	}
	// An image that nothing runs is none to be pulled.
	says(t, w.err.String(), "The edit accepts 3 of 3 differences. Nothing was changed")
	b, err := os.ReadFile(filepath.Join(w.env.Dir, "main.hcl"))
	if err != nil || string(b) != small {
		t.Errorf("the file is %v\n%s", err, b)
	}
	if len(w.engine.steps) > 0 {
		t.Errorf("it did %v", w.engine.steps)
	}
	w.want(2, "drift", "--accept", "--json")
	var r acceptReport
	if err := json.Unmarshal(w.out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Edits) != 1 || r.Edits[0].File != "main.hcl" || len(r.Left) != 0 || w.err.Len() > 0 {
		t.Errorf("report: %+v\n%s", r, w.err.String())
	}
	w.want(3, "drift", "--accept", "--format=markdown")
	says(t, w.err.String(), "usage")
}

// A part of what differs is accepted beside what else does.
func TestAcceptAPart(t *testing.T) {
	w := newWorld(t, "main.hcl", small+"\nspace \"s\" {\n  image    = image.ref\n  networks = [network.inside]\n}\n")
	w.want(2, "drift", "--accept", "--target", "space.s")
	says(t, w.out.String(), "-space \"s\"")
	says(t, w.err.String(), "The edit accepts 1 of 3 differences.")
}

// What another block needs stays, and the edit says so.
func TestAcceptLeavesWhatIsNeeded(t *testing.T) {
	w := newWorld(t, "main.hcl", small+"\nspace \"r\" {\n  lifecycle = \"on_request\"\n  image     = image.ref\n  networks  = [network.inside]\n}\n")
	w.want(2, "drift", "--accept")
	says(t, w.out.String(), "-space \"web\"")
	says(t, w.err.String(), "  network.inside  main.hcl:12\n    the language refuses it: ", ". Repair it: `spaces apply`.\n", "The edit accepts 1 of 3 differences.")
}

// A hundred differences take few looks at the files.
func TestAcceptManyAtOnce(t *testing.T) {
	files := small
	for i := range 100 {
		files += fmt.Sprintf("\nspace \"s%d\" {\n  image    = image.ref\n  networks = [network.inside]\n}\n", i)
	}
	w := newWorld(t, "main.hcl", files)
	w.want(2, "drift", "--accept")
	says(t, w.err.String(), "The edit accepts 103 of 103 differences.")
}

func TestPatch(t *testing.T) {
	numbered := func(from, to int, change ...string) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			line := fmt.Sprintf("# %d\n", i)
			for j := 0; j < len(change); j += 2 {
				if fmt.Sprint(i) == change[j] {
					line = change[j+1]
				}
			}
			b.WriteString(line)
		}
		return b.String()
	}
	const secret = "variable \"s\" {\n  sensitive = true\n  default   = \"s3cret\"\n}\n"
	for name, c := range map[string]struct{ before, after, want string }{
		"plain": {numbered(1, 9), numbered(1, 9, "5", "# V\n"), "@@ -2,7 +2,7 @@\n # 2\n # 3\n # 4\n-# 5\n+# V\n # 6\n # 7\n # 8\n"},
		"above": {secret + "# 1\n# 2\n", secret + "# 1\n", "@@ -4,3 +4,2 @@\n }\n # 1\n-# 2\n"},
		"below": {"# 1\n" + secret, "# 2\n" + secret, "@@ -1,3 +1,3 @@\n-# 1\n+# 2\n variable \"s\" {\n   sensitive = true\n"},
		"between": {
			"# 1\n" + secret + "# 2\n", "" + secret + "# 2\n# 3\n",
			"@@ -1,3 +1,2 @@\n-# 1\n variable \"s\" {\n   sensitive = true\n@@ -5,2 +4,3 @@\n }\n # 2\n+# 3\n",
		},
		"itself": {secret, strings.Replace(secret, "default   =", "default =", 1), ""},
		"call":   {"locals {\n  a = sensitive(\"s3cret\")\n  b = 1\n}\n", "locals {\n  a = sensitive(\"s3cret\")\n  b = 2\n}\n", "@@ -3,2 +3,2 @@\n-  b = 1\n+  b = 2\n }\n"},
		"no end": {"# 1\n# 2", "# 1\n# 3", "@@ -1,2 +1,2 @@\n # 1\n-# 2\n\\ No newline at end of file\n+# 3\n\\ No newline at end of file\n"},
		"empty":  {"# 1\n", "", "@@ -1,1 +0,0 @@\n-# 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.want
			if want != "" {
				want = "diff a/f.hcl b/f.hcl\n--- a/f.hcl\n+++ b/f.hcl\n" + want
			}
			if got := patch("f.hcl", []byte(c.before), []byte(c.after)); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
