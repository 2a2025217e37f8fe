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

# shellcheck source=scripts/proxied-cluster.sh
. "$(dirname "$0")/proxied-cluster.sh"
start_cluster "$firn" 512M
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
