#!/usr/bin/env bash
#
# Private Docker engines for the tests and the demo, from Debian's packages.
#
#   engines.sh install [PACKAGE...]            add the Debian packages that are missing
#   engines.sh start rootless|rootful DIR [DOCKERD-ARGS...]
#                                              start an engine, print its endpoint
#   engines.sh start podman DIR                the same of what isn't Docker's, rootless
#   engines.sh restart DIR                     stop and start it, same arguments and data
#   engines.sh stop DIR                        stop it and remove DIR
#   engines.sh as-user DIR COMMAND...          run COMMAND as the rootless engine's user
#   engines.sh exec-test DIR BINARY ARGS...    run a Go test binary as that user, for
#                                              go test -exec "$PWD/testscripts/engines.sh exec-test DIR" ./...
#
# All of it is for root. DIR is the engine's own and short, as it holds sockets:
#
#   endpoint         what to give to docker -H
#   log              what the engine printed
#   run/docker.sock  the socket; run is the rootless user's XDG_RUNTIME_DIR
#   init.pid         the engine's first process: nsenter -n -t "$(cat DIR/init.pid)"
#                    enters a rootful engine's network
#   cgroup           (rootful) the containers' parent cgroup, below each hierarchy
#   data, x          data root and exec root
#
# Each engine lives in a PID and a mount namespace of its own, so that killing its
# first process surely ends all of it, shims and containers too, and leaves no mount.
# The price: the pids that the engine tells (State.Pid) are those of that namespace.
#
# No engine reaches beyond this machine: a rootful one has only its own loopback and
# bridges, and a rootless one loses its route out before dockerd starts. What a
# rootless engine publishes is reachable from the machine, as always.

set -euo pipefail

# Only Debian's programs: there may be another docker in /usr/local/bin.
SYSTEM_PATH=/usr/sbin:/usr/bin:/sbin:/bin
DOCKER=/usr/bin/docker
DOCKERD=/usr/sbin/dockerd
PODMAN=/usr/bin/podman
TINI=/usr/bin/tini-static
ROOTLESS=/usr/share/docker.io/contrib/dockerd-rootless.sh
PACKAGES="docker.io rootlesskit slirp4netns uidmap fuse-overlayfs iptables iproute2
	passwd procps tini util-linux"

ENGINE_USER=spaces-engine
ENGINE_HOME=/var/lib/spaces-engine
LOCK=/run/lock/spaces-engine.lock
SUBIDS=65536

# containerd takes sockets of up to 104 bytes, and the longest below DIR is
# /x/containerd/containerd-debug.sock.
DIR_MAX=68
READY_SECONDS=60
# dockerd gives its containers 15 s to stop before it leaves.
RESTART_SECONDS=30
# Before DIR is removed nothing is worth waiting for much longer.
STOP_SECONDS=5

say() { printf 'engines.sh: %s\n' "$*" >&2; }

die() {
	say "$*"
	exit 1
}

usage() {
	sed -n '3,/^# All of it/{/^# All of it/d;s/^# \{0,1\}//;p}' "$0" >&2
	exit 2
}

need_root() {
	[ "$(id -u)" = 0 ] || die "$1 needs root"
}

# --- install ---------------------------------------------------------------

POLICY=/usr/sbin/policy-rc.d
POLICY_SAVED=$POLICY.spaces-saved
POLICY_MARK='# engines.sh installs'

# Prints the packages that are not installed, of ours and of those given.
missing_packages() {
	local package wanted="$PACKAGES $*"
	# With AppArmor on, dockerd cannot start a container without its parser.
	if grep -qs Y /sys/module/apparmor/parameters/enabled; then
		wanted="$wanted apparmor"
	fi
	for package in $wanted; do
		dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
			grep -q ' ok installed$' || printf '%s\n' "$package"
	done
}

# Keeps the packages' own scripts from starting services while apt runs: no system
# dockerd is to come from this. One that runs already is not touched.
forbid_services() {
	trap allow_services EXIT
	trap 'exit 130' INT TERM
	# One with the mark is ours, from an installation that was killed.
	if [ -e "$POLICY" ] && ! grep -qxF "$POLICY_MARK" "$POLICY"; then
		mv "$POLICY" "$POLICY_SAVED"
	fi
	printf '#!/bin/sh\n%s\nexit 101\n' "$POLICY_MARK" >"$POLICY"
	chmod 0755 "$POLICY"
}

allow_services() {
	rm -f "$POLICY"
	if [ -e "$POLICY_SAVED" ]; then
		mv "$POLICY_SAVED" "$POLICY"
	fi
}

install_packages() {
	local missing
	if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null ||
		! [ -e /etc/debian_version ]; then
		die "install knows only Debian: no dpkg, apt-get or /etc/debian_version here"
	fi
	mapfile -t missing < <(missing_packages "$@")
	[ "${#missing[@]}" -gt 0 ] || return 0
	need_root install
	say "installing ${missing[*]}"
	forbid_services
	export DEBIAN_FRONTEND=noninteractive
	# A list that could not be refreshed may still do.
	apt-get update -qq >&2 || say "apt-get update failed, trying with the lists at hand"
	apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2 ||
		die "apt-get could not install ${missing[*]}"
}

need_packages() {
	local file
	for file in "$DOCKER" "$DOCKERD" "$TINI" "$ROOTLESS" /usr/bin/rootlesskit \
		/usr/bin/slirp4netns /usr/bin/newuidmap /usr/sbin/iptables; do
		[ -x "$file" ] || die "$file is missing: run $0 install"
	done
	[ "$1" != podman ] || [ -x "$PODMAN" ] || die "$PODMAN is missing: run $0 install podman"
}

# --- the rootless engine's user --------------------------------------------

# Adds a range to /etc/subuid or /etc/subgid, above all that are there.
ensure_subids() {
	local file=$1 option=$2 first
	touch "$file"
	if ! grep -q "^$ENGINE_USER:" "$file"; then
		first=$(awk -F: '{ n = $2 + $3; if (n > max) max = n }
			END { print (max > 100000 ? max : 100000) }' "$file")
		usermod "$option" "$first-$((first + SUBIDS - 1))" "$ENGINE_USER"
	fi
}

make_user() {
	if ! getent passwd "$ENGINE_USER" >/dev/null; then
		# The group may have outlived a user of that name.
		getent group "$ENGINE_USER" >/dev/null || groupadd --system "$ENGINE_USER"
		useradd --system --gid "$ENGINE_USER" --no-create-home \
			--home-dir "$ENGINE_HOME" --shell /usr/sbin/nologin "$ENGINE_USER"
	fi
	ensure_subids /etc/subuid --add-subuids
	ensure_subids /etc/subgid --add-subgids
	install -d -m 0700 "$ENGINE_HOME"
	# Left by an earlier user of that name, it would be somebody else's.
	if [ "$(stat -c %U "$ENGINE_HOME")" != "$ENGINE_USER" ]; then
		chown -R "$ENGINE_USER:$ENGINE_USER" "$ENGINE_HOME"
	fi
}

# Two engines may be started at once on a machine that has no user yet.
ensure_user() {
	mkdir -p "${LOCK%/*}"
	(
		flock 9
		make_user
	) 9>"$LOCK" >&2
}

# Open to all, as udev has them wherever it runs.
ensure_devices() {
	if ! [ -e /dev/net/tun ]; then
		mkdir -p /dev/net
		mknod /dev/net/tun c 10 200
	fi
	if ! [ -e /dev/fuse ]; then
		mknod /dev/fuse c 10 229
	fi
	chmod 0666 /dev/net/tun /dev/fuse
}

# The command line that makes what follows it run as the user.
as_user=(setpriv "--reuid=$ENGINE_USER" "--regid=$ENGINE_USER" --init-groups)

# --- processes -------------------------------------------------------------

# Prints a process's start time, nothing if it is gone or a zombie. With it a pid
# that has been given to another process since is not mistaken for ours.
start_time() {
	local stat fields
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
	# The second field, the name in parentheses, may hold anything.
	read -ra fields <<<"${stat##*) }"
	case ${fields[0]} in
	Z | X) ;;
	*) printf '%s\n' "${fields[19]}" ;;
	esac
}

is_alive() {
	[ -n "$2" ] && [ "$(start_time "$1")" = "$2" ]
}

# DIR/procs holds "PID START" of the two that we started: the one outside of the
# engine's namespaces and the first one inside.
record() {
	printf '%s %s\n' "$2" "$(start_time "$2")" >>"$1/procs"
}

# Sends a signal to those that are alive of "PID START" lines.
signal_all() {
	local signal=$1 pid start
	while read -r pid start; do
		if is_alive "$pid" "$start"; then
			kill "-$signal" "$pid" 2>/dev/null || :
		fi
	done
}

engine_alive() {
	local pid start
	[ -e "$1/procs" ] || return 1
	while read -r pid start; do
		if is_alive "$pid" "$start"; then
			return 0
		fi
	done <"$1/procs"
	return 1
}

# Waits up to SECONDS for all that we started to be gone.
engine_ends() {
	local dir=$1 tries=$(($2 * 10))
	while engine_alive "$dir"; do
		[ "$tries" -gt 0 ] || return 1
		tries=$((tries - 1))
		sleep 0.1
	done
}

# Ends the engine: politely, for SECONDS, then by its first process's death, with
# which the kernel ends everything in its PID namespace.
end_engine() {
	local dir=$1 seconds=$2
	if [ -e "$dir/procs" ]; then
		# Only to the first process inside: with the outer one the inner is killed.
		tail -n 1 "$dir/procs" | signal_all TERM
	fi
	if ! engine_ends "$dir" "$seconds"; then
		signal_all KILL <"$dir/procs"
		engine_ends "$dir" 30 || die "the engine in $dir does not end"
	fi
	rm -f "$dir/procs" "$dir/init.pid"
	remove_cgroups "$dir"
}

# Removes a cgroup with all below it. It is busy until its last process is reaped.
remove_tree() {
	local tries=20
	until find "$1" -depth -type d -exec rmdir {} + 2>/dev/null; do
		[ "$tries" -gt 0 ] || return 1
		tries=$((tries - 1))
		sleep 0.1
	done
}

# A dockerd that was killed leaves its containers' cgroups, and the parent always.
remove_cgroups() {
	local dir=$1 name path
	[ -s "$dir/cgroup" ] || return 0
	name=$(cat "$dir/cgroup")
	# Below each hierarchy, or below the only one.
	for path in "/sys/fs/cgroup$name" /sys/fs/cgroup/*"$name"; do
		if [ -d "$path" ] && ! remove_tree "$path"; then
			say "$path is left behind"
		fi
	done
}

# --- engines ---------------------------------------------------------------

# Prints DIR made absolute, once it is known to be fit for an engine.
engine_dir() {
	local dir
	dir=$(realpath -m -- "$1")
	# It ends up in dockerd-rootless.sh, which quotes nothing.
	[[ $dir =~ ^(/[A-Za-z0-9._+-]+)+$ ]] || die "$dir: only letters, digits and ._+- please"
	[ "${#dir}" -le "$DIR_MAX" ] || die "$dir: too long for sockets, $DIR_MAX bytes at most"
	case $dir in
	/run/*) die "$dir: engines have a /run of their own, choose another place" ;;
	esac
	printf '%s\n' "$dir"
}

# The engine's kind; dies when DIR holds none.
engine_kind() {
	[ -f "$1/kind" ] || die "$1 holds no engine"
	cat "$1/kind"
}

lay_out() {
	local kind=$1 dir=$2 sub
	if [ -e "$dir" ] && [ -n "$(ls -A "$dir")" ]; then
		die "$dir is not empty and not an engine's"
	fi
	mkdir -p "$dir"
	printf '%s\n' "$kind" >"$dir/kind"
	printf '{}\n' >"$dir/daemon.json"
	install -d -m 0755 "$dir/bin"
	if [ "$kind" = rootful ]; then
		# With --userns-remap, its containers' users go through here; the socket stays hidden.
		chmod 0711 "$dir"
		install -d -m 0711 "$dir/data"
		install -d -m 0700 "$dir/run"
		printf '/spaces-engine%s\n' "${dir//[!A-Za-z0-9]/-}" >"$dir/cgroup"
		return
	fi
	chgrp "$ENGINE_USER" "$dir"
	chmod 0750 "$dir"
	for sub in run data scratch; do
		install -d -m 0700 -o "$ENGINE_USER" -g "$ENGINE_USER" "$dir/$sub"
	done
	"${as_user[@]}" test -x "$dir/run" ||
		die "$dir: $ENGINE_USER cannot get there, choose another place"
}

# Writes DIR/bin/dockerd: what runs dockerd with all its arguments inside of the
# engine's namespaces. dockerd-rootless.sh finds it by its name on PATH, and takes no
# arguments from us because it would split them at spaces.
write_dockerd() {
	local kind=$1 dir=$2
	shift 2
	local args=(
		--host "unix://$dir/run/docker.sock"
		--data-root "$dir/data"
		--exec-root "$dir/x"
		--pidfile "$dir/run/dockerd.pid"
		--config-file "$dir/daemon.json" # not the machine's, nor the user's
	)
	{
		printf '#!/bin/bash\nset -e\n'
		if [ "$kind" = rootless ]; then
			# To a rootless dockerd this means none. Left out, it may want systemd's user
			# session, which our user has not.
			args+=(--exec-opt native.cgroupdriver=cgroupfs)
			echo '# No way out of this machine.'
			echo 'ip route flush table main'
		else
			args+=(--exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "$(cat "$dir/cgroup")")
			echo 'ip link set lo up'
			echo "# containerd's shims and docker's plugins have fixed places in /run."
			echo 'mount -t tmpfs -o mode=0755 tmpfs /run'
		fi
		printf 'exec %s' "$DOCKERD"
		printf ' %q' "${args[@]}" "$@"
		printf '\n'
	} >"$dir/bin/dockerd"
	chmod 0755 "$dir/bin/dockerd"
}

# Replaces this process, a subshell, by a command in a session of its own: the caller's
# terminal and pipes are not its business. One held open would hang who reads it.
detach() {
	local fd
	for fd in /proc/"$BASHPID"/fd/*; do
		fd=${fd##*/}
		[ "$fd" -le 2 ] || exec {fd}>&-
	done
	cd /
	exec setsid "$@"
}

# Starts the engine of DIR in the background and records what was started.
launch() {
	local dir=$1 kind outer inner='' namespaces command environment
	kind=$(engine_kind "$dir")
	# What a killed one left: its pids mean nothing in the next one's namespace.
	rm -rf "$dir/x" "$dir/k" "$dir/tmp" "$dir/run/docker.sock" "$dir/run/dockerd.pid" "$dir/procs"
	environment=("PATH=$dir/bin:$SYSTEM_PATH" "TMPDIR=$dir/tmp" LANG=C.UTF-8)
	namespaces=(--mount --propagation slave --pid --fork --mount-proc --kill-child)
	if [ "$kind" = rootful ]; then
		install -d -m 0700 "$dir/x" "$dir/tmp"
		environment+=(HOME=/root)
		namespaces+=(--net)
		command=("$dir/bin/dockerd")
	else
		install -d -m 0700 -o "$ENGINE_USER" -g "$ENGINE_USER" "$dir/x" "$dir/k" "$dir/tmp"
		environment+=("USER=$ENGINE_USER" "LOGNAME=$ENGINE_USER" "HOME=$ENGINE_HOME"
			"XDG_RUNTIME_DIR=$dir/run" "DOCKERD_ROOTLESS_ROOTLESSKIT_FLAGS=--state-dir=$dir/k")
		command=("${as_user[@]}" "$ROOTLESS")
		if [ "$kind" = podman ]; then
			command=("${as_user[@]}" "$PODMAN" --root "$dir/data" --runroot "$dir/x"
				--cgroup-manager cgroupfs system service --time 0 "unix://$dir/run/docker.sock")
		fi
	fi
	# tini is the first process, to reap the shims' orphans.
	detach env -i "${environment[@]}" unshare "${namespaces[@]}" -- \
		"$TINI" -- "${command[@]}" </dev/null >>"$dir/log" 2>&1 &
	outer=$!
	disown "$outer" # or bash tells when it is killed
	record "$dir" "$outer"
	while [ -z "$inner" ] && [ -n "$(start_time "$outer")" ]; do
		sleep 0.05
		inner=$(pgrep -P "$outer") || :
	done
	if [ -n "$inner" ]; then
		record "$dir" "$inner"
		printf '%s\n' "$inner" >"$dir/init.pid"
	fi
}

answers() {
	env -u DOCKER_CONTEXT -u DOCKER_TLS_VERIFY timeout 5 \
		"$DOCKER" -H "unix://$1/run/docker.sock" version >/dev/null 2>&1
}

wait_ready() {
	local dir=$1 end=$((SECONDS + READY_SECONDS))
	while [ "$SECONDS" -lt "$end" ] && engine_alive "$dir"; do
		if answers "$dir"; then
			printf 'unix://%s/run/docker.sock\n' "$dir" | tee "$dir/endpoint"
			return
		fi
		sleep 0.2
	done
	if engine_alive "$dir"; then
		say "the engine in $dir does not answer; its log ends:"
	else
		say "the engine in $dir ended; its log ends:"
	fi
	tail -n 40 "$dir/log" >&2
	end_engine "$dir" 0
	exit 1
}

# Brings up DIR's engine; one that is interrupted before it answers is ended.
bring_up() {
	local dir=$1
	trap 'end_engine "$dir" 0; exit 130' INT TERM
	launch "$dir"
	wait_ready "$dir"
	trap - INT TERM
}

start() {
	[ $# -ge 2 ] || usage
	local kind=$1 dir asked
	case $kind in
	rootless | rootful) ;;
	podman) [ $# = 2 ] || usage ;;
	*) usage ;;
	esac
	need_root start
	umask 022 # the user is to get at what is made here
	dir=$(engine_dir "$2")
	shift 2
	asked=$(printf '%q ' "$kind" "$@")
	if engine_alive "$dir"; then
		[ "$(cat "$dir/args")" = "$asked" ] ||
			die "$dir holds a running engine with other arguments: stop it first"
		wait_ready "$dir"
		return
	fi
	need_packages "$kind"
	if [ "$kind" != rootful ]; then
		ensure_user
		ensure_devices
	fi
	# A dead engine's data are of no use to anyone: start means a new one.
	[ ! -f "$dir/kind" ] || stop "$dir"
	lay_out "$kind" "$dir"
	printf '%s\n' "$asked" >"$dir/args"
	[ "$kind" = podman ] || write_dockerd "$kind" "$dir" "$@"
	bring_up "$dir"
}

restart() {
	[ $# = 1 ] || usage
	local dir
	need_root restart
	umask 022
	dir=$(engine_dir "$1")
	engine_kind "$dir" >/dev/null
	end_engine "$dir" "$RESTART_SECONDS"
	bring_up "$dir"
}

stop() {
	[ $# = 1 ] || usage
	local dir path
	need_root stop
	dir=$(engine_dir "$1")
	[ -e "$dir" ] || return 0
	engine_kind "$dir" >/dev/null
	end_engine "$dir" "$STOP_SECONDS"
	# The engine's mounts went with its namespace; whatever else is there, deepest first.
	while read -r path; do
		umount -l "$path" || :
	done < <(awk -v dir="$dir/" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
	rm -rf --one-file-system -- "$dir"
}

# --- commands as the user --------------------------------------------------

# Makes this process's own place below DIR/scratch, named after it so that a later
# call can tell when it is of no more use: after exec nobody is left to clean up.
make_scratch() {
	local dir=$1 place pid
	for place in "$dir"/scratch/*; do
		pid=${place##*/}
		if [ -e "$place" ] && ! is_alive "${pid%-*}" "${pid#*-}"; then
			# Two calls may clean at once.
			rm -rf -- "$place" 2>/dev/null || :
		fi
	done
	scratch=$dir/scratch/$$-$(start_time $$)
	install -d -m 0700 -o "$ENGINE_USER" -g "$ENGINE_USER" "$scratch" "$scratch/tmp"
}

# Replaces this process by a command that runs as the user. It keeps the caller's
# environment but for what names root's own places.
become_user() {
	local dir=$1
	shift
	unset XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME MAIL \
		DOCKER_CONFIG GOCACHE GOENV GOMODCACHE GOPATH GOTMPDIR
	export HOME=$ENGINE_HOME USER=$ENGINE_USER LOGNAME=$ENGINE_USER SHELL=/bin/sh
	export XDG_RUNTIME_DIR=$dir/run TMPDIR=$scratch/tmp
	"${as_user[@]}" test -x . || cd "$ENGINE_HOME"
	exec "${as_user[@]}" "$@"
}

need_rootless() {
	local kind
	kind=$(engine_kind "$1")
	[ "$kind" = rootless ] || die "$1 holds no rootless engine"
}

run_as_user() {
	[ $# -ge 2 ] || usage
	local dir
	need_root as-user
	dir=$(engine_dir "$1")
	need_rootless "$dir"
	shift
	make_scratch "$dir"
	become_user "$dir" "$@"
}

# Prints the folder of the module that the current folder belongs to.
module_root() {
	local root=$PWD
	until [ -e "$root/go.mod" ]; do
		[ -n "$root" ] || die "$PWD: no go.mod here or above"
		root=${root%/*}
	done
	printf '%s\n' "$root"
}

# Sets arguments to a test's arguments, with those changed that have it write coverage
# into Go's folder: the user cannot walk there but may use what is open already.
open_coverage() {
	local argument path fd
	arguments=()
	for argument in "$@"; do
		case $argument in
		-test.coverprofile=?* | -test.gocoverdir=?*)
			path=${argument#*=}
			[ -d "$path" ] || : >"$path"
			chown "$ENGINE_USER:" "$path"
			exec {fd}<"$path"
			argument=${argument%%=*}=/proc/self/fd/$fd
			;;
		esac
		arguments+=("$argument")
	done
}

# Go's folder with the test binary and often the checkout too are closed to the user,
# so the test runs in a copy of its own. Whatever it writes there is lost.
exec_test() {
	[ $# -ge 2 ] || usage
	local dir binary root package arguments
	need_root exec-test
	dir=$(engine_dir "$1")
	need_rootless "$dir"
	binary=$(realpath -- "$2")
	shift 2
	root=$(module_root)
	package=${PWD#"$root"}
	make_scratch "$dir"
	mkdir "$scratch/src"
	# Status 1: a file changed or went meanwhile, somebody else's most likely.
	{ tar -C "$root" --exclude=./.git --exclude=".${dir#"$root"}" -cf - . ||
		[ $? = 1 ]; } |
		tar -C "$scratch/src" --no-same-owner -xf -
	cp -- "$binary" "$scratch/${binary##*/}"
	chmod 0755 "$scratch/${binary##*/}"
	chown -R "$ENGINE_USER:$ENGINE_USER" "$scratch"
	open_coverage "$@"
	cd "$scratch/src$package"
	become_user "$dir" "$scratch/${binary##*/}" "${arguments[@]}"
}

main() {
	[ $# -ge 1 ] || usage
	local verb=$1
	shift
	case $verb in
	install) install_packages "$@" ;;
	start) start "$@" ;;
	restart) restart "$@" ;;
	stop) stop "$@" ;;
	as-user) run_as_user "$@" ;;
	exec-test) exec_test "$@" ;;
	*) usage ;;
	esac
}

main "$@"
