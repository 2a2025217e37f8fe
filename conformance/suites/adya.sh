#!/usr/bin/env bash
# Isolation of a Firn of this checkout, judged by adya (crates.io) over the wire:
# `conformance/suites/adya.sh [TRANSACTIONS]`. Each isolation level runs undisturbed, then with
# `kill -9` and a restart again and again, then with the process stopped in between. A history that
# fails is kept, and its place is printed.
set -euo pipefail
# shellcheck source=conformance/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/../server.sh"
transactions=${1:-20000}
adya=$built/adya/bin/adya
[ -x "$adya" ] || cargo install adya --version 0.1.0 --locked --quiet --no-default-features --features mysql --root "$built/adya"
start
mariadb -h 127.0.0.1 -P "$port" -u root -e 'CREATE DATABASE adya'

# What the nemesis calls. The server is not this script's child then, and is known by its process id
# in a file.
cat >"$work/nemesis" <<EOF
#!/usr/bin/env bash
server=\$(cat "$work/server.pid" 2>/dev/null)
case \$1 in
    kill) kill -9 "\$server" ;;
    start)
        "$firn" start --data-dir "$work/data" --listen "127.0.0.1:$port" --buffer-pool 256M >>"$work/server.log" 2>&1 </dev/null &
        echo \$! >"$work/server.pid"
        sleep 0.3 ;;
    stop) kill -STOP "\$server" ;;
    go) kill -CONT "\$server" ;;
esac
EOF
chmod +x "$work/nemesis"
kill "$server"
wait "$server" || true
server=
"$work/nemesis" start
for _ in $(seq 100); do
    mariadb -h 127.0.0.1 -P "$port" -u root -e 'SELECT 1' >/dev/null 2>&1 && break
    sleep 0.1
done
end() {
    kill -CONT "$(cat "$work/server.pid")" 2>/dev/null || true
    kill "$(cat "$work/server.pid")" 2>/dev/null || true
    sleep 1
    finish
}
trap end EXIT

failed=0
for level in read-committed:read-committed repeatable-read:snapshot-isolation serializable:strict-serializable; do
    for workload in list-append rw-register; do
        for nemesis in none kill stop; do
            faults=()
            case $nemesis in
                kill) faults=(--fault "$work/nemesis kill" --heal "$work/nemesis start" --fault-every 1 --fault-for 1) ;;
                stop) faults=(--fault "$work/nemesis stop" --heal "$work/nemesis go" --fault-every 1 --fault-for 1) ;;
            esac
            name=${level%:*}-$workload-$nemesis
            status=0
            "$adya" run mysql --url "mysql://root@127.0.0.1:$port/adya" -i "${level%:*}" -c "${level#*:}" --model "$workload" \
                -n "$transactions" -p 10 --keys 6 --out "$work/$name.jsonl" "${faults[@]}" >"$work/$name.txt" 2>&1 || status=$?
            committed=$(grep -c '"ok"' "$work/$name.jsonl" || true)
            times=$(grep -c nemesis "$work/$name.jsonl" || true)
            echo "$name: $([ "$status" = 0 ] && echo valid || echo "FAILED, status $status"), $committed of $transactions committed, $((${times:-0} / 4)) faults"
            if [ "$status" != 0 ]; then
                failed=1
                kept=$(mktemp -d)
                cp "$work/$name".* "$kept"
                echo "  kept in $kept"
            fi
        done
    done
done
exit $failed
