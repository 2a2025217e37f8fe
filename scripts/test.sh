#!/usr/bin/env bash
# Everything that a change must pass: `scripts/test.sh`, or one step of it: `scripts/test.sh lints`.
# One profile serves all steps, so that a cold machine compiles each crate once.
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")
"$scripts/bootstrap.sh"
# shellcheck source=scripts/toolchain.sh
. "$scripts/toolchain.sh"
choose_cargo
cd "$repository"
export CARGO_BUILD_JOBS=${CARGO_BUILD_JOBS:-2}
# Property tests draw the same cases each time, so that a change is judged by what it changes.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1}

all_steps="formatting documents manifests imports features lints clouds rdma tests messages conformance simulation crash_loop full_disk interleavings"
steps=("$@")

# Layout and lints are judged by the pinned toolchain alone: a later one knows more of both, and
# what it adds is no fault of the change.
formatting() {
    is_pinned_cargo || { echo "skipped: not the pinned toolchain"; return 0; }
    cargo fmt --all --check
}

documents() {
    local status=0
    links_lead_somewhere || status=1
    prose_fits || status=1
    return $status
}

# Relative links of the Markdown files.
links_lead_somewhere() {
    local file target broken=0
    while IFS=: read -r file target; do
        target=${target#*](}
        target=${target%%[)#]*}
        case "$target" in "" | *://*) continue ;; esac
        [ -e "$(dirname "$file")/$target" ] || { echo "$file: no such file: $target"; broken=1; }
    done < <(git ls-files '*.md' | xargs grep -oH ']([^)]*)')
    return $broken
}

# Markdown and comments have at most 100 columns, as code has. Tables, blocks between ``` and lines
# that are one link may have more. Of a character, only its first byte counts.
prose_fits() {
    git ls-files -z '*.md' '*.rs' | LC_ALL=C xargs -0 awk '
        FNR == 1 { in_block = 0 }
        { text = $0 }
        FILENAME ~ /\.rs$/ && !sub(/^ *\/\/[\/!]?/, "", text) { in_block = 0; next }
        text ~ /^ *```/ { in_block = !in_block }
        in_block || text ~ /^ *\|/ || text ~ /^ *([*-] )?\[[^]]*\]\([^)]*\)$/ { next }
        { gsub(/[\200-\277]/, "") }
        length() > 100 { print FILENAME ":" FNR ": more than 100 columns"; status = 1 }
        END { exit status }'
}

# The manifests for Kubernetes fit its schemas, and name what is there.
manifests() {
    scripts/manifests.sh
}

# Which module imports which; an import upward between crates or in a circle between modules fails.
imports() {
    cargo run --locked --release --quiet -p firn-imports
}

# `make run` and `make test` share one build of each crate: it has the same features in both.
features() {
    local run test different
    run=$(crates_with_features --package firn --edges normal,build)
    test=$(crates_with_features --workspace)
    different=$(comm -23 <(echo "$run") <(echo "$test"))
    [ -z "$different" ] && return 0
    echo "make test turns on more features of these crates; turn them on in crates/firn/Cargo.toml:"
    echo "$different"
    return 1
}

crates_with_features() {
    cargo tree --locked --prefix none --format '{p} {f}' "$@" | sed 's/ (\*)$//' | sort -u
}

lints() {
    local deny=()
    is_pinned_cargo && deny=(-- -D warnings)
    cargo clippy --locked --release --workspace --all-targets "${deny[@]}"
}

# Archives in clouds are a feature that is off by default.
clouds() {
    cargo test --locked --release -p firn-objects --features cloud
}

# Regions by RDMA are a feature that is off by default, and need a library. It brings transports for
# machines without the hardware.
rdma() {
    scripts/libucx.sh || { echo "skipped: no libucx-dev"; return 0; }
    local deny=()
    is_pinned_cargo && deny=(-- -D warnings)
    # What the step `lints` has checked is not checked again, but for those that have the feature.
    cargo clippy --locked --release --workspace --features firn/rdma --all-targets "${deny[@]}"
    cargo test --locked --release -p firn-rdma --features ucx
}

# Everything but what has its own step. All three ask for the workspace, so that features, and
# with them what is built, are the same. A failure of one crate hides none of the others. The tests
# of whole clusters run beside the others, and are shown after them: they wait for processes most of
# the time.
tests() {
    local programs clusters=() others=() source name beside output status=0
    programs=$(programs_with_tests)
    while read -r source name; do
        case "$source $name" in
            */lib.rs\ *) ;;
            # A program is named in its manifest with hyphens, and its file with underscores.
            src/*) others+=(--bin "${name//_/-}") ;;
            *" cluster" | *" one_endpoint") clusters+=(--test "$name") ;;
            *) others+=(--test "$name") ;;
        esac
    done <<< "$programs"
    output=$(mktemp)
    # In a process group of their own, so that they end with this script.
    set -m
    run_tests "${clusters[@]}" >"$output" 2>&1 &
    beside=$!
    set +m
    # shellcheck disable=SC2064
    trap "kill -- -$beside 2>/dev/null" EXIT
    run_tests --lib "${others[@]}" || status=1
    run_tests --doc || status=1
    wait "$beside" || status=1
    trap - EXIT
    cat "$output"
    rm -f "$output"
    are_skipped_tests_run_elsewhere || status=1
    return "$status"
}

# Builds all tests: the source and the name of each program of them.
programs_with_tests() {
    cargo test --locked --release --workspace --no-run 2>&1 | tee >(cat >&2) |
        sed -nE 's|^ *Executable (unittests )?([^ ]+) \(.*/([^/]+)-[0-9a-f]+\)$|\2 \3|p'
}

run_tests() {
    cargo test --locked --release --workspace --no-fail-fast "$@" -- --skip simulated:: --skip kill_loop::
}

# `--skip` takes any part of a test's path, so it may hit tests of other crates, which no step would
# run. What the two patterns hit anywhere must be what the steps `simulation` and `crash_loop` run.
are_skipped_tests_run_elsewhere() {
    local skipped run lost
    skipped=$(tests_that_match --workspace) || return 1
    run=$(tests_that_match --workspace --test node) || return 1
    [ -n "$run" ] || { echo "no test is called simulated:: or kill_loop::"; return 1; }
    lost=$(comm -23 <(echo "$skipped") <(echo "$run"))
    [ -z "$lost" ] && return 0
    echo "no step runs these tests; rename their modules:"
    echo "$lost"
    return 1
}

tests_that_match() {
    cargo test --locked --release --quiet "$@" -- --list --format terse simulated:: kill_loop:: |
        sed -n '/: test$/p' | sort
}

# The SQL suites with the codec of the row messages between SQL and its database node, and with a
# front between clients and their sessions: without a replica for what only reads, with one in the
# front's process, and with one at the other end of a link.
messages() {
    FIRN_SQL_NODE=messages cargo test --locked --release --workspace --test sql
    FIRN_SQL_SESSIONS=messages cargo test --locked --release --workspace --test sql
    # The other suites look at the figures of the server, or count what it runs.
    local sessions
    for sessions in replica far_replica; do
        FIRN_SQL_SESSIONS=$sessions cargo test --locked --release --workspace --test sql -- \
            scripts_give_what_they_say renewal:: spilling::
    done
}

# Clients that others wrote, against the stripped binary of this checkout.
conformance() {
    # The binary that the tests have: another set of features would compile the large crates once
    # more.
    cargo test --locked --release --workspace --no-run --quiet
    FIRN=$(scripts/stripped.sh) conformance/run.sh
}

# A node on simulated disks: power loss, failing syncs, full disks. More seeds: FIRN_SEEDS=0..10000.
simulation() {
    cargo test --locked --release --workspace --test node simulated::
    cargo test --locked --release --workspace --test node runs_replay_from_their_seeds -- --ignored --exact simulated::runs_replay_from_their_seeds
}

# A real process, killed again and again, and what it acknowledged. More rounds: FIRN_ROUNDS=200.
crash_loop() {
    cargo test --locked --release --workspace --test node kill_loop::
}

# A server on a disk that is full. The tests mount it: as root, or as root of a name space.
full_disk() {
    local apart
    for apart in "unshare --mount" "unshare --map-root-user --mount" ""; do
        $apart true 2>/dev/null && break
    done
    [ -n "$apart" ] || { echo "skipped: this user cannot mount a file system"; return 0; }
    $apart cargo test --locked --release --workspace --test full_disk -- --ignored
}

# Lock-free parts under many orders of steps; a feature puts their primitives under shuttle.
interleavings() {
    cargo test --locked --release -p firn-buffer --features shuttle --lib shuttle
    cargo test --locked --release -p firn-engine --features shuttle --lib interleavings
    cargo test --locked --release -p firn-storage --features shuttle --lib interleavings
}

[ $# -gt 0 ] || read -ra steps <<< "$all_steps"
for step in "${steps[@]}"; do
    case " $all_steps " in
        *" $step "*) ;;
        *) echo "no step '$step'; there are: $all_steps" >&2; exit 2 ;;
    esac
    echo "== $step"
    "$step"
done
echo "== passed: ${steps[*]}"
