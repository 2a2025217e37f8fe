#!/usr/bin/env python3
"""Proves the manifests beside this file without a cluster: check.py [FILE...].

* Each object fits the schema of Kubernetes, of the oldest and of the newest release in VERSIONS.
A field that the schema does not know is an error, as in `kubectl apply --validate=strict`. *
What a manifest names is there: the selected pods, ports, mounted volumes, services, files.

The schemas are those of the package kubernetes-validate. Flags and values of `firn start` are
checked by the program itself (crates/firn/tests/deployment.rs).
"""

import pathlib
import sys

import kubernetes_validate
import yaml

VERSIONS = ["1.29", "1.37"]
HERE = pathlib.Path(__file__).resolve().parent
POD_OWNERS = ("StatefulSet", "Deployment")


class UniqueKeys(yaml.SafeLoader):
    """Refuses a key that comes twice, which YAML leaves open."""


def mapping(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    twice = {key for key in keys if keys.count(key) > 1}
    if twice:
        raise yaml.YAMLError(f"{node.start_mark}: {', '.join(map(str, twice))} comes twice")
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)


def objects_of(path):
    return [one for one in yaml.load_all(path.read_text(), UniqueKeys) if one is not None]


def schema_problems(one):
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(one, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            place = ".".join(map(str, error.path))
            yield f"{place or 'the object'}: {error.message} (Kubernetes {version})"
        except kubernetes_validate.SchemaNotFoundError as error:
            yield error.message


def pod_labels(one):
    return one["spec"]["template"]["metadata"]["labels"]


def selects(selector, labels):
    return selector.items() <= labels.items()


def pod_problems(one, services, accounts):
    """What the pods of a set name and do not have."""
    spec, pod = one["spec"], one["spec"]["template"]["spec"]
    account = pod.get("serviceAccountName")
    if account is not None and account not in accounts:
        yield f"there is no service account {account}"
    if account is None and pod.get("automountServiceAccountToken") is not False:
        yield "its pods have a token of the API that they do not use"
    if not selects(spec["selector"]["matchLabels"], pod_labels(one)):
        yield "its selector does not select its pods"
    service = services.get(spec.get("serviceName"))
    if one["kind"] == "StatefulSet":
        if service is None:
            yield f"there is no service {spec.get('serviceName')}"
        elif not selects(service["spec"]["selector"], pod_labels(one)):
            yield f"the service {spec['serviceName']} does not name its pods"
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    volumes |= {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])}
    mounted = set()
    for container in pod["containers"]:
        ports = {port["name"] for port in container.get("ports", [])}
        # What serves nobody has no ports, and no probes that ask them.
        for probe in ("startupProbe", "livenessProbe", "readinessProbe") if ports else ():
            port = container.get(probe, {}).get("httpGet", {}).get("port")
            if port not in ports:
                yield f"{container['name']}: {probe} asks the port {port}, which it does not have"
        mounted |= {mount["name"] for mount in container.get("volumeMounts", [])}
    if mounted != volumes:
        yield f"volumes {sorted(volumes)} are there, {sorted(mounted)} are mounted"


def service_problems(one, sets):
    fitting = [owner for owner in sets if selects(one["spec"]["selector"], pod_labels(owner))]
    if not fitting:
        yield "it selects no pods"
    for port in one["spec"]["ports"]:
        for owner in fitting:
            containers = owner["spec"]["template"]["spec"]["containers"]
            names = {own["name"] for container in containers for own in container.get("ports", [])}
            if port["targetPort"] not in names:
                yield f"its port {port['targetPort']} is none of {owner['metadata']['name']}"


def budget_problems(one, sets):
    selector = one["spec"]["selector"]["matchLabels"]
    fitting = [owner for owner in sets if selects(selector, pod_labels(owner))]
    if len(fitting) != 1:
        yield f"it counts the pods of {len(fitting)} sets"


def role_problems(one, sets):
    """What may be done names sets that are there, and pods that these can have."""
    names = {owner["metadata"]["name"] for owner in sets}
    for rule in one["rules"]:
        for name in rule.get("resourceNames", []):
            owner = name.rpartition("-")[0] if rule["resources"] == ["pods"] else name
            if owner not in names:
                yield f"there is no set {owner}"
        if not rule.get("resourceNames"):
            yield f"{', '.join(rule['resources'])} are not named one by one"


def binding_problems(one, roles, accounts):
    if one["roleRef"]["name"] not in roles:
        yield f"there is no role {one['roleRef']['name']}"
    for subject in one["subjects"]:
        if subject["name"] not in accounts:
            yield f"there is no service account {subject['name']}"


def kustomization_problems(path, one):
    for key in ("resources", "components"):
        for name in one.get(key, []):
            if not (path.parent / name).exists():
                yield f"there is no file {name}"
    known = {"apiVersion", "kind", "resources", "components"}
    for key in sorted(one.keys() - known):
        yield f"{key} is none of {', '.join(sorted(known))}"


def problems(paths):
    found = [(path, one) for path in paths for one in objects_of(path)]
    objects = [one for _, one in found]
    sets = [one for one in objects if one["kind"] in POD_OWNERS]
    services = {one["metadata"]["name"]: one for one in objects if one["kind"] == "Service"}
    accounts = {one["metadata"]["name"] for one in objects if one["kind"] == "ServiceAccount"}
    roles = {one["metadata"]["name"] for one in objects if one["kind"] == "Role"}
    for path, one in found:
        if one["apiVersion"].startswith("kustomize.config.k8s.io/"):
            name, wrong = one["kind"], list(kustomization_problems(path, one))
        else:
            name = f"{one['kind']} {one['metadata']['name']}"
            # What a wrong object names would only confuse.
            wrong = list(schema_problems(one)) or list(
                pod_problems(one, services, accounts) if one in sets
                else service_problems(one, sets) if one["kind"] == "Service"
                else budget_problems(one, sets) if one["kind"] == "PodDisruptionBudget"
                else role_problems(one, sets) if one["kind"] == "Role"
                else binding_problems(one, roles, accounts) if one["kind"] == "RoleBinding"
                else []
            )
        yield from (f"{path}: {name}: {reason}" for reason in wrong)


def main(arguments):
    paths = [pathlib.Path(name) for name in arguments] or sorted(HERE.rglob("*.yaml"))
    wrong = list(problems(paths))
    print("\n".join(wrong) if wrong else f"{len(paths)} files fit Kubernetes {', '.join(VERSIONS)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
