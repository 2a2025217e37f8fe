#!/usr/bin/env bash
# Installs what building Firn needs and this machine lacks: a C linker, certificates for the crate
# registry, and a Rust toolchain. Does nothing, and needs no rights, where all of it is there.
#
# Packages come from apt and its own sources (as root, or through sudo). Rust comes from its own
# publisher, through rustup and into the user's home: it compiles Firn in two thirds of the time of
# Debian's packages, which serve where the publisher cannot be reached.
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
    find_rustup || return 1
    echo "bootstrap: asking rustup for Rust $pinned_version" >&2
    rustup toolchain install "$pinned_version" --profile minimal --component rustfmt --component clippy &&
        choose_cargo
}

# Fetches rustup from Rust's publisher, without a toolchain. Nothing runs whose checksum is wrong.
install_rustup() {
    command -v curl >/dev/null || install_packages curl || return 1
    local host server directory
    host=$(uname -m)-unknown-linux-gnu
    server=${RUSTUP_DIST_SERVER:-https://static.rust-lang.org}
    directory=$(mktemp -d)
    echo "bootstrap: fetching rustup from $server" >&2
    (
        cd "$directory"
        for file in rustup-init rustup-init.sha256; do
            curl --fail --silent --show-error --location --connect-timeout 15 \
                --output "$file" "$server/rustup/dist/$host/$file" || exit 1
        done
        [ "$(sha256sum <rustup-init)" = "$(awk '{ print $1 }' rustup-init.sha256)  -" ] || exit 1
        chmod +x rustup-init
        ./rustup-init -y --quiet --no-modify-path --profile minimal --default-toolchain none
    )
    local status=$?
    rm -rf "$directory"
    return $status
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
    install_rustup && ask_rustup && return 0
    require_apt "Rust $pinned_version or later"
    update_lists
    install_debian_rust && return 0
    echo "bootstrap: no Rust of version $pinned_version or later can be had from rustup or apt here" >&2
    exit 1
}

ensure_linker_and_certificates
ensure_rust
