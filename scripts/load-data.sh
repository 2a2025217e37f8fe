#!/usr/bin/env bash
# Loads the same rows into two servers in turns, and says how long each took: by LOAD DATA LOCAL, or
# by COPY into PostgreSQL.
#
#   scripts/load-data.sh PORT_A PORT_B [ROWS [ROUNDS]]       MySQL servers on 127.0.0.1, user root without a password
#   scripts/load-data.sh PORT_A postgres:PORT_B …            the second one is PostgreSQL, user postgres
#
# Rows have eight columns and 74 bytes, in the order of the primary key. The servers must allow
# local_infile to be set.
set -euo pipefail
servers=("$1" "$2")
rows=${3:-10000000}
rounds=${4:-3}
file=$(mktemp)
trap 'rm -f "$file"' EXIT

python3 - "$rows" "$file" <<'PYTHON'
import random
import sys

WORDS = ["carefully", "final", "deposits", "quickly", "ironic", "requests", "furiously", "pending",
         "accounts", "slyly", "express", "packages", "blithely", "regular"]
draw = random.Random(7)
with open(sys.argv[2], "w") as file:
    for i in range(1, int(sys.argv[1]) + 1):
        words = " ".join(WORDS[i // step % 14] for step in (1, 3, 7, 11))
        price = f"{draw.randrange(1000, 99999)}.{draw.randrange(100):02}"
        day = f"19{92 + i % 7}-{1 + i % 12:02}-{1 + i % 28:02}"
        fields = (i, draw.randrange(200000), draw.randrange(1, 51), price, "NRA"[i % 3], "OF"[i % 2], day, words)
        print(*fields, sep="\t", file=file)
PYTHON

ask() { # SERVER STATEMENT
    case $1 in
        postgres:*) psql -h127.0.0.1 -p"${1#postgres:}" -Upostgres -XqAt -vON_ERROR_STOP=1 -c "$2" ;;
        *) mariadb --skip-ssl --local-infile=1 --host=127.0.0.1 --port="$1" --user=root --skip-column-names -e "$2" ;;
    esac
}

make_table() { # SERVER
    case $1 in
        postgres:*) ask "$1" "CREATE SCHEMA IF NOT EXISTS load_data" ;;
        *) ask "$1" "SET GLOBAL local_infile = 1; CREATE DATABASE IF NOT EXISTS load_data" ;;
    esac
    ask "$1" "DROP TABLE IF EXISTS load_data.t"
    ask "$1" "CREATE TABLE load_data.t (id INT PRIMARY KEY, part INT NOT NULL, quantity INT NOT NULL, price DECIMAL(12,2) NOT NULL,
        flag CHAR(1) NOT NULL, status CHAR(1) NOT NULL, day DATE NOT NULL, comment VARCHAR(80) NOT NULL)"
}

load() { # SERVER
    case $1 in
        postgres:*) ask "$1" "\\copy load_data.t FROM '$file'" ;;
        *) ask "$1" "LOAD DATA LOCAL INFILE '$file' INTO TABLE load_data.t" ;;
    esac
}

for round in $(seq "$rounds"); do
    for server in "${servers[@]}"; do
        make_table "$server"
        began=$(date +%s%N)
        load "$server"
        took_ms=$((($(date +%s%N) - began) / 1000000))
        loaded=$(ask "$server" "SELECT COUNT(*) FROM load_data.t")
        echo "round $round, $server: $loaded rows in $took_ms ms, $((loaded * 1000 / took_ms)) rows/s"
    done
done
