#!/usr/bin/env bash
# Real clients against a Firn of this checkout: `conformance/run.sh [CLIENT…]`. A server is started
# on a free port over a temporary directory, and ended by its process id. Clients come from Debian's
# packages and from their languages' registries; one that cannot be installed is skipped, and said
# to be. What they build goes to the target directory.
set -euo pipefail
# shellcheck source=conformance/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/server.sh"
# shellcheck source=conformance/mysql.sh
. "$conformance/mysql.sh"
here=$conformance
# What clients print and compilers read is UTF-8, whatever the caller's locale.
export LC_ALL=C.UTF-8

# A MariaDB of our own, once: sets mariadb_port.
start_mariadb() {
    [ -z "$mariadb_server" ] || return 0
    have mariadbd || PATH=$PATH:/usr/sbin
    have mariadbd && have mariadb-install-db || install mariadb-server || return 77
    mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$work/mariadb" --auth-root-authentication-method=normal \
        --skip-test-db >"$work/mariadb-install.log" 2>&1 || return 77
    mariadb_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    mariadbd --no-defaults --user="$(id -un)" --datadir="$work/mariadb" --socket="$work/mariadb.sock" --port="$mariadb_port" \
        --bind-address=127.0.0.1 --skip-log-bin --skip-name-resolve --innodb-buffer-pool-size=64M >"$work/mariadb.log" 2>&1 &
    mariadb_server=$!
    for _ in $(seq 100); do
        mariadb -S "$work/mariadb.sock" -u root -e 'SELECT 1' >/dev/null 2>&1 && return 0
        sleep 0.2
    done
    cat "$work/mariadb.log" >&2
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

# What clients need is installed once. Each of these fails with 77 if that cannot be done here.
need_pymysql() { python_with pymysql >/dev/null || install python3 python3-pymysql || return 77; }

need_go() {
    have go || install golang-go || return 77
    (cd "$here/go" && go mod download) >"$work/go.log" 2>&1 || return 77
}

need_connector_j() {
    have javac || install default-jdk-headless || return 77
    have mvn || install maven || return 77
    connector_j_archive=$built/java/mysql-connector-j-9.1.0.jar
    [ -f "$connector_j_archive" ] || mvn -q -B dependency:copy -Dartifact=com.mysql:mysql-connector-j:9.1.0 \
        -DoutputDirectory="$built/java" >"$work/maven.log" 2>&1 || return 77
}

need_mysql2() {
    have npm || install nodejs npm || return 77
    [ -d "$here/node/node_modules/mysql2" ] || (cd "$here/node" && npm ci --no-audit --no-fund) >"$work/npm.log" 2>&1 || return 77
}

# PyMySQL: types both ways, transactions, errors, large values, TLS, LOAD DATA LOCAL.
pymysql() {
    need_pymysql || return 77
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
    need_go || return 77
    cd "$here/go"
    go build -o "$built/go_sql_driver" .
    "$built/go_sql_driver" "$port"
}

# Connector/J, without a build tool's project: Maven fetches the one archive, javac compiles the one
# file.
connector_j() {
    need_connector_j || return 77
    javac -d "$built/java" "$here/java/Smoke.java"
    java -cp "$built/java:$connector_j_archive" Smoke "$port"
}

# mysql2.
mysql2() {
    need_mysql2 || return 77
    node "$here/node/smoke.js" "$port"
}

# Drivers against every node of a cluster and a proxy while another node begins to write: statements,
# variables, temporary tables, locks and open transactions go on. One that cannot be installed is
# left out.
switches() {
    local directory=$work/cluster cluster ports python switch
    "$firn" cluster start --dir "$directory" --nodes 3 --proxies 1 --buffer-pool 128M >"$work/cluster.log" 2>&1 &
    cluster=$!
    # shellcheck disable=SC2064 # The process is known now.
    trap "kill $cluster; wait $cluster" EXIT
    # Whatever has no writer yet is no place for clients.
    until [ "$("$firn" cluster status --dir "$directory" 2>/dev/null | grep -c ', forwards')" = 3 ]; do
        kill -0 "$cluster" 2>/dev/null || { cat "$work/cluster.log"; return 1; }
        sleep 0.5
    done
    ports=$(sed -n 's/^client_address = "127.0.0.1:\([0-9]*\)"/\1/p' "$directory/cluster.toml" | paste -sd,)
    switch=("$firn" cluster switch --dir "$directory")
    if need_pymysql && python=$(python_with pymysql); then
        "$python" "$here/pymysql_switches.py" "$ports" "${switch[@]}"
    fi
    if need_mysql2; then
        node "$here/node/switches.js" "$ports" "${switch[@]}"
    fi
    if need_go; then
        (cd "$here/go" && go build -o "$built/go_switches" ./switches)
        "$built/go_switches" "$ports" "${switch[@]}"
    fi
    if need_connector_j; then
        javac -d "$built/java" "$here/java/Switches.java"
        java -cp "$built/java:$connector_j_archive" Switches "$ports" "${switch[@]}"
    fi
}

# sqlx, built apart from the workspace: its features are not to change those of Firn's libraries.
sqlx() {
    # shellcheck source=scripts/toolchain.sh
    . "$repository/scripts/toolchain.sh"
    choose_cargo || return 77
    cd "$here/sqlx"
    export CARGO_TARGET_DIR=$built/rust
    cargo fetch --locked >"$work/cargo.log" 2>&1 || return 77
    cargo build --locked --quiet
    "$CARGO_TARGET_DIR/debug/sqlx_smoke" "$port"
}

# Random queries, expressions and writes, compared with MySQL's answers in all that is compared:
# rows, what writes change, column definitions and warnings. The seeds are some without a difference
# that no rule explains. A longer run: RANDOM_QUERIES=10000 RANDOM_SEED=7; a part of it:
# RANDOM_KINDS=queries RANDOM_ASPECTS=rows.
random_queries() {
    local python seed failed=0
    need_pymysql || return 77
    python=$(python_with pymysql) || return 77
    [ -n "$mysql_port" ] || return 77
    for seed in ${RANDOM_SEED:-3 10}; do
        "$python" "$here/random_queries" --firn "$port" --mysql "$mysql_port" --seed "$seed" --count "${RANDOM_QUERIES:-1500}" \
            ${RANDOM_KINDS:+--kinds "$RANDOM_KINDS"} ${RANDOM_ASPECTS:+--aspects "$RANDOM_ASPECTS"} || failed=1
    done
    return "$failed"
}

# The same queries, compared with MariaDB's.
random_queries_mariadb() {
    local python
    need_pymysql || return 77
    python=$(python_with pymysql) || return 77
    [ -n "$mariadb_server" ] || return 77
    "$python" "$here/random_queries" --firn "$port" --mariadb "$mariadb_port" --seed "${RANDOM_SEED:-1}" \
        --count "${RANDOM_QUERIES:-300}"
}

# Answers recorded from MySQL.
recorded() {
    need_pymysql || return 77
    local python
    python=$(python_with pymysql) || return 77
    "$python" "$here/recorded" --port "$port"
}

# A schema with all types out of MariaDB into Firn, and from there into MariaDB again: rows and
# dumps are the same.
exchange() {
    [ -n "$mariadb_server" ] && have mariadb-dump || return 77
    local firn=(-h 127.0.0.1 -P "$port" -u root) theirs=(-S "$work/mariadb.sock" -u root)
    local options=(--skip-dump-date --skip-comments --hex-blob --single-transaction)
    mariadb "${theirs[@]}" -e 'CREATE DATABASE exchange; CREATE DATABASE returned'
    mariadb "${firn[@]}" -e 'DROP DATABASE IF EXISTS exchange; CREATE DATABASE exchange'
    mariadb "${theirs[@]}" exchange <"$here/exchange.sql"
    mariadb-dump "${options[@]}" "${theirs[@]}" exchange >"$work/theirs.sql"
    mariadb "${firn[@]}" exchange <"$work/theirs.sql"
    mariadb-dump "${options[@]}" "${firn[@]}" exchange >"$work/firn.sql"
    # Collations that MariaDB does not have.
    sed -e 's/utf8mb4_0900_ai_ci/utf8mb4_general_ci/g' "$work/firn.sql" | mariadb "${theirs[@]}" returned
    mariadb-dump "${options[@]}" "${theirs[@]}" returned >"$work/returned.sql"
    rows() { grep '^INSERT INTO' "$1"; }
    diff <(rows "$work/theirs.sql") <(rows "$work/firn.sql")
    diff <(rows "$work/theirs.sql") <(rows "$work/returned.sql")
    diff "$work/theirs.sql" "$work/returned.sql"
}

# What MySQL's sample databases are made of, out of MySQL into Firn, and from there into MySQL
# again: tables, rows, and what views show are the same everywhere.
exchange_mysql() {
    [ -n "$mysql_port" ] && { have mariadb-dump || install mariadb-client; } || return 77
    local firn=(-h 127.0.0.1 -P "$port" -u root) theirs=(--skip-ssl -h 127.0.0.1 -P "$mysql_port" -u root)
    local options=(--skip-dump-date --skip-comments --hex-blob --single-transaction)
    mariadb "${theirs[@]}" -e 'DROP DATABASE IF EXISTS samples; CREATE DATABASE samples; DROP DATABASE IF EXISTS returned; CREATE DATABASE returned'
    mariadb "${firn[@]}" -e 'DROP DATABASE IF EXISTS samples; CREATE DATABASE samples; DROP DATABASE IF EXISTS own; CREATE DATABASE own'
    # The definer of MySQL's views has to exist where they are read.
    local definer
    definer=$(mariadb "${theirs[@]}" -N -e "SELECT CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@', QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))")
    mariadb "${firn[@]}" -e "CREATE USER IF NOT EXISTS $definer; GRANT ALL ON *.* TO $definer WITH GRANT OPTION"
    mariadb "${theirs[@]}" samples <"$here/samples.sql"
    mariadb "${firn[@]}" own <"$here/samples.sql"
    mariadb-dump "${options[@]}" "${theirs[@]}" samples >"$work/samples.sql"
    mariadb "${firn[@]}" samples <"$work/samples.sql"
    mariadb-dump "${options[@]}" "${firn[@]}" samples >"$work/samples-firn.sql"
    mariadb "${theirs[@]}" returned <"$work/samples-firn.sql"
    # Views are written in another way by each: what they show is compared.
    tables() { grep -v '50001\|50013' "$1"; }
    diff <(tables "$work/samples.sql") <(tables "$work/samples-firn.sql")
    mariadb-dump "${options[@]}" "${firn[@]}" own >"$work/samples-own.sql"
    diff <(tables "$work/samples.sql") <(tables "$work/samples-own.sql")
    mariadb-dump "${options[@]}" "${theirs[@]}" returned >"$work/samples-returned.sql"
    diff <(tables "$work/samples.sql") <(tables "$work/samples-returned.sql")
    local view
    for view in film_list actor_info staff_list sales_by_rating dept_emp_latest_date current_dept_emp; do
        mariadb "${theirs[@]}" -N samples -e "SELECT * FROM $view" | sort >"$work/view.theirs"
        mariadb "${firn[@]}" -N samples -e "SELECT * FROM $view" | sort | diff "$work/view.theirs" -
        mariadb "${firn[@]}" -N own -e "SELECT * FROM $view" | sort | diff "$work/view.theirs" -
        mariadb "${theirs[@]}" -N returned -e "SELECT * FROM $view" | sort | diff "$work/view.theirs" -
    done
    mariadb "${theirs[@]}" -e 'DROP DATABASE samples; DROP DATABASE returned'
}

# Schema tools and object mappers of Java, fetched by Maven: Liquibase, Flyway, Hibernate, and
# Connector/J's metadata and XA.
java_tools() {
    have javac || install default-jdk-headless || return 77
    have mvn || install maven || return 77
    local archives=$built/java_tools
    cmp -s "$here/java/tools/pom.xml" "$archives/pom.xml" || {
        mvn -q -B -f "$here/java/tools/pom.xml" dependency:copy-dependencies -DoutputDirectory="$archives" >"$work/maven.log" 2>&1 || return 77
        cp "$here/java/tools/pom.xml" "$archives/pom.xml"
    }
    javac -nowarn -d "$archives/classes" -cp "$archives/*" "$here"/java/tools/*.java 2>"$work/javac.log" || { cat "$work/javac.log"; return 1; }
    local smoke
    for smoke in ${JAVA_TOOLS:-LiquibaseSmoke FlywaySmoke HibernateSmoke MetadataSmoke}; do
        java -cp "$archives/classes:$archives/*" "$smoke" "$port" "$here/java/tools" >"$work/java.log" 2>&1 || { cut -c1-500 "$work/java.log" | head -40; return 1; }
        tail -1 "$work/java.log"
    done
}

# Schema tools and object mappers of Node: Sequelize, TypeORM, knex, drizzle.
node_tools() {
    have npm || install nodejs npm || return 77
    [ -d "$here/node/tools/node_modules/knex" ] || (cd "$here/node/tools" && npm ci --no-audit --no-fund) >"$work/npm.log" 2>&1 || return 77
    local smoke
    for smoke in ${NODE_TOOLS:-sequelize typeorm knex drizzle}; do
        node "$here/node/tools/$smoke.js" "$port"
    done
}

# sysbench's own scripts, a second each: that they run, and how fast only to be seen.
sysbench_scripts() {
    have sysbench || install sysbench || return 77
    local script run
    for script in oltp_delete oltp_insert oltp_point_select oltp_read_only oltp_read_write oltp_update_index \
        oltp_update_non_index oltp_write_only select_random_points select_random_ranges bulk_insert; do
        run=(sysbench "$script" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$port" --mysql-user=root --threads=4)
        [ "$script" = bulk_insert ] || run+=(--table-size=4000)
        mariadb -h 127.0.0.1 -P "$port" -u root -e 'DROP DATABASE IF EXISTS sbtest; CREATE DATABASE sbtest'
        "${run[@]}" prepare >"$work/sysbench.log" 2>&1 && "${run[@]}" --time=1 run >"$work/sysbench.log" 2>&1 || {
            cut -c1-500 "$work/sysbench.log"
            return 1
        }
        echo "  $script: $(sed -n 's/.*queries: .*(\(.*\) per sec.)/\1/p' "$work/sysbench.log") queries a second"
    done
}

all="mariadb_client dump pymysql mysqlclient go_sql_driver connector_j mysql2 node_tools java_tools sqlx switches sysbench_scripts recorded random_queries random_queries_mariadb exchange exchange_mysql"
[ $# -gt 0 ] || read -ra clients <<<"$all"
[ $# = 0 ] || clients=("$@")
start
# Outside of the subshells, which could not end it.
case " ${clients[*]} " in *" random_queries_mariadb "* | *" exchange "*) start_mariadb || true ;; esac
case " ${clients[*]} " in *" random_queries "* | *" exchange_mysql "*) start_mysql || true ;; esac
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
# What all of them have left behind is sound.
kill "$server" && wait "$server" || true
server=
if "$firn" admin check --data-dir "$work/data" >"$work/check.log" 2>&1; then
    echo "firn admin check: $(tail -1 "$work/check.log")"
else
    echo "firn admin check: FAILED"
    tail -20 "$work/check.log" | cut -c1-300
    failed=1
fi
exit $failed
