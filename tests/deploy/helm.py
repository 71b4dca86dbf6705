"""Helm's own SDK on our chart, in an environment of its own: 250 MB that no other test needs."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from tests.deploy.compose import ROOT

CHART = ROOT / "deploy" / "helm" / "mcp-gateway"
_PACKAGE = "helm-python-sdk==0.2.2"
_PATIENCE_S = 300
_SCRIPT = """
import json, sys
import helm_python as helm
chart, asked = sys.argv[1], json.load(sys.stdin)
found = {"lint": helm.lint(chart), "rendered": {}, "refused": {}}
with helm.Chart.load(chart) as loaded:
    for name, values in asked.items():
        try:
            loaded.validate_schema(values)
            found["rendered"][name] = loaded.render(values, name="mcp-gateway", namespace="mcp-gateway")
        except helm.HelmError as error:
            found["refused"][name] = str(error)
json.dump(found, sys.stdout)
"""


def run_helm(values: Mapping[str, Mapping[str, Any]], chart: Path = CHART) -> dict[str, Any]:
    """The findings of lint, and the rendered files or the refusal of each of these values."""
    uv = Path(sys.executable).with_name("uv")
    python = ["run", "--no-project", "--quiet", "--python", sys.executable, "--with", _PACKAGE, "python"]
    done = subprocess.run(
        [uv, *python, "-c", _SCRIPT, chart],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return cast("dict[str, Any]", json.loads(done.stdout))
