#!/usr/bin/env bash
# Builds Firn and runs it, without symbols (scripts/stripped.sh). Arguments go to `firn`; without
# any, a node is started over ./data. The first build takes minutes, so cargo shows how far it is.
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")
export CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-2}
if [ $# = 0 ]; then
    set -- start --data-dir data
fi
verbosity=()
[ ! -e "${CARGO_TARGET_DIR:-$scripts/../target}/release/firn" ] || verbosity=(--quiet)
"$scripts/cargo.sh" build --locked --release "${verbosity[@]}" --package firn
firn=$("$scripts/stripped.sh")
exec "$firn" "$@"
