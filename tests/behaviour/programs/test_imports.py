"""OpenAPI documents that a program imports: the same engine as sources, without a catalog."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import anyio.to_thread
import pytest
from structlog.testing import capture_logs

from gateway.embed import BadInput, Gateway, InvalidDocument, Safety, Settings
from gateway.errors import DefinitionInvalid, DuplicateToolError, UpstreamError
from tests.support.documents import pets, secured
from tests.support.gateway import OPEN_POLICY, OPERATOR_KEY, SECRET_KEY
from tests.support.hosting import hosted
from tests.support.upstream import Seen, recording_upstream

SECRET = "s3cret-of-the-program"  # a made-up one


def _levels(gateway: Gateway) -> dict[str, Safety]:
    return {one.name: one.safety for one in gateway._code.primitives()}  # pyright: ignore[reportPrivateUsage]


async def test_operations_of_a_document_are_tools_of_the_program() -> None:
    """Ours: compiled as for a source; arguments are validated, and requests and results are those of one (PRG-1)."""
    gateway = Gateway()
    async with recording_upstream() as upstream:
        report = gateway.import_openapi("pets", pets(upstream.url))
        assert [(one.tool, one.status) for one in report.operations] == [
            ("list_pets", "ok"),
            ("create_pet", "ok"),
            ("get_pet", "ok"),
            ("delete_pet", "ok"),
        ]
        async with gateway.client() as client:
            assert (await client.call_tool("get_pet", {"id": 7, "verbose": True})).structured_content == {"ok": True}
            assert (await client.call_tool("get_pet", {"id": "seven"})).is_error
            assert not (await client.call_tool("create_pet", {"body": {"name": "Rex"}})).is_error
            assert (await client.call_tool("delete_pet", {"id": 7})).is_error  # needs a confirmation
        assert [(one.method, one.target) for one in upstream.seen] == [
            ("GET", "/v1/pets/7?verbose=true"),
            ("POST", "/v1/pets"),
        ]


@pytest.mark.parametrize("form", ["object", "text", "bytes", "path", "string of a path", "url"])
async def test_a_document_is_given_in_every_form(form: str, tmp_path: Path) -> None:
    """Ours: an object, its text, a path or a URL are the same document (PRG-1)."""
    gateway = Gateway()
    async with recording_upstream() as upstream:
        document = pets(upstream.url)
        upstream.body = json.dumps(document).encode()
        path = tmp_path / "pets.json"
        path.write_bytes(upstream.body)
        forms: dict[str, Any] = {
            "object": document,
            "text": json.dumps(document, indent=1),
            "bytes": upstream.body,
            "path": path,
            "string of a path": str(path),
        }
        given = forms.get(form)
        if given is None:
            url = f"{upstream.url}/openapi.json"
            report = await anyio.to_thread.run_sync(lambda: gateway.import_openapi("pets", url))
        else:
            report = gateway.import_openapi("pets", given)

        assert [one.tool for one in report.operations] == ["list_pets", "create_pet", "get_pet", "delete_pet"]


async def test_operations_and_levels_are_selected() -> None:
    """Ours: patterns of operationIds or methods and paths; a level by name replaces that of the method (PRG-1)."""
    document = pets("https://api.example.com")
    one, two, three = Gateway(), Gateway(), Gateway()
    one.import_openapi("pets", document, operations=["get_*", "POST /pets"], safety={"create_pet": "dangerous"})
    two.import_openapi("pets", document, operations=["DELETE *"], safety="safe", prefix="crm", tenants=["acme"])
    three.import_openapi("pets", document, safety={"GET /pets": "moderate"})

    assert _levels(one) == {"create_pet": Safety.DANGEROUS, "get_pet": Safety.SAFE}
    assert _levels(two) == {"crm_delete_pet": Safety.SAFE}
    assert _levels(three)["list_pets"] is Safety.MODERATE
    async with two.client() as other, two.client(tenant="acme") as acme:
        assert (await other.list_tools()).tools == []
        assert [tool.name for tool in (await acme.list_tools()).tools] == ["crm_delete_pet"]


async def test_credentials_are_sent_and_never_shown() -> None:
    """Ours: the secret is in the request only: neither in logs, nor in a result that echoes it (PRG-1, SEC-1)."""
    gateway = Gateway()
    async with recording_upstream() as upstream:

        def respond(seen: Seen) -> bytes:
            return json.dumps({"you_sent": seen.header("x-token")}).encode()

        upstream.respond = respond
        with capture_logs() as logs:
            gateway.import_openapi("secured", secured(upstream.url), credentials={"token": SECRET})
            async with gateway.client() as client:
                result = await client.call_tool("op_0000")
        assert upstream.seen[0].header("x-token") == SECRET
        assert SECRET not in json.dumps(logs, default=repr)
        assert SECRET not in result.model_dump_json()
        assert SECRET not in repr([vars(gateway), gateway._code.find])  # pyright: ignore[reportPrivateUsage]


async def test_a_program_without_its_credential_gets_an_error_result() -> None:
    """Ours: the error names the scheme without a secret, and nothing is sent (PRG-1)."""
    gateway = Gateway()
    async with recording_upstream() as upstream:
        gateway.import_openapi("secured", secured(upstream.url))
        async with gateway.client() as client:
            result = await client.call_tool("op_0000")
        assert result.is_error
        assert "token" in getattr(result.content[0], "text", "")
        assert upstream.seen == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"document": {"swagger": "9"}}, InvalidDocument, "pets: "),
        ({"document": "missing.yaml"}, BadInput, "missing.yaml: the document cannot be read: No such file"),
        ({"document": 7}, BadInput, "pets: a document is an object, its text, the path of its file, or a URL"),
        ({"document": {"openapi": print}}, BadInput, "pets: the document is not a JSON object"),
        ({"document": "http://10.0.0.1/x.json"}, UpstreamError, "http://10.0.0.1/x.json: "),
        ({"credentials": {"other": SECRET}}, BadInput, "no document declares the security scheme other"),
        ({"credentials": {"other": [SECRET]}}, BadInput, "the credential of other must be a string, or a pair"),
        ({"operations": "get_pet"}, BadInput, "operations must be a list"),
        ({"operations": ["nothing"]}, InvalidDocument, "pets: no operation became a tool: not selected"),
        ({"safety": {"nothing": "safe"}}, BadInput, "no imported operation is called 'nothing'; imported: create_pet"),
        ({"safety": "harmless"}, DefinitionInvalid, "safety must be one of"),
        ({"tenants": "acme"}, DefinitionInvalid, "tenants must be a list"),
    ],
)
def test_a_wrong_import_names_its_fault(
    arguments: dict[str, Any], error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the error names the document and the fault, without a secret; nothing is registered (PRG-1)."""
    monkeypatch.chdir(tmp_path)
    gateway = Gateway()
    wrong = cast("Callable[..., object]", gateway.import_openapi)

    with pytest.raises(error) as refused:
        wrong("pets", **{"document": pets("https://api.example.com"), **arguments})

    assert message in str(refused.value)
    assert SECRET not in str(refused.value)
    assert _levels(gateway) == {}


def test_an_import_registers_all_tools_or_none() -> None:
    """Ours: a taken name refuses the whole document; a prefix avoids it (PRG-4)."""
    gateway = Gateway()

    @gateway.tool
    def delete_pet() -> str:
        return "mine"

    with pytest.raises(DuplicateToolError, match="'delete_pet'"):
        gateway.import_openapi("pets", pets("https://api.example.com"))
    assert list(_levels(gateway)) == ["delete_pet"]
    gateway.import_openapi("pets", pets("https://api.example.com"), prefix="crm")
    assert len(_levels(gateway)) == 5


def test_a_shortened_schema_is_listed_in_full() -> None:
    """Ours: no query tool shows the rest of a schema, so the definition has all of it (PRG-1)."""
    wide = {f"field_{number:04}": {"type": "string", "description": "x" * 200} for number in range(400)}
    body = {"content": {"application/json": {"schema": {"type": "object", "properties": wide}}}}
    document = pets("https://api.example.com")
    document["paths"] = {
        "/x": {"post": {"operationId": "wide", "requestBody": body, "responses": {"200": {"description": "ok"}}}}
    }
    gateway = Gateway()
    gateway.import_openapi("wide", document)

    (one,) = gateway._code.primitives()  # pyright: ignore[reportPrivateUsage]
    definition = json.loads(one.definition)
    assert len(definition["inputSchema"]["properties"]["body"]["properties"]) == 400
    assert "_meta" not in definition
    assert "get_endpoint_details" not in definition["description"]


async def test_an_import_is_served_to_tenants(database_url: str, redis_url: str) -> None:
    """Ours: in a gateway with servers, the tools belong to the named tenants, behind the egress guard (PRG-1)."""
    async with recording_upstream() as allowed, recording_upstream() as private:
        settings: dict[str, Any] = {
            "database_url": database_url,
            "redis_url": redis_url,
            "secret_keys": (SECRET_KEY,),
            "operator_key": OPERATOR_KEY,
            "tenant_policy": OPEN_POLICY,
            "egress_allow": (allowed.authority,),
        }
        gateway = Gateway(Settings.model_validate(settings))
        gateway.import_openapi("pets", pets(allowed.url), tenants=["acme"])
        gateway.import_openapi("inside", pets(private.url), prefix="inside")
        async with hosted(gateway.asgi()) as running:
            for slug in ("acme", "globex"):
                await running.create_tenant(slug)
            acme, globex = await running.create_key("acme"), await running.create_key("globex")
            async with running.client("acme", acme) as client, running.client("globex", globex) as other:
                assert (await client.call_tool("get_pet", {"id": 7})).structured_content == {"ok": True}
                assert {tool.name for tool in (await other.list_tools()).tools} == {
                    f"inside_{name}" for name in ("list_pets", "create_pet", "get_pet", "delete_pet")
                }
                denied = await other.call_tool("inside_list_pets")
                assert denied.is_error
            entries = (await running.admin.get("/tenants/acme/audit")).json()["items"]
            assert [one["outcome"] for one in entries if one["target"] == "get_pet"] == ["ok"]
        assert (len(allowed.seen), private.seen) == (1, [])


async def test_a_fetched_document_permits_no_address_of_this_machine() -> None:
    """Ours: a program names the URL of a document, but not the servers in it; its `base_url` does (PRG-1, SEC-1)."""
    async with recording_upstream() as host, recording_upstream() as private:
        host.body = json.dumps(pets(private.url)).encode()
        gateway, url = Gateway(), f"{host.url}/openapi.json"
        await anyio.to_thread.run_sync(lambda: gateway.import_openapi("pets", url))
        async with gateway.client() as client:
            assert (await client.call_tool("list_pets")).is_error
        assert private.seen == []
        base = f"{private.url}/v1"
        await anyio.to_thread.run_sync(lambda: gateway.import_openapi("pets", url, base_url=base, prefix="own"))
        async with gateway.client() as client:
            assert not (await client.call_tool("own_list_pets")).is_error
