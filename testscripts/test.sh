#!/usr/bin/env bash
#
# The whole test suite with the race detector: what needs no engine, then what needs a
# rootless one, as that engine's user, then what needs a rootful one, as root. Starts
# both engines and stops them again; an engine that doesn't come fails the run.

set -euo pipefail
cd "$(dirname "$0")/.."
engines=$PWD/testscripts/engines.sh
base=

say() { printf '\n== %s\n' "$*"; }

clean_up() {
	for kind in rootless rootful podman; do
		"$engines" stop "$base/$kind" || :
	done
	rm -rf "$base"
}

[ "$(id -u)" = 0 ] || {
	echo "test.sh: the suite starts engines of its own, rootless and rootful: run it as root" >&2
	exit 1
}

say "What the suite needs"
"$engines" install podman
missing=
for package in gcc libc6-dev curl git graphviz; do
	dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q ' ok installed$' || missing="$missing $package"
done
if [ -n "$missing" ]; then
	# The race detector needs cgo.
	# shellcheck disable=SC2086 # a list
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2
fi

base=$(mktemp -d /tmp/spt.XXXXXX)
chmod 0755 "$base"
trap clean_up EXIT
trap 'exit 130' INT TERM
SPACES_TEST_ROOTLESS=$("$engines" start rootless "$base/rootless")
SPACES_TEST_ROOTFUL=$("$engines" start rootful "$base/rootful")
SPACES_TEST_PODMAN=$("$engines" start podman "$base/podman")
SPACES_TEST_ENGINES=$engines
SPACES_TEST_ROOTLESS_DIR=$base/rootless
SPACES_TEST_ROOTFUL_DIR=$base/rootful
export SPACES_TEST_ROOTLESS SPACES_TEST_ROOTFUL SPACES_TEST_PODMAN SPACES_TEST_ENGINES SPACES_TEST_ROOTLESS_DIR SPACES_TEST_ROOTFUL_DIR
echo "rootless: $SPACES_TEST_ROOTLESS"
echo "rootful:  $SPACES_TEST_ROOTFUL"
echo "podman:   $SPACES_TEST_PODMAN"

say "Without an engine"
go vet ./...
go vet -tags engine ./...
go test -race ./...

# Tests that need an engine are in files with the tag "engine" and say in their names
# which one (layout_test.go checks that).
say "On the rootless engine, as its user"
go test -race -tags engine -timeout 30m -parallel 4 -run '^TestRootless' \
	-exec "$engines exec-test $base/rootless" ./places/... ./testscripts/...

say "On the rootful engine, as root"
go test -race -tags engine -timeout 30m -parallel 4 -run '^TestRootful' ./places/... ./testscripts/...

say "All of it passed"
