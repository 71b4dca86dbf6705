"""Declared live sources over a real database: names, references, limits, commands, other tenants."""

from dataclasses import replace

import pytest

from gateway.catalog import tenants
from gateway.catalog.kinds.credentials import CREDENTIALS
from gateway.catalog.kinds.live_sources import LIVE_SOURCES, reattach_live_source
from gateway.catalog.kinds.singletons import POLICY
from gateway.catalog.live.attachments import all_enabled, load
from gateway.catalog.sources.drafts import SourceDraft
from gateway.catalog.sources.imports import import_source
from gateway.catalog.transaction import Author
from gateway.domain.events import CatalogMoved, LiveSourceChanged
from gateway.domain.identifiers import KeyId
from gateway.domain.live_sources import AttachmentState, LiveKind, LiveSource
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Principal
from gateway.errors import (
    Conflict,
    DefinitionInvalid,
    Forbidden,
    NameTaken,
    NotFound,
    PreconditionFailed,
    ReferenceMissing,
)
from gateway.kinds.sources import LIVE_SOURCE
from gateway.web.kinds.models import models_of
from tests.integration.catalog.conftest import BY, Changes
from tests.support.catalog_options import with_options
from tests.support.credentials import make_credential
from tests.support.live_sources import declare_live, live_draft

AGENT = live_draft("laptop", LiveKind.AGENT)
MCP = live_draft("wiki", LiveKind.MCP, settings={"url": "https://wiki.example/mcp"})
COMMAND = live_draft("program", LiveKind.COMMAND, settings={"argv": ["server"]})
_DOCUMENT = '{"openapi":"3.1.0","info":{"title":"t","version":"1"},"servers":[{"url":"https://a.example"}],"paths":{}}'


async def test_a_live_source_is_created_changed_and_removed(changes: Changes) -> None:
    """Ours: each change is one revision with an event to the replicas; a change detaches."""
    acme, catalog = changes.tenant.id, changes.catalog
    made = await declare_live(acme, catalog, AGENT, by=BY)
    changes.events.clear()

    changed = await LIVE_SOURCES.change(acme, catalog, "laptop", lambda draft: replace(draft, prefix="pc"), by=BY)
    same = await LIVE_SOURCES.change(acme, catalog, made.id, lambda draft: draft, by=BY)

    assert (changed.version, changed.prefix, changed.status.state) == (2, "pc", AttachmentState.DETACHED)
    assert replace(same, version=2, updated_at=changed.updated_at) == changed
    assert same == await LIVE_SOURCES.get(acme, catalog, "laptop")
    assert [type(event) for event in changes.events] == [CatalogMoved, LiveSourceChanged, CatalogMoved]
    assert await load(acme, catalog, made.id) == same
    assert await all_enabled(catalog) == [(acme, made.id, LiveKind.AGENT)]
    await LIVE_SOURCES.remove(acme, catalog, "laptop", by=BY)
    assert changes.events[-1] == LiveSourceChanged(tenant=acme, source=made.id)
    assert await load(acme, catalog, made.id) is None
    with pytest.raises(NotFound):
        await reattach_live_source(acme, catalog, "laptop")


async def test_a_disabled_live_source_is_not_attached(changes: Changes) -> None:
    """Ours: replicas do not see it."""
    made = await declare_live(changes.tenant.id, changes.catalog, replace(AGENT, enabled=False), by=BY)

    assert await load(changes.tenant.id, changes.catalog, made.id) is None
    assert await all_enabled(changes.catalog) == []


async def test_names_are_shared_with_sources_of_documents(changes: Changes) -> None:
    """Ours: a profile selects by the name of a source, so that name means one source."""
    acme, catalog = changes.tenant.id, changes.catalog
    await declare_live(acme, catalog, AGENT, by=BY)
    await import_source(acme, catalog, SourceDraft(name="api", document=_DOCUMENT), by=BY)

    with pytest.raises(NameTaken) as taken:
        await declare_live(acme, catalog, replace(AGENT, name="api"), by=BY)
    with pytest.raises(NameTaken) as again:
        await declare_live(acme, catalog, AGENT, by=BY)
    with pytest.raises(NameTaken) as other:
        await import_source(acme, catalog, SourceDraft(name="laptop", document=_DOCUMENT), by=BY)

    owners = [found.value.conflicts[0].owner for found in (taken, again, other)]
    assert owners == ["source:api", "live_source:laptop", "live_source:laptop"]


async def test_references_of_a_live_source_must_exist(changes: Changes) -> None:
    """Ours: URL, headers and credential are judged together; a credential in use stays."""
    acme, catalog = changes.tenant.id, changes.catalog
    stored = make_credential("wiki-key", origins=("https://wiki.example",), value="secret")
    await CREDENTIALS.create(acme, catalog, stored, by=BY)
    elsewhere = {"url": "https://other.example/mcp"}
    for draft, pointer in [
        (replace(MCP, credential="missing"), "/credential"),
        (replace(MCP, settings=elsewhere, credential="wiki-key"), "/credential"),
        (replace(AGENT, credential="wiki-key"), "/credential"),
        (replace(MCP, settings={**elsewhere, "headers": {"Authorization": "x"}}), "/settings/headers/Authorization"),
        (replace(MCP, settings={**elsewhere, "headers": {"Cookie": "x"}}), "/settings/headers/Cookie"),
        (replace(MCP, settings={**elsewhere, "headers": {"Host": "x"}}), "/settings/headers/Host"),
        (replace(MCP, settings={**elsewhere, "headers": {"Mcp-Session-Id": "x"}}), "/settings/headers/Mcp-Session-Id"),
        (replace(MCP, settings={**elsewhere, "headers": {"X-A": "ü"}}), "/settings/headers/X-A"),
    ]:
        with pytest.raises(ReferenceMissing) as refused:
            await declare_live(acme, catalog, draft, by=BY)
        assert [fault.pointer for fault in refused.value.faults] == [pointer]
    await declare_live(acme, catalog, replace(MCP, credential="wiki-key"), by=BY)

    with pytest.raises(Conflict, match="live source wiki"):
        await CREDENTIALS.remove(acme, catalog, "wiki-key", by=BY)


async def test_the_policy_limits_the_origins_of_live_sources(changes: Changes) -> None:
    """Ours: `http_origins` holds for MCP servers as for declared requests."""
    acme, catalog = changes.tenant.id, changes.catalog
    await POLICY.change(acme, catalog, lambda policy: replace(policy, http_origins=("https://api.example",)), by=BY)

    with pytest.raises(ReferenceMissing, match="policy"):
        await declare_live(acme, catalog, MCP, by=BY)


async def test_only_the_operator_declares_commands_and_only_if_allowed(changes: Changes) -> None:
    """Ours: a tenant never starts a program; a switched-off gateway attaches none that was declared before."""
    acme, catalog = changes.tenant.id, changes.catalog
    allowed = with_options(catalog, live_commands=True)
    admin = Principal(
        tenant=acme, slug="acme", key=KeyId("key_1"), subject="s", scopes=frozenset({Scope.ADMIN}), profile=None
    )
    by_admin = Author(caller=admin, correlation_id="test")

    with pytest.raises(Forbidden, match="GATEWAY_LIVE_COMMANDS"):
        await declare_live(acme, catalog, COMMAND, by=BY)
    with pytest.raises(Forbidden, match="operator"):
        await declare_live(acme, allowed, COMMAND, by=by_admin)
    made = await declare_live(acme, allowed, COMMAND, by=BY)
    with pytest.raises(Forbidden, match="operator"):
        await LIVE_SOURCES.change(
            acme, allowed, "program", lambda draft: replace(draft, settings={"argv": ["sh"]}), by=by_admin
        )

    assert await load(acme, catalog, made.id) is None
    assert await all_enabled(catalog) == []
    assert await load(acme, allowed, made.id) == made
    assert await all_enabled(allowed) == [(acme, made.id, LiveKind.COMMAND)]


async def test_a_variable_that_is_not_shown_keeps_its_value_for_its_program(changes: Changes) -> None:
    """Attack: null keeps a value of `env`, but never hands it to another program; entries and GET lack it."""
    acme, catalog = changes.tenant.id, with_options(changes.catalog, live_commands=True)
    made = await declare_live(
        acme, catalog, replace(COMMAND, settings={"argv": ["server"], "env": {"A": "secret", "B": "b"}}), by=BY
    )
    models = models_of(LIVE_SOURCE)
    shown = models.show(made, made.status).model_dump()
    assert shown["settings"] == {"argv": ["server"], "env": {"A": None, "B": None}}
    whole = models.whole.model_validate_json(models.show(made, made.status).model_dump_json())
    same = await LIVE_SOURCES.set(acme, catalog, "program", lambda one: models.compose(whole, "", one), by=BY)
    assert same == (made, False, None)

    async def change(**settings: object) -> LiveSource:
        return await LIVE_SOURCES.change(acme, catalog, "program", lambda one: replace(one, settings=settings), by=BY)

    kept = await change(argv=["server"], env={"A": None, "B": "other"})
    assert kept.settings["env"] == {"A": "secret", "B": "other"}
    for settings in ({"argv": ["sh"], "env": {"A": None}}, {"argv": ["server"], "env": {"C": None}}):
        with pytest.raises(DefinitionInvalid) as refused:
            await change(**settings)
        assert [fault.pointer for fault in refused.value.faults] in (["/settings/env/A"], ["/settings/env/C"])
    with pytest.raises(DefinitionInvalid):
        await declare_live(
            acme, catalog, replace(COMMAND, name="new", settings={"argv": ["a"], "env": {"A": None}}), by=BY
        )


async def test_a_wrong_setting_or_version_changes_nothing(changes: Changes) -> None:
    """Ours: refused before the transaction, or with it."""
    acme, catalog = changes.tenant.id, changes.catalog
    made = await declare_live(acme, catalog, MCP, by=BY)

    with pytest.raises(DefinitionInvalid):
        await declare_live(acme, catalog, replace(MCP, name="b", settings={"url": 1}), by=BY)
    with pytest.raises(PreconditionFailed):
        await LIVE_SOURCES.remove(acme, catalog, "wiki", by=BY, expected=frozenset({"other.1"}))

    assert await LIVE_SOURCES.page(acme, catalog, after=None, limit=10) == [made]


async def test_another_tenant_has_no_part_in_a_live_source(changes: Changes) -> None:
    """TEN-1: neither name nor id reaches it; both tenants may use one name."""
    made = await declare_live(changes.tenant.id, changes.catalog, AGENT, by=BY)
    globex = (await tenants.create_tenant(changes.catalog, "globex", "Globex", by=BY)).id
    other = await declare_live(globex, changes.catalog, AGENT, by=BY)

    with pytest.raises(NotFound):
        await LIVE_SOURCES.get(globex, changes.catalog, made.id)
    with pytest.raises(NotFound):
        await LIVE_SOURCES.remove(globex, changes.catalog, made.id, by=BY)
    assert await load(globex, changes.catalog, made.id) is None
    assert await LIVE_SOURCES.page(globex, changes.catalog, after=None, limit=10) == [other]
