#!/bin/sh
# TPC-C at a proxy while another node begins to write again and again: no transaction may fail, and
# the data has to be consistent afterwards.
#
#   scripts/tpcc-switches.sh FIRN [SWITCHES [WAREHOUSES [CONNECTIONS]]]
#
# Starts a cluster of three nodes and a proxy with the binary FIRN in a temporary directory.
set -eu
[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2; }
firn=$1 switches=${2:-20} warehouses=${3:-1} connections=${4:-8}

directory=$(mktemp -d)
"$firn" cluster start --dir "$directory" --nodes 3 --proxies 1 --buffer-pool 512M >/dev/null 2>&1 &
cluster=$!
trap 'kill $cluster; wait $cluster || true; rm -rf "$directory"' EXIT
until "$firn" cluster status --dir "$directory" 2>/dev/null | grep -q ' forwards'; do sleep 0.5; done
port=$(sed -n '/"proxy-1"/,$s/.*client_address = "127.0.0.1:\([0-9]*\)".*/\1/p' "$directory/cluster.toml")
mysql="mysql://root@127.0.0.1:$port/tpcc"

"$firn" bench tpcc --url "$mysql" --warehouses "$warehouses" prepare
"$firn" bench tpcc --url "$mysql" --warehouses "$warehouses" --connections "$connections" \
    --warm-up 0 --seconds $((switches * 3 + 3)) run >"$directory/run" 2>&1 &
run=$!
for _ in $(seq "$switches"); do
    sleep 2.5
    "$firn" cluster switch --dir "$directory"
done
wait $run || { cat "$directory/run"; exit 1; }
cat "$directory/run"
"$firn" bench tpcc --url "$mysql" --warehouses "$warehouses" check
