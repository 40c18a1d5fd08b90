package places

import (
	"cmp"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"spaces/reconcile"
	"spaces/schema"
)

// maxContent is the largest file whose content is compared.
const maxContent = 64 << 20

// surveyors is how many files are looked at at once: enough to hide a slow disk,
// few enough to leave the engine its share.
const surveyors = 8

// Survey looks at the host's files for a plan: the grants' sources, what assertions
// name, what is loaded, what must never be granted, and what images are made from.
// Whatever is or isn't there is a fact; the only errors are a cancelled context's. It
// changes nothing.
func Survey(ctx context.Context, d reconcile.Desired, h Host, engine reconcile.Engine, key reconcile.Digester) (reconcile.HostFacts, error) {
	facts := reconcile.HostFacts{
		Checked:   true,
		Digest:    key,
		Paths:     map[string]reconcile.PathFacts{},
		Protected: protected(h, d, engine),
		Inputs:    map[string]reconcile.ImageInput{},
		Caller:    h.UID,
	}
	// What to look at, and how: a file's content is read only for a grant that gives
	// the file, and never through a link where the grant forbids one.
	wanted := map[string]look{}
	want := func(path string, l look) {
		if path == "" {
			return
		}
		have := wanted[path]
		wanted[path] = look{content: have.content || l.content, strict: have.strict || l.strict}
	}
	for _, g := range d.Grants {
		want(reconcile.GrantPath(d, g), look{
			content: g.Kind == schema.GrantFile || g.Kind == schema.GrantSecret,
			strict:  g.Kind == schema.GrantSecret,
		})
	}
	for _, a := range d.Assertions {
		for _, m := range a.CannotMount {
			want(m.Path, look{})
		}
	}
	for _, path := range d.Loaded {
		want(path, look{})
	}
	for _, p := range facts.Protected {
		want(p.Path, look{})
	}
	paths := make([]string, 0, len(wanted))
	for path := range wanted {
		paths = append(paths, path)
	}
	slices.Sort(paths)

	found := make([]reconcile.PathFacts, len(paths))
	inputs := make([]reconcile.ImageInput, len(d.Images))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(surveyors)
	for i, image := range d.Images {
		if image.Binary != "" || image.Build != nil {
			group.Go(func() error {
				inputs[i] = SurveyImage(ctx, h, image)
				return context.Cause(ctx)
			})
		}
	}
	for i, path := range paths {
		group.Go(func() error {
			found[i] = lookAt(ctx, h, path, wanted[path], key)
			return context.Cause(ctx)
		})
	}
	if err := group.Wait(); err != nil {
		return reconcile.HostFacts{}, fmt.Errorf("cannot look at the host's files: %w", err)
	}
	for i, path := range paths {
		facts.Paths[path] = found[i]
	}
	for i, image := range d.Images {
		if image.Binary != "" || image.Build != nil {
			facts.Inputs[image.Address.String()] = inputs[i]
		}
	}
	for _, path := range d.Loaded {
		facts.Loaded = append(facts.Loaded, facts.Paths[path].Resolved)
	}
	return facts, nil
}

// look says how far to look at a path.
type look struct {
	content bool // digest a file's bytes
	strict  bool // but not those of a link's target
}

// lookAt tells what is at a path.
func lookAt(ctx context.Context, h Host, path string, l look, key reconcile.Digester) reconcile.PathFacts {
	absolute := h.expand(path)
	if !filepath.IsAbs(absolute) {
		return reconcile.PathFacts{Absolute: absolute, Resolved: absolute, Err: "it is not an absolute path"}
	}
	at := locate(absolute)
	facts := reconcile.PathFacts{
		Absolute: filepath.Clean(absolute),
		Resolved: at.resolved,
		Symlink:  at.last,
		Links:    at.links,
		Above:    at.above,
	}
	if at.err != nil {
		facts.Err = at.err.Error()
		return facts
	}
	if at.info == nil {
		return facts
	}
	facts.Exists = true
	describe(&facts, at.info)
	if !l.content || !at.info.Mode().IsRegular() || l.strict && at.last || key == nil {
		return facts
	}
	info, sum, err := contentOf(ctx, at.resolved)
	if err != nil {
		facts.Err = err.Error()
		return facts
	}
	// What was read is what is described, even if the path changed hands in between.
	describe(&facts, info)
	facts.Content = key.Digest("content", sum)
	return facts
}

// describe puts in what an open or located file says of itself.
func describe(facts *reconcile.PathFacts, info fs.FileInfo) {
	facts.Kind, facts.Mode, facts.Owner, facts.Inode = kindOf(info), modeOf(info), ownerOf(info), inodeOf(info)
}

// contentOf digests a regular file and describes the very file it read.
func contentOf(ctx context.Context, path string) (fs.FileInfo, string, error) {
	// The path is resolved: a link here is one put in since.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, "", bare(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, "", bare(err)
	}
	if !info.Mode().IsRegular() {
		return nil, "", errors.New("it changed while it was read")
	}
	tooLarge := fmt.Errorf("it is larger than %d MiB, so that its content is not compared", maxContent>>20)
	if info.Size() > maxContent {
		return nil, "", tooLarge
	}
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(&cancellable{ctx, f}, maxContent+1))
	if err != nil {
		return nil, "", bare(err)
	}
	if n > maxContent {
		return nil, "", tooLarge
	}
	return info, hex.EncodeToString(hash.Sum(nil)), nil
}

// cancellable stops reading when a context ends.
type cancellable struct {
	ctx context.Context
	r   io.Reader
}

func (c *cancellable) Read(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// SurveyImage tells what a made image is to be made from. A problem is part of it.
func SurveyImage(ctx context.Context, h Host, image reconcile.Image) reconcile.ImageInput {
	var input reconcile.ImageInput
	var err error
	if image.Build != nil {
		input, err = surveyBuild(ctx, h, *image.Build)
	} else {
		input, err = surveyBinary(ctx, h, image.Binary)
	}
	if err != nil {
		input = reconcile.ImageInput{Bases: input.Bases, Problem: err.Error()}
		var wrong *InputError
		if errors.As(err, &wrong) {
			input.Fix = wrong.Fix
		}
	}
	return input
}

func surveyBuild(ctx context.Context, h Host, build schema.Build) (reconcile.ImageInput, error) {
	build.Context = h.expand(build.Context)
	in, err := OpenBuild(build)
	if err != nil {
		return reconcile.ImageInput{}, err
	}
	defer in.Close()
	bases, err := in.Bases()
	if err != nil {
		return reconcile.ImageInput{}, err
	}
	digest, err := in.Digest(ctx)
	return reconcile.ImageInput{Digest: digest, Bases: bases}, err
}

func surveyBinary(ctx context.Context, h Host, binary string) (reconcile.ImageInput, error) {
	f, err := OpenBinary(h, binary)
	if err != nil {
		return reconcile.ImageInput{}, err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, &cancellable{ctx, f}); err != nil {
		return reconcile.ImageInput{}, &InputError{
			fmt.Sprintf("cannot read the binary %s: %v", f.Name(), bare(err)), "Make it readable.",
		}
	}
	return reconcile.ImageInput{Digest: BinaryDigest(binaryName(h, binary), hex.EncodeToString(hash.Sum(nil)))}, nil
}

// BinaryDigest is the ImageInput.Digest of a binary that is called name in its image and
// whose SHA-256 is sum, in hex.
func BinaryDigest(name, sum string) string { return digestOf("binary 1", name, sum) }

// OpenBinary opens the binary that an image is made from and judges it: "spaces", or
// this program's own path, is the program that runs, even if its file was replaced
// since. What is wrong comes as an *InputError.
func OpenBinary(h Host, binary string) (*os.File, error) {
	path := h.expand(binary)
	if binary == "spaces" || path == h.Executable {
		path = cmp.Or(h.ExecutableFile, h.Executable)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, &InputError{fmt.Sprintf("cannot open the binary %s: %v", binary, bare(err)), "Build it first, or correct the path."}
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, &InputError{fmt.Sprintf("cannot use the binary %s: it is not a regular file", binary), "Name a program's file."}
	}
	if err := checkStatic(f, binary); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkStatic refuses a program that can't run in an image with nothing else in it.
func checkStatic(r io.ReaderAt, name string) error {
	program, err := elf.NewFile(r)
	if err != nil || program.Type != elf.ET_EXEC && program.Type != elf.ET_DYN {
		return &InputError{fmt.Sprintf("cannot use the binary %s: it is not a Linux program (ELF)", name), "Name a static program's file."}
	}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			return &InputError{
				fmt.Sprintf("cannot use the binary %s: it is linked dynamically, and the image holds nothing but it", name),
				"Build it static (Go: CGO_ENABLED=0), or use a build block.",
			}
		}
	}
	return nil
}

// protected are the host's paths that no grant may give, sorted and each once.
func protected(h Host, d reconcile.Desired, engine reconcile.Engine) []reconcile.Protected {
	byPath := map[string]reconcile.Protected{}
	add := func(path, what string, whole bool, except ...schema.GrantKind) {
		if !filepath.IsAbs(path) {
			return
		}
		p := reconcile.Protected{Path: locate(path).resolved, What: what, Whole: whole, Except: except}
		// Of two reasons for one path the wider prohibition stands, and then the first.
		if have, ok := byPath[p.Path]; ok && have.Whole {
			if p.Whole {
				have.Except = slices.DeleteFunc(slices.Clone(have.Except), func(k schema.GrantKind) bool {
					return !slices.Contains(p.Except, k)
				})
			}
			p = have
		} else if ok && !p.Whole {
			p = have
		}
		byPath[p.Path] = p
	}
	add("/", "the root of the file system", false)
	// Links in it lead to the root directory of every process.
	add("/proc", "the host's processes", true)
	for _, home := range h.homes() {
		add(home, "the home directory", false)
	}
	add(h.ConfigDir(), "the configuration directory", true)
	add(h.SecretsDir(), "the secrets directory", true, schema.GrantSecret)
	if d.DataRoot != "" {
		add(d.DataRoot, "the data root", true, schema.GrantSocket, schema.GrantData)
	}
	// Another project's sockets and key are no more grantable than this one's.
	if others := filepath.Join(h.StateHome, "spaces"); filepath.IsAbs(others) && (d.DataRoot == "" || !contains(d.DataRoot, locate(others).resolved)) {
		add(others, "the folder of all projects' data roots", true)
	}
	for _, endpoint := range []string{d.Endpoint, engine.Endpoint} {
		if socket, ok := strings.CutPrefix(endpoint, "unix://"); ok {
			add(socket, "the engine's socket", true)
			// What else is there can be as good: the engine's other sockets, or the
			// user's session bus, which starts programs. Where the socket is a link,
			// so is the directory it leads to.
			add(filepath.Dir(socket), "the directory of the engine's socket", true)
			add(filepath.Dir(locate(socket).resolved), "the directory of the engine's socket", true)
		}
	}
	add(engine.StorageDir, "the engine's data directory", true)
	for _, socket := range knownSockets(h) {
		if info, err := os.Stat(socket); err == nil && info.Mode()&fs.ModeSocket != 0 {
			add(socket, "an engine's socket", true)
		}
	}
	out := slices.Collect(maps.Values(byPath))
	slices.SortFunc(out, func(a, b reconcile.Protected) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// knownSockets are where engines listen by default; each is as good as the host's user,
// or its root.
func knownSockets(h Host) []string {
	sockets := []string{
		"/run/docker.sock",
		"/var/run/docker.sock",
		"/run/containerd/containerd.sock",
		"/run/docker/containerd/containerd.sock",
		"/run/k3s/containerd/containerd.sock",
		"/run/buildkit/buildkitd.sock",
		"/run/crio/crio.sock",
		"/run/podman/podman.sock",
		"/var/lib/lxd/unix.socket",
		"/var/snap/lxd/common/lxd/unix.socket",
		"/var/lib/incus/unix.socket",
	}
	for _, home := range h.homes() {
		sockets = append(sockets,
			filepath.Join(home, ".docker", "run", "docker.sock"),
			filepath.Join(home, ".docker", "desktop", "docker.sock"))
	}
	runtimes := []string{fmt.Sprintf("/run/user/%d", h.UID)}
	if h.RuntimeDir != "" {
		runtimes = append(runtimes, h.RuntimeDir)
	}
	for _, dir := range runtimes {
		sockets = append(sockets,
			filepath.Join(dir, "docker.sock"),
			filepath.Join(dir, "podman", "podman.sock"),
			filepath.Join(dir, "buildkit", "buildkitd.sock"),
			filepath.Join(dir, "containerd", "containerd.sock"),
			filepath.Join(dir, "dockerd-rootless", "api.sock"),
			filepath.Join(dir, "docker", "containerd", "containerd.sock"))
	}
	return sockets
}
