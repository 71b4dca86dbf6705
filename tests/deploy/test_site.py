"""The site: whole generated parts, refusals of links that lead nowhere, and pages that load nothing from outside."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from gateway.admin.openapi.document import describe
from gateway.admin.routes.index import ENDPOINTS
from gateway.cli.main import gateway
from gateway.domain.listed.client_limits import LIMITS
from gateway.settings import Settings
from gateway.telemetry.metrics import Metrics
from gateway.web.kinds.manifests import manifest_schema
from tests import promises
from tests.guard_table import GUARDS
from tests.site.__main__ import build, main
from tests.site.pages import DOCS, INDEX, ROOT, linked_files, navigation, page, parts_named, start_page
from tests.site.parts import PARTS
from tests.support.chromium import Browser, browser, chromium
from tests.support.replicas import until

__all__ = ["browser", "chromium"]

_PAGES = sorted(DOCS.rglob("*.md"))
_PATIENCE_S = 30


def _commands(command: click.Command, path: str) -> list[str]:
    """The paths of a group's commands that help shows."""
    if not isinstance(command, click.Group):
        return [path]
    context = click.Context(command)
    below = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return [
        path,
        *(each for name, one in below.items() if one and not one.hidden for each in _commands(one, f"{path} {name}")),
    ]


def _manifest_kinds() -> list[str]:
    schema: Mapping[str, Any] = manifest_schema()
    kinds: list[str] = schema["properties"]["kind"]["enum"]
    return kinds


_EXPECTED: dict[str, Callable[[], list[str]]] = {
    "settings": lambda: [f"| `GATEWAY_{name.upper()}` |" for name in Settings.model_fields],
    "metrics": lambda: [f"| `{family.name}` | {family.kind} |" for family in Metrics().families],
    "commands": lambda: [f"## `{path}`\n" for path in _commands(gateway, "gateway")],
    "kinds": lambda: [f"### {name}\n" for name in _manifest_kinds()],
    "clients": lambda: [one.source for one in LIMITS],
    "decisions": lambda: [f"]({path.name}) |" for path in (DOCS / "decisions").glob("0*.md")],
    "guards": lambda: [f"` | `{guard.test}` |" for guard in GUARDS],
    "promises": lambda: [f"## {name}: {promises.TITLES[name]}" for name in promises.tests_by_promise()],
    "file-map": lambda: [f"## `{path.parent.relative_to(ROOT)}/`" for path in (ROOT / "gateway").rglob("*.py")],
    "admin-api": lambda: [
        f"### {method.upper()} {path}\n"
        for path, methods in json.loads(json.dumps(describe(ENDPOINTS, server="/")["paths"])).items()
        for method in methods
    ],
}


@pytest.mark.parametrize("name", sorted(PARTS))
def test_a_generated_part_has_everything(name: str) -> None:
    """Ours: the reference is made of the code, and nothing of the code is missing in it."""
    expected, text = _EXPECTED[name](), PARTS[name]() + "\n"

    assert len(expected) > 5
    assert [one for one in expected if one not in text] == []
    assert "<!-- " not in text


def test_each_part_has_one_page() -> None:
    """Ours: a generated part is shown once, and a page asks for no part that is not made."""
    assert sorted(name for path in _PAGES for name in parts_named(path)) == sorted(PARTS)


def test_a_page_has_its_parts_and_its_own_text(tmp_path: Path) -> None:
    """Ours: the note for readers of the repository is replaced, the text around it stays."""
    path = DOCS / "settings.md"
    shown = page(path, {"settings": lambda: "MADE"})

    assert shown.endswith("\n\nMADE\n")
    assert shown.startswith(path.read_text().partition("<!--")[0])


def test_the_navigation_is_the_index() -> None:
    """Ours: a reader finds tutorial, how-to, reference and explanation, and each page once."""
    tree = navigation()
    pages = [one for section in tree.values() for one in section]

    assert list(tree) == ["Tutorial", "How-to", "Reference", "Explanation", "Development"]
    assert len(pages) == len(set(pages)) > 50
    assert all(f"\n{one.removesuffix('.md')}\n" in start_page() for one in pages)
    assert all((ROOT / one).is_file() for one in pages)


def test_linked_pages_are_in_the_site() -> None:
    """Ours: examples and tables of the tests that a page names can be opened from it."""
    names = {path.relative_to(ROOT).as_posix() for path in linked_files()}

    assert {"CONTRIBUTING.md", "docs/keys.md", "examples/provider.py", "gateway/settings.py"} <= names
    assert "docs/README.md" not in names


@pytest.mark.parametrize(
    ("added", "complaint"),
    [
        ("[a](other.md#there)", None),
        ("[a](missing.md)", "missing.md"),
        ("[a](other.md#nowhere)", "nowhere"),
        ("```{toctree}\nmissing\n```", "nonexisting document 'missing'"),
    ],
)
def test_the_build_refuses_what_leads_nowhere(
    added: str, complaint: str | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ours: a broken link, a missing anchor and a missing page end the build."""
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.md").write_text(f"# Start\n\n```{{toctree}}\nother\n```\n\n{added}\n")
    (pages / "other.md").write_text("# Other\n\n## There\n\nText.\n")

    code = build(pages, tmp_path / "site")

    assert (code == 0) == (complaint is None)
    assert (complaint or "") in capfd.readouterr().err


def test_the_build_refuses_a_page_that_is_not_listed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Ours: a page without a line in the index is in no navigation, and ends the build."""
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.md").write_text("# Start\n\nText.\n")
    (pages / "forgotten.md").write_text("# Forgotten\n\nText.\n")

    assert build(pages, tmp_path / "site") != 0
    assert "forgotten.md: WARNING: document isn't included in any toctree" in capfd.readouterr().err


@pytest.mark.early
def test_pages_alone_are_markdown(tmp_path: Path) -> None:
    """Ours: `make map` writes every page with its parts, for readers without a browser."""
    assert main(["--pages"], tmp_path) == 0

    text = (tmp_path / "pages" / "docs" / "development" / "file-map.md").read_text()
    assert "| `errors.py` | " in text
    assert not (tmp_path / "site").exists()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("docs")
    assert main([], folder) == 0
    return folder / "site"


@pytest.mark.long
def test_the_site_is_built_and_loads_nothing_from_outside(site: Path) -> None:
    """Ours: `make docs` builds every page; styles, scripts and the index of the search come from the site."""
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    expected = {path.relative_to(ROOT).with_suffix(".html").as_posix() for path in _PAGES if path != INDEX}
    loaded = re.compile(
        r"""(?:<script[^>]*\ssrc=|<link[^>]*\shref=|<img[^>]*\ssrc=|@import|url\()\s*["']?(?:https?:)?//"""
    )
    files = [path for path in site.rglob("*") if path.suffix in {".html", ".css"}]

    assert expected <= built
    assert "index.html" in built
    assert [path for path in files if loaded.search(path.read_text())] == []


@pytest.mark.long
async def test_the_search_finds_pages_without_a_server(site: Path, browser: Browser) -> None:
    """Ours: a reader who has the folder of the site searches it offline, in Chromium, also in generated parts."""
    found: dict[str, str] = {}

    async def is_done() -> bool:
        return "page" in str(await browser.ask("document.querySelector('.search-summary')?.innerText"))

    for words in ("rotate+key", "gateway_calls_total", "GATEWAY_TRUSTED_PROXIES", "upstream.egress_denied"):
        await browser.open(f"{(site / 'search.html').as_uri()}?q={words}")
        await until(is_done, seconds=_PATIENCE_S)
        found[words] = str(await browser.ask("document.querySelector('#search-results').innerHTML"))

    assert 'href="docs/keys.html' in found["rotate+key"]
    assert 'href="docs/metrics.html' in found["gateway_calls_total"]
    assert 'href="docs/settings.html' in found["GATEWAY_TRUSTED_PROXIES"]
    assert 'href="docs/errors.html' in found["upstream.egress_denied"]
    assert browser.faults == []
