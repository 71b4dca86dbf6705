"""The manifests: valid for three versions of Kubernetes, and agreeing with each other and with the gateway."""

from pathlib import Path
from typing import Any

import pytest
import yaml

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
def test_whatever_selects_pods_selects_the_gateways_own(overlay: str) -> None:
    """Ours: service, disruption budget, network policy and spreading mean the pods of the deployment."""
    manifests = _overlay(overlay)
    deployment = _one(manifests, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    job = _one(manifests, "Job")["spec"]["template"]["metadata"]["labels"]
    policies = [manifest for manifest in manifests if manifest["kind"] == "NetworkPolicy"]

    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert _one(manifests, "Service")["spec"]["selector"] == labels
    assert _one(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert [policy["spec"]["podSelector"]["matchLabels"] for policy in policies] == [labels, job]
    for spread in deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]:
        assert spread["labelSelector"]["matchLabels"] == labels
    assert labels != job
    scaled = _one(manifests, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["name"]
    assert scaled == deployment["metadata"]["name"]
    assert "replicas" not in deployment["spec"], "the autoscaler owns the number"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_run_as_nobody_in_particular_on_a_root_they_cannot_write(overlay: str) -> None:
    """Ours: what the restricted pod security standard asks for, and no token of the cluster."""
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
    """Ours: whoever takes over a replica cannot change the schema, or look past row-level security (TEN-5)."""
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

    release = image.rpartition(":")[2].replace(".", "-")
    assert job["metadata"]["name"] == f"mcp-gateway-migrate-{release}"
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == image
    assert {manifest["metadata"]["namespace"] for manifest in manifests} == {"mcp-gateway"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_nothing_goes_out_but_to_dns_the_servers_and_public_upstreams(overlay: str) -> None:
    """Ours: egress is shut by default; the metadata address and private networks stay so (TEN-5)."""
    manifests = _overlay(overlay)
    for policy in (manifest for manifest in manifests if manifest["kind"] == "NetworkPolicy"):
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
        for rule in policy["spec"]["egress"]:
            assert rule["ports"], "a rule without ports opens all of them"
            assert rule["to"], "a rule without targets opens all of them"
            for target in rule["to"]:
                block: dict[str, Any] = target.get("ipBlock", {})
                assert not block or {"169.254.0.0/16", "10.0.0.0/8", "127.0.0.0/8"} <= set(block["except"])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_streams_pass_the_ingress_as_they_come(overlay: str) -> None:
    """Ours: no buffer and no timeout of a minute stands between a client and its stream."""
    ingress = _one(_overlay(overlay), "Ingress")
    said = {name.rpartition("/")[2]: value for name, value in ingress["metadata"]["annotations"].items()}
    paths = [path["path"] for rule in ingress["spec"]["rules"] for path in rule["http"]["paths"]]

    assert said["proxy-buffering"] == "off"
    assert int(said["proxy-read-timeout"]) >= 3600
    assert "non_idempotent" not in said["proxy-next-upstream"]
    assert "/metrics" not in paths
    assert "/" not in paths


def test_the_probes_ask_what_the_gateway_answers() -> None:
    """Ours: a replica that drains or lost a server is not sent requests, and is not killed for it either."""
    container = _one(_overlay("production"), "Deployment")["spec"]["template"]["spec"]["containers"][0]

    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["startupProbe"]["httpGet"]["path"] == "/healthz"


def test_a_route_of_the_gateway_api_takes_the_place_of_the_ingress() -> None:
    """Ours: clusters without an ingress controller are served, too."""
    manifests = build(KUBERNETES / "base")
    component = yaml.safe_load((KUBERNETES / "components/gateway-api/kustomization.yaml").read_text())
    route = yaml.safe_load((KUBERNETES / "components/gateway-api/httproute.yaml").read_text())
    wanted = [path["path"] for rule in _one(manifests, "Ingress")["spec"]["rules"] for path in rule["http"]["paths"]]

    assert component["resources"] == ["httproute.yaml"]
    assert [match["path"]["value"] for match in route["spec"]["rules"][0]["matches"]] == wanted
    assert route["spec"]["rules"][0]["backendRefs"][0]["name"] == _one(manifests, "Service")["metadata"]["name"]
