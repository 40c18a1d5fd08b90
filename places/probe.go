package places

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/pkg/stdcopy"

	"spaces/places/probe"
	"spaces/reconcile"
)

const (
	// probeRepository names the image of the probe, which is this program. As apply does,
	// verify leaves images where they are.
	probeRepository = "spaces-probe"
	// removeTimeout bounds the removal of a probe, whatever the caller's context.
	removeTimeout = 30 * time.Second
	// maxAnswer bounds what is read of a probe.
	maxAnswer = 1 << 20
)

// removeLeft removes the probes of this project that a verification left behind because
// it was killed before they were started.
func (p *prober) removeLeft(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	left, err := p.docker.ContainerList(call, container.ListOptions{All: true, Filters: filters.NewArgs(
		filters.Arg("label", reconcile.LabelProject+"="+p.options.Project),
		filters.Arg("label", reconcile.LabelStore+"="+p.options.Store),
		filters.Arg("label", reconcile.LabelKind+"="+string(reconcile.KindProbe)),
	)})
	if err != nil {
		return fmt.Errorf("cannot list containers: %w", err)
	}
	for _, c := range left {
		if err := p.removeForce(ctx, c.ID, ownName(c.Names)); err != nil {
			return err
		}
	}
	return nil
}

// readyImage is the id of an image of this very program, which is loaded where it isn't
// there.
func (p *prober) readyImage(ctx context.Context) (string, error) {
	f, err := OpenBinary(p.options.Host, programName)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	b, err := newBinaryImage(f, programName)
	if err != nil {
		return "", fmt.Errorf("cannot read this program: %w", err)
	}
	input := BinaryDigest(b.name, b.sum)
	config, err := b.config(input)
	if err != nil {
		return "", err
	}
	// The same program gives the same image on every engine.
	sum := sha256.Sum256(config)
	id := "sha256:" + hex.EncodeToString(sum[:])
	if _, err := p.imageFacts(ctx, id); err == nil {
		return id, nil
	} else if !cerrdefs.IsNotFound(err) {
		return "", err
	}
	reference := probeRepository + ":" + b.sum[:shortIDLength]
	if err := p.load(ctx, "the probe's image", b, reference, input); err != nil {
		return "", fmt.Errorf("cannot load the probe's image: %w", err)
	}
	facts, err := p.imageFacts(ctx, reference)
	if err != nil {
		return "", err
	}
	if facts.Input != input {
		return "", fmt.Errorf("the engine has another image by the name of %s than it was given", reference)
	}
	return facts.ID, nil
}

// ask runs a probe in a space's network namespace and returns what it found. The probe
// ends when this process does: it reads its request from a connection that the engine
// closes then, and the engine removes it once it has ended.
func (p *prober) ask(ctx context.Context, proof reconcile.Proof, r reconcile.ProbeRequest) (answer reconcile.ProbeAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, probe.Timeout+p.timeouts.start)
	defer cancel()
	id, err := p.createProbe(ctx, proof)
	if id != "" {
		defer func() {
			// Also where the caller gave up.
			gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
			defer cancel()
			err = errors.Join(err, p.removeForce(gone, id, proof.Container.Name+reconcile.SuffixProbe))
		}()
	}
	if err != nil {
		return answer, err
	}
	attached, err := p.docker.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return answer, fmt.Errorf("cannot attach to the probe: %w", err)
	}
	defer attached.Close()
	stop := context.AfterFunc(ctx, attached.Close)
	defer stop()
	if err := p.start(ctx, id, "of the probe"); err != nil {
		return answer, err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return answer, err
	}
	if _, err := attached.Conn.Write(append(line, '\n')); err != nil {
		return answer, fmt.Errorf("cannot ask the probe: %w", err)
	}
	var out, said bytes.Buffer
	_, err = stdcopy.StdCopy(&out, &said, io.LimitReader(attached.Reader, maxAnswer))
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &answer)
	}
	switch {
	case ctx.Err() != nil:
		return answer, context.Cause(ctx)
	case err != nil:
		return answer, fmt.Errorf("the probe gave no answer: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return answer, nil
}

// createProbe makes a probe and sees that it is what was asked for before it is started.
func (p *prober) createProbe(ctx context.Context, proof reconcile.Proof) (id string, err error) {
	c := proof.Probe(p.image)
	config, host, err := createConfig(c)
	if err != nil {
		return "", err
	}
	config.OpenStdin, config.StdinOnce = true, true
	config.AttachStdin, config.AttachStdout, config.AttachStderr = true, true, true
	host.AutoRemove = true
	call, cancel := context.WithTimeout(ctx, p.timeouts.create)
	defer cancel()
	made, err := p.docker.ContainerCreate(call, config, host, nil, nil, c.Name)
	if err != nil {
		if call.Err() != nil {
			id = p.madeUnheard(ctx, c)
		}
		return id, fmt.Errorf("cannot create the probe %s: %w", c.Name, err)
	}
	if warnings := p.real(made.Warnings); len(warnings) > 0 {
		return made.ID, &NotAsAskedError{What: containerKey(c.Name), Warnings: warnings}
	}
	got, err := p.inspect(ctx, made.ID)
	if err != nil || got == nil {
		return made.ID, errors.Join(err, fmt.Errorf("the probe %s is gone", c.Name))
	}
	facts, err := p.imageFacts(ctx, p.image)
	if err != nil {
		return made.ID, err
	}
	differ, _ := reconcile.Differences(reconcile.WithImage(c, facts), p.engine.asMade(got.InspectResponse))
	if differ = slices.DeleteFunc(differ, isProbes); len(differ) > 0 {
		return made.ID, &NotAsAskedError{What: containerKey(c.Name), Fields: differ}
	}
	return made.ID, nil
}

// madeUnheard is the id of a probe that the engine made although nobody waited for its
// answer; empty for none. One that it has yet to make goes with the next verification.
func (p *prober) madeUnheard(ctx context.Context, c reconcile.Container) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	got, err := p.find(ctx, c.Name)
	if err != nil || got == nil {
		return ""
	}
	for name, value := range c.Labels {
		if got.Config.Labels[name] != value {
			return ""
		}
	}
	return got.ID
}

// isProbes is true for what a probe is asked beside what any space is: it is spoken to,
// and goes once it ends.
func isProbes(field string) bool {
	switch field {
	case "HostConfig.AutoRemove", "Config.OpenStdin", "Config.StdinOnce",
		"Config.AttachStdin", "Config.AttachStdout", "Config.AttachStderr":
		return true
	}
	return false
}
