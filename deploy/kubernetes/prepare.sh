#!/usr/bin/env bash
# Makes what a new cluster in Kubernetes needs and nobody else may have: its authority, the
# certificates of its nodes, and an overlay that hands them to the pods.
#
#   deploy/kubernetes/prepare.sh DIR [--pages] [--replicas]     then: kubectl apply -k DIR
#
# --pages adds two page nodes beside the three nodes that do everything, --replicas adds one to four
# replicas, as the load wants. FIRN names the program that makes the certificates, if it is not
# `firn`. DIR/certificates/authority has the key that makes
# nodes of the cluster: keep it, and keep it secret. Run again over the same DIR, it makes new
# certificates for the same nodes (they last a year) and leaves the rest as it was.
set -euo pipefail
base=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
firn=${FIRN:-firn}
usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
[ $# -ge 1 ] || usage
components=()
for argument in "${@:2}"; do
    case $argument in
    --pages | --replicas) components+=("${argument#--}") ;;
    *) usage ;;
    esac
done
mkdir -p "$1"
directory=$(cd "$1" && pwd)
certificates=$directory/certificates

certify() {
    "$firn" admin certificates "$@" --dir "$certificates"
}

# secret NAME: how a Secret begins, whose files follow.
secret() {
    echo "  - name: $1"
    echo "    files:"
}

# node NAME ROLES: its certificate, and a line of the Secret for each of its files.
node() {
    certify node --name "$1" --roles "$2" --address "$1.firn-nodes" >&2
    local file
    for file in authority certificate key; do
        echo "      - $1.$file.pem=certificates/nodes/$1/$file.pem"
    done
}

[ -e "$certificates/authority/key.pem" ] || certify create >&2
cluster=$(certify show | sed -n 's/^authority of cluster \([0-9a-f]*\).*/\1/p')
sed "s/CLUSTER/$cluster/" "$base/cluster.toml" >"$directory/cluster.toml"
{
    cat <<END
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - $(realpath --relative-to="$directory" "$base")
configMapGenerator:
  - name: firn-layout
    files:
      - cluster.toml
secretGenerator:
END
    secret firn-certificates
    for number in 0 1 2; do
        node "firn-$number" database+log+pages+control
    done
    for component in "${components[@]}"; do
        case $component in
        pages)
            secret firn-pages-certificates
            for number in 0 1; do
                node "firn-pages-$number" pages
            done
            ;;
        replicas)
            secret firn-replica-certificates
            for number in 0 1 2 3; do
                node "firn-replica-$number" replica
            done
            # It has no role of its own; a proxy is what it is like.
            secret firn-scaler-certificates
            node firn-scaler proxy
            ;;
        esac
    done
    [ ${#components[@]} = 0 ] || echo "components:"
    for component in "${components[@]}"; do
        echo "  - $(realpath --relative-to="$directory" "$base/$component")"
    done
} >"$directory/kustomization.new"
# A file that is there has the reader's image, namespace and patches.
if [ -e "$directory/kustomization.yaml" ]; then
    rm "$directory/kustomization.new"
else
    mv "$directory/kustomization.new" "$directory/kustomization.yaml"
fi
echo "cluster $cluster is prepared: kubectl apply -k $1" >&2
