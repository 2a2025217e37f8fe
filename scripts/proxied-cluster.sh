# Sourced: a cluster of three nodes and a proxy in a temporary directory, until the script ends.

# start_cluster FIRN POOL: sets `directory` to the cluster's, and `port` to the proxy's.
start_cluster() {
    directory=$(mktemp -d)
    "$1" cluster start --dir "$directory" --nodes 3 --proxies 1 --buffer-pool "$2" >/dev/null 2>&1 &
    cluster=$!
    trap 'kill $cluster; wait $cluster || true; rm -rf "$directory"' EXIT
    until "$1" cluster status --dir "$directory" 2>/dev/null | grep -q ' forwards'; do sleep 0.5; done
    port=$(sed -n '/"proxy-1"/,$s/.*client_address = "127.0.0.1:\([0-9]*\)".*/\1/p' "$directory/cluster.toml")
}
