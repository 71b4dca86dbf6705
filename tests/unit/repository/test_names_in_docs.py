"""Settings, metrics, codes and REST paths that pages name: the gateway has each of them."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from gateway.admin.routes.index import ENDPOINTS
from gateway.admin.routes.index import ROOT as ADMIN
from gateway.settings import CLIENT_VARIABLES, FILE_SUFFIX, PREFIX, SECRETS, Settings
from gateway.telemetry.metrics import Metrics

ROOT = Path(__file__).parents[3]
_PAGES = sorted(
    page
    for pattern in ("README.md", "SECURITY.md", "docs/**/*.md", "deploy/**/*.md", "examples/**/*.md")
    for page in (path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern))
    if not page.startswith("docs/decisions/")  # the past
)
_OTHERS_VARIABLES = {
    "GATEWAY_DOMAIN": "docker-compose.yml",
    "GATEWAY_IMAGE": "docker-compose.yml",
    "GATEWAY_UPSTREAMS": "deploy/caddy/Caddyfile",
    "GATEWAY_CLIENT_SECRET": "a secret of the reader's",
    "GATEWAY_WEBHOOK_SECRET": "the command `webhook test`",
    "GATEWAY_EXTRA_": "the beginning of names",
}
_ROLES = {"gateway_app", "gateway_owner", "gateway_definer"}
"""Roles of PostgreSQL, which have the form of metrics."""
_SERIES = ("_bucket", "_sum", "_count")
_OTHERS_PATHS = {"/pets/{id}", "/t/{tenant}/sse", "/customers/M%C3%B6bius%20%26%20Sons/orders?state=open", '{"heads":'}
"""Paths of examples' APIs, of MCP, and a body of a receiver of audit heads."""
_FAMILIES = {
    "auth",
    "call",
    "definition",
    "document",
    "idempotency",
    "input",
    "live_source",
    "policy",
    "source",
    "upstream",
}
"""First words of error codes; audit actions and events share some of them."""


@cache
def variables() -> set[str]:
    """Every variable that a server or a command reads."""
    names = {PREFIX + name.upper() for name in Settings.model_fields}
    return names | {PREFIX + name.upper() + FILE_SUFFIX for name in SECRETS} | CLIENT_VARIABLES


@cache
def metrics() -> set[str]:
    """Every family, with the series of histograms."""
    names = {family.name for family in Metrics().families}
    return names | {name + ending for name in names for ending in _SERIES}


@cache
def constants() -> set[str]:
    """Every string of the source that is a code, an action or an event."""
    return {
        node.value
        for path in (ROOT / "gateway").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"[a-z_]+\.[a-z_]+", node.value)
    }


@cache
def patterns() -> list[tuple[str, list[str]]]:
    """Method and a pattern for each segment of each path of the admin API."""
    return [(one.method, re.sub(r"\{\w+\}", ".+", one.path).split("/")[1:]) for one in ENDPOINTS]


def faults(text: str) -> Iterator[str]:
    """Every name in the text that the gateway does not have."""
    yield from set(re.findall(r"\bGATEWAY_[A-Z][A-Z_]*", text)) - variables() - _OTHERS_VARIABLES.keys()
    yield from set(re.findall(r"\bgateway_[a-z_]+\b", text)) - metrics() - _ROLES
    codes = {name for name in re.findall(r"`([a-z_]+\.[a-z_]+)`", text) if name.partition(".")[0] in _FAMILIES}
    yield from codes - constants()
    for method, path in re.findall(r"`(GET|PUT|POST|PATCH|DELETE) ([^`\s]+)", text):
        if path not in _OTHERS_PATHS and not path.startswith("URL") and not _is_served(method, path):
            yield f"{method} {path}"


def _is_served(method: str, path: str) -> bool:
    """True for a path of the admin API, and for its last segments, which pages write as `…/keys/{id}/rotate`."""
    asked = [one for one in path.partition("?")[0].removeprefix(ADMIN).removeprefix("…").split("/") if one]
    return any(
        one == method and all(map(re.fullmatch, pattern[len(pattern) - len(asked) :], asked))
        for one, pattern in patterns()
        if len(pattern) >= len(asked)
    )


@pytest.mark.parametrize("page", _PAGES)
def test_a_page_names_what_the_gateway_has(page: str) -> None:
    """Ours: a reader who looks for a setting, metric, code or path of a page finds it (SRV-6)."""
    assert sorted(faults((ROOT / page).read_text())) == []


def test_a_name_that_the_gateway_lacks_is_found() -> None:
    """Ours: the check can fail, for each sort of name."""
    text = (
        "`GATEWAY_PROT`, `gateway_cals_total`, `upstream.timout`, `GET /tenants/{t}/tolls`, `PATCH …/keys/{id}/rotate`"
    )

    assert sorted(faults(text)) == [
        "GATEWAY_PROT",
        "GET /tenants/{t}/tolls",
        "PATCH …/keys/{id}/rotate",
        "gateway_cals_total",
        "upstream.timout",
    ]
    assert list(faults("`GATEWAY_PORT`, `gateway_calls_total`, `upstream.timeout`, `POST …/keys/{id}/rotate`")) == []


def test_variables_of_others_are_named_where_they_are_read() -> None:
    """Ours: an exception for a variable of Compose or Caddy ends with the variable."""
    owners = {name: ROOT / owner for name, owner in _OTHERS_VARIABLES.items() if (ROOT / owner).is_file()}

    assert len(owners) == 3
    assert [name for name, path in owners.items() if name not in path.read_text()] == []
