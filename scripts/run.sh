#!/usr/bin/env bash
# Builds Firn and runs it; arguments go to `firn`.
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")
export CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-2}
if [ $# = 0 ]; then
    set -- admin configuration
fi
exec "$scripts/cargo.sh" run --locked --release --quiet --package firn -- "$@"
