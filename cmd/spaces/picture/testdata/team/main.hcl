project   = "team"
data_root = "/home/me/.local/state/spaces/team"

install {
  mode     = "containerized"
  endpoint = "unix:///run/user/1000/docker.sock"
}

image "core" {
  binary = "spaces"
}

image "session" {
  reference = "session@sha256:0000000000000000000000000000000000000000000000000000000000000000"
}

network "agents" {}

network "services" {}

network "uplink" {
  uplink = true
}

network "console" {
  internal = false
  reason   = "an internal network publishes nothing"
}

egress "agents" {
  network = network.agents

  allow "api.anthropic.com:443" {
    reason = "the agents' provider"
  }
  allow "registry.npmjs.org:443" {
    reason = "packages"
  }
  allow "*.pythonhosted.org:443" {
    reason = "packages come from many hosts"
  }
}

egress "services" {
  network = network.services

  allow "hooks.slack.com:443" {
    reason = "notifications"
  }
  allow "git.corp.example:22" {
    reason  = "the team's own server"
    private = ["10.0.5.0/24"]
  }
}

grant "workspace" {
  directory = "/home/me/src/product"
  target    = "/work"
  access    = "rw"
}

grant "guide" {
  directory = "/home/me/src/guide"
  target    = "/guide"
}

grant "claude" {
  secret = "/home/me/.config/spaces/secrets/team/claude.token"
  target = "/run/spaces/secrets/claude.token"
}

grant "cache" {
  volume = "cache"
  target = "/var/cache/agent"
  access = "rw"
}

grant "agent" {
  socket = "agent"
  target = "/run/spaces/agent"
}

grant "human" {
  socket = "human"
  target = "/run/spaces/human"
}

grant "launch" {
  socket = "launch"
  target = "/run/spaces/launch"
}

grant "store" {
  data   = "store"
  target = "/store"
  access = "rw"
}

space "core" {
  lifecycle = "core"
  image     = image.core
  networks  = [network.services]
  grants    = [grant.store]
}

space "session" {
  lifecycle = "on_request"
  image     = image.session
  networks  = [network.agents]
  grants    = [grant.workspace, grant.guide, grant.claude, grant.cache, grant.agent, grant.launch]

  loosen "tmp_exec" {
    value  = ["/tmp"]
    reason = "the package manager runs what it unpacks"
  }
}

role "builder" {
  space = space.session
  holds = ["launch"]
}

space "notifier" {
  image    = image.core
  networks = [network.services]
  grants   = [grant.agent]
}

space "console" {
  image    = image.core
  networks = [network.console, network.services]
  grants   = [grant.guide, grant.human]

  publish {
    host = "127.0.0.1"
    port = 7332
  }
  loosen "cap_add" {
    value  = ["NET_BIND_SERVICE"]
    reason = "it listens on port 80 inside"
  }
}
