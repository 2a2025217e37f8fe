#!/usr/bin/env bash
# Real clients against a Firn of this checkout: `conformance/run.sh [CLIENT…]`. A server is started on a free port over a
# temporary directory, and ended by its process id. Clients come from Debian's packages and from their languages'
# registries; one that cannot be installed is skipped, and said to be. What they build goes to the target directory.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(dirname "$here")
work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || { kill "$server" 2>/dev/null; wait "$server" 2>/dev/null; } || true
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

target=${CARGO_TARGET_DIR:-$repository/target}
built=$target/conformance

start() {
    "$repository/scripts/cargo.sh" build --locked --release --quiet --package firn
    "$target/release/firn" start --data-dir "$work/data" --listen 127.0.0.1:0 --socket "$work/firn.sock" \
        --buffer-pool 64M >"$work/server.log" 2>&1 &
    server=$!
    for _ in $(seq 100); do
        port=$(sed -n 's/^firn: listening at 127\.0\.0\.1:\([0-9]*\);.*/\1/p' "$work/server.log")
        [ -n "$port" ] && return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    cat "$work/server.log" >&2
    return 1
}

# The mariadb program: text protocol, Unix socket, errors by code.
mariadb_client() {
    have mariadb || install mariadb-client || return 77
    local run=(mariadb -h 127.0.0.1 -P "$port" -u root)
    "${run[@]}" <"$here/mariadb.sql" >"$work/mariadb.out"
    diff -u "$here/mariadb.expected" "$work/mariadb.out"
    [ "$(mariadb -S "$work/firn.sock" -u root -N -e 'SELECT 7')" = 7 ]
}

# A dump of a schema goes back in and gives the same dump.
dump() {
    have mariadb-dump || install mariadb-client || return 77
    local run=(mariadb -h 127.0.0.1 -P "$port" -u root)
    local dump=(mariadb-dump -h 127.0.0.1 -P "$port" -u root --skip-dump-date --skip-comments)
    "${run[@]}" -e 'DROP DATABASE IF EXISTS copied; CREATE DATABASE copied'
    "${run[@]}" <"$here/mariadb.sql" >/dev/null
    "${dump[@]}" conformance >"$work/first.sql"
    "${run[@]}" copied <"$work/first.sql"
    "${dump[@]}" copied >"$work/second.sql"
    diff -u "$work/first.sql" "$work/second.sql"
}

# An interpreter that has a module: the one in front, else Debian's own.
python_with() {
    local python
    for python in python3 /usr/bin/python3; do
        "$python" -c "import $1" 2>/dev/null && { echo "$python"; return 0; }
    done
    return 1
}

# PyMySQL: types both ways, transactions, errors, large values, TLS, LOAD DATA LOCAL.
pymysql() {
    python_with pymysql >/dev/null || install python3 python3-pymysql || return 77
    local python
    python=$(python_with pymysql) || return 77
    "$python" "$here/pymysql_smoke.py" "$port"
}

# mysqlclient, which is the C library from Python.
mysqlclient() {
    python_with MySQLdb >/dev/null || install python3 python3-mysqldb || return 77
    local python
    python=$(python_with MySQLdb) || return 77
    "$python" "$here/mysqlclient_smoke.py" "$port"
}

# go-sql-driver.
go_sql_driver() {
    have go || install golang-go || return 77
    cd "$here/go"
    go mod download >"$work/go.log" 2>&1 || return 77
    go build -o "$built/go_sql_driver" .
    "$built/go_sql_driver" "$port"
}

# Connector/J, without a build tool's project: Maven fetches the one archive, javac compiles the one file.
connector_j() {
    have javac || install default-jdk-headless || return 77
    have mvn || install maven || return 77
    local driver=$built/java/mysql-connector-j-9.1.0.jar
    [ -f "$driver" ] || mvn -q -B dependency:copy -Dartifact=com.mysql:mysql-connector-j:9.1.0 \
        -DoutputDirectory="$built/java" >"$work/maven.log" 2>&1 || return 77
    javac -d "$built/java" "$here/java/Smoke.java"
    java -cp "$built/java:$driver" Smoke "$port"
}

# mysql2.
mysql2() {
    have npm || install nodejs npm || return 77
    [ -d "$here/node/node_modules/mysql2" ] || (cd "$here/node" && npm ci --no-audit --no-fund) >"$work/npm.log" 2>&1 || return 77
    node "$here/node/smoke.js" "$port"
}

all="mariadb_client dump pymysql mysqlclient go_sql_driver connector_j mysql2"
[ $# -gt 0 ] || read -ra clients <<<"$all"
[ $# = 0 ] || clients=("$@")
start
failed=0
for client in "${clients[@]}"; do
    began=$SECONDS
    # A subshell of its own and no `||` behind it, so that -e holds inside.
    set +e
    (set -e; "$client")
    status=$?
    set -e
    case $status in
        0) echo "$client: passed in $((SECONDS - began)) s" ;;
        77) echo "$client: skipped, it cannot be installed here" ;;
        *) echo "$client: FAILED"; failed=1 ;;
    esac
done
[ $failed = 0 ] || { echo "-- the server said:"; tail -20 "$work/server.log"; }
exit $failed
