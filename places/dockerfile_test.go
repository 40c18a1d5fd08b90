package places

import (
	"strings"
	"testing"
)

func TestDockerfileBases(t *testing.T) {
	for _, c := range []struct {
		name, file string
		args       map[string]string
		target     string
		want       string
		err        string
	}{
		{name: "one", file: "FROM alpine:3.20\nRUN true\n", want: "alpine:3.20"},
		{name: "case, tabs, windows", file: "\xef\xbb\xbf\tfrom\talpine@sha256:aa \r\n", want: "alpine@sha256:aa"},
		{name: "scratch", file: "FROM scratch\nCOPY a /\n", want: ""},
		{name: "stages", file: "FROM golang AS Build\nFROM build\nFROM scratch\nCOPY --from=build /a /a\n", want: "golang"},
		{name: "a stage by its base's name", file: "FROM golang AS golang\nFROM golang\n", want: "golang"},
		{name: "platform", file: "FROM --platform=linux/amd64 alpine\nFROM --platform=$BUILDPLATFORM debian", want: "alpine debian"},
		{name: "copied from an image", file: "FROM a\nCOPY --chown=1:1 --from=nginx:1 /x /y\nCOPY --from=0 /x /y\nRUN --mount=type=bind,from=tools,target=/t true\n", want: "a nginx:1 tools"},
		{name: "repeats", file: "FROM a AS x\nFROM a\nFROM b\nFROM a", want: "a b"},
		{name: "target", file: "FROM a AS one\nFROM b AS two\nFROM c\n", target: "TWO", want: "a b"},
		{name: "target by number", file: "FROM a\nFROM b\nFROM c\n", target: "0", want: "a"},
		{name: "no such target", file: "FROM a\n", target: "x", err: `no stage "x"`},
		{name: "argument", file: "ARG V=1 W\nFROM a:$V\nFROM b:${W}-x\n", args: map[string]string{"W": "2"}, want: "a:1 b:2-x"},
		{name: "given over default", file: "ARG V=1\nFROM a:${V}\n", args: map[string]string{"V": "3"}, want: "a:3"},
		{name: "default of a default", file: "ARG V=1\nARG I=\"a:${V}\"\nFROM $I\n", want: "a:1"},
		{name: "forms", file: "ARG E=\nARG S=s\nFROM a:${N:-d}${E:-e}${E-no}${S:+alt}${N+no}\n", want: "a:dealt"},
		{name: "nested form", file: "ARG V=v\nFROM ${N:-a:${V}}\n", want: "a:v"},
		{name: "undeclared", file: "FROM a:$V\n", args: map[string]string{"V": "1"}, err: "names no image"},
		{name: "declared in a stage", file: "FROM a\nARG V=1\nFROM b:$V\n", err: "line 3"},
		{name: "blank", file: "ARG I\nFROM $I\n", err: "names no image"},
		{name: "platform argument", file: "FROM a-${TARGETARCH}\n", err: "TARGETARCH"},
		{name: "platform argument given", file: "ARG TARGETARCH\nFROM a-${TARGETARCH}\n", args: map[string]string{"TARGETARCH": "arm64"}, want: "a-arm64"},
		{name: "a form that isn't followed", file: "ARG V=1.2\nFROM a:${V%.*}\n", err: "can't be followed"},
		{name: "required", file: "FROM ${V:?which}\n", err: "V has no value: which"},
		{name: "doubled", file: "ARG A=0123456789\n" + strings.Repeat("ARG A=$A$A\n", 40) + "FROM $A", err: "longer"},
		{name: "unclosed", file: "FROM ${V\n", err: "isn't closed"},
		{name: "escaped", file: "FROM a\\$b\n", want: "a$b"},
		{name: "comments", file: "# FROM no\n  # FROM no\nFROM a # no\n", err: "FROM needs"},
		{name: "comment lines", file: "# FROM no\n  # FROM no\n\nFROM a\n# FROM no\n", want: "a"},
		{name: "continued", file: "FROM \\\n# in between\n\n  a \\  \n AS x\nRUN echo \\\nFROM no\nFROM x\nFROM b\n", want: "a b"},
		{name: "escaped continuation", file: "FROM a\nRUN echo \\\\\nFROM b\n", want: "a b"},
		{name: "escape directive", file: "# syntax=docker/dockerfile:1\n# escape=`\nFROM `\na\nRUN dir c:\\\nFROM b\n", want: "a b"},
		{name: "late directive", file: "# hello\n# escape=`\nFROM \\\na\n", want: "a"},
		{name: "bad directive", file: "# escape=x\nFROM a\n", err: "escape directive"},
		{name: "heredoc", file: "FROM a\nRUN <<EOF\nFROM no\nEOF\nFROM b\n", want: "a b"},
		{name: "heredocs", file: "FROM a\nCOPY <<one <<-\"two x\" /d\nFROM no\none\nFROM no\n\ttwo x\nFROM b\n", want: "a b"},
		{name: "heredoc in a command", file: "FROM a\nRUN cat <<'E' && true\nFROM no\nE\nFROM b\n", want: "a b"},
		{name: "quoted is none", file: "FROM a\nRUN echo \"<<EOF\"\nFROM b\n", want: "a b"},
		{name: "here string is none", file: "FROM a\nRUN cat <<<x\nFROM b\n", want: "a b"},
		{name: "JSON is none", file: "FROM a\nRUN [\"cat\", \"<<EOF\"]\nFROM b\n", want: "a b"},
		{name: "shell's is none elsewhere", file: "FROM a\nLABEL x=<<EOF\nFROM b\n", want: "a b"},
		{name: "onbuild heredoc", file: "FROM a\nONBUILD RUN <<EOF\nFROM no\nEOF\nFROM b\n", want: "a b"},
		{name: "unterminated", file: "FROM a\nRUN <<EOF\nFROM no\n", err: "no end"},
		{name: "empty", file: "\n# nothing\n", err: "no FROM"},
		{name: "before", file: "RUN true\nFROM a\n", err: "before any FROM"},
		{name: "from nothing", file: "FROM\n", err: "FROM needs"},
		{name: "wrong as", file: "FROM a IS b\n", err: "FROM needs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := dockerfileBases([]byte(c.file), c.args, c.target)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %q, %v; want error %q", got, err, c.err)
				}
				return
			}
			if err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func FuzzDockerfile(f *testing.F) {
	f.Add("ARG V=1\nFROM a:${V:-${W}} AS x\nRUN <<EOF\nFROM\nEOF\nCOPY --from=x a b\n", "V", "2", "x")
	f.Add("# escape=`\nFROM `\na\nONBUILD RUN cat <<-'E' \"\n\tE\n", "", "", "0")
	f.Add("FROM ${A:+${B?x}}\\", "A", "", "")
	f.Fuzz(func(t *testing.T, file, name, value, target string) {
		bases, err := dockerfileBases([]byte(file), map[string]string{name: value}, target)
		if err != nil && bases != nil {
			t.Errorf("an error and %q", bases)
		}
		for i, base := range bases {
			for _, other := range bases[:i] {
				if base == other {
					t.Errorf("%q twice", base)
				}
			}
		}
		// Line ends don't matter, nor a newline more.
		again, err2 := dockerfileBases([]byte(file+"\n"), map[string]string{name: value}, target)
		if !strings.HasSuffix(file, "\r") && ((err == nil) != (err2 == nil) || strings.Join(bases, "\n") != strings.Join(again, "\n")) {
			t.Errorf("%q, %v; with a newline more %q, %v", bases, err, again, err2)
		}
	})
}
