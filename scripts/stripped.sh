#!/usr/bin/env bash
# Splits the built binary into what users run and its symbols, and prints the path of the former:
#
#   target/release/firn  ─►  target/stripped/firn        no symbols
#                            target/stripped/firn.debug  the symbols; debuggers and backtraces find them
#
# Nothing is compiled for it, and target/release/firn stays as it was. Does nothing if both are up
# to date.
set -euo pipefail
# shellcheck source=scripts/toolchain.sh
. "$(dirname "${BASH_SOURCE[0]}")/toolchain.sh"

target=${CARGO_TARGET_DIR:-$repository/target}
built=$target/release/firn
stripped=$target/stripped/firn

if [ ! "$stripped" -nt "$built" ]; then
    mkdir -p "$target/stripped"
    # Renamed at the end, so that somebody who starts the binary meanwhile gets a whole one.
    work=$(mktemp -d "$target/stripped/work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    objcopy --only-keep-debug "$built" "$work/firn.debug"
    chmod -x "$work/firn.debug"
    objcopy --strip-all --add-gnu-debuglink="$work/firn.debug" "$built" "$work/firn"
    mv "$work/firn.debug" "$work/firn" "$target/stripped/"
fi
echo "$stripped"
