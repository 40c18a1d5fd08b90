#!/usr/bin/env bash
#
# Every benchmark, on an engine of its own. Each compares with a bare client that does
# the same work in the same run: quote the ratios, not the times.

set -euo pipefail
cd "$(dirname "$0")/.."
engines=$PWD/testscripts/engines.sh
dir=$(mktemp -d /tmp/spb.XXXXXX)
rmdir "$dir"

[ "$(id -u)" = 0 ] || {
	echo "bench.sh: starts an engine of its own: run it as root" >&2
	exit 1
}
"$engines" install

# Each container takes a key of its user's, and Linux gives a user 200 (keyrings(7)).
keys=/proc/sys/kernel/keys
had="$(cat $keys/maxkeys) $(cat $keys/maxbytes)"
cleanup() {
	"$engines" stop "$dir"
	echo "${had% *}" >$keys/maxkeys
	echo "${had#* }" >$keys/maxbytes
}
trap cleanup EXIT
echo 2000 >$keys/maxkeys
echo 200000 >$keys/maxbytes
trap 'exit 130' INT TERM
SPACES_TEST_ROOTLESS=$("$engines" start rootless "$dir")
SPACES_TEST_STATIC=${SPACES_TEST_STATIC:-$PWD/bin/spaces}
export SPACES_TEST_ROOTLESS SPACES_TEST_STATIC

go test -run '^$' -bench . -benchmem ./schema ./reconcile ./gatekeeper/...
go test -tags engine -run '^$' -bench Rootless -benchtime "${BENCHTIME:-5x}" -timeout 60m \
	-exec "$engines exec-test $dir" ./places ./testscripts
