package places

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"spaces/reconcile"
)

// revisionOf is a digest of what a container is: everything that can be set, and
// whether it runs. What it does (its health, addresses, counts) is no part of it, nor
// is the difference between running and restarting, which in a container that the
// engine restarts again and again depends on the moment.
func revisionOf(in container.InspectResponse) string {
	points := slices.Clone(in.Mounts)
	slices.SortFunc(points, func(a, b container.MountPoint) int { return strings.Compare(a.Destination, b.Destination) })
	state := ""
	if in.State != nil {
		state = steady(reconcile.State(in.State.Status))
	}
	parts := []any{in.ID, in.Name, in.Image, state, in.Config, in.HostConfig, points}
	if in.NetworkSettings != nil {
		for _, name := range slices.Sorted(maps.Keys(in.NetworkSettings.Networks)) {
			parts = append(parts, name)
			if s := in.NetworkSettings.Networks[name]; s != nil {
				parts = append(parts, s.NetworkID, s.IPAMConfig, s.Links, aliases(s.Aliases, in.ID), s.DriverOpts, s.GwPriority)
			}
		}
	}
	return digestParts(parts...)
}

func steady(s reconcile.State) string {
	if s == reconcile.StateRestarting {
		s = reconcile.StateRunning
	}
	return string(s)
}

// networkRevision is a digest of what a network is. Its members are no part of it.
func networkRevision(in network.Inspect) string {
	return digestParts(in.ID, in.Name, in.Driver, in.Internal, in.EnableIPv6, in.Attachable, in.IPAM, in.Options, in.Labels)
}

// volumeRevision is a digest of what a volume is. It has no id, and CreatedAt is no help
// to tell it from one made again: the engine reads that from the volume's directory,
// where it changes with each file that a space makes or removes.
func volumeRevision(in volume.Volume) string {
	return digestParts(in.Name, in.Driver, in.Options, in.Labels)
}

// digestParts is a digest of values as JSON, one to a line.
func digestParts(parts ...any) string {
	h := sha256.New()
	out := json.NewEncoder(h)
	for _, p := range parts {
		if err := out.Encode(p); err != nil {
			// Every type that is passed here came out of JSON.
			panic("places: cannot digest a value of the engine's: " + err.Error())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
