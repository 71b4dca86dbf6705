"""The manifests: valid for three versions of Kubernetes, and agreeing with each other and with the gateway."""

import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from gateway.admin.endpoint import LARGE_BODY
from gateway.calls.arguments import costly_validation as dear_checks
from gateway.calls.arguments.costly_validation import CheckLimits
from gateway.catalog.doctor.environment_checks import check_disk
from gateway.catalog.sources.worker_pool import CONCURRENT_WORKERS, WorkerLimits
from gateway.domain.findings import Verdict
from gateway.settings import FILE_SUFFIX, PREFIX, SECRETS, Settings
from tests.deploy.kubernetes import faults_of
from tests.deploy.kustomize import Manifest, build

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"
OVERLAYS = ("production", "small")
VERSIONS = ("1.27", "1.32", "1.37")
CUSTOM = {"ServiceMonitor"}
"""Not part of Kubernetes: there is no schema of it here."""


def _overlay(name: str) -> list[Manifest]:
    return build(KUBERNETES / "overlays" / name)


def _one(manifests: list[Manifest], kind: str) -> Manifest:
    found = [manifest for manifest in manifests if manifest["kind"] == kind]
    assert len(found) == 1, kind
    return found[0]


def _policies(manifests: list[Manifest]) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] == "NetworkPolicy"]


def _release(manifests: list[Manifest]) -> str:
    """The image's tag as names have it."""
    image: str = _one(manifests, "Deployment")["spec"]["template"]["spec"]["containers"][0]["image"]
    return image.rpartition(":")[2].replace(".", "-")


def _pods(manifests: list[Manifest]) -> list[Manifest]:
    return [manifest["spec"]["template"] for manifest in manifests if "template" in manifest.get("spec", {})]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_manifest_is_valid_and_has_no_field_that_this_version_lacks(overlay: str, version: str) -> None:
    """Ours: the manifests can be applied to Kubernetes 1.27 to 1.37."""
    manifests = _overlay(overlay)

    assert len(manifests) >= 10
    for manifest in manifests:
        if manifest["kind"] not in CUSTOM:
            assert faults_of(manifest, version) == [], manifest["kind"]


def test_a_misspelt_field_is_found() -> None:
    """Ours: the schemas are a check that can fail."""
    deployment = _one(_overlay("production"), "Deployment")
    deployment["spec"]["template"]["spec"]["terminationGracePeriod"] = 30

    assert faults_of(deployment, VERSIONS[0]) != []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_doctor_is_content_with_the_room_that_pods_have(overlay: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: `gateway doctor` finds no fault in the manifests that we ship (SRV-6)."""
    volumes = _one(_overlay(overlay), "Deployment")["spec"]["template"]["spec"]["volumes"]
    [size] = [volume["emptyDir"]["sizeLimit"] for volume in volumes if volume["name"] == "tmp"]

    def usage(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=int(size.removesuffix("Mi")) << 20)

    monkeypatch.setattr("shutil.disk_usage", usage)

    assert check_disk(Path("/tmp"), is_embedded=False).status is Verdict.OK


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_selector_of_pods_selects_the_gateways_own(overlay: str) -> None:
    """Ours: service, disruption budget, network policy and spreading mean the pods of the deployment."""
    manifests = _overlay(overlay)
    deployment = _one(manifests, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    job = _one(manifests, "Job")["spec"]["template"]["metadata"]["labels"]
    policies = {manifest["metadata"]["name"]: manifest for manifest in _policies(manifests)}

    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert _one(manifests, "Service")["spec"]["selector"] == labels
    assert _one(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert policies["mcp-gateway"]["spec"]["podSelector"]["matchLabels"] == labels
    assert policies[f"mcp-gateway-migrate-{_release(manifests)}"]["spec"]["podSelector"]["matchLabels"] == job
    for policy in policies.values():
        assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items() | job.items()
    for spread in deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]:
        assert spread["labelSelector"]["matchLabels"] == labels
    assert labels != job
    scaled = _one(manifests, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["name"]
    assert scaled == deployment["metadata"]["name"]
    assert "replicas" not in deployment["spec"], "the autoscaler owns the number"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_run_unprivileged_on_a_read_only_root(overlay: str) -> None:
    """Ours: the rules of the restricted pod security standard, and no token of the cluster."""
    for pod in _pods(_overlay(overlay)):
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_drain_fits_into_the_grace(overlay: str) -> None:
    """Ours: a pod is not killed while its calls finish (SRV-3)."""
    manifests = _overlay(overlay)
    spec = _one(manifests, "Deployment")["spec"]["template"]["spec"]
    settings = _one(manifests, "ConfigMap")["data"]
    before = float(spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])

    needed = before + float(settings["GATEWAY_NOTICE_S"]) + float(settings["GATEWAY_DRAIN_S"])
    assert needed + 5 <= spec["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_variable_is_one_that_the_gateway_reads(overlay: str) -> None:
    """Ours: a misspelt variable would keep every pod from starting."""
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    known |= {PREFIX + name.upper() + FILE_SUFFIX for name in SECRETS}
    manifests = _overlay(overlay)
    named = {*_one(manifests, "ConfigMap")["data"]}
    named |= {entry["name"] for pod in _pods(manifests) for one in pod["spec"]["containers"] for entry in one["env"]}

    assert named <= known
    assert all(isinstance(value, str) for value in _one(manifests, "ConfigMap")["data"].values())


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_replicas_do_not_see_the_login_that_migrates(overlay: str) -> None:
    """Ours: an attacker of a replica cannot change the schema, or bypass row-level security (TEN-5)."""
    manifests = _overlay(overlay)
    serving = _one(manifests, "Deployment")["spec"]["template"]["spec"]
    migrating = _one(manifests, "Job")["spec"]["template"]["spec"]
    held = [pod["volumes"][0]["secret"]["secretName"] for pod in (serving, migrating)]

    assert held == ["mcp-gateway", "mcp-gateway-migrate"]
    assert "migration" not in yaml.safe_dump(serving)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_each_release_has_a_migration_job_of_its_own(overlay: str) -> None:
    """Ours: a job runs once; the name of the next release's is another."""
    manifests = _overlay(overlay)
    image = _one(manifests, "Deployment")["spec"]["template"]["spec"]["containers"][0]["image"]
    job = _one(manifests, "Job")

    assert job["metadata"]["name"] == f"mcp-gateway-migrate-{_release(manifests)}"
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == image
    assert {manifest["metadata"]["namespace"] for manifest in manifests} == {"mcp-gateway"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_nothing_goes_out_but_to_dns_the_servers_and_public_upstreams(overlay: str) -> None:
    """Ours: egress is shut by default; the metadata address and private networks stay so (TEN-5)."""
    policies = _policies(_overlay(overlay))
    for policy in policies:
        assert "Egress" in policy["spec"]["policyTypes"]
        assert policy["metadata"]["name"] == "mcp-gateway-servers" or "Ingress" in policy["spec"]["policyTypes"]
        for rule in policy["spec"]["egress"]:
            assert rule["ports"], "a rule without ports opens all of them"
            assert rule["to"], "a rule without targets opens all of them"
    blocks = [
        (target["ipBlock"], rule["ports"]) for rule in _rules(policies) for target in rule["to"] if "ipBlock" in target
    ]

    assert {block["cidr"] for block, ports in blocks if ports == [{"protocol": "TCP", "port": 443}]} == _WORLD.keys()
    for block, ports in blocks:
        assert _WORLD.get(block["cidr"], set()) <= set(block.get("except", []))
        assert block["cidr"] in _WORLD or {port["port"] for port in ports} <= {5432, 6379}


def _rules(policies: list[Manifest]) -> list[dict[str, Any]]:
    return [rule for policy in policies for rule in policy["spec"]["egress"]]


_WORLD: dict[str, set[str]] = {
    "0.0.0.0/0": {"10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"},
    "2000::/3": {"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"},
}
"""The networks that represent the internet, and the excluded ones of each."""


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_one_name_of_the_host_is_in_every_place(overlay: str) -> None:
    """Ours: the certificate, the ingress and the URL for clients have one host (SRV-6)."""
    manifests = _overlay(overlay)
    spec = _one(manifests, "Ingress")["spec"]
    url: str = _one(manifests, "ConfigMap")["data"]["GATEWAY_PUBLIC_URL"]
    host = urlsplit(url).hostname

    assert [rule["host"] for rule in spec["rules"]] == [host]
    assert [tls["hosts"] for tls in spec["tls"]] == [[host]]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_named_port_is_the_containers(overlay: str) -> None:
    """Ours: service, ingress, probes, network policy and the scrape mean the port on which the gateway listens."""
    manifests = _overlay(overlay)
    container = _one(manifests, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    service = _one(manifests, "Service")["spec"]["ports"]
    backends = [
        path["backend"]["service"]["port"] for path in _one(manifests, "Ingress")["spec"]["rules"][0]["http"]["paths"]
    ]
    opened = [
        port["port"]
        for policy in _policies(manifests)
        for way in policy["spec"].get("ingress", [])
        for port in way["ports"]
    ]
    scraped = [
        end["port"]
        for manifest in manifests
        if manifest["kind"] == "ServiceMonitor"
        for end in manifest["spec"]["endpoints"]
    ]
    probes = [container[name]["httpGet"]["port"] for name in ("startupProbe", "readinessProbe", "livenessProbe")]

    settings = _one(manifests, "ConfigMap")["data"]
    assert container["ports"] == [
        {"name": "http", "containerPort": Settings.model_fields["port"].default},
        {"name": "admin", "containerPort": int(settings["GATEWAY_ADMIN_PORT"])},
    ]
    assert [(port["name"], port["targetPort"]) for port in service] == [("http", "http"), ("admin", "admin")]
    assert {name for port in backends for name in port.values()} | {*probes} == {"http"}
    assert sorted(opened) == ["admin", "http"]
    assert scraped == (["admin"] if overlay == "production" else [])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_admin_port_is_opened_to_monitoring_alone(overlay: str) -> None:
    """Ours: the ingress controller reaches MCP, Prometheus the admin port; no route leads to an admin path (ISO-6)."""
    manifests = _overlay(overlay)
    ways = {
        port["port"]: [source["namespaceSelector"]["matchLabels"] for source in way["from"]]
        for policy in _policies(manifests)
        for way in policy["spec"].get("ingress", [])
        for port in way["ports"]
    }
    paths = [path["path"] for rule in _one(manifests, "Ingress")["spec"]["rules"] for path in rule["http"]["paths"]]

    assert ways == {
        "http": [{"kubernetes.io/metadata.name": "ingress-nginx"}],
        "admin": [{"kubernetes.io/metadata.name": "monitoring"}],
    }
    assert paths == ["/t/", "/.well-known/", "/docs/errors", "/readyz"]
    settings = _one(manifests, "ConfigMap")["data"]
    assert settings["GATEWAY_ADMIN_HOST"] == "0.0.0.0"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_no_address_is_trusted_to_name_clients_by_default(overlay: str) -> None:
    """Ours: a whole private network is not believed; the operator names the ingress controller's (ISO-6)."""
    assert _one(_overlay(overlay), "ConfigMap")["data"]["GATEWAY_TRUSTED_PROXIES"] == ""


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_replica_has_the_memory_for_the_documents_it_reads(overlay: str) -> None:
    """Ours: a document that takes all it may does not end the replica that has it read."""
    container = _one(_overlay(overlay), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    readers = CONCURRENT_WORKERS * WorkerLimits().memory_bytes // 2**20
    checks = dear_checks.CONCURRENT_CHECKS * CheckLimits().memory_bytes // 2**20

    assert int(container["resources"]["limits"]["memory"].removesuffix("Mi")) >= readers + checks + 512


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_there_are_always_replicas_left_to_serve(overlay: str) -> None:
    """Ours: at least two, evicted one at a time, more of them before the one core of each is full (SRV-6)."""
    manifests = _overlay(overlay)
    scaler = _one(manifests, "HorizontalPodAutoscaler")["spec"]
    rollout = _one(manifests, "Deployment")["spec"]["strategy"]["rollingUpdate"]
    target = scaler["metrics"][0]["resource"]["target"]

    assert scaler["maxReplicas"] > scaler["minReplicas"] >= 2
    assert _one(manifests, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert rollout["maxUnavailable"] == 0
    assert target["type"] == "AverageValue"
    assert 0 < int(target["averageValue"].removesuffix("m")) < 1000


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_streams_pass_the_ingress_as_they_come(overlay: str) -> None:
    """Ours: no buffer and no timeout of a minute lies between a client and its stream."""
    ingress = _one(_overlay(overlay), "Ingress")
    reported = {name.rpartition("/")[2]: value for name, value in ingress["metadata"]["annotations"].items()}
    paths = [path["path"] for rule in ingress["spec"]["rules"] for path in rule["http"]["paths"]]

    assert reported["proxy-buffering"] == "off"
    assert int(reported["proxy-read-timeout"]) >= 3600
    assert "non_idempotent" not in reported["proxy-next-upstream"]
    assert int(reported["proxy-body-size"].removesuffix("m")) * 2**20 > LARGE_BODY
    assert "/metrics" not in paths
    assert "/" not in paths


def test_the_probes_query_paths_that_the_gateway_serves() -> None:
    """Ours: a replica that drains or lost a server is not sent requests, and is not killed for it either."""
    container = _one(_overlay("production"), "Deployment")["spec"]["template"]["spec"]["containers"][0]

    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["startupProbe"]["httpGet"]["path"] == "/healthz"


def test_the_secrets_of_the_page_are_those_that_the_pods_mount(tmp_path: Path) -> None:
    """Ours: the commands that make them run, and every file that a variable names is handed over (SRV-6)."""
    blocks = re.findall(r"^ +```\n(.+?)^ +```", (KUBERNETES / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    making, _, handing, *_ = blocks
    environment = {**os.environ, "HOME": str(tmp_path)}
    subprocess.run(["/bin/sh", "-euc", making], cwd=KUBERNETES, env=environment, check=True, capture_output=True)
    folder = tmp_path / "mcp-gateway-secrets"
    handed = re.findall(r'--from-file="\$SECRETS/(\w+)"', handing)
    manifests = _overlay("production")
    named = [
        entry["value"].rpartition("/")[2]
        for pod in _pods(manifests)
        for entry in pod["spec"]["containers"][0]["env"]
        if entry["name"].endswith(FILE_SUFFIX)
    ]

    assert sorted(handed) == sorted(named)
    assert all((folder / name).stat().st_size for name in handed)
    assert (folder / "database_app_password").read_text() in (folder / "database_url").read_text()
    assert "gateway_owner" in (folder / "migration_database_url").read_text()
    for secret in ("mcp-gateway", "mcp-gateway-migrate"):
        assert f"secret generic {secret} " in handing


def test_a_route_of_the_gateway_api_takes_the_place_of_the_ingress(tmp_path: Path) -> None:
    """Ours: clusters without an ingress controller are served, too."""
    reported = {"resources": [str(KUBERNETES / "base")], "components": [str(KUBERNETES / "components/gateway-api")]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(reported))
    manifests = build(KUBERNETES / "base")
    route = _one(build(tmp_path), "HTTPRoute")
    wanted = [path["path"] for rule in _one(manifests, "Ingress")["spec"]["rules"] for path in rule["http"]["paths"]]

    assert not [manifest for manifest in build(tmp_path) if manifest["kind"] == "Ingress"]
    assert route["spec"]["hostnames"] == [rule["host"] for rule in _one(manifests, "Ingress")["spec"]["rules"]]
    assert route["spec"]["rules"][0]["timeouts"] == {"request": "0s", "backendRequest": "0s"}
    assert [match["path"]["value"] for match in route["spec"]["rules"][0]["matches"]] == wanted
    assert route["spec"]["rules"][0]["backendRefs"][0]["name"] == _one(manifests, "Service")["metadata"]["name"]
