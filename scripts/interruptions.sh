#!/bin/sh
# What clients of a proxy notice when another node begins to write, again and again.
#
#   scripts/interruptions.sh FIRN switch [ROUNDS [CLIENTS]]    another node is asked to write
#   scripts/interruptions.sh FIRN kill [ROUNDS [CLIENTS]]      the node that writes gets SIGKILL
#
# Starts a cluster of three nodes and a proxy with the binary FIRN in a temporary directory; a node
# that was killed is started again at once.
set -eu

# The process that writes for the cluster in a directory.
writer() {
    name=$("$1" cluster status --dir "$2" | awk '$4 == "up" && $5 == "leads," { print $1 }')
    pgrep -f -- "--node-name $name --data-dir $2/" || { echo "no node writes" >&2; exit 1; }
}

case "${2:-}" in
switch) set -- "$1" switch "${3:-10}" "${4:-64}" 5 ;;
kill) set -- "$1" kill "${3:-10}" "${4:-64}" 10 ;;
kill-writer) kill -KILL "$(writer "$1" "$3")" && exit ;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac

# shellcheck source=scripts/proxied-cluster.sh
. "$(dirname "$0")/proxied-cluster.sh"
start_cluster "$1" 256M

if [ "$2" = switch ]; then
    set -- "$@" "$1" cluster switch --dir "$directory"
else
    set -- "$@" "$0" "$1" kill-writer "$directory"
fi
firn=$1 rounds=$3 clients=$4 watch=$5
shift 5
"$firn" bench interruptions --url "mysql://root@127.0.0.1:$port" \
    --rounds "$rounds" --connections "$clients" --watch "$watch" -- "$@"
