#!/usr/bin/env bash
# cargo, with the toolchain that Firn is built with; installs it first where it is missing.
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")
"$scripts/bootstrap.sh"
# shellcheck source=scripts/toolchain.sh
. "$scripts/toolchain.sh"
choose_cargo
cd "$repository"
exec cargo "$@"
