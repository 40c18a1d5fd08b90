package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spaces/places"
	"spaces/reconcile"
)

func (a *app) initVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Start a folder with a commented configuration that works",
		Long: `Writes main.hcl into DIR, made if need be, or into the folder it is started in. The
configuration has one space on an internal network, with a folder to work in, and
every part of it is explained. It names the rootless engine of the caller where one
answers.

It looks for that engine's socket and asks it what it is, changes nothing there, and
overwrites nothing: a folder with .hcl files in it is refused.

Exit status: 0 written; 1 the folder can't be written; 3 there is a configuration
already.`,
		Example: `  spaces init demo
  cd demo && spaces plan`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return a.init(c.Context(), dir)
		},
	}
}

const starterName = "main.hcl"

func (a *app) init(ctx context.Context, dir string) error {
	path := a.path(dir)
	present, err := filepath.Glob(filepath.Join(globEscape(path), "*.hcl"))
	if err != nil {
		return fmt.Errorf("cannot look into %s: %w", dir, err)
	}
	if len(present) > 0 {
		return usage("Name another folder, or edit what is there.",
			"%s holds a configuration already: %s.", dir, filepath.Base(present[0]))
	}
	host, err := a.env.Host()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o777); err != nil { // less the umask, as mkdir does
		return fmt.Errorf("cannot make %s: %w", dir, bare(err))
	}
	engine := a.findEngine(ctx, host)
	if err := writeNew(filepath.Join(path, starterName), []byte(starter(projectName(path), engine))); err != nil {
		return fmt.Errorf("cannot write the configuration: %w", err)
	}
	fmt.Fprintf(a.out, "Wrote %s.\n", filepath.Join(dir, starterName))
	if engine.Name == "" {
		fmt.Fprintf(a.out, "No rootless engine answers at %s: correct the endpoint in the file.\n", engine.Endpoint)
	} else {
		fmt.Fprintf(a.out, "It runs on %s, at %s.\n", engine.Name, engine.Endpoint)
	}
	if len(engine.Unenforced) > 0 {
		fmt.Fprintf(a.out, "That engine holds no space to these limits: %s. The file says what to do.\n", strings.Join(engine.Unenforced, ", "))
	}
	next := "spaces plan"
	if dir != "." {
		next = "spaces -C " + dir + " plan"
	}
	fmt.Fprintf(a.out, "Next: `%s` shows what it would do; nothing is done before you apply it.\n", next)
	return nil
}

// globEscape keeps a folder's own name from being taken for a pattern.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// writeNew writes a file that isn't there yet.
func writeNew(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // less the umask
	if errors.Is(err, fs.ErrExist) {
		return usage("Name another folder.", "%s is there already.", path)
	}
	if err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		f.Close()
		os.Remove(path)
		return err
	}
	return f.Close()
}

// findEngine is the caller's rootless engine, or only the endpoint where one would be.
// DOCKER_HOST isn't asked: an endpoint is always written in the files.
func (a *app) findEngine(ctx context.Context, host places.Host) reconcile.Engine {
	usual := usualEndpoints(host)
	for _, endpoint := range usual {
		if e, ok := a.tryEngine(ctx, endpoint); ok {
			return e
		}
	}
	return reconcile.Engine{Endpoint: usual[0]}
}

// usualEndpoints are where a rootless engine of the caller's listens.
func usualEndpoints(host places.Host) []string {
	var usual []string
	if host.RuntimeDir != "" {
		usual = append(usual, "unix://"+filepath.Join(host.RuntimeDir, "docker.sock"))
	}
	return append(usual, "unix://"+filepath.Join("/run/user", strconv.Itoa(host.UID), "docker.sock"))
}

// tryEngine asks what listens at an endpoint whether it is a rootless engine.
func (a *app) tryEngine(ctx context.Context, endpoint string) (reconcile.Engine, bool) {
	const patience = 3 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e, err := a.env.Open(ctx, endpoint, places.OpenOptions{})
	if err != nil {
		return reconcile.Engine{}, false
	}
	defer closeEngine(e)
	return e.Features(), true
}

// projectName makes a project's name of a folder's.
func projectName(path string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(filepath.Base(path)) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	const longest = 30 // leaves room for a space's name in the 63 bytes of a host's
	name := strings.Trim(b.String(), "-")
	name = strings.Trim(name[:min(len(name), longest)], "-")
	if name == "" {
		return "demo"
	}
	return name
}

// starter is the configuration that init writes.
func starter(project string, engine reconcile.Engine) string {
	found := "  # No rootless engine answered here when this was written: correct the path."
	if engine.Name != "" {
		found = "  # This rootless engine answered when this was written."
	}
	accept := ""
	if len(engine.Unenforced) > 0 {
		// Whoever lives with that says so, with a reason; a default must not.
		accept = fmt.Sprintf(starterAccept, strings.Join(engine.Unenforced, ", "))
	}
	return fmt.Sprintf(starterText, project, found, engine.Endpoint, accept)
}

const starterAccept = `
  # This engine holds no space to these limits: %s. Plans are refused until
  # it is given control of them (cgroup v2 with delegated controllers), or until you say
  # here why you can do without:
  # accept "limits-unenforced" {
  #   reason = "…"
  # }
`

const starterText = `# Everything that this project runs, and all that it may reach. Any *.hcl file of this
# folder is read; 'spaces plan' shows what they come to, 'spaces apply' does it.

# Containers and networks are called <project>-<name>. A renamed project is a new one.
project = %q

# Where spaces run: the socket of a rootless container engine of yours.
install {
  mode = "containerized"
%s
  endpoint = %q
%s}

# An image made on the engine itself around the spaces program: no registry is needed.
# To bring your own: image "node" { reference = "node@sha256:…" }
image "core" {
  binary = "spaces"
}

# A network without a way out. For a few hosts, give it an egress list instead; nothing
# reaches further than what stands in the files.
network "inside" {
  egress = "none"
}

# What a space sees of this host: one folder, made if it isn't there. Grants are read-only
# unless they say "rw".
grant "work" {
  directory = "${path.root}/work"
  target    = "/work"
  access    = "rw"
  create    = true
}

# A space is a container. Its root is read-only, it has no capabilities and can gain none,
# and its memory, processor and processes are limited, without a word here: what loosens
# that is written down, with a reason, and every plan shows it.
space "hello" {
  image    = image.core
  command  = ["spaces", "pause"] # waits until it is stopped; put your program here
  networks = [network.inside]
  grants   = [grant.work]
}
`
