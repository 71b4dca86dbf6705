"""Output of the real kustomize for our folders: the same as that of the renderer with which all other tests
read them.
"""

import subprocess
from typing import Any, cast

import pytest
import yaml

from tests.deploy.kubectl import find_kubectl
from tests.deploy.kustomize import Manifest, build
from tests.deploy.test_kubernetes import KUBERNETES, OVERLAYS


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_real_kustomize_makes_the_same(overlay: str) -> None:
    """Ours: `kubectl kustomize` of an overlay is, manifest by manifest, what the tests examine."""
    folder = KUBERNETES / "overlays" / overlay
    ended = subprocess.run(
        [find_kubectl(), "kustomize", str(folder)], capture_output=True, text=True, timeout=120, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert _named(cast(list[Manifest], list(yaml.safe_load_all(ended.stdout)))) == _named(build(folder))


def _named(manifests: list[Manifest]) -> dict[tuple[Any, Any], Manifest]:
    named = {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in manifests}
    assert len(named) == len(manifests)
    return named
