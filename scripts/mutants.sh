#!/usr/bin/env bash
# Whether a test fails when a rule of the protocols is taken out: cargo-mutants changes the code of
# a crate in one place at a time, and runs the crate's tests. A change that none of them notices is
# a missing test, or code that nothing needs.
#
#   scripts/mutants.sh                            consensus, control and storage: some hours
#   scripts/mutants.sh consensus                  one crate
#   scripts/mutants.sh storage --re leases.rs     further words go to cargo-mutants
#   scripts/mutants.sh control --list             what would be changed
#
# .cargo/mutants.toml says which files, and what is left out of them. The sources of this checkout
# are changed in place, and put back one by one, so nothing under crates/ may be uncommitted. What
# was caught and what was missed is in target/mutants/CRATE/mutants.out. Simulations run with fewer
# seeds than usual; FIRN_SEEDS=0..60 has more of them. Installs cargo-mutants into target/mutants if
# it is not installed.
set -euo pipefail
# shellcheck source=scripts/toolchain.sh
. "$(dirname "${BASH_SOURCE[0]}")/toolchain.sh"

# Arguments of the tests, before and after `--`. Tests that look for a bug put in on purpose are
# left out: another change makes them fail as well, and says nothing about a rule. Storage has slow
# tests over whole groups and disks, which do not run for each change.
tests_of() { # CRATE
    case $1 in
        consensus | control) echo -- --skip _found ;;
        storage) echo --lib -- --skip power_loss --skip stress ;;
    esac
}

crates=()
while [[ ${1:-} =~ ^(consensus|control|storage)$ ]]; do
    crates+=("$1")
    shift
done
if [[ ${1:-} =~ ^(-h|--help|[^-].*)$ ]]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
fi
if [ ${#crates[@]} -eq 0 ]; then
    crates=(consensus control storage)
fi

choose_cargo
target=${CARGO_TARGET_DIR:-$repository/target}
PATH="$target/mutants/tool/bin:$PATH"
cd "$repository"
if ! cargo mutants --version >/dev/null 2>&1; then
    CARGO_TARGET_DIR="$target/mutants/build" \
        cargo install cargo-mutants --locked --root "$target/mutants/tool"
    rm -rf "$target/mutants/build"
fi
# Each change is compiled from what the one before has left. Such builds do not always link if their
# parts are optimised together, and what does not link would pass for a change that is no Rust.
export CARGO_INCREMENTAL=1 FIRN_SEEDS=${FIRN_SEEDS:-0..20}

status=0
for crate in "${crates[@]}"; do
    if [ -n "$(git status --porcelain -- crates)" ]; then
        echo "something under crates/ is not committed; commit it first" >&2
        exit 1
    fi
    profile=profile.release.package.firn-$crate
    mkdir -p "$target/mutants/$crate"
    # shellcheck disable=SC2046 # several words
    cargo mutants --in-place --package "firn-$crate" --output "$target/mutants/$crate" \
        --cargo-arg=--config --cargo-arg="$profile.opt-level=1" \
        --cargo-arg=--config --cargo-arg="$profile.codegen-units=256" \
        --cargo-arg=--config --cargo-arg="$profile.debug=false" \
        --cargo-arg=--config --cargo-arg='profile.release.lto="off"' \
        "$@" -- $(tests_of "$crate") || status=$?
    # What property tests note of the changes that they caught.
    git clean -fdq -- 'crates/*/proptest-regressions'
done
exit "$status"
