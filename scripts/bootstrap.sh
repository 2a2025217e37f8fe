#!/usr/bin/env bash
# Installs what building Firn needs and this machine lacks: a C linker, certificates for the crate
# registry, and a Rust toolchain. Does nothing, and needs no rights, where all of it is there.
#
# Everything comes from Debian's packages (as root, or through sudo), except that rustup, where it
# is installed, is asked for the pinned toolchain first.
set -euo pipefail
# shellcheck source=scripts/toolchain.sh
. "$(dirname "${BASH_SOURCE[0]}")/toolchain.sh"

lists_updated=

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "bootstrap: '$*' needs root, and there is no sudo; run it as root, then try again" >&2
        return 1
    fi
}

require_apt() {
    command -v apt-get >/dev/null && return 0
    echo "bootstrap: no apt-get here; install $1 by hand, then try again" >&2
    exit 1
}

update_lists() {
    [ -n "$lists_updated" ] && return 0
    as_root apt-get update -q
    lists_updated=yes
}

install_packages() {
    require_apt "$*"
    update_lists
    echo "bootstrap: installing $*" >&2
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}

# candidate PACKAGE: the upstream version that apt would install; nothing if it knows none.
candidate() {
    apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }' | sed 's/^[0-9]*://; s/[+~-].*//'
}

ensure_linker_and_certificates() {
    command -v cc >/dev/null || install_packages build-essential
    [ -e /etc/ssl/certs/ca-certificates.crt ] || ! command -v apt-get >/dev/null ||
        install_packages ca-certificates
}

# Asks rustup, if there is one, for the pinned toolchain.
ask_rustup() {
    command -v rustup >/dev/null || return 1
    echo "bootstrap: asking rustup for Rust $pinned_version" >&2
    rustup toolchain install "$pinned_version" --profile minimal --component rustfmt --component clippy &&
        choose_cargo
}

# Debian keeps a recent compiler for its browsers under names that end in -web.
install_debian_rust() {
    local packages
    for packages in "cargo-web rustc-web rustfmt-web rust-web-clippy" "cargo rustc rustfmt rust-clippy"; do
        local version
        version=$(candidate "${packages%% *}")
        if [ -n "$version" ] && at_least "$version" "$pinned_version"; then
            # shellcheck disable=SC2086 # a list of names
            install_packages $packages
            choose_cargo && return 0
        fi
    done
    return 1
}

ensure_rust() {
    choose_cargo && return 0
    ask_rustup && return 0
    require_apt "Rust $pinned_version or later"
    update_lists
    install_debian_rust && return 0
    if [ -n "$(candidate rustup)" ]; then
        install_packages rustup
        ask_rustup && return 0
    fi
    echo "bootstrap: no Rust of version $pinned_version or later can be had from rustup or apt here" >&2
    exit 1
}

ensure_linker_and_certificates
ensure_rust
