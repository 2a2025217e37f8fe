#!/usr/bin/env bash
# Checks the manifests of deploy/kubernetes against the schemas of Kubernetes: no cluster, no
# containers, a few seconds. The package with the schemas goes to the target directory, from the
# machine's own sources of Python packages; where it cannot be had, the check is skipped, and said
# to be.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
package=kubernetes-validate==1.37.0
environment=${CARGO_TARGET_DIR:-$repository/target}/manifests/$package

install_python() {
    local run=()
    [ "$(id -u)" = 0 ] || run=(sudo -n)
    command -v apt-get >/dev/null || return 1
    "${run[@]}" apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y -qq --no-install-recommends python3 python3-venv
}

# Renamed at the end, so that what a broken installation left is not taken for a whole one.
install_package() {
    rm -rf "$environment.new"
    python3 -m venv "$environment.new" >&2 || { install_python && python3 -m venv "$environment.new"; } || return 1
    "$environment.new/bin/python" -m pip install --quiet --disable-pip-version-check "$package" || return 1
    mv "$environment.new" "$environment"
}

if [ ! -e "$environment" ] && ! install_package >&2; then
    echo "skipped: $package cannot be installed here"
    exit 0
fi
exec "$environment/bin/python" "$repository/deploy/kubernetes/check.py" "$@"
