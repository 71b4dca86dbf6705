"""Sources in manifests: pinned documents and documents of the gateway, credentials, removals, pruning and drift."""

import hashlib
from typing import Any

import httpx
import pytest

from gateway.catalog.manifests import drafts
from tests.support.documents import many, pets, secured
from tests.support.gateway import RunningGateway
from tests.support.manifests import Manifest, actions, apply, entries_of, profile, send, tenant_for_manifests, text_of
from tests.support.upstream import RecordingUpstream

ROOT = "/tenants/acme"
URL = "https://pets.example"
MORE = {**pets(URL), "paths": {**pets(URL)["paths"], "/toys": {"get": {"operationId": "list_toys"}}}}
LESS = {**pets(URL), "paths": {"/pets": pets(URL)["paths"]["/pets"]}}


@pytest.fixture
async def acme(gateway: RunningGateway) -> RunningGateway:
    """The gateway with one tenant."""
    await tenant_for_manifests(gateway)
    return gateway


async def _upload(gateway: RunningGateway, document: dict[str, Any], slug: str = "acme") -> str:
    """Upload a document, and return its digest as manifests have it."""
    content = text_of(document)
    digest = hashlib.sha256(content).hexdigest()
    headers = {"content-type": "application/json"}
    answer = await gateway.admin.put(f"/tenants/{slug}/documents/{digest}", content=content, headers=headers)
    assert answer.status_code == 200, answer.text
    return f"sha256:{digest}"


def _source(name: str = "pets", **members: Any) -> Manifest:
    return {"kind": "source", "name": name, "members": members}


async def _tools(gateway: RunningGateway) -> set[str]:
    items = (await gateway.admin.get(f"{ROOT}/tools", params={"limit": 200})).json()["items"]
    return {one["name"] for one in items if one["status"]["source"] is not None}


async def _status(gateway: RunningGateway, name: str = "pets") -> dict[str, Any]:
    shown: dict[str, Any] = (await gateway.admin.get(f"{ROOT}/sources/{name}")).json()
    status: dict[str, Any] = shown["status"]
    return status


def _refusal(answer: httpx.Response, status: int) -> tuple[str, str]:
    assert answer.status_code == status, answer.text
    [fault] = answer.json()["errors"]
    return fault["pointer"], fault["reason"]


async def test_a_pinned_document_is_a_version_once(acme: RunningGateway) -> None:
    """Ours: an uploaded document becomes a version in the transaction; the same again writes nothing (CFG-6)."""
    wanted = [profile("readers", include=[{"sources": ["pets"]}]), _source(document=await _upload(acme, pets(URL)))]
    tried = await apply(acme, wanted, set="platform", dry_run=True)
    assert actions(tried) == {"readers": "create", "pets": "create"}
    assert await _tools(acme) == set()
    done = await apply(acme, wanted, set="platform")
    assert actions(done) == actions(tried)
    assert await _tools(acme) == {"list_pets", "create_pet", "get_pet", "delete_pet"}
    assert [one["action"] for one in await entries_of(acme)] == ["source.create", "profile.create"]
    again = await apply(acme, wanted, set="platform")
    assert (actions(again), again["revision"]) == ({"readers": "none", "pets": "none"}, None)
    other = [_source(document=await _upload(acme, MORE), prefix="p", timeout_s=7.5)]
    tried = await apply(acme, other, set="platform", dry_run=True)
    [changed] = tried["objects"]
    pointers = {one["pointer"] for one in changed["changes"]}
    assert (changed["action"], pointers) == ("update", {"/document", "/prefix", "/timeout_s"})
    assert (await _status(acme))["active_version"] == 1
    await apply(acme, other, set="platform", commit="4f2a9c1")
    assert "p_list_toys" in await _tools(acme)
    entry = (await entries_of(acme))[-1]
    assert (entry["action"], entry["detail"]["commit"], entry["detail"]["version"]) == ("source.update", "4f2a9c1", 2)
    await apply(acme, wanted[1:] and [wanted[1] | {"members": {**wanted[1]["members"], "allow_removals": True}}])
    assert (await _status(acme))["active_version"] == 3  # the former document is that of a stored version


async def test_an_archive_is_equal_to_its_version(acme: RunningGateway) -> None:
    """Ours: the digest of an archive is that of its bytes; the same files again write nothing (CFG-6)."""
    from tests.support.archives import ZOO, zip_of  # noqa: PLC0415  # one test needs it

    content = zip_of(ZOO)
    digest = hashlib.sha256(content).hexdigest()
    headers = {"content-type": "application/zip"}
    assert (await acme.admin.put(f"{ROOT}/documents/{digest}", content=content, headers=headers)).status_code == 200
    wanted = [_source("zoo", document=f"sha256:{digest}")]
    assert actions(await apply(acme, wanted)) == {"zoo": "create"}
    assert actions(await apply(acme, wanted)) == {"zoo": "none"}


async def test_the_gateway_owns_versions_of_a_url(acme: RunningGateway, upstream: RecordingUpstream) -> None:
    """Ours: `refresh: gateway` fetches once, for a new URL; a later version is neither a change nor drift (CFG-6)."""
    upstream.body = text_of(pets(URL))
    wanted = [_source(url=f"{upstream.url}/a", refresh="gateway", refresh_policy="additions")]
    await apply(acme, wanted, set="platform")
    assert len(upstream.seen) == 1
    upstream.body = text_of(MORE)
    refreshed = await acme.admin.post(f"{ROOT}/sources/pets/refresh", json={})
    assert refreshed.json()["outcome"] == "activated"
    [one] = (await apply(acme, wanted, set="platform"))["objects"]
    assert (one["action"], one["drift"], len(upstream.seen)) == ("none", False, 2)
    assert all("drift" not in entry["detail"] for entry in await entries_of(acme))
    slower = [_source(url=f"{upstream.url}/a", refresh="gateway", refresh_interval_s=86_400)]
    [one] = (await apply(acme, slower, set="platform"))["objects"]
    assert (one["action"], len(upstream.seen), (await _status(acme))["active_version"]) == ("update", 2, 2)
    await apply(acme, [_source(url=f"{upstream.url}/b", refresh="gateway")], set="platform")
    assert (len(upstream.seen), (await _status(acme))["active_version"]) == (3, 3)


async def test_a_url_can_be_pinned(acme: RunningGateway, upstream: RecordingUpstream) -> None:
    """Ours: with a URL and a digest, the gateway fetches what it lacks, and refuses another document (CFG-6)."""
    upstream.body = text_of(pets(URL))
    digest = f"sha256:{hashlib.sha256(upstream.body).hexdigest()}"
    wanted = [_source(url=f"{upstream.url}/a", document=digest)]
    assert actions(await apply(acme, wanted, set="platform")) == {"pets": "create"}
    upstream.body = text_of(MORE)
    [one] = (await apply(acme, wanted, set="platform"))["objects"]
    assert (one["action"], one["drift"], len(upstream.seen)) == ("none", False, 1)
    other = [_source(url=f"{upstream.url}/a", document=f"sha256:{'0' * 64}")]
    pointer, reason = _refusal(await send(acme, other, set="platform"), 409)
    assert (pointer, "the URL has another document" in reason) == ("/objects/0/members/document", True)


async def test_a_source_has_one_owner_of_its_versions(acme: RunningGateway) -> None:
    """Ours: a manifest pins a version or leaves the versions to the gateway; faults have their places (CFG-6)."""
    digest = await _upload(acme, pets(URL))
    cases: dict[str, dict[str, Any]] = {
        "/objects/0/members/document": {},
        "/objects/0/members/url": {"refresh": "gateway"},
        "/objects/0/members/credentials/token": {"document": digest, "credentials": {"token": {"username": "ada"}}},
    }
    for pointer, members in cases.items():
        assert _refusal(await send(acme, [_source(**members)]), 400)[0] == pointer
    both = {"document": digest, "url": f"{URL}/a", "refresh": "gateway"}
    assert _refusal(await send(acme, [_source(**both)]), 400)[0] == "/objects/0/members/document"
    wrong = await send(
        acme, [_source(document="sha256:0"), _source("b", document="../secret"), _source("c", refresh=1)]
    )
    assert wrong.status_code == 400
    assert [fault["pointer"] for fault in wrong.json()["errors"]] == [
        "/objects/0/members/document",
        "/objects/1/members/document",
        "/objects/2/members/refresh",
    ]


async def test_tools_are_removed_only_with_permission(acme: RunningGateway) -> None:
    """Ours: a document that removes tools is refused as in a single request, unless its manifest permits it (CFG-6)."""
    await apply(acme, [_source(document=await _upload(acme, pets(URL)))])
    less = await _upload(acme, LESS)
    refused = await send(acme, [_source(document=less)])
    assert (refused.status_code, "get_pet" in refused.text) == (409, True)
    await apply(acme, [_source(document=less, allow_removals=True)])
    assert await _tools(acme) == {"list_pets", "create_pet"}


async def test_credentials_of_a_source_are_written_when_they_change(acme: RunningGateway) -> None:
    """Ours: equal secrets are not written again; a new receiver needs them, and they are shown nowhere (CFG-6)."""
    digest, secrets = await _upload(acme, secured(URL)), ("first-secret-of-pets", "second-secret-of-pets")

    def wanted(value: str, **more: Any) -> list[Manifest]:
        members: dict[str, Any] = {"document": digest, "credentials": {"token": {"value": value}}, **more}
        return [_source("pets", **members)]

    answers = [await send(acme, wanted(secrets[0]), set="platform") for _ in range(2)]
    answers.append(await send(acme, wanted(secrets[1]), set="platform"))
    answers.append(await send(acme, [_source(document=digest)], set="platform"))
    assert [one.json()["objects"][0]["action"] for one in answers] == ["create", "none", "update", "none"]
    [change] = answers[2].json()["objects"][0]["changes"]
    assert change == {"pointer": "/credentials", "before": None, "after": None, "is_secret": True, "is_cut": False}
    assert (await _status(acme))["credentials"] == ["token"]
    moved = await _upload(acme, secured("https://evil.example"))
    refused = await send(acme, [_source(document=moved)], set="platform")
    assert _refusal(refused, 422)[0] == "/objects/0/members/credentials"
    based = await send(acme, [_source(document=digest, base_url="https://evil.example")], set="platform")
    assert _refusal(based, 422)[0] == "/objects/0/members/credentials"
    answers += [refused, await acme.admin.get(f"{ROOT}/audit", params={"limit": 200})]
    assert [secret for secret in secrets for answer in answers if secret in answer.text] == []


async def test_a_source_is_written_after_its_credential(acme: RunningGateway) -> None:
    """Ours: a source that names a credential is created after it, and pruned before it (CFG-6)."""
    digest = await _upload(acme, secured(URL))
    credential = {
        "kind": "credential",
        "name": "vendor",
        "members": {"place": "header", "field": "X-Token", "value": "s3cr3t", "origins": [URL]},
    }
    source = _source(document=digest, credentials={"token": {"credential": "vendor"}})
    await apply(acme, [source, credential], set="platform")
    assert [one["action"] for one in await entries_of(acme)] == ["credential.create", "source.create"]
    pruned = await apply(acme, [profile("a")], set="platform", prune=True, prune_protected=True)
    assert actions(pruned) == {"a": "create", "pets": "delete", "vendor": "delete"}
    assert [one["action"] for one in await entries_of(acme)][-2:] == ["source.delete", "credential.delete"]


async def test_a_change_of_a_source_by_hand_is_drift(acme: RunningGateway) -> None:
    """Ours: options, documents and credentials that are changed by hand are drift in the trail and diff (CFG-6)."""
    digest = await _upload(acme, secured(URL))
    wanted = [_source(document=digest, credentials={"token": {"value": "s3cr3t-of-pets"}})]
    await apply(acme, wanted, set="platform")
    for change in ({"prefix": "p"}, {"document": many(URL, 1), "allow_removals": True}):
        assert (await acme.admin.patch(f"{ROOT}/sources/pets", json=change)).status_code == 200
        assert (await entries_of(acme))[-1]["detail"]["drift"] == "platform"
        restored = [_source(**wanted[0]["members"], allow_removals=True)]
        [one] = (await apply(acme, restored, set="platform"))["objects"]
        assert (one["action"], one["drift"]) == ("update", True)
    assert (await acme.admin.delete(f"{ROOT}/sources/pets")).status_code == 204
    assert (await entries_of(acme))[-1]["detail"]["drift"] == "platform"
    assert actions(await apply(acme, wanted, set="platform")) == {"pets": "create"}


async def test_documents_of_one_application_are_bounded(acme: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: an application holds a bounded number of bytes of documents; more are refused before the change (CFG-6)."""
    monkeypatch.setattr(drafts, "MAX_DOCUMENT_BYTES", 2_000)
    large = {**pets(URL), "x-more": "x" * 1_500}
    wanted = [_source(name, document=await _upload(acme, large), prefix=name) for name in ("a", "b")]
    refused = await send(acme, wanted)
    assert (refused.status_code, "together" in refused.text) == (429, True)
    assert await _tools(acme) == set()


async def test_a_document_of_another_tenant_is_missing(acme: RunningGateway) -> None:
    """Ours: a digest names documents of its tenant only, uploaded or stored (CFG-6)."""
    await acme.create_tenant("globex")
    uploaded = await _upload(acme, MORE, "globex")
    stored = await _upload(acme, pets(URL), "globex")
    await apply(acme, [_source(document=stored)], "globex")
    for digest in (uploaded, stored):
        pointer, reason = _refusal(await send(acme, [_source(document=digest)]), 422)
        assert (pointer, "no document with this digest" in reason) == ("/objects/0/members/document", True)


async def test_an_id_is_no_name_of_a_source(acme: RunningGateway) -> None:
    """Ours: a source has one name in manifests, so that none is changed twice under its id (CFG-6)."""
    digest = await _upload(acme, pets(URL))
    [made] = (await apply(acme, [_source(document=digest)]))["objects"]
    assert _refusal(await send(acme, [_source(made["id"], document=digest)]), 400)[0] == "/objects/0/name"


async def test_a_cycle_of_references_ends(acme: RunningGateway) -> None:
    """Ours: a document whose references form a cycle is imported as in a single request (CFG-6)."""
    document = pets(URL)
    document["components"] = {"schemas": {name: {"$ref": f"#/components/schemas/{to}"} for name, to in ("ab", "ba")}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/a"}}}}
    document["paths"]["/pets"]["post"]["requestBody"] = body
    wanted = [_source(document=await _upload(acme, document))]
    by_hand = await acme.admin.post(f"{ROOT}/sources", json={"name": "x", "document": document, "dry_run": True})
    assert (await send(acme, wanted)).status_code == by_hand.status_code


async def test_an_override_is_applied_with_its_source(acme: RunningGateway) -> None:
    """Ours: it is checked against the document that the same application imports, and renames its tool (CFG-1)."""

    def override(**pinned: object) -> Manifest:
        members = {"source": "pets", "operation": "GET /pets/{id}", "pinned": pinned}
        return {"kind": "override", "name": "find_pet", "members": members}

    source = _source(document=await _upload(acme, pets(URL)))
    refused = await send(acme, [override(none=1), source], set="platform")
    assert _refusal(refused, 422)[0] == "/objects/0/members/pinned/none"
    done = await apply(acme, [override(verbose=True), source], set="platform")
    assert actions(done) == {"find_pet": "create", "pets": "create"}
    assert await _tools(acme) == {"list_pets", "create_pet", "find_pet", "delete_pet"}
    again = await apply(acme, [override(verbose=True), source], set="platform")
    assert actions(again) == {"find_pet": "none", "pets": "none"}
