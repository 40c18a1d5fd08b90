package testscripts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// guide is the document whose workflows and scripts are run here.
const guide = "../docs/ci.md"

// workflow is as much of a GitHub Actions workflow as is judged here.
type workflow struct {
	Name        string            `yaml:"name"`
	On          map[string]any    `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Concurrency map[string]any    `yaml:"concurrency"`
	Jobs        map[string]struct {
		RunsOn any               `yaml:"runs-on"`
		Env    map[string]string `yaml:"env"`
		Steps  []struct {
			Name string            `yaml:"name"`
			Uses string            `yaml:"uses"`
			With map[string]any    `yaml:"with"`
			If   string            `yaml:"if"`
			Env  map[string]string `yaml:"env"`
			Run  string            `yaml:"run"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// guideBlocks are a document's fenced blocks in one language.
func guideBlocks(language string) ([]string, error) {
	text, err := os.ReadFile(guide)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllSubmatch(text, -1) {
		found = append(found, string(m[1]))
	}
	return found, nil
}

func workflows() ([]workflow, error) {
	sources, err := guideBlocks("yaml")
	if err != nil {
		return nil, err
	}
	var all []workflow
	for _, source := range sources {
		var w workflow
		d := yaml.NewDecoder(bytes.NewReader([]byte(source)))
		d.KnownFields(true)
		if err := d.Decode(&w); err != nil {
			return nil, fmt.Errorf("%s: %w", guide, err)
		}
		all = append(all, w)
	}
	return all, nil
}

// layGuide writes the steps of the guide's workflows, JOB-STEP.sh, and its scripts by
// their names, for scripts to run.
func layGuide(dir string) error {
	all, err := workflows()
	if err != nil {
		return err
	}
	files := map[string]string{}
	for _, w := range all {
		for job, j := range w.Jobs {
			for _, step := range j.Steps {
				if step.Run != "" {
					files[job+"-"+strings.ToLower(step.Name)+".sh"] = step.Run
				}
			}
		}
	}
	shells, err := guideBlocks("sh")
	if err != nil {
		return err
	}
	for _, s := range shells {
		if m := regexp.MustCompile(`(?m)^# (\S+\.sh) `).FindStringSubmatch(s); m != nil {
			files[m[1]] = s
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// What a workflow takes of others is pinned, and it may do no more than it must.
func TestWorkflows(t *testing.T) {
	all, err := workflows()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 {
		t.Fatalf("%d workflows", len(all))
	}
	pinned := regexp.MustCompile(`^[\w.-]+/[\w.-]+@[0-9a-f]{40}$`)
	for _, w := range all {
		if _, bad := w.On["pull_request_target"]; bad || len(w.On) == 0 {
			t.Errorf("%s runs on %v", w.Name, w.On)
		}
		for what, may := range w.Permissions {
			if may == "write" && what != "pull-requests" {
				t.Errorf("%s may write %s", w.Name, what)
			}
		}
		for _, j := range w.Jobs {
			for _, s := range j.Steps {
				if s.Uses != "" && !pinned.MatchString(s.Uses) {
					t.Errorf("%s uses %s, which isn't pinned", w.Name, s.Uses)
				}
				// What a pull request brings is never part of a script's text.
				if strings.Contains(s.Run, "${{") {
					t.Errorf("%s: an expression in %q", w.Name, s.Name)
				}
			}
		}
	}
}
