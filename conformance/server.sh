# Sourced by the scripts beside it: a Firn of this checkout on a free port over a temporary
# directory.
#
#   start [OPTION…]     builds it if need be and starts it; sets server (its process id) and port
#   restart             starts it again at the same port over the same directory
#   finish              ends it by its process id, and removes the directory; runs at the end by itself
conformance=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(dirname "$conformance")
target=${CARGO_TARGET_DIR:-$repository/target}
built=$target/conformance
work=$(mktemp -d)
server=
mariadb_server=
port=0
# The program to test, if it is not that of this checkout.
firn=${FIRN:-}

finish() {
    local one
    for one in $server $mariadb_server ${mysql_server:-}; do
        { kill -CONT "$one" && kill "$one" && wait "$one"; } 2>/dev/null || true
    done
    rm -rf "$work"
}
trap finish EXIT

have() { command -v "$1" >/dev/null 2>&1; }

# Installs Debian packages, if that can be done here.
install() {
    local run=()
    [ "$(id -u)" = 0 ] || run=(sudo -n)
    have apt-get || return 1
    "${run[@]}" apt-get install -y -qq --no-install-recommends "$@" >"$work/apt.log" 2>&1 && return 0
    "${run[@]}" apt-get update -qq >>"$work/apt.log" 2>&1 &&
        DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y -qq --no-install-recommends "$@" >>"$work/apt.log" 2>&1
}

start() {
    if [ -z "$firn" ]; then
        "$repository/scripts/cargo.sh" build --locked --release --quiet --package firn
        firn=$target/release/firn
    fi
    restart "$@"
}

restart() {
    "$firn" start --data-dir "$work/data" --listen "127.0.0.1:$port" --socket "$work/firn.sock" --buffer-pool 256M "$@" \
        >"$work/server.log" 2>&1 &
    server=$!
    for _ in $(seq 300); do
        port=$(sed -n 's/^firn: listening at 127\.0\.0\.1:\([0-9]*\);.*/\1/p' "$work/server.log")
        [ -n "$port" ] && return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    cat "$work/server.log" >&2
    return 1
}
