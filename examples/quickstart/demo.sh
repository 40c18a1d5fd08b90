#!/usr/bin/env bash
#
# The main job, told step by step: plan, apply, an empty plan, a change made behind our
# back, drift that names it, apply, destroy. Ends with 0 only if each step had the right
# outcome.
#
# With SPACES_ENDPOINT it runs as you, on your engine, and touches nothing that isn't
# the project quickstart's. Without, as root on Debian, it installs what is missing and
# starts a private rootless engine that it stops again.

set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
engines=$top/testscripts/engines.sh
engine_dir=
work=

say() { printf '\n\033[1m── %s\033[0m\n' "$*"; }
[ -t 1 ] && [ -z "${NO_COLOR:-}" ] || say() { printf '\n── %s\n' "$*"; }

fail() {
	printf '\ndemo: %s\n' "$*" >&2
	exit 1
}

clean_up() {
	# On somebody's own engine nothing is left either, however this ends.
	if [ -z "$engine_dir" ] && [ -n "$work" ] && [ -x "$work/spaces" ] && [ -z "${finished:-}" ]; then
		spaces destroy --auto-approve --volumes >/dev/null 2>&1 || :
	fi
	if [ -n "$engine_dir" ]; then
		"$engines" stop "$engine_dir" || :
	fi
	if [ -n "$work" ]; then
		rm -rf "$work"
	fi
}

# Runs what follows as whoever the engine belongs to: its spaces can read only that
# user's files.
as_owner() {
	if [ -n "$engine_dir" ]; then
		"$engines" as-user "$engine_dir" "$@"
	else
		"$@"
	fi
}

# Runs spaces in the example's copy; shows what is typed.
spaces() {
	printf '$ spaces %s\n' "$*"
	as_owner env "SPACES_VAR_endpoint=$endpoint" "$work/spaces" -C "$work/quickstart" --data-root "$work/data" "$@"
}

# expect STATUS COMMAND...: the command must end with that status.
expect() {
	local want=$1 got=0
	shift
	"$@" || got=$?
	[ "$got" = "$want" ] || fail "'$*' ended with $got and should have ended with $want"
}

# expect_text TEXT STATUS COMMAND...: and must have printed the text.
expect_text() {
	local text=$1
	shift
	expect "$@" | tee "$work/out"
	grep -qF -- "$text" "$work/out" || fail "that should have said: $text"
}

# The engine's API, as plain as it gets.
engine() {
	local method=$1 path=$2
	shift 2
	curl -fsS --unix-socket "${endpoint#unix://}" -X "$method" "http://engine/v1.41$path" "$@"
}

find_engine() {
	if [ -n "${SPACES_ENDPOINT:-}" ]; then
		endpoint=$SPACES_ENDPOINT
		work=$(mktemp -d)
		return
	fi
	[ "$(id -u)" = 0 ] || fail "set SPACES_ENDPOINT=unix:///…/docker.sock to your rootless engine's socket, or run this as root to have one started"
	say "No SPACES_ENDPOINT: a private rootless engine"
	"$engines" install
	command -v curl >/dev/null || apt-get install -y -qq --no-install-recommends curl >&2
	engine_dir=$(mktemp -d /tmp/spd.XXXXXX)
	rmdir "$engine_dir"
	endpoint=$("$engines" start rootless "$engine_dir")
	work=$(mktemp -d)
	printf 'It answers on %s\n' "$endpoint"
}

# The example is copied, so that the checkout stays as it is and the engine's user can
# read it.
lay_out() {
	cp -r "$top/examples/quickstart" "$work/quickstart"
	cp "$top/bin/spaces" "$work/spaces"
	chmod -R u=rwX,go=rX "$work"
	if [ -n "$engine_dir" ]; then
		chown -R "$(as_owner id -u)" "$work"
	fi
}

# Some engines drop limits without a word. The plan refuses, until a person accepts it
# in the files, with a reason.
accept_limits() {
	local status=0
	spaces plan >"$work/out" 2>&1 || status=$?
	if [ "$status" = 3 ] && grep -q limits-unenforced "$work/out"; then
		cat "$work/out"
		say "This engine can't hold a space to its limits. We accept that, in the files"
		cat >"$work/quickstart/machine.hcl" <<-'HCL'
			accept "limits-unenforced" {
			  reason = "a demonstration, on an engine without control of cgroups"
			}
		HCL
		cat "$work/quickstart/machine.hcl"
	fi
}

main() {
	trap clean_up EXIT
	trap 'exit 130' INT TERM
	find_engine
	command -v curl >/dev/null || fail "curl is needed for the change behind our back"
	lay_out

	say "What the files ask for"
	cat "$work/quickstart/main.hcl"
	accept_limits

	say "The plan, before anything is made"
	expect 2 spaces plan --detailed-exitcode

	say "Apply it"
	expect 0 spaces apply --auto-approve

	say "Now reality is what the files say"
	expect_text "No changes" 0 spaces plan --detailed-exitcode
	expect 0 spaces status

	say "Somebody puts the worker on a network that reaches the world, with the plain API"
	printf '$ POST /networks/bridge/connect {"Container": "quickstart-worker"}\n'
	engine POST /networks/bridge/connect -H 'Content-Type: application/json' -d '{"Container": "quickstart-worker"}'

	say "Drift names it, and ends with 2, so that CI fails"
	expect_text 'network["bridge"]' 2 spaces drift

	say "Apply puts it right"
	expect_text 'disconnect space.worker' 0 spaces apply --auto-approve
	expect_text "No changes" 0 spaces plan --detailed-exitcode

	say "Destroy everything, the volume too"
	expect 0 spaces destroy --auto-approve --volumes
	local left
	left=$(engine GET '/containers/json?all=true&filters=%7B%22label%22%3A%5B%22spaces.project%3Dquickstart%22%5D%7D')
	[ "$left" = "[]" ] || fail "destroy left containers: $left"

	finished=1
	say "Done: each step had the right outcome"
}

main "$@"
