"""Objects with a value of their own in every member, exported and set again from the command line.

One tenant is generated from the declarations; the other was stored by commit 79130e09 and migrated to this tree.
"""

import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from gateway.cli.exit_codes import ExitCode
from gateway.cli.main import gateway as command
from gateway.kinds.kind import Kind
from gateway.kinds.manifests import Declared, kind_in_manifests
from gateway.kinds.primitives import TOOL
from tests.behaviour.cli.conftest import Terminal
from tests.golden.values import restore
from tests.support.gateway import OPERATOR_KEY, RunningGateway, running_gateway
from tests.support.generated_objects import EVERY, Generated, generate_tenant
from tests.support.servers import TestServers
from tests.support.stand import running_stand

SLUG = "acme"


@pytest.fixture(scope="module")
async def of_then(servers: TestServers) -> AsyncGenerator[RunningGateway]:
    """A gateway of this tree over the rows of commit 79130e09."""
    with servers.database(), servers.empty_database() as database, servers.held_redis() as redis_url:
        await restore(database)
        async with running_gateway(database.app_url, redis_url) as found:
            yield found


@pytest.fixture(scope="module")
async def of_now(servers: TestServers) -> AsyncGenerator[RunningGateway]:
    """A gateway with a generated tenant, which no test changes."""
    async with running_stand(servers, public_url="https://gateway.example") as stand:
        made = await generate_tenant(stand.gateway, stand.upstreams[0], SLUG)
        assert [one.kind.name for one in made.values() if _is_empty(one)] == []
        yield stand.gateway


def _is_empty(one: Generated) -> bool:
    return not one.objects


def _at(gateway: RunningGateway, folder: Path) -> Terminal:
    variables = {"GATEWAY_URL": gateway.url, "GATEWAY_OPERATOR_KEY": OPERATOR_KEY, "GATEWAY_TENANT": SLUG}
    return Terminal(gateway=gateway, folder=folder, variables=variables)


async def _newest(gateway: RunningGateway) -> object:
    """The newest change of the tenant, and its revision."""
    found = await gateway.admin.get(f"/tenants/{SLUG}/audit", params={"kind": "change", "limit": 1})
    tenant = await gateway.admin.get(f"/tenants/{SLUG}")
    return [one["id"] for one in found.json()["items"]], tenant.headers["etag"]


async def test_an_export_is_applied_without_an_entry(of_now: RunningGateway, tmp_path: Path) -> None:
    """Ours: `apply` and `diff` find what `export` writes of every kind and member equal (CFG-1)."""
    await _check_export(of_now, tmp_path)


async def test_an_export_after_an_upgrade_is_applied_without_an_entry(of_then: RunningGateway, tmp_path: Path) -> None:
    """Ours: the same for objects of every kind that commit 79130e09 stored and this tree has migrated (CFG-1)."""
    await _check_export(of_then, tmp_path)


async def _check_export(gateway: RunningGateway, folder: Path) -> None:
    terminal, before = _at(gateway, folder), await _newest(gateway)
    await terminal.do("export", "-o", "all")
    kinds = {path.stem for path in (folder / "all").iterdir()}
    assert kinds >= {kind_in_manifests(kind.name) for kind in EVERY}

    equal = await terminal.run("diff", "-f", "all")
    await terminal.do("apply", "-f", "all", "--yes")
    again = await terminal.run("diff", "-f", "all", "--json")

    assert (equal.code, again.code) == (ExitCode.OK, ExitCode.OK), equal.out
    report: Any = again.value
    assert [one["outcome"] for one in report["tenants"]] == ["equal"]
    assert await _newest(gateway) == before


@pytest.mark.parametrize("kind", EVERY, ids=lambda one: one.name)
async def test_printed_objects_are_set_again_without_a_change(
    of_now: RunningGateway, kind: Declared, tmp_path: Path
) -> None:
    """Ours: `set -` takes what `show --json` and `list --json` print, and changes nothing, for every kind (CLI-1)."""
    terminal, before = _at(of_now, tmp_path), await _newest(of_now)
    words = _words(kind)
    shown: Any = (await terminal.do(*words, "list" if isinstance(kind, Kind) else "show", "--json")).value
    items = [one for one in shown if not _is_built_in(kind, one)] if isinstance(kind, Kind) else shown
    if isinstance(kind, Kind):
        key = items[0]["id"] if kind.address == "id" else items[0][kind.keyed]
        assert (await terminal.do(*words, "show", key, "--json")).value == items[0]
    again = await terminal.do(*words, "set", "-", "--json", given=json.dumps(items))
    assert again.value == items
    assert await _newest(of_now) == before


def _words(kind: Declared) -> Sequence[str]:
    """The words of the command group of a kind."""
    name = kind.name.replace("_", "-")
    return [name] if name in command.list_commands(click.Context(command)) else kind.name.split("_")


def _is_built_in(kind: Kind[Any], shown: dict[str, Any]) -> bool:
    """True for an object that no request creates: a built-in one, or the tool of a source."""
    is_imported = kind is TOOL and shown["handler"] is None
    return is_imported or (kind.built_in is not None and shown.get("id") == kind.built_in.id)
