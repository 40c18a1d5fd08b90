package places

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"spaces/schema"
)

// fileTime is the time of every file in a context and an image made here, so that the
// same files give the same bytes. Zip can't hold anything before 1980, in any zone.
var fileTime = time.Date(1980, 1, 2, 0, 0, 0, 0, time.UTC)

// maxDockerfile bounds what is read of a Dockerfile or an ignore file.
const maxDockerfile = 1 << 20

// ignoreFile is the name of the ignore file of a context.
const ignoreFile = ".dockerignore"

// InputError says why an image can't be made, in a clause, and what to do, in a
// sentence: the Problem and Fix of a reconcile.ImageInput.
type InputError struct{ Problem, Fix string }

// Error is the problem.
func (e *InputError) Error() string { return e.Problem }

// BuildInput is a build's context, as it will be sent to the engine: the files of the
// folder less what .dockerignore names, and nothing from outside of it. Close it.
type BuildInput struct {
	build schema.Build
	root  *os.Root
	// dockerfile is the Dockerfile's path in the context, and text its content.
	dockerfile string
	text       []byte
	// ignore are the patterns of the ignore file in force.
	ignore []string
}

// OpenBuild opens a build's context and reads its Dockerfile and ignore file. What is
// wrong with them comes as an *InputError.
func OpenBuild(build schema.Build) (*BuildInput, error) {
	root, err := os.OpenRoot(build.Context)
	if err != nil {
		return nil, &InputError{
			fmt.Sprintf("cannot open the build context %s: %v", build.Context, bare(err)),
			"Make the folder, or name another as context.",
		}
	}
	in := &BuildInput{build: build, root: root, dockerfile: path.Clean(build.Dockerfile)}
	if build.Dockerfile == "" {
		in.dockerfile = "Dockerfile"
	}
	if err := in.read(); err != nil {
		root.Close()
		return nil, err
	}
	return in, nil
}

func (in *BuildInput) read() error {
	text, err := in.readFile(in.dockerfile)
	if err != nil {
		return &InputError{
			fmt.Sprintf("cannot read the Dockerfile %s of %s: %v", in.dockerfile, in.build.Context, err),
			"Put it there, or name it as dockerfile by its path in the context; it can't lie outside.",
		}
	}
	in.text = text
	// A Dockerfile's own ignore file stands before the context's.
	name := in.dockerfile + ignoreFile
	ignore, err := in.readFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		name = ignoreFile
		ignore, err = in.readFile(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		in.ignore, err = ignorefile.ReadAll(strings.NewReader(string(ignore)))
	}
	if err == nil {
		_, err = in.matcher()
	}
	if err != nil {
		return &InputError{
			fmt.Sprintf("cannot use the ignore file %s of %s: %v", name, in.build.Context, err),
			"Correct it, or remove it.",
		}
	}
	return nil
}

// matcher is a new matcher of the patterns: one compiles them as it goes, and can't be
// used from two places at once.
func (in *BuildInput) matcher() (*patternmatcher.PatternMatcher, error) {
	return patternmatcher.New(in.ignore)
}

// readFile reads a small regular file of the context; links in the context are followed.
func (in *BuildInput) readFile(name string) ([]byte, error) {
	f, err := in.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, bare(err)
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxDockerfile+1))
	if err == nil && len(text) > maxDockerfile {
		err = fmt.Errorf("it is larger than %d bytes", maxDockerfile)
	}
	return text, err
}

// Close gives the context back.
func (in *BuildInput) Close() error { return in.root.Close() }

// Dockerfile is the Dockerfile's path in the context.
func (in *BuildInput) Dockerfile() string { return in.dockerfile }

// Bases are the images that the build starts or copies from.
func (in *BuildInput) Bases() ([]string, error) {
	bases, err := dockerfileBases(in.text, in.build.Args, in.build.Target)
	if err != nil {
		return nil, &InputError{
			fmt.Sprintf("cannot tell what the Dockerfile %s of %s starts from: %v", in.dockerfile, in.build.Context, err),
			"Correct it, or give the values that its FROM lines need in args.",
		}
	}
	return bases, nil
}

// Digest is the digest of all that the build takes from the files.
func (in *BuildInput) Digest(ctx context.Context) (string, error) {
	return in.WriteTar(ctx, io.Discard)
}

// WriteTar writes the context as the engine takes it and returns Digest, over the very
// bytes that were written: what was built is known even if a file changed meanwhile.
// Everything in it is sorted and without times and owners. An error of w comes back
// as it is, anything wrong with the context as an *InputError.
func (in *BuildInput) WriteTar(ctx context.Context, w io.Writer) (string, error) {
	matcher, err := in.matcher()
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	t := &tarrer{ctx: ctx, in: in, ignore: matcher, out: tar.NewWriter(io.MultiWriter(hash, w)), buffer: make([]byte, 128<<10)}
	for _, p := range matcher.Patterns() {
		if p.Exclusion() {
			t.back = append(t.back, literalPrefix(p.String()))
		}
	}
	if err := t.folder(in.root, ".", nil); err != nil {
		return "", err
	}
	if err := t.out.Close(); err != nil {
		return "", err
	}
	parts := []string{"build 1", hex.EncodeToString(hash.Sum(nil)), in.dockerfile, in.build.Target}
	for _, name := range slices.Sorted(maps.Keys(in.build.Args)) {
		parts = append(parts, name, in.build.Args[name])
	}
	return digestOf(parts...), nil
}

// digestOf is the digest of parts none of which runs into the next.
func digestOf(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		io.WriteString(hash, part)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// literalPrefix is a pattern's path up to the first element with a wildcard.
func literalPrefix(pattern string) string {
	var out []string
	for element := range strings.SplitSeq(pattern, "/") {
		if strings.ContainsAny(element, `*?[\`) {
			break
		}
		out = append(out, element)
	}
	if len(out) == 0 {
		return "."
	}
	return strings.Join(out, "/")
}

// tarrer writes one tar.
type tarrer struct {
	ctx    context.Context
	in     *BuildInput
	ignore *patternmatcher.PatternMatcher
	out    *tar.Writer
	// back are the folders or files where a pattern takes something back in.
	back []string
	// pending are ignored folders whose header waits for something in them to be kept.
	pending []*tar.Header
	buffer  []byte
}

func (t *tarrer) problem(name string, format string, args ...any) error {
	return &InputError{
		fmt.Sprintf("cannot send %s of the build context %s: %s", name, t.in.build.Context, fmt.Sprintf(format, args...)),
		"Remove it, or name it in " + ignoreFile + ".",
	}
}

// folder writes what is in a folder.
func (t *tarrer) folder(root *os.Root, name string, above *patternmatcher.MatchInfo) error {
	names, err := readNames(root)
	if err != nil {
		return t.problem(name, "%v", bare(err))
	}
	for _, base := range names {
		if err := context.Cause(t.ctx); err != nil {
			return err
		}
		if err := t.entry(root, base, path.Join(name, base), above); err != nil {
			return err
		}
	}
	return nil
}

func readNames(root *os.Root) ([]string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// entry writes one file, or a folder and what is in it.
func (t *tarrer) entry(root *os.Root, base, name string, above *patternmatcher.MatchInfo) error {
	ignored, match, err := t.matches(name, above)
	if err != nil {
		return t.problem(name, "its ignore patterns: %v", err)
	}
	// The builder needs these two; it leaves them out of the image itself where
	// the ignore file says so.
	if name == t.in.dockerfile || name == ignoreFile {
		ignored = false
	}
	info, err := root.Lstat(base)
	if err != nil {
		if ignored {
			return nil
		}
		return t.problem(name, "%v", bare(err))
	}
	if ignored && (!info.IsDir() || !t.reaches(name)) {
		return nil
	}
	header := &tar.Header{Name: name, ModTime: fileTime, Mode: int64(info.Mode().Perm())}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return t.subfolder(root, base, name, info, header, ignored, &match)
	case mode.IsRegular():
		return t.file(root, base, name, info, header)
	case mode&fs.ModeSymlink != 0:
		header.Typeflag, header.Mode = tar.TypeSymlink, 0o777
		if header.Linkname, err = root.Readlink(base); err != nil {
			return t.problem(name, "%v", bare(err))
		}
		return t.header(header)
	case mode&fs.ModeSocket != 0:
		// A socket can't be in an image, and is there because something runs.
		return nil
	default:
		return t.problem(name, "it is a pipe or a device")
	}
}

// matches reports whether a path is ignored. Each call needs its parent's result.
func (t *tarrer) matches(name string, above *patternmatcher.MatchInfo) (bool, patternmatcher.MatchInfo, error) {
	var parent patternmatcher.MatchInfo
	if above != nil {
		parent = *above
	}
	return t.ignore.MatchesUsingParentResults(name, parent)
}

// reaches reports whether something in an ignored folder may be kept after all.
func (t *tarrer) reaches(folder string) bool {
	if strings.HasPrefix(t.in.dockerfile, folder+"/") {
		return true
	}
	return slices.ContainsFunc(t.back, func(p string) bool {
		return p == "." || contains(folder, p) || contains(p, folder)
	})
}

func (t *tarrer) subfolder(root *os.Root, base, name string, info fs.FileInfo, header *tar.Header, ignored bool, match *patternmatcher.MatchInfo) error {
	sub, err := root.OpenRoot(base)
	if err != nil {
		return t.problem(name, "%v", bare(err))
	}
	defer sub.Close()
	if now, err := sub.Stat("."); err != nil || !os.SameFile(info, now) {
		return t.problem(name, "it changed while it was read")
	}
	header.Typeflag, header.Name = tar.TypeDir, name+"/"
	if !ignored {
		if err := t.header(header); err != nil {
			return err
		}
		return t.folder(sub, name, match)
	}
	t.pending = append(t.pending, header)
	waiting := len(t.pending)
	err = t.folder(sub, name, match)
	if len(t.pending) == waiting {
		t.pending = t.pending[:waiting-1]
	}
	return err
}

func (t *tarrer) file(root *os.Root, base, name string, info fs.FileInfo, header *tar.Header) error {
	f, err := root.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return t.problem(name, "%v", bare(err))
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil || !os.SameFile(info, now) {
		return t.problem(name, "it changed while it was read")
	}
	header.Typeflag, header.Size, header.Mode = tar.TypeReg, now.Size(), int64(now.Mode().Perm())
	if err := t.header(header); err != nil {
		return err
	}
	for left := header.Size; left > 0; {
		if err := context.Cause(t.ctx); err != nil {
			return err
		}
		n, err := f.Read(t.buffer[:min(left, int64(len(t.buffer)))])
		if n > 0 {
			if _, err := t.out.Write(t.buffer[:n]); err != nil {
				return err
			}
			left -= int64(n)
		}
		if left > 0 && err != nil {
			if errors.Is(err, io.EOF) {
				return t.problem(name, "it changed while it was read")
			}
			return t.problem(name, "%v", bare(err))
		}
	}
	return nil
}

// header writes a header, after those of the folders that waited for it.
func (t *tarrer) header(header *tar.Header) error {
	for _, folder := range t.pending {
		if err := t.out.WriteHeader(folder); err != nil {
			return err
		}
	}
	t.pending = t.pending[:0]
	return t.out.WriteHeader(header)
}
