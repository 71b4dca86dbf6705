"""Imports: whole or not at all, names stable and never taken, credentials sealed."""

from dataclasses import replace

import anyio
import orjson
import pytest

from gateway.catalog import audit, tenants
from gateway.catalog.kinds.singletons import POLICY
from gateway.catalog.primitives import queries
from gateway.catalog.sources import imports, sources
from gateway.catalog.sources.drafts import SourceDraft
from gateway.catalog.sources.replacement import Imported
from gateway.catalog.transaction import Author
from gateway.domain.audit import AuditFilter
from gateway.domain.http.requests import Credential
from gateway.domain.primitives import Family
from gateway.domain.refusals import RemovalsRefused
from gateway.domain.tenancy.policy import Policy
from gateway.domain.tenancy.principals import Operator
from gateway.domain.tools import Tool
from gateway.errors import (
    EgressDenied,
    FetchFailed,
    GatewayError,
    InvalidBody,
    InvalidDocument,
    LimitExceeded,
    NameTaken,
)
from gateway.store import secrets
from gateway.store.sources import versions
from tests.integration.catalog.conftest import Changes
from tests.support.documents import many, pets, secured

BY = Author(caller=Operator(), correlation_id="test")
URL = "https://pets.example"
PETS = SourceDraft(name="pets", document=pets(URL))


async def _names(changes: Changes) -> list[str]:
    found = await queries.page_primitives(changes.tenant.id, changes.catalog, Family.TOOL, after=None, limit=1000)
    return [listed.name for listed in found]


async def _import(changes: Changes, draft: SourceDraft) -> Imported:
    return await imports.import_source(changes.tenant.id, changes.catalog, draft, by=BY)


async def test_a_document_becomes_tools_and_is_kept_as_sent(changes: Changes) -> None:
    """Ours: every operation that is not skipped is a tool; a text is stored byte for byte (OAS-1, OAS-3)."""
    text = f" {orjson.dumps(pets(URL)).decode()}\n"
    imported = await _import(changes, replace(PETS, document=text))
    assert imported.source is not None
    assert await _names(changes) == ["create_pet", "delete_pet", "get_pet", "list_pets"]
    _, report = await sources.read_report(changes.tenant.id, changes.catalog, "pets")
    assert report == imported.report
    async with changes.catalog.store.transaction(changes.tenant.id) as db:
        assert await versions.document(changes.tenant.id, db, imported.source.id, 1) == text.encode()


async def test_a_dry_run_reports_the_same_and_stores_nothing(changes: Changes) -> None:
    """Ours: `dry_run` gives the report of the import that would follow (OAS-3)."""
    tried = await _import(changes, replace(PETS, dry_run=True))
    assert tried.source is None
    assert await _names(changes) == []
    assert (await _import(changes, PETS)).report == tried.report
    with pytest.raises(NameTaken):
        await _import(changes, replace(PETS, dry_run=True))


@pytest.mark.parametrize(
    ("draft", "kind"),
    [
        (replace(PETS, document='{"openapi": "3.1.0", "paths": '), InvalidDocument),
        (replace(PETS, document={"openapi": "9.9"}), InvalidDocument),
        (replace(PETS, document="\ud800"), InvalidDocument),
        (replace(PETS, credentials={"none": Credential(value="x")}), InvalidBody),
        (replace(PETS, document=None, url="http://127.0.0.1:9/openapi.json"), EgressDenied),
    ],
)
async def test_a_failed_import_leaves_nothing(changes: Changes, draft: SourceDraft, kind: type[GatewayError]) -> None:
    """Ours: an import that is refused stores nothing and moves no revision (OAS-1)."""
    with pytest.raises(kind):
        await _import(changes, draft)
    assert await _names(changes) == []
    found = await sources.page_sources(changes.tenant.id, changes.catalog, after=None, limit=10)
    assert list(found) == []
    assert changes.events == []


async def test_a_name_clash_stores_nothing_and_its_prefix_resolves_it(changes: Changes) -> None:
    """Ours: the original stays, the refusal names it, and the suggested prefix goes through (PRG-4)."""
    await _import(changes, PETS)
    before = await _names(changes)
    with pytest.raises(NameTaken) as caught:
        await _import(changes, replace(PETS, name="zoo"))
    assert {conflict.owner for conflict in caught.value.conflicts} == {"source:pets"}
    assert await _names(changes) == before
    prefix = caught.value.suggested_prefix
    assert prefix is not None
    await _import(changes, replace(PETS, name="zoo", prefix=prefix))
    assert len(await _names(changes)) == 8


async def test_of_two_imports_at_once_exactly_one_wins(changes: Changes) -> None:
    """Ours: concurrent imports of the same names: one is stored whole, the other refused (PRG-4)."""
    outcomes: list[str] = []

    async def attempt(name: str) -> None:
        try:
            await _import(changes, replace(PETS, name=name))
            outcomes.append("stored")
        except NameTaken as refused:
            outcomes.append("refused" if refused.suggested_prefix else "refused without help")

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(attempt, f"pets{number}")
    assert sorted(outcomes) == ["refused", "refused", "refused", "stored"]
    assert len(await _names(changes)) == 4


async def test_of_two_sources_of_one_name_exactly_one_wins(changes: Changes) -> None:
    """Ours: concurrent imports under one source name, with tools that do not clash: exactly one wins (PRG-4)."""
    outcomes: list[str] = []

    async def attempt(prefix: str) -> None:
        try:
            await _import(changes, replace(PETS, prefix=prefix))
            outcomes.append("stored")
        except NameTaken:
            outcomes.append("refused")

    async with anyio.create_task_group() as group:
        for prefix in ("a", "b", "c"):
            group.start_soon(attempt, prefix)
    assert sorted(outcomes) == ["refused", "refused", "stored"]


async def test_a_tenant_gets_no_more_primitives_than_it_may_have(changes: Changes) -> None:
    """Ours: the catalog size is a limit of the tenant; beyond it nothing is stored (TEN-3)."""

    def narrow(policy: Policy) -> Policy:
        return replace(policy, limits=replace(policy.limits, primitives=5))

    await POLICY.change(changes.tenant.id, changes.catalog, narrow, by=BY)
    await _import(changes, PETS)
    with pytest.raises(LimitExceeded, match="at most 5"):
        await _import(changes, SourceDraft(name="many", document=many(URL, 2)))
    await _import(changes, SourceDraft(name="many", document=many(URL, 1)))
    assert len(await _names(changes)) == 5


async def test_operations_that_stay_keep_their_names(changes: Changes) -> None:
    """Ours: a new document renames no tool whose method and path are still there."""
    await _import(changes, PETS)
    document = pets(URL)
    document["paths"]["/pets"]["get"]["operationId"] = "fetch_every_pet"
    del document["paths"]["/pets/{id}"]["delete"]
    document["paths"]["/owners"] = {"get": {"operationId": "list_owners", "responses": {}}}
    with pytest.raises(RemovalsRefused, match="1 tool, 0 of them"):
        await imports.update_source(
            changes.tenant.id, changes.catalog, "pets", lambda old: replace(old, document=document), by=BY
        )

    def revise(old: SourceDraft) -> SourceDraft:
        return replace(old, document=document, allow_removals=True)

    updated = await imports.update_source(changes.tenant.id, changes.catalog, "pets", revise, by=BY)
    assert updated.source is not None
    assert (updated.source.active_version, updated.source.version) == (2, 2)
    assert await _names(changes) == ["create_pet", "get_pet", "list_owners", "list_pets"]


async def test_options_change_without_a_new_document(changes: Changes) -> None:
    """Ours: the stored document is compiled again under the new options."""
    await _import(changes, PETS)
    await imports.update_source(
        changes.tenant.id, changes.catalog, "pets", lambda old: replace(old, prefix="zoo"), by=BY
    )
    assert await _names(changes) == ["zoo_create_pet", "zoo_delete_pet", "zoo_get_pet", "zoo_list_pets"]


async def test_credentials_are_sealed_kept_replaced_and_forgotten(changes: Changes) -> None:
    """Ours: credentials are stored by scheme, and neither the trail nor the source shows them (TEN-4)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    draft = SourceDraft(name="api", document=secured(URL), credentials={"token": Credential(value="s3cr3t-1")})
    imported = await _import(changes, draft)
    source = imported.source
    assert source is not None
    assert source.schemes == ("token",)

    async def stored_value() -> str | None:
        async with catalog.store.transaction(tenant) as db:
            loaded = await secrets.load(tenant, db, catalog.sealer, source.id)
        return loaded["token"].value if loaded else None

    async def update(credentials: dict[str, Credential] | None) -> None:
        await imports.update_source(tenant, catalog, "api", lambda old: replace(old, credentials=credentials), by=BY)

    assert await stored_value() == "s3cr3t-1"
    await update(None)
    assert await stored_value() == "s3cr3t-1"
    await update({"token": Credential(value="s3cr3t-2")})
    assert await stored_value() == "s3cr3t-2"
    await update({})
    assert await stored_value() is None
    trail = await audit.page_entries(tenant, catalog, AuditFilter(), after=None, limit=100)
    assert "s3cr3t" not in repr((trail, source, imported))


async def test_a_document_is_fetched_by_url_and_relative_servers_follow_it(changes: Changes) -> None:
    """OpenAPI: a relative server URL is relative to where the document was (OAS-1)."""
    document = pets(URL)
    document["servers"] = [{"url": "/v2"}]
    changes.upstream.body = orjson.dumps(document)
    url = f"{changes.upstream.url}/docs/openapi.json?token=s3cr3t"
    imported = await _import(changes, SourceDraft(name="pets", url=url))
    assert imported.source is not None
    assert imported.source.url == url
    tool = (await queries.get_listed(changes.tenant.id, changes.catalog, Family.TOOL, "list_pets")).item
    assert isinstance(tool, Tool)
    assert changes.upstream.authority.encode() in tool.plan
    trail = await audit.page_entries(changes.tenant.id, changes.catalog, AuditFilter(), after=None, limit=10)
    assert "s3cr3t" not in repr(trail)


async def test_a_url_that_gives_no_document_is_a_failed_fetch(changes: Changes) -> None:
    """Ours: the response of the URL is reported, and nothing is stored (OAS-1)."""
    changes.upstream.status = 404
    with pytest.raises(FetchFailed):
        await _import(changes, SourceDraft(name="pets", url=f"{changes.upstream.url}/openapi.json"))


async def test_hostile_text_in_a_document_costs_at_most_its_operation(changes: Changes) -> None:
    """Ours: NUL and control characters in titles, ids and paths neither break the import nor reach the database."""
    document = pets(URL, title="Pets\x00\n\x1b[31m" + "x" * 5000)
    document["paths"]["/pets"]["get"]["operationId"] = "list\x00pets"
    document["paths"]["/\x00"] = {"get": {"operationId": "nul", "responses": {}}}
    imported = await _import(changes, replace(PETS, document=document))
    assert imported.source is not None
    assert imported.source.title.isprintable()
    assert len(imported.source.title) <= 300
    assert "get_pet" in await _names(changes)


async def test_the_tools_of_two_tenants_share_nothing(changes: Changes) -> None:
    """Ours: the same names are free in another tenant (TEN-1)."""
    other = await tenants.create_tenant(changes.catalog, "other", "Other", by=BY)
    await _import(changes, PETS)
    assert await queries.page_primitives(other.id, changes.catalog, Family.TOOL, after=None, limit=10) == []
    await imports.import_source(other.id, changes.catalog, PETS, by=BY)
    await sources.remove_source(other.id, changes.catalog, "pets", by=BY)
    assert len(await _names(changes)) == 4


async def test_stored_credentials_do_not_follow_a_source_to_another_host(changes: Changes) -> None:
    """Ours: a change of a source cannot send its secrets elsewhere without knowing them (TEN-4, TEN-5)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    draft = SourceDraft(name="api", document=secured(URL), credentials={"token": Credential(value="s3cr3t-1")})
    await imports.import_source(tenant, catalog, draft, by=BY)

    async def move(base_url: str, credentials: dict[str, Credential] | None) -> None:
        def revise(old: SourceDraft) -> SourceDraft:
            return replace(old, base_url=base_url, credentials=credentials)

        await imports.update_source(tenant, catalog, "api", revise, by=BY)

    with pytest.raises(InvalidBody, match=r"evil\.example") as refused:
        await move("https://evil.example", None)
    assert refused.value.faults[0].pointer == "/credentials"
    await move(f"{URL}/v2", None)
    await move("https://new.example", {"token": Credential(value="s3cr3t-2")})
    await move("https://other.example", {})
    await move("https://third.example", None)
