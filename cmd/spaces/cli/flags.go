package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"spaces/places"
	"spaces/reconcile"
	"spaces/schema"
)

// inputs are the flags that say what to read, beside the folder.
type inputs struct {
	vars     []string
	varFiles []string
	dataRoot string
}

func (in *inputs) register(f *pflag.FlagSet) {
	f.StringArrayVar(&in.vars, "var", nil, "set a variable, `NAME=VALUE`; may be repeated, as SPACES_VAR_name=VALUE sets one too")
	f.StringArrayVar(&in.varFiles, "var-file", nil, "read variables from `FILE`; may be repeated")
	f.StringVar(&in.dataRoot, "data-root", "", "keep the project's state in `DIR`, whatever the files and SPACES_DATA_ROOT say")
}

// part are the flags that choose a part of a plan, and that ask for more than the files.
type part struct {
	targets      []string
	excludes     []string
	replace      []string
	allowDestroy []string
}

// choosing registers the flags that only choose.
func (p *part) choosing(f *pflag.FlagSet) {
	f.StringArrayVar(&p.targets, "target", nil, "only `ADDRESS`, such as space.web, and what it needs; may be repeated")
	f.StringArrayVar(&p.excludes, "exclude", nil, "all but `ADDRESS` and what needs it; may be repeated")
}

func (p *part) destroying(f *pflag.FlagSet) {
	p.choosing(f)
	f.StringArrayVar(&p.allowDestroy, "allow-destroy", nil, "let `ADDRESS` go though it is protected; may be repeated")
}

func (p *part) register(f *pflag.FlagSet) {
	p.destroying(f)
	f.StringArrayVar(&p.replace, "replace", nil, "make `ADDRESS`, a space or a network, anew whatever differs; may be repeated")
}

// options are a plan's, with what was chosen.
func (p part) options(o reconcile.Options) reconcile.Options {
	o.Targets, o.Excludes, o.Replace, o.AllowDestroy = p.targets, p.excludes, p.replace, p.allowDestroy
	return o
}

func registerJSON(f *pflag.FlagSet, into *bool) {
	f.BoolVar(into, "json", false, "print the report as JSON")
}

// enter takes -C as git does: each from where the one before it leads.
func (a *app) enter() error {
	for _, dir := range a.dirs {
		a.dir = a.path(dir)
	}
	if len(a.dirs) == 0 {
		return nil
	}
	info, err := os.Stat(a.dir)
	switch {
	case err != nil:
		return usage("Name a folder that exists.", "Cannot go to %s: %v.", a.dir, bare(err))
	case !info.IsDir():
		return usage("Name a folder.", "Cannot go to %s: it is not a folder.", a.dir)
	}
	return nil
}

// path is a path as the command line means it.
func (a *app) path(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(a.dir, p)
}

// getenv is the last value of an environment variable.
func (a *app) getenv(name string) string {
	value := ""
	for _, entry := range a.env.Environ {
		if n, v, _ := strings.Cut(entry, "="); n == name {
			value = v
		}
	}
	return value
}

// options are a load's inputs, read from the command line and the environment.
func (a *app) options() (schema.Options, error) {
	o := schema.Options{Root: a.dir, Environ: a.env.Environ}
	for i, v := range a.inputs.vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			// What it says may be a secret that lacks its name.
			return o, usage("Write --var 'NAME=VALUE'.", "The %s sets no variable: it has no name and \"=\".", nth(i+1, len(a.inputs.vars)))
		}
		o.Vars = append(o.Vars, schema.Assignment{Name: name, Value: value})
	}
	for _, name := range a.inputs.varFiles {
		path := a.path(name)
		b, err := os.ReadFile(path)
		if err != nil {
			return o, usage("Name a file of variables.", "Cannot read the variables file %s: %v.", name, bare(err))
		}
		o.VarFiles = append(o.VarFiles, schema.VarFile{Name: name, Path: path, Bytes: b})
	}
	return o, nil
}

// nth names one of so many --var flags.
func nth(i, of int) string {
	if of == 1 {
		return "flag --var"
	}
	return fmt.Sprintf("flag --var number %d", i)
}

// dataRootChoice is who says where the data root is.
func (a *app) dataRootChoice(project string) places.DataRootChoice {
	choice := places.DataRootChoice{Project: project}
	switch env := a.getenv("SPACES_DATA_ROOT"); {
	case a.inputs.dataRoot != "":
		choice.Given, choice.GivenBy = a.inputs.dataRoot, "--data-root"
	case env != "":
		choice.Given, choice.GivenBy = env, "SPACES_DATA_ROOT"
	}
	return choice
}

// bare is what an error of package os says, without the path that its reader knows.
func bare(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// count is a number of things, in words.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
