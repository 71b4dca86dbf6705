"""The wheel of the repository: an installation has a working `gateway stdio`, without any extra."""

import json
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

from tests.behaviour.cli.conftest import environment

ROOT = Path(__file__).parents[2]
_CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
_REQUESTS = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _CLIENT},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


def _installed(folder: Path) -> Path:
    """The Python of an environment with the wheel, and with the dependencies of this one but not its gateway."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    venv.create(folder / "venv", with_pip=False)
    packages = next((folder / "venv" / "lib").glob("python*/site-packages"))
    packages.joinpath("dependencies.pth").write_text(sysconfig.get_path("purelib"))
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(packages)
    return folder / "venv" / "bin" / "python"


def test_the_wheel_serves_a_document_on_standard_streams(tmp_path: Path) -> None:
    """Ours: an installation by `pipx` or `uvx` from the wheel starts elsewhere, and its workers too (SRV-1)."""
    python = _installed(tmp_path)
    document = tmp_path / "openapi.yaml"
    document.write_text((ROOT / "examples/library/openapi.yaml").read_text())
    given = "\n".join(map(json.dumps, _REQUESTS))
    variables = {name: value for name, value in environment().items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-m", "gateway", "stdio", "--spec", document.name],
        input=given.encode(),
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        check=False,
    )
    place = subprocess.run(
        [python, "-c", "import gateway; print(gateway.__file__)"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        check=True,
    )

    assert str(tmp_path) in place.stdout.decode()
    assert done.returncode == 0, done.stderr
    responses = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(responses[1]["result"]["tools"]) == 10
