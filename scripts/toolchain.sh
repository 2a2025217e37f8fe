# shellcheck shell=bash
# Sourced by the other scripts: finds a cargo that can build Firn, and never installs anything.
#
# The pinned toolchain (rust-toolchain.toml) is taken where rustup has it. Otherwise any cargo of at
# least that version does: another toolchain of rustup, or a distribution's package.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
pinned_version=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' "$repository/rust-toolchain.toml")

# at_least VERSION FLOOR: whether VERSION is FLOOR or later.
at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# cargo_version [CARGO]: the version that CARGO has in this repository; nothing if it cannot run.
# rustup is kept from installing a toolchain by itself: that is bootstrap.sh's to do, and to report.
cargo_version() {
    (cd "$repository" && RUSTUP_AUTO_INSTALL=0 "${1:-cargo}" --version 2>/dev/null) | awk '{ print $2 }'
}

# newest_toolchain: the latest of rustup's toolchains that is not a nightly.
newest_toolchain() {
    local name version
    for name in $(rustup toolchain list 2>/dev/null | awk '{ print $1 }' | grep -v nightly); do
        version=$(RUSTUP_TOOLCHAIN=$name cargo_version)
        [ -n "$version" ] && echo "$version $name"
    done | sort -V | tail -n 1 | awk '{ print $2 }'
}

# find_rustup: puts rustup's folder on the path if rustup is installed; false if it is not.
find_rustup() {
    command -v rustup >/dev/null && return 0
    local folder=${CARGO_HOME:-$HOME/.cargo}/bin
    [ -x "$folder/rustup" ] || return 1
    PATH="$folder:$PATH"
}

# is_recent VERSION: whether VERSION, which may be empty, can build Firn.
is_recent() {
    [ -n "$1" ] && at_least "$1" "$pinned_version"
}

# choose_cargo: makes `cargo` a good one for this shell and its children; false if there is none.
choose_cargo() {
    is_recent "$(cargo_version)" && return 0
    if find_rustup; then
        is_recent "$(cargo_version)" && return 0
        local toolchain
        toolchain=$(newest_toolchain)
        if [ -n "$toolchain" ] && is_recent "$(RUSTUP_TOOLCHAIN=$toolchain cargo_version)"; then
            export RUSTUP_TOOLCHAIN=$toolchain
            return 0
        fi
    fi
    is_recent "$(cargo_version /usr/bin/cargo)" || return 1
    PATH="/usr/bin:$PATH"
}

# is_pinned_cargo: whether the chosen cargo is exactly the pinned one.
is_pinned_cargo() {
    [ "$(cargo_version)" = "$pinned_version" ]
}
