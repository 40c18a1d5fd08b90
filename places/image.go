package places

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"spaces/reconcile"
	"spaces/schema"
)

// buildImage makes an image and gives it its name only once it is sure that it was
// made from what the plan said. An image that had the name stays, without it.
func (a *Applier) buildImage(ctx context.Context, s reconcile.BuildImage) error {
	subject := s.Image.Address.String()
	ctx, cancel := context.WithTimeout(ctx, a.timeouts.build)
	defer cancel()
	var err error
	if s.Image.Build != nil {
		err = a.buildContext(ctx, s, *s.Image.Build)
	} else {
		err = a.loadBinary(ctx, s)
	}
	var wrong *InputError
	if errors.As(err, &wrong) {
		return &reconcile.Refusal{
			Code: reconcile.CodeImageInput, Text: fmt.Sprintf("%s can't be made: %s.", subject, wrong.Problem),
			Fix: wrong.Fix, Origin: s.Image.Origin,
		}
	}
	if err != nil {
		return fmt.Errorf("cannot make %s: %w", subject, err)
	}
	return nil
}

// inputMoved is the error for files that changed between the plan and the build.
func inputMoved(s reconcile.BuildImage) error {
	return &MovedError{What: "what " + s.Image.Address.String() + " is made from", How: "its files were changed"}
}

// checkImage looks that an image carries its input, and no label that would pass for
// one of ours on the containers made from it.
func (a *Applier) checkImage(ctx context.Context, s reconcile.BuildImage, reference string) error {
	facts, err := a.imageFacts(ctx, reference)
	if err != nil {
		return err
	}
	if facts.Input != s.Input {
		return fmt.Errorf("the image that came of it carries %s=%q and not %q", reconcile.LabelImageInput, facts.Input, s.Input)
	}
	return checkLabels(s.Image.Reference, facts, s.Image.Origin)
}

func checkLabels(reference string, facts reconcile.ImageFacts, at schema.Origin) error {
	if r := facts.LabelRefusal(reference, at); r != nil {
		return r
	}
	return nil
}

// buildContext has the engine's classic builder make an image. What the context holds is
// digested as it is sent, so a file changed since the plan can't pass for what it was.
func (a *Applier) buildContext(ctx context.Context, s reconcile.BuildImage, b schema.Build) error {
	b.Context = a.options.Host.expand(b.Context)
	in, err := OpenBuild(b)
	if err != nil {
		return err
	}
	defer in.Close()
	bases, err := in.Bases()
	if err != nil {
		return err
	}
	if !slices.Equal(bases, s.From.Bases) {
		return inputMoved(s)
	}
	if err := a.joinBases(ctx, &s); err != nil {
		return err
	}
	sent, id, err := a.sendBuild(ctx, s, b, in)
	if err != nil {
		return err
	}
	if sent != s.From.Digest {
		return inputMoved(s)
	}
	if err := a.checkImage(ctx, s, id); err != nil {
		return err
	}
	if err := a.docker.ImageTag(ctx, id, s.Image.Reference); err != nil {
		return fmt.Errorf("cannot name the image %s: %w", s.Image.Reference, err)
	}
	return nil
}

// joinBases fills in what the plan could not know: the ids of base images that were
// pulled since. Those it did know must still be the same.
func (a *Applier) joinBases(ctx context.Context, s *reconcile.BuildImage) error {
	images := map[string]reconcile.ImageFacts{}
	for _, base := range s.From.Bases {
		facts, err := a.imageFacts(ctx, base)
		if err != nil {
			return err
		}
		images[base] = facts
	}
	switch joined := s.From.Joined(images); s.Input {
	case "":
		s.Input = joined
	case joined:
	default:
		return &MovedError{What: "what " + s.Image.Address.String() + " is made from", How: "an image that it starts from is another one now"}
	}
	return nil
}

// sendBuild returns the digest of what was sent and the id of the image, which has no
// name yet.
func (a *Applier) sendBuild(ctx context.Context, s reconcile.BuildImage, b schema.Build, in *BuildInput) (sent, id string, err error) {
	contextEnd, engineEnd := io.Pipe()
	written := make(chan error, 1)
	go func() {
		var err error
		sent, err = in.WriteTar(ctx, engineEnd)
		engineEnd.CloseWithError(err)
		written <- err
	}()
	id, err = a.runBuild(ctx, s, b, in.Dockerfile(), contextEnd)
	// Whatever came of it, the writer is to end before the context is closed.
	contextEnd.CloseWithError(errBuildEnded)
	wrote := <-written
	if wrote != nil && !errors.Is(wrote, errBuildEnded) {
		return "", "", wrote // the cause of what the engine made of it
	}
	if err == nil {
		err = wrote
	}
	return sent, id, err
}

var errBuildEnded = errors.New("the engine stopped reading the context")

func (a *Applier) runBuild(ctx context.Context, s reconcile.BuildImage, b schema.Build, dockerfile string, tarball io.Reader) (id string, err error) {
	args := make(map[string]*string, len(b.Args))
	for name, value := range b.Args {
		args[name] = &value
	}
	answer, err := a.docker.ImageBuild(ctx, tarball, build.ImageBuildOptions{
		Version:     build.BuilderV1,
		Dockerfile:  dockerfile,
		BuildArgs:   args,
		Target:      b.Target,
		Labels:      map[string]string{reconcile.LabelImageInput: s.Input},
		Remove:      true,
		ForceRemove: true, // a failed step's container would be nobody's
	})
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	id, err = a.follow(s.Image.Address.String(), answer.Body)
	if err == nil && id == "" {
		err = errors.New("the engine ended the build without naming an image")
	}
	return id, err
}

// message is what of the engine's progress messages is read here.
type message struct {
	Stream   string `json:"stream"`
	Status   string `json:"status"`
	Progress string `json:"progress"`
	ID       string `json:"id"`
	Error    *struct {
		Message string `json:"message"`
	} `json:"errorDetail"`
	Aux struct{ ID string } `json:"aux"`
}

// outputTail is how many of the last lines of a failed build its error shows.
const outputTail = 10

// follow reads what a build, a load or a pull prints to its end, and returns the id of
// the image if it names one. The engine answers 200 before it begins, so that its
// errors are in the stream.
func (a *Applier) follow(subject string, body io.Reader) (id string, err error) {
	var last []string
	messages := json.NewDecoder(body)
	for {
		var m message
		switch err := messages.Decode(&m); {
		case errors.Is(err, io.EOF):
			return id, nil
		case err != nil:
			return "", fmt.Errorf("the engine broke off%s: %w", after(last), err)
		}
		if m.Error != nil {
			return "", fmt.Errorf("%s%s", m.Error.Message, after(last))
		}
		if m.Aux.ID != "" {
			id = m.Aux.ID
		}
		lines := tail(m.Stream, outputTail)
		if m.Status != "" && m.Progress == "" {
			lines = append(lines, strings.TrimSpace(m.ID+" "+m.Status))
		}
		for _, line := range lines {
			a.print(subject, line)
		}
		last = append(last, lines...)
		last = last[max(0, len(last)-outputTail):]
	}
}

func after(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return " after:\n  " + strings.Join(lines, "\n  ")
}

func (a *Applier) print(subject, line string) {
	if a.options.Output != nil {
		a.options.Output(subject, line)
	}
}

// pullImage fetches an image from its registry, without credentials.
func (a *Applier) pullImage(ctx context.Context, reference string) error {
	call, cancel := context.WithTimeout(ctx, a.timeouts.pull)
	defer cancel()
	body, err := a.docker.ImagePull(call, reference, image.PullOptions{})
	if err != nil {
		return fmt.Errorf("cannot pull %s: %w", reference, err)
	}
	defer body.Close()
	if _, err := a.follow(reference, body); err != nil {
		return fmt.Errorf("cannot pull %s: %w", reference, err)
	}
	facts, err := a.imageFacts(ctx, reference)
	if err != nil {
		return err
	}
	return checkLabels(reference, facts, schema.Origin{})
}

// loadBinary makes an image that holds one program and nothing else: this very program
// at /spaces, or another one at / under its own name. PATH is "/", so a command names
// it either way. All in the image follows from the program's bytes, its name and the
// input's digest: the same program gives the same image id on every machine.
func (a *Applier) loadBinary(ctx context.Context, s reconcile.BuildImage) error {
	f, err := OpenBinary(a.options.Host, s.Image.Binary)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := newBinaryImage(f, binaryName(a.options.Host, s.Image.Binary))
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", s.Image.Binary, err)
	}
	if BinaryDigest(b.name, b.sum) != s.From.Digest {
		return inputMoved(s)
	}
	// Unlike a build's, the content is known to be right: the engine checks that the
	// layer it gets is the one that was announced.
	if err := a.load(ctx, s.Image.Address.String(), b, s.Image.Reference, s.Input); err != nil {
		return err
	}
	return a.checkImage(ctx, s, s.Image.Reference)
}

// load gives an image to the engine, which names it.
func (a *Applier) load(ctx context.Context, subject string, b *binaryImage, reference, input string) error {
	archive, engineEnd := io.Pipe()
	go func() { engineEnd.CloseWithError(b.write(engineEnd, reference, input)) }()
	defer archive.Close()
	answer, err := a.docker.ImageLoad(ctx, archive, client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = a.follow(subject, answer.Body)
	return err
}

// programName is how this program is called in an image, whatever its file is called.
const programName = "spaces"

func binaryName(h Host, binary string) string {
	if binary == programName || h.expand(binary) == h.Executable {
		return programName
	}
	return path.Base(filepath.ToSlash(binary))
}

// binaryImage is an image of one layer with one file.
type binaryImage struct {
	file   *os.File
	size   int64
	name   string
	arch   string
	sum    string // SHA-256 of the file, in hex
	diffID string // digest of the layer
}

func newBinaryImage(f *os.File, name string) (*binaryImage, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := &binaryImage{file: f, size: info.Size(), name: name, arch: architecture(f)}
	file, layer := sha256.New(), sha256.New()
	if err := b.writeLayer(layer, file); err != nil {
		return nil, err
	}
	b.sum = hex.EncodeToString(file.Sum(nil))
	b.diffID = "sha256:" + hex.EncodeToString(layer.Sum(nil))
	return b, nil
}

// architecture is the one that a program was built for, as images call it.
func architecture(r io.ReaderAt) string {
	program, err := elf.NewFile(r)
	if err != nil {
		return runtime.GOARCH
	}
	switch program.Machine {
	case elf.EM_X86_64:
		return "amd64"
	case elf.EM_AARCH64:
		return "arm64"
	case elf.EM_386:
		return "386"
	case elf.EM_ARM:
		return "arm"
	case elf.EM_RISCV:
		return "riscv64"
	case elf.EM_S390:
		return "s390x"
	case elf.EM_PPC64:
		if program.Data == elf.ELFDATA2LSB {
			return "ppc64le"
		}
		return "ppc64"
	}
	return runtime.GOARCH
}

// writeLayer writes the layer to w, and the file alone to content as well.
func (b *binaryImage) writeLayer(w, content io.Writer) error {
	t := tar.NewWriter(w)
	err := t.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: b.name, Size: b.size, Mode: 0o755,
		ModTime: fileTime, Format: tar.FormatPAX,
	})
	if err != nil {
		return err
	}
	n, err := io.Copy(io.MultiWriter(t, content), io.NewSectionReader(b.file, 0, b.size))
	if err == nil && n < b.size {
		err = io.ErrUnexpectedEOF // cut while it was read
	}
	return errors.Join(err, t.Close())
}

// write writes the archive that an engine loads (the format of docker save).
func (b *binaryImage) write(w io.Writer, reference, input string) error {
	config, err := b.config(input)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(config)
	configName := hex.EncodeToString(sum[:]) + ".json"
	manifest, err := json.Marshal([]map[string]any{{
		"Config": configName, "RepoTags": []string{reference}, "Layers": []string{layerName},
	}})
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	if err := b.writeWrapped(t); err != nil {
		return err
	}
	for name, content := range map[string][]byte{configName: config, "manifest.json": manifest} {
		if err := writeFile(t, name, content); err != nil {
			return err
		}
	}
	return t.Close()
}

const layerName = "layer.tar"

// writeWrapped writes the layer as a file of an archive.
func (b *binaryImage) writeWrapped(t *tar.Writer) error {
	var size counter
	if err := b.writeLayer(&size, io.Discard); err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: layerName, Size: int64(size), Mode: 0o644, ModTime: fileTime}
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	return b.writeLayer(t, io.Discard)
}

func writeFile(t *tar.Writer, name string, content []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644, ModTime: fileTime}
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	_, err := t.Write(content)
	return err
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// config is the image's configuration, whose digest is the image's id.
func (b *binaryImage) config(input string) ([]byte, error) {
	created := fileTime.Format("2006-01-02T15:04:05Z")
	return json.Marshal(map[string]any{
		"architecture": b.arch,
		"os":           "linux",
		"created":      created,
		"config": map[string]any{
			"Env":    []string{"PATH=/"},
			"Labels": map[string]string{reconcile.LabelImageInput: input},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{b.diffID}},
		"history": []map[string]any{{"created": created, "created_by": "spaces: " + b.name}},
	})
}
