"""Manifests of Kubernetes: right by the types of its API, complete, and confined."""

from __future__ import annotations

import copy
import ipaddress
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.deploy_files import DEPLOY, KUBERNETES, manifests, pods
from tests.support.kubernetes_schemas import faults

#: Resources of the KEDA and Prometheus operators, whose types are not in Kubernetes' own API.
FOREIGN = {"keda.sh/v1alpha1", "monitoring.coreos.com/v1"}
MANIFESTS = list(manifests(KUBERNETES))
OWN = [each for each in MANIFESTS if each["apiVersion"] not in FOREIGN]
KUSTOMIZATIONS = sorted(KUBERNETES.rglob("kustomization.yaml"))
SECRET_KEYS = {"database", "extract-api-key", "platform-api-key"}


def named(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in MANIFESTS if each["kind"] == kind}


@pytest.mark.parametrize("manifest", OWN, ids=lambda each: f"{each['kind']} {each['metadata']['name']}")
def test_manifests_agree_with_the_api(manifest: dict[str, Any]) -> None:
    assert faults(manifest) == []


def test_the_check_of_manifests_finds_faults() -> None:
    wrong = copy.deepcopy(named("Deployment")["scrapy-worker"])
    container = wrong["spec"]["template"]["spec"]["containers"][0]
    container["resource"] = container.pop("resources")
    container["ports"][0]["containerPort"] = "8700"
    del wrong["spec"]["selector"]
    pod = "Deployment.spec.template.spec.containers[0]"
    assert sorted(faults(wrong)) == [
        "Deployment.spec lacks selector",
        f"{pod} has no field resource",
        f"{pod}.ports[0].containerPort is not of type int: '8700'",
    ]


@pytest.mark.parametrize("path", KUSTOMIZATIONS, ids=lambda path: path.parent.name)
def test_kustomizations_refer_to_what_exists(path: Path) -> None:
    read = yaml.safe_load(path.read_text())
    assert read["kind"] in ("Kustomization", "Component")
    for name in read["resources"]:
        target = path.parent / name
        assert target.is_file() or (target / "kustomization.yaml").is_file(), name
    for generator in read.get("secretGenerator", ()):
        for name in generator.get("envs", ()):
            example = (path.parent / f"{name}.example").read_text()
            assert {line.partition("=")[0] for line in example.split()} == SECRET_KEYS
    for patch in read.get("patches", ()):
        assert patch["target"]["name"] in named(patch["target"]["kind"])
    # Every file of the folder belongs to it.
    own = {each.name for each in path.parent.glob("*.yaml")} - {path.name}
    assert own == {name for name in read["resources"] if (path.parent / name).is_file()}
    for component in re.findall(r"components: \[(.*)\]", path.read_text()):
        assert (KUBERNETES / "example" / component / "kustomization.yaml").is_file()


@pytest.mark.parametrize("pod", pods().values(), ids=pods())
def test_pods_are_confined(pod: dict[str, Any]) -> None:
    assert pod["automountServiceAccountToken"] is False
    security = pod["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] == 10001  # as in the Containerfile
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()
    assert container["resources"]["limits"]["memory"]
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    assert {"/data", "/tmp"} <= mounts.keys()  # all that is written
    assert set(mounts.values()) == {volume["name"] for volume in pod["volumes"]}
    ports = {port["name"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] in ports


@pytest.mark.parametrize("pod", pods().values(), ids=pods())
def test_secrets_are_files_of_one_secret(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    (volume,) = [each["secret"] for each in pod["volumes"] if "secret" in each]
    given = {item["key"] for item in volume["items"]} if "items" in volume else SECRET_KEYS
    (mount,) = [each["mountPath"] for each in container["volumeMounts"] if each["name"] == "secrets"]
    assert {variable["value"] for variable in container["env"]} == {f"{mount}/{key}" for key in given}


def test_selectors_select_pods() -> None:
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in named("Deployment").values()]
    selectors = [each["spec"]["selector"] for each in named("Service").values()]
    for kind in ("Deployment", "PodDisruptionBudget", "PodMonitor"):
        selectors += [each["spec"]["selector"]["matchLabels"] for each in named(kind).values()]
    selectors += [each["spec"]["podSelector"]["matchLabels"] for each in named("NetworkPolicy").values()]
    assert len(selectors) == 12
    for selector in selectors:
        assert any(selector.items() <= each.items() for each in labels), selector


def test_no_policy_allows_addresses_of_metadata_or_of_the_network() -> None:
    blocks = [
        (policy["metadata"]["name"], to["ipBlock"])
        for policy in named("NetworkPolicy").values()
        for rule in policy["spec"].get("egress", ())
        for to in rule["to"]
        if "ipBlock" in to
    ]

    def allowing(address: str) -> set[str]:
        found = ipaddress.ip_address(address)

        def inside(network: str) -> bool:
            return found in ipaddress.ip_network(network)

        return {
            name for name, block in blocks if inside(block["cidr"]) and not any(map(inside, block.get("except", ())))
        }

    for metadata in ("169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"):
        # The database may be at a private address of IPv6, and then this is one; its port is not that of metadata.
        assert allowing(metadata) <= ({"scrapy-database"} if ":" in metadata else set())
    assert allowing("10.0.0.5") == {"scrapy-database"}  # at the port of PostgreSQL alone
    assert allowing("93.184.215.14") == allowing("2606:2800:21f::1") == {"scrapy-web"}
    # Egress and ingress of all pods are refused, unless a policy allows them.
    names = named("NetworkPolicy")["scrapy-names"]["spec"]
    assert names["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in names


def test_autoscaling_counts_the_units_of_a_worker() -> None:
    (container,) = pods()["scrapy-worker"]["containers"]
    units = container["args"][container["args"].index("--units") + 1]
    (trigger,) = named("ScaledObject")["scrapy-worker"]["spec"]["triggers"]
    (metric,) = named("HorizontalPodAutoscaler")["scrapy-worker"]["spec"]["metrics"]
    assert units == trigger["metadata"]["threshold"] == metric["external"]["target"]["averageValue"]
    adapter = (KUBERNETES / "base" / "autoscaler.yaml").read_text()
    assert trigger["metadata"]["query"] in adapter
    assert f"name: {{as: {metric['external']['metric']['name']}}}" in adapter


def test_workers_reach_the_server_and_no_other_pod() -> None:
    (rule,) = named("NetworkPolicy")["scrapy-worker"]["spec"]["egress"]
    assert rule["to"] == [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "scrapy-server"}}}]


def test_all_files_are_listed() -> None:
    readme = (DEPLOY / "README.md").read_text()
    for path in DEPLOY.iterdir():
        assert path.name in readme or path.name in ("README.md", "secrets", "requirements.txt")
