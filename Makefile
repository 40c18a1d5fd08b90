# What a fresh machine needs is installed by these targets themselves. `make demo` and
# `make test` are all a newcomer has to type.

GOFUMPT     = mvdan.cc/gofumpt@v0.12.0
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.1.4

# A static binary: `image { binary = "spaces" }` makes an image of nothing else.
BUILD = CGO_ENABLED=0 go build -trimpath -ldflags '-s -w'

.PHONY: build demo test check lint vuln fuzz bench clean

build: bin/spaces

.PHONY: bin/spaces
bin/spaces:
	$(BUILD) -o bin/spaces ./cmd/spaces

# The main job, told step by step, on an engine of its own or on SPACES_ENDPOINT.
demo: build
	examples/quickstart/demo.sh

# Everything, with the race detector, on a rootless and a rootful engine.
test: build
	testscripts/test.sh

check: lint test

lint:
	@unformatted=$$(go run $(GOFUMPT) -l .); test -z "$$unformatted" || { echo "not gofumpt'd:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	go vet -tags engine ./...
	go run $(STATICCHECK) -tags engine ./...

# Apart from lint, as it asks a database on the network.
vuln:
	go run $(GOVULNCHECK) ./...

# Each fuzz target for FUZZTIME.
FUZZTIME = 60s
fuzz:
	testscripts/fuzz.sh $(FUZZTIME)

bench: build
	testscripts/bench.sh

clean:
	rm -rf bin
