#!/usr/bin/env bash
# Runs every fuzz target for the time given, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-60s}
go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... | while read -r package; do
	go test -list '^Fuzz' "$package" | grep '^Fuzz' | while read -r target; do
		echo "== $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package" </dev/null
	done
done
