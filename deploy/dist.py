"""`python deploy/dist.py`: everything of a release that needs no registry and no signing key, in the folder `dist`.

The wheel, the source and the chart; the bill of materials and the assessments of known vulnerabilities (CycloneDX); a
bundle that installs without a network on the same platform and Python; the notes of the version; and the checksums.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_LOCK = "requirements.txt"
_INSTALL = """#!/bin/sh
# Installs the gateway into the folder that the argument names, without a network.
set -eu
target="${1:?usage: install.sh FOLDER}"
case "$target" in /*) ;; *) target="$PWD/$target" ;; esac
cd "$(dirname "$0")"
"${PYTHON:-python3}" -m venv "$target"
"$target/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --find-links wheels --no-deps \\
    --require-hashes -r requirements.txt
"$target/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps \\
    wheels/mcp_tenant_gateway-*.whl
"$target/bin/gateway" --version
"""


def main(folder: Path) -> None:
    """Build; an earlier content of the folder is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _run("hatchling", "build", "-d", str(folder))
    wheel = next(folder.glob("*.whl"))
    version = wheel.name.split("-")[1]
    bill = folder / f"sbom-{version}.cdx.json"
    given = ("--pyproject", "pyproject.toml", "--output-reproducible", "--of", "JSON")
    _run("cyclonedx_py", "requirements", _LOCK, *given, "-o", str(bill))
    shutil.copy(_ROOT / "deploy" / "vex.cdx.json", folder / f"vex-{version}.cdx.json")
    chart = package_chart(folder)
    _write_bundle(folder, (wheel, chart), version)
    (folder / "notes.md").write_text(notes((_ROOT / "CHANGELOG.md").read_text(), version))
    files = sorted(path for path in folder.iterdir() if path.is_file())
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(sums))
    print(*(f"{path.stat().st_size:>12,} {path.name}" for path in files), sep="\n")


def notes(changelog: str, version: str) -> str:
    """Return the section of a version; that of unreleased changes if the version has none."""
    sections = dict(re.findall(r"^## \[?([\w.]+)\]?[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL))
    return str(sections.get(version) or sections["Unreleased"]).strip() + "\n"


def package_chart(folder: Path) -> Path:
    """Write the archive of the chart; its links to alerts and dashboards become files."""
    chart = _ROOT / "deploy" / "helm" / "mcp-gateway"
    found = re.search(r"^version: (\S+)$", (chart / "Chart.yaml").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{chart}: no version")
    archive = folder / f"{chart.name}-{found[1]}.tgz"
    with tarfile.open(archive, "w:gz", dereference=True) as packed:
        packed.add(chart, arcname=chart.name)
    return archive


def _write_bundle(folder: Path, files: Sequence[Path], version: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / f"gateway-{version}"
        wheels = root / "wheels"
        wheels.mkdir(parents=True)
        locked = ("--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", _LOCK)
        _run("pip", "download", "--quiet", "--disable-pip-version-check", *locked, "-d", str(wheels))
        for file in files:
            shutil.copy(file, wheels if file.suffix == ".whl" else root)
        shutil.copy(_ROOT / _LOCK, root)
        shutil.copy(_ROOT / "LICENSE", root)
        install = root / "install.sh"
        install.write_text(_INSTALL)
        install.chmod(0o755)
        with tarfile.open(folder / f"gateway-{version}-offline.tar.gz", "w:gz") as archive:
            archive.add(root, arcname=root.name)


def _run(module: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], cwd=_ROOT, check=True)


if __name__ == "__main__":
    main(_ROOT / "dist")
