"""Documents by URL that refer to files beside them: fetched where the operator allows the host, and nothing else."""

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.gateway import RunningGateway
from tests.support.servers import TestServers
from tests.support.stand import Stand, running_stand
from tests.support.upstream import RecordingUpstream, Seen

PET = {"type": "object", "properties": {"owner": {"$ref": "../people/owner.yaml"}}}
OWNER = b"type: object\nproperties:\n  name: {type: string}\n  pet: {$ref: '../pets/pet.json#/x'}\n"


@dataclass(slots=True)
class Site:
    """A host of files that writes down what was asked."""

    upstream: RecordingUpstream
    gateway: RunningGateway
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def answer(self, seen: Seen) -> bytes:
        """The file, or 404."""
        found = self.files.get(seen.target)
        self.upstream.status = 404 if found is None else 200
        return found or b"{}"

    def document(self, ref: str) -> dict[str, Any]:
        """A document with one body behind this reference."""
        body = {"required": True, "content": {"application/json": {"schema": {"$ref": ref}}}}
        paths = {"/pets": {"post": {"operationId": "add_pet", "requestBody": body}}}
        return {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": [{"url": "/"}], "paths": paths}

    async def load(self, files: Mapping[str, bytes], path: str = "/specs/api/openapi.json") -> Any:
        """The answer of an import from the site."""
        self.files = dict(files)
        self.upstream.seen.clear()
        named = {"name": "api", "url": f"{self.upstream.url}{path}", "dry_run": True}
        answer = await self.gateway.admin.post("/tenants/acme/sources", json=named)
        return answer.json()

    @property
    def asked(self) -> list[str]:
        """The targets that were asked, in order."""
        return [seen.target for seen in self.upstream.seen]


@pytest.fixture(scope="module", params=[("127.0.0.1",), ()], ids=["allowed", "not allowed"])
async def common_stand(request: pytest.FixtureRequest, servers: TestServers) -> AsyncGenerator[Stand]:
    """A gateway whose operator allows the host of the site or not."""
    async with running_stand(servers, upstreams=1, reference_hosts=request.param) as started:
        yield started


@pytest.fixture
async def site(stand: Stand) -> Site:
    """A tenant beside a site."""
    await stand.gateway.create_tenant("acme")
    made = Site(stand.upstreams[0], stand.gateway)
    stand.upstreams[0].respond = made.answer
    return made


async def test_files_beside_a_document_are_fetched_from_allowed_hosts_only(
    site: Site, request: pytest.FixtureRequest
) -> None:
    """OpenAPI: relative references lead to files of the same host, also in circles (OAS-1, OAS-7)."""
    files = {
        "/specs/api/openapi.json": json.dumps(site.document("../models/pets/pet.json#/x")).encode(),
        "/specs/models/pets/pet.json": json.dumps({"x": PET}).encode(),
        "/specs/models/people/owner.yaml": OWNER,
    }
    report = (await site.load(files))["report"]
    [operation] = report["operations"]

    if "not allowed" in request.node.name:
        assert operation["status"] == "skipped"
        assert "upload the files together as an archive" in operation["reasons"][0]
        assert site.asked == ["/specs/api/openapi.json"]
    else:
        assert (operation["status"], operation["reasons"]) == ("ok", [])
        assert sorted(site.asked) == sorted(files)


async def test_other_hosts_and_missing_files_are_not_fetched(site: Site, request: pytest.FixtureRequest) -> None:
    """Ours: the fetched file is that of the operator's host, and it is requested once (OAS-7)."""
    for ref in (
        "http://127.0.0.2:1/x.json",
        "//127.0.0.2/x.json",
        "../../../../etc/passwd",
        "%00.json",
        "file:///x.json",
    ):
        report = (await site.load({"/specs/api/openapi.json": json.dumps(site.document(ref)).encode()}))["report"]

        assert report["operations"][0]["tool"] is None
        assert site.asked == ["/specs/api/openapi.json"], ref
    gone = await site.load({"/specs/api/openapi.json": json.dumps(site.document("gone.json")).encode()})

    assert gone["report"]["operations"][0]["tool"] is None
    assert site.asked.count("/specs/api/gone.json") == (0 if "not allowed" in request.node.name else 1)


async def test_a_document_without_files_is_stored_as_it_is(site: Site) -> None:
    """Ours: an allowed host changes nothing for documents of one file (OAS-7)."""
    document = {**site.document("#/components/schemas/P"), "components": {"schemas": {"P": {"type": "object"}}}}
    report = (await site.load({"/specs/api/openapi.json": json.dumps(document).encode()}))["report"]

    assert report["operations"][0]["status"] == "ok"
    assert site.asked == ["/specs/api/openapi.json"]


async def test_a_chain_of_files_ends(site: Site, request: pytest.FixtureRequest) -> None:
    """Ours: files that lead to ever more files are followed for 20 rounds (OAS-7)."""
    files = {
        f"/specs/api/{n}.json": json.dumps({"properties": {"n": {"$ref": f"{n + 1}.json"}}}).encode()
        for n in range(300)
    }
    files["/specs/api/openapi.json"] = json.dumps(site.document("0.json")).encode()
    await site.load(files)

    fetched = 0 if "not allowed" in request.node.name else 20
    assert site.asked == ["/specs/api/openapi.json", *(f"/specs/api/{n}.json" for n in range(fetched))]


async def test_many_files_beside_a_document_are_bounded(site: Site, request: pytest.FixtureRequest) -> None:
    """Ours: a document and its files are at most 100 requests, and the report names what is left (OAS-7)."""
    files = {f"/specs/api/{n}.json": b'{"type":"string"}' for n in range(150)}
    document = site.document("0.json")
    [body] = document["paths"]["/pets"]["post"]["requestBody"]["content"].values()
    body["schema"] = {"anyOf": [{"$ref": f"{n}.json"} for n in range(150)]}
    files["/specs/api/openapi.json"] = json.dumps(document).encode()
    report = (await site.load(files))["report"]

    assert len(site.asked) == (1 if "not allowed" in request.node.name else 100)
    assert len({*site.asked}) == len(site.asked)
    assert ".json" in report["operations"][0]["reasons"][0]
