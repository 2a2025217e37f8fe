#!/usr/bin/env bash
# TPC-C of sysbench against a MySQL server and PostgreSQL in turns, and the ratios of what they did.
#
#   scripts/tpcc-postgres.sh DIRECTORY PORT POSTGRES_PORT WAREHOUSES CONNECTIONS [ROUNDS [SECONDS]]
#
# DIRECTORY has the Lua files of https://github.com/Percona-Lab/sysbench-tpcc. Both servers are on
# 127.0.0.1: user root and user postgres, without passwords. Tables are made again unless TPCC_KEEP
# is set. READ COMMITTED and no foreign keys on both sides: PostgreSQL checks them always, and
# refuses at REPEATABLE READ what has changed since the snapshot.
set -euo pipefail
cd "$1"
port=$2 postgres=$3 warehouses=$4 connections=$5
rounds=${6:-3} seconds=${7:-10}

options_of() { # SIDE
    case $1 in
        mysql) echo --db-driver=mysql --mysql-host=127.0.0.1 "--mysql-port=$port" --mysql-user=root --mysql-db=tpcc --mysql-ssl=off \
            --mysql-ignore-errors=1213,1020,1205 ;;
        postgres) echo --db-driver=pgsql --pgsql-host=127.0.0.1 "--pgsql-port=$postgres" --pgsql-user=postgres --pgsql-db=tpcc ;;
    esac
}

bench() { # SIDE THREADS SECONDS COMMAND
    # shellcheck disable=SC2046
    sysbench ./tpcc.lua $(options_of "$1") --tables=1 "--scale=$warehouses" --trx_level=RC --use_fk=0 "--threads=$2" "--time=$3" \
        --percentile=99 "$4" 2>&1
}

run() { # SIDE: transactions a second, P99 in ms
    bench "$1" "$connections" "$seconds" run |
        awk '/transactions:/ { gsub(/[(]/, "", $3); rate = $3 } /99th percentile:/ { print rate, $3 }'
}

if [ -z "${TPCC_KEEP:-}" ]; then
    mariadb --skip-ssl -h127.0.0.1 -P"$port" -uroot -e 'DROP DATABASE IF EXISTS tpcc; CREATE DATABASE tpcc'
    psql -h127.0.0.1 -p"$postgres" -Upostgres -Xq -c 'DROP DATABASE IF EXISTS tpcc' -c 'CREATE DATABASE tpcc'
    for side in mysql postgres; do
        said=$(bench $side "$((warehouses < 2 ? 1 : 2))" 0 prepare) || {
            echo "$said" >&2
            exit 1
        }
    done
    psql -h127.0.0.1 -p"$postgres" -Upostgres -Xq -d tpcc -c 'VACUUM ANALYZE'
    for side in mysql postgres; do run $side >/dev/null; done
fi
for round in $(seq "$rounds"); do
    read -r here here_ms <<<"$(run mysql)"
    read -r there there_ms <<<"$(run postgres)"
    ratio=$(echo "scale=3; $here / $there" | bc)
    echo "round $round, $warehouses x $connections: $here and $there transactions/s, ratio $ratio; P99 $here_ms and $there_ms ms"
done
