// Package places is where the program meets the machine: the engine that runs the
// spaces, and the host's files. It is the only package that imports the Docker client,
// and no type of that client leaves it.
//
// Engine is an engine reached through an endpoint that was named explicitly: neither
// DOCKER_HOST nor a context nor any other part of Docker's own configuration is read.
// Open makes it and refuses what isn't a rootless Docker engine. Observer, which an
// Engine hands out, reads it and has no method that writes: planning holds only that.
//
// What is read is closed-world. Every field of the engine's container, network and
// volume structs stands in a table (fields.go) as compared, as excess with its
// default, or as ignored with the reason, and a test fails when one is missing there.
package places
