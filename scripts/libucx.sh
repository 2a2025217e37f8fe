#!/usr/bin/env bash
# Succeeds if programs can be built against libucx here. Installs it if that can be done: Debian's
# package has ten megabytes and needs no configuration.
set -euo pipefail

is_there() {
    echo '#include <ucp/api/ucp.h>' | cc -fsyntax-only -x c - 2>/dev/null
}

install_package() {
    local run=()
    [ "$(id -u)" = 0 ] || run=(sudo -n)
    command -v apt-get >/dev/null || return 1
    "${run[@]}" apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y -qq --no-install-recommends libucx-dev
}

is_there || { install_package >&2 && is_there; }
