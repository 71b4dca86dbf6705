"""The chart, rendered by Helm: valid for Kubernetes, the same as the overlays, and every value has its effect."""

import copy
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.dist import package_chart
from gateway.telemetry.distribution import VERSION
from tests.deploy.helm import CHART, run_helm
from tests.deploy.kubernetes import faults_of
from tests.deploy.kustomize import Manifest, build
from tests.deploy.test_kubernetes import KUBERNETES, VERSIONS

pytestmark = pytest.mark.long
_SERVERS = {"to": [{"ipBlock": {"cidr": "10.0.40.0/24"}}], "ports": [{"protocol": "TCP", "port": 5432}]}
_DIGEST = f"sha256:{'0' * 64}"
_VALUES: dict[str, dict[str, Any]] = {
    "default": {},
    "small": {
        "autoscaling": {"maxReplicas": 3},
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
    },
    "production": {
        "autoscaling": {"minReplicas": 3, "maxReplicas": 12},
        "ingress": {"annotations": {"cert-manager.io/cluster-issuer": "letsencrypt"}},
        "serviceMonitor": {"enabled": True},
        "settings": {"GATEWAY_EGRESS_ALLOW": "", "GATEWAY_DATABASE_POOL": "8"},
    },
    "all": {
        "image": {"digest": _DIGEST, "pullSecrets": ["registry"]},
        "secrets": {"GATEWAY_VAULT_URL": {"secret": "vault", "key": "url"}},
        "externalSecrets": {"enabled": True},
        "autoscaling": {"pods": [{"name": "gateway_streams", "averageValue": "500"}]},
        "gatewayApi": {"enabled": True},
        "networkPolicy": {"egress": [_SERVERS]},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True},
        "dashboard": {"enabled": True},
        "podAnnotations": {"a": "b"},
        "nodeSelector": {"pool": "edge"},
        "tolerations": [{"key": "edge", "operator": "Exists"}],
    },
    "fixed": {"autoscaling": {"enabled": False}, "migration": {"enabled": False}, "networkPolicy": {"enabled": False}},
    "misspelt": {"imagee": {}},
    "mistyped": {"replicas": "two"},
    "no variable": {"settings": {"LOG_LEVEL": "info"}},
}
_CUSTOM = {"ServiceMonitor", "PrometheusRule", "ExternalSecret", "HTTPRoute"}
Rendered = dict[str, list[Manifest]]


@pytest.fixture(scope="module")
def helm() -> dict[str, Any]:
    """The output of one run of Helm for all tests."""
    return run_helm(_VALUES)


@pytest.fixture(scope="module")
def rendered(helm: dict[str, Any]) -> Rendered:
    """The manifests of each values that the schema accepts."""
    return {
        name: [one for path, text in files.items() if path.endswith(".yaml") for one in yaml.safe_load_all(text) if one]
        for name, files in helm["rendered"].items()
    }


def _one(manifests: list[Manifest], kind: str, name: str = "mcp-gateway") -> Manifest:
    (found,) = [one for one in manifests if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def test_lint_finds_no_error_and_wrong_values_are_refused(helm: dict[str, Any]) -> None:
    """Ours: a misspelt value does not silently have no effect."""
    assert helm["lint"]["errors"] == []
    assert {one["error"] for one in helm["lint"]["messages"]} <= {"icon is recommended"}
    assert helm["refused"].keys() == {"misspelt", "mistyped", "no variable"}
    assert "imagee" in helm["refused"]["misspelt"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_manifest_of_the_chart_is_valid(version: str, rendered: Rendered) -> None:
    """Ours: the chart installs on Kubernetes 1.27 to 1.37."""
    faults = [
        (name, one["kind"], fault)
        for name, manifests in rendered.items()
        for one in manifests
        if one["kind"] not in _CUSTOM
        for fault in faults_of(one, version)
    ]
    assert faults == []


@pytest.mark.parametrize("overlay", ["production", "small"])
def test_the_chart_and_the_overlay_are_the_same(overlay: str, rendered: Rendered) -> None:
    """Ours: users of Helm and of kustomize run the same gateway."""
    theirs = [
        one for one in build(KUBERNETES / "overlays" / overlay) if one["metadata"]["name"] != "mcp-gateway-servers"
    ]

    assert _normal(rendered[overlay]) == _normal(theirs)


def _normal(manifests: list[Manifest]) -> dict[tuple[str, str], Any]:
    """The manifests without what differs by nature: names, hooks, checksums, and the form of secret volumes."""
    found: dict[tuple[str, str], Any] = {}
    for one in copy.deepcopy(manifests):
        name = "migrate" if "migrate" in one["metadata"]["name"] else "gateway"
        annotations = {
            key: value
            for key, value in one["metadata"].get("annotations", {}).items()
            if not key.startswith("helm.sh/")
        }
        template = one.get("spec", {}).get("template", {})
        template.get("metadata", {}).pop("annotations", None)
        for container in template.get("spec", {}).get("containers", []):
            container.pop("imagePullPolicy", None)
            container["env"] = sorted(container.get("env", []), key=lambda each: str(each["name"]))
        for volume in template.get("spec", {}).get("volumes", []):
            if volume["name"] == "secrets":
                volume.clear()
        found[one["kind"], name] = (annotations, one.get("spec"), one.get("data"))
    return found


def test_every_value_has_its_effect(rendered: Rendered) -> None:
    """Ours: secrets that exist, the image by its digest, other routes, metrics and rules."""
    manifests = rendered["all"]
    pod = _one(manifests, "Deployment")["spec"]["template"]
    (secrets, _) = pod["spec"]["volumes"]
    files = {
        (source["secret"]["name"], item["key"]): item["path"]
        for source in secrets["projected"]["sources"]
        for item in source["secret"]["items"]
    }
    variables = {one["name"]: one["value"] for one in pod["spec"]["containers"][0]["env"]}
    external = {one["metadata"]["name"]: one["spec"] for one in manifests if one["kind"] == "ExternalSecret"}

    assert pod["spec"]["containers"][0]["image"] == f"registry.example.com/mcp-gateway@{_DIGEST}"
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert files["vault", "url"] == "vault_url"
    assert {f"/run/secrets/gateway/{path}" for path in files.values()} == set(variables.values())
    assert pod["metadata"]["annotations"].keys() == {"checksum/config", "checksum/secret", "a"}
    assert external.keys() == {"mcp-gateway", "mcp-gateway-migrate", "vault"}
    assert external["vault"]["data"] == [
        {"secretKey": "url", "remoteRef": {"key": "mcp-gateway/vault", "property": "url"}}
    ]
    assert [one["kind"] for one in manifests if one["kind"] in {"Ingress", "HTTPRoute"}] == ["HTTPRoute"]
    assert _one(manifests, "HorizontalPodAutoscaler")["spec"]["metrics"][1]["pods"]["metric"] == {
        "name": "gateway_streams"
    }
    assert all(_SERVERS in one["spec"]["egress"] for one in manifests if one["kind"] == "NetworkPolicy")
    assert len(_one(manifests, "PrometheusRule")["spec"]["groups"][0]["rules"]) > 10
    assert "panels" in _one(manifests, "ConfigMap", "mcp-gateway-dashboard")["data"]["mcp-gateway.json"]
    kinds = {one["kind"] for one in rendered["fixed"]}
    assert not kinds & {"HorizontalPodAutoscaler", "Job", "NetworkPolicy"}
    assert _one(rendered["fixed"], "Deployment")["spec"]["replicas"] == 2


def test_a_release_whose_migration_fails_stops(rendered: Rendered) -> None:
    """Ours: the job is a hook before the release, and the way to the database is open before the job."""
    hooks = {
        one["kind"]: (
            one["metadata"]["annotations"]["helm.sh/hook"],
            int(one["metadata"]["annotations"]["helm.sh/hook-weight"]),
        )
        for one in rendered["default"]
        if "helm.sh/hook" in one["metadata"].get("annotations", {})
    }

    assert {hook for hook, _ in hooks.values()} == {"pre-install,pre-upgrade"}
    assert hooks["NetworkPolicy"][1] < hooks["Job"][1]


def test_the_packaged_chart_is_the_folder_without_links(tmp_path: Path, helm: dict[str, Any]) -> None:
    """Ours: the archive of a release renders as the folder does, and has the version of the wheel."""
    archive = package_chart(tmp_path)
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True)
    found = run_helm({"all": _VALUES["all"]}, tmp_path / "mcp-gateway")
    metadata = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert found["rendered"]["all"] == helm["rendered"]["all"]
    assert not any(path.is_symlink() for path in (tmp_path / "mcp-gateway").rglob("*"))
    assert (metadata["version"], metadata["appVersion"], archive.name) == (
        VERSION,
        VERSION,
        f"mcp-gateway-{VERSION}.tgz",
    )
    json.loads((tmp_path / "mcp-gateway" / "files" / "dashboard.json").read_text())
