"""PUT of a source's document: the body is the document or archive itself."""

import json
from typing import Any

import anyio
import httpx
import orjson
import pytest

from tests.support.archives import ZOO, tar_of, tgz_of, zip_of
from tests.support.documents import many, pets
from tests.support.gateway import OPERATOR_KEY, RunningGateway

URL = "https://pets.example"
PLACE = "/tenants/acme/sources/api/document"
JSON, YAML = "application/json", "application/yaml"
AS_YAML = f"""openapi: 3.1.0
info: {{title: From YAML, version: "1"}}
servers: [{{url: "{URL}"}}]
paths:
  /pets:
    get: {{operationId: list_pets, responses: {{200: {{description: ok}}}}}}
"""


@pytest.fixture
async def acme(gateway: RunningGateway) -> RunningGateway:
    """The gateway with one tenant, which has the source `api`."""
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", many(URL, 2), name="api", prefix="p", expose="both")
    return gateway


async def _put(gateway: RunningGateway, content: bytes, media_type: str, **more: Any) -> httpx.Response:
    headers = {"content-type": media_type, **more.pop("headers", {})}
    return await gateway.admin.put(more.pop("place", PLACE), content=content, headers=headers, **more)


async def _version(gateway: RunningGateway) -> int:
    version: int = (await gateway.admin.get("/tenants/acme/sources/api")).json()["status"]["active_version"]
    return version


_BODIES = (
    (json.dumps(pets(URL), indent=1).encode(), JSON, "Pets"),
    (AS_YAML.encode(), f"{YAML}; charset=utf-8", "From YAML"),
    (zip_of(ZOO), "application/zip", "Zoo"),
    (json.dumps(pets(URL)).encode(), "application/vnd.oai.openapi+json;version=3.1", "Pets"),
    (AS_YAML.encode(), "text/yaml", "From YAML"),
    (tar_of(ZOO), "application/x-tar", "Zoo"),
    (AS_YAML.encode(), "application/x-yaml", "From YAML"),
    (tgz_of(ZOO), "application/gzip", "Zoo"),
    (AS_YAML.encode(), "application/vnd.oai.openapi", "From YAML"),
    (json.dumps({**pets(URL), "x-more": "x" * 2_000_000}).encode(), JSON, "Pets"),
)
"""Bodies, each with other operations than the one before."""
_OF_EACH_FORM = 3


async def test_a_body_is_the_new_document(acme: RunningGateway) -> None:
    """Ours: it replaces the document with the report and changes of an update; options stay (OAS-1, OAS-7)."""
    for version, (content, media_type, title) in enumerate(_BODIES, 1):
        tried: dict[str, Any] = {}
        if version <= _OF_EACH_FORM:
            refused = await _put(acme, content, media_type)
            assert (refused.status_code, refused.json()["code"]) == (409, "source.removals_refused"), refused.text
            tried = (await _put(acme, content, media_type, params={"dry_run": "true"})).raise_for_status().json()
        assert await _version(acme) == version
        done = await _put(acme, content, media_type, params={"allow_removals": "true"})

        assert done.status_code == 200, done.text
        assert done.json()["status"]["title"] == title
        assert (done.json()["prefix"], done.json()["expose"]) == ("p", "both")
        assert all(item["tool"].startswith("p_") for item in done.json()["report"]["operations"])
        assert not tried or (tried["report"], tried["changes"]) == (done.json()["report"], done.json()["changes"])
    again = await acme.admin.patch("/tenants/acme/sources/api", json={"prefix": "q"})
    assert again.status_code == 200, again.text


async def test_the_entry_of_an_archive_is_a_parameter(acme: RunningGateway) -> None:
    """Ours: the query names the outermost file; without an archive it is refused (OAS-7)."""
    query = {"entry": "zoo/openapi.yaml", "allow_removals": "true"}
    assert (await _put(acme, zip_of(ZOO), "application/zip", params=query)).status_code == 200
    missing = await _put(acme, zip_of(ZOO), "application/zip", params={**query, "entry": "none.yaml"})
    assert missing.status_code == 422, missing.text
    plain = await _put(acme, AS_YAML.encode(), YAML, params=query)
    assert (plain.status_code, plain.json()["errors"][0]["pointer"]) == (400, "?entry")


@pytest.mark.parametrize(
    "media_type", ["text/html", "application/x-www-form-urlencoded", "", "application/json; charset=utf-16"]
)
async def test_another_media_type_is_refused(acme: RunningGateway, media_type: str) -> None:
    """RFC 9110 15.5.16: 415 names the media types that are read, and nothing is stored (ADM-1)."""
    answer = await _put(acme, AS_YAML.encode(), media_type)
    assert (answer.status_code, answer.json()["code"]) == (415, "http.unsupported_media_type")
    assert YAML in answer.json()["detail"]
    assert await _version(acme) == 1


async def test_a_body_that_is_no_document_is_refused(acme: RunningGateway) -> None:
    """Ours: the refusal has the line and column of the body, and nothing is stored (OAS-1)."""
    broken = await _put(acme, b"openapi: 3.1.0\npaths: {\n", YAML)
    assert (broken.status_code, broken.json()["code"]) == (422, "document.invalid")
    assert broken.json()["errors"][0]["line"] == 3
    empty = await _put(acme, b"", YAML)
    assert empty.status_code == 422
    no_archive = await _put(acme, AS_YAML.encode(), "application/zip")
    assert (no_archive.status_code, no_archive.json()["code"]) == (422, "document.invalid")
    assert await _version(acme) == 1


async def test_a_document_of_33_mib_is_not_awaited(acme: RunningGateway) -> None:
    """Ours: 413 as soon as the length is declared (ISO-2)."""
    host = acme.url.removeprefix("http://")
    head = (
        f"PUT /admin/v1{PLACE} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {OPERATOR_KEY}\r\n"
        f"Content-Type: {YAML}\r\nContent-Length: {33 * 1024 * 1024}\r\n\r\n"
    )
    with anyio.fail_after(30):
        async with await anyio.connect_tcp("127.0.0.1", int(host.rpartition(":")[2])) as connection:
            await connection.send(head.encode())
            assert (await connection.receive()).startswith(b"HTTP/1.1 413 ")


async def test_a_document_needs_a_source_that_the_key_may_change(acme: RunningGateway) -> None:
    """Ours: an unknown source and another tenant's are missing; a client's key is refused (TEN-5)."""
    await acme.create_tenant("other")
    stranger = await acme.create_key("other", "admin")
    client = await acme.create_key("acme", "mcp")
    admin = await acme.create_key("acme", "admin")
    seen: list[int] = []
    for key, place in (
        (stranger, PLACE),
        (stranger, PLACE.replace("acme", "other")),
        (client, PLACE),
        (admin, PLACE.replace("api", "none")),
    ):
        headers = {"authorization": f"Bearer {key}"}
        seen.append((await _put(acme, AS_YAML.encode(), YAML, place=place, headers=headers)).status_code)
    assert seen == [404, 404, 403, 404]
    assert await _version(acme) == 1


async def test_a_document_replaces_the_version_that_was_seen(acme: RunningGateway) -> None:
    """RFC 9110 13.1.1: If-Match names the version; `Prefer: respond-async` changes nothing (ADM-1)."""
    tag = (await acme.admin.get("/tenants/acme/sources/api")).headers["etag"]
    content = orjson.dumps(many(URL, 3))
    prefers = {"prefer": "respond-async"}
    first = await _put(acme, content, JSON, headers={"if-match": tag, **prefers})
    second = await _put(acme, content, JSON, headers={"if-match": tag})
    assert (first.status_code, second.status_code) == (200, 412), first.text
    assert first.headers["etag"] != tag
    assert await _version(acme) == 2
