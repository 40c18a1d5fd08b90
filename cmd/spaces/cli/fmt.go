package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"spaces/schema"
)

type fmtFlags struct{ check, diff bool }

func (a *app) fmtVerb() *cobra.Command {
	var f fmtFlags
	c := &cobra.Command{
		Use:   "fmt [PATH...]",
		Short: "Write the files in the one canonical form",
		Long: `Rewrites the .hcl and .spacesvars files of the folder, or the files and folders named,
in canonical form: spacing and alignment, never meaning. It prints the names of the
files it changed. A file is replaced whole or not at all, and keeps its mode; one that
has errors of syntax is reported and left. "-" reads standard input and prints it
formatted.

With --check nothing is written, and the names are those of files that would change.
With --diff the changes are printed too.

Exit status: 0 all is formatted now; 1 a file can't be read or written; 2 with --check,
something isn't formatted; 3 a file has errors of syntax.`,
		Example: `  spaces fmt
  spaces fmt --check --diff
  spaces fmt main.hcl ./team`,
		RunE: func(_ *cobra.Command, args []string) error { return a.fmt(f, args) },
	}
	c.Flags().BoolVar(&f.check, "check", false, "write nothing, and exit with 2 when a file isn't formatted")
	c.Flags().BoolVar(&f.diff, "diff", false, "print what changes")
	return c
}

func (a *app) fmt(f fmtFlags, args []string) error {
	if len(args) == 1 && args[0] == "-" {
		return a.fmtInput()
	}
	if len(args) == 0 {
		args = []string{"."}
	}
	files, err := a.formattable(args)
	if err != nil {
		return err
	}
	bad := &problems{sources: map[string][]byte{}, outcome: "what has them was left as it is"}
	differs := false
	for _, name := range files {
		changed, diags, err := a.fmtFile(name, f, bad.sources)
		if err != nil {
			return err
		}
		bad.diags = append(bad.diags, diags...)
		differs = differs || changed
	}
	switch {
	case bad.diags.HasErrors():
		return bad
	case differs && f.check:
		return errDiffers
	}
	return nil
}

// formattable are the files that arguments name, with those of each folder.
func (a *app) formattable(args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		info, err := os.Stat(a.path(arg))
		if err != nil {
			return nil, usage("Name files and folders that exist.", "Cannot format %s: %v.", arg, bare(err))
		}
		if !info.IsDir() {
			files = append(files, arg)
			continue
		}
		entries, err := os.ReadDir(a.path(arg))
		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", arg, bare(err))
		}
		for _, e := range entries {
			name := e.Name()
			if ext := filepath.Ext(name); ext != ".hcl" && ext != ".spacesvars" || strings.HasPrefix(name, ".") || e.IsDir() {
				continue
			}
			files = append(files, filepath.Join(arg, name))
		}
	}
	return files, nil
}

// fmtFile formats one file, and tells whether that changes it.
func (a *app) fmtFile(name string, f fmtFlags, sources map[string][]byte) (bool, hcl.Diagnostics, error) {
	path := a.path(name)
	src, err := os.ReadFile(path)
	if err != nil {
		return false, nil, fmt.Errorf("cannot read %s: %w", name, bare(err))
	}
	formatted, diags := canonical(src, name)
	if diags.HasErrors() {
		sources[name] = schema.Source(src, name)
		return false, diags, nil
	}
	if bytes.Equal(src, formatted) {
		return false, nil, nil
	}
	fmt.Fprintln(a.out, printable(name))
	if f.diff {
		a.out.WriteString(printable(string(diff.Diff(name, src, name+" (formatted)", formatted))))
	}
	if f.check {
		return true, nil, nil
	}
	mode, err := modeOf(path)
	if err == nil {
		err = replaceFile(path, mode, func(w *bufio.Writer) error {
			_, err := w.Write(formatted)
			return err
		})
	}
	if err != nil {
		return true, nil, fmt.Errorf("cannot write %s: %w", name, bare(err))
	}
	return true, nil, nil
}

func modeOf(path string) (fs.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("it is not a regular file")
	}
	return info.Mode().Perm(), nil
}

// canonical formats a source that parses.
func canonical(src []byte, name string) ([]byte, hcl.Diagnostics) {
	if diags := schema.CheckSyntax(src, name); diags.HasErrors() {
		return nil, diags
	}
	return schema.Format(src), nil
}

func (a *app) fmtInput() error {
	src, err := io.ReadAll(a.env.Stdin)
	if err != nil {
		return fmt.Errorf("cannot read standard input: %w", err)
	}
	const name = "<stdin>"
	formatted, diags := canonical(src, name)
	if diags.HasErrors() {
		return &problems{diags: diags, sources: map[string][]byte{name: src}}
	}
	_, err = a.out.Write(formatted)
	return err
}
