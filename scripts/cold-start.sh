#!/usr/bin/env bash
# What a newcomer gets: clones the last commit into a temporary directory, without anything that was
# built before, and runs the two commands of the README.
#
#   scripts/cold-start.sh          on this machine, with its Rust
#   scripts/cold-start.sh bare     in a fresh Debian 12 (debootstrap into the temporary directory; as root)
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
mounted=()

clean_up() {
    local mount
    for mount in "${mounted[@]}"; do
        umount "$mount" || { echo "still mounted: $mount; $work is left as it is" >&2; return; }
    done
    rm -rf "$work"
}
trap clean_up EXIT

# Runs a command of the clone as its user would, with nothing of ours in the environment.
on_this_machine() {
    (cd "$work/firn" && env -u CARGO_TARGET_DIR -u CARGO_BUILD_JOBS -u RUSTFLAGS "$@")
}

in_bare_debian() {
    chroot "$work/debian" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
        sh -c 'cd /firn && exec "$@"' sh "$@"
}

# The mirror that this machine's own apt is set up with.
debian_mirror() {
    # Either may be missing.
    { cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true; } |
        grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1 | sed 's|/debian/* *$||'
}

make_bare_debian() {
    local root=$work/debian mirror
    mirror=$(debian_mirror)
    debootstrap --variant=minbase --include=make,git,ca-certificates bookworm "$root" "$mirror/debian" \
        >"$work/debootstrap.log"
    printf 'deb %s/debian bookworm main\ndeb %s/debian bookworm-updates main\ndeb %s/debian-security bookworm-security main\n' \
        "$mirror" "$mirror" "$mirror" >"$root/etc/apt/sources.list"
    # The way out to the network is this machine's: its resolver and its own certificate
    # authorities.
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    if compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null; then
        cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
        chroot "$root" update-ca-certificates >/dev/null 2>&1
    fi
    local folder
    for folder in proc dev dev/pts; do
        mount --bind "/$folder" "$root/$folder"
        mounted=("$root/$folder" "${mounted[@]}")
    done
    mv "$work/firn" "$root/firn"
}

git clone -q "$repository" "$work/firn"
run=on_this_machine
if [ "${1:-}" = bare ]; then
    make_bare_debian
    run=in_bare_debian
fi
# Runs `make run` until the node says that it is open, and ends it as Ctrl-C does.
make_run() {
    : >"$work/run.log"
    set -m # a job has a process group of its own
    "$run" make run >"$work/run.log" 2>&1 &
    set +m
    local pid=$!
    until grep -q 'is open after' "$work/run.log"; do
        kill -0 "$pid" 2>/dev/null || return 1
        sleep 1
    done
    kill -INT -- "-$pid"
    wait "$pid" || true # make reports the signal
    grep -q 'closed after SIGINT' "$work/run.log"
}

make_test() {
    "$run" make test >"$work/test.log" 2>&1
}

for command in run test; do
    started=$SECONDS
    "make_$command" || { tail -n 40 "$work/$command.log"; exit 1; }
    echo "make $command: $((SECONDS - started)) s"
done
