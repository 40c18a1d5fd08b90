# Two spaces that can talk to each other and to nothing else. One of them answers on a
# port of this machine.

project = "quickstart"

variable "endpoint" {
  type        = string
  description = "The rootless engine's socket: unix:///run/user/1000/docker.sock, say."
}

install {
  mode     = "containerized"
  endpoint = var.endpoint
}

# An image of nothing but this program.
image "core" {
  binary = "spaces"
}

# Internal, as every network is unless it says otherwise: no way out.
network "inside" {
  egress = "none"
}

# A network that publishes can't be internal, and says why.
network "front" {
  internal = false
  reason   = "an internal network publishes nothing"
}

# The one way a space gets a directory: the mount list is the access control.
grant "notes" {
  directory = "${path.root}/notes"
  target    = "/notes"
}

grant "cache" {
  volume = "cache"
  target = "/cache"
  access = "rw"
}

space "worker" {
  image    = image.core
  command  = ["spaces", "pause"]
  networks = [network.inside]
  grants   = [grant.notes, grant.cache]
  env      = { GREETING = "hello" }

  limits {
    pids   = 64
    memory = "128MiB"
    cpus   = 0.5
  }
}

space "web" {
  image      = image.core
  command    = ["spaces", "pause"]
  networks   = [network.front, network.inside]
  depends_on = [space.worker]

  publish {
    host = "127.0.0.1"
    port = 17332
  }
}
