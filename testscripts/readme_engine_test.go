//go:build engine

package testscripts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRootlessReadme types what the README's transcripts show, and sees that the program
// answers so: line by line, where "…" stands for any lines, and apart from how columns
// are spaced.
func TestRootlessReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	must(t, err)
	p := newProject(t, openLab(t, rootless), "quickstart")
	must(t, os.CopyFS(p.dir, os.DirFS("../examples/quickstart")))
	p.vars = []string{"SPACES_VAR_endpoint=" + p.endpoint}
	p.write(t, "machine.hcl", "accept \"limits-unenforced\" {\n  reason = \"a test\"\n}\n")
	must(t, os.WriteFile(filepath.Join(p.dir, "main.hcl"), quickstartOf(t, p), 0o644))
	typed := 0
	for _, block := range blocks(string(readme), "console") {
		for _, shown := range strings.Split("\n"+block, "\n$ ")[1:] {
			command, want, _ := strings.Cut(shown, "\n")
			typed++
			checkShown(t, command, want, typeIn(t, p, command))
		}
	}
	if typed < 5 {
		t.Errorf("only %d commands found", typed)
	}
}

// quickstartOf is the example with an image of the payload: the test binary can't be one.
func quickstartOf(t *testing.T, p *project) []byte {
	t.Helper()
	source, err := os.ReadFile("../examples/quickstart/main.hcl")
	must(t, err)
	return []byte(strings.Replace(string(source), `binary = "spaces"`, `binary = "`+staticProgram(t)+`"`, 1))
}

// typeIn runs one command of the README.
func typeIn(t *testing.T, p *project, command string) string {
	t.Helper()
	words := strings.Fields(command)
	switch {
	case command == "spaces apply":
		words = append(words, "--auto-approve")
	case words[0] == "docker" && words[1] == "network" && words[2] == "connect":
		must(t, p.docker.NetworkConnect(t.Context(), words[3], words[4], nil))
		return ""
	case words[0] != "spaces":
		t.Fatalf("the README types %q, which this test doesn't know", command)
	}
	return strings.ReplaceAll(p.spaces(words[1:]...).out, p.dir, "/home/me/quickstart")
}

// checkShown compares what is shown with what was printed.
func checkShown(t *testing.T, command, want, got string) {
	t.Helper()
	rest := spaced(got)
	skip := true // before the first line that is shown, nothing need be
	for _, line := range spaced(want) {
		if line == "…" {
			skip = true
			continue
		}
		at := 0
		for at < len(rest) && rest[at] != line {
			at++
		}
		if at == len(rest) || at > 0 && !skip {
			t.Errorf("$ %s\ndoesn't print, where the README shows it:\n%s\nbut:\n%s", command, line, got)
			return
		}
		rest, skip = rest[at+1:], false
	}
}

// spaced are the lines that aren't empty, with single spaces.
func spaced(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			out = append(out, strings.Join(words, " "))
		}
	}
	return out
}

// blocks are the fenced blocks of a language.
func blocks(text, language string) []string {
	var out []string
	for _, part := range strings.Split(text, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		out = append(out, block)
	}
	return out
}
