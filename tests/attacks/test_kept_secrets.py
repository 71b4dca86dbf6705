"""Redirected secrets: an admin without knowledge of a stored secret changes its receiver, by every verb."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

from gateway.domain.credentials import StoredCredential
from gateway.domain.members.markers import Shape
from gateway.kinds.members import settable
from tests.support.documents import secured
from tests.support.gateway import RunningGateway
from tests.support.servers import TestServers
from tests.support.stand import Stand, gateway, own_stand, running_stand, stand

__all__ = ["gateway", "own_stand", "stand"]

HOME, EVIL = "https://api.example", "https://evil.example"
SHARED: Mapping[str, Any] = {"place": "header", "field": "X-Key", "value": "s3cr3t", "origins": [HOME]}
ENDPOINTS = {"authorization_url": f"{HOME}/a", "token_url": f"{HOME}/t", "revocation_url": f"{HOME}/r"}
USER: Mapping[str, Any] = {**SHARED, "kind": "user", "client_id": "gateway", **ENDPOINTS}
OTHERS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "kind": (SHARED, {"kind": "user", "client_id": "x", **ENDPOINTS}),
    "place": (SHARED, {"place": "query"}),
    "field": (SHARED, {"field": "X-Echoed"}),
    "origins": (SHARED, {"origins": [HOME, EVIL]}),
    "client_id": (USER, {"client_id": "other"}),
    **{name: (USER, {name: f"{EVIL}/x"}) for name in ENDPOINTS},
}
"""A stored credential by receiver, and a change of this receiver. Issuer and server need metadata of another host."""


@pytest.fixture(scope="module")
async def common_stand(servers: TestServers) -> AsyncGenerator[Stand]:
    """A gateway with a public URL, which accounts of users need."""
    async with running_stand(servers, public_url="https://gateway.example") as made:
        yield made


async def _check(gateway: RunningGateway, verb: str, path: str, body: Mapping[str, Any], pointer: str) -> None:
    before = await gateway.admin.get(path)
    answer = await gateway.admin.request(verb, path, json=dict(body))
    assert (answer.status_code, answer.json()["code"]) == (422, "input.secret_not_kept"), answer.text
    assert pointer in [each["pointer"] for each in answer.json()["errors"]]
    after = await gateway.admin.get(path)
    assert (after.json(), after.headers["etag"]) == (before.json(), before.headers["etag"])
    assert "s3cr3t" not in answer.text + after.text


def test_every_receiver_of_a_credential_is_attacked() -> None:
    """Ours: a new member that names a receiver fails here until a change of it is tried (TEN-4)."""
    marked = {one.name for one in settable(StoredCredential) if Shape.RECEIVER in one.marks}
    assert marked == OTHERS.keys() | {"issuer", "server"}


@pytest.mark.parametrize("verb", ["PUT", "PATCH"])
async def test_the_secret_of_a_credential_goes_to_no_other_receiver(gateway: RunningGateway, verb: str) -> None:
    """Ours: neither PUT nor PATCH takes a stored secret to another place, host, client or kind (TEN-4)."""
    await gateway.create_tenant("acme")
    for member, (stored, change) in OTHERS.items():
        path = f"/tenants/acme/credentials/{member}"
        made = await gateway.admin.put(path, json=dict(stored))
        assert made.status_code == 201, made.text
        kept = {name: value for name, value in stored.items() if name != "value"}
        body = {**kept, **change} if verb == "PUT" else change
        await _check(gateway, verb, path, body, f"/{member}")
        same = await gateway.admin.request(verb, path, json=kept if verb == "PUT" else {})
        assert same.status_code == 200, same.text
        again = await gateway.admin.request(verb, path, json={**body, "value": "known"})
        assert again.status_code == 200, again.text


@pytest.mark.parametrize("verb", ["PUT", "PATCH"])
async def test_the_secrets_of_a_source_go_to_no_other_host(gateway: RunningGateway, verb: str) -> None:
    """Ours: neither a new base URL nor a new document takes stored credentials elsewhere (TEN-4, TEN-5)."""
    await gateway.create_tenant("acme")
    body = {"name": "api", "document": secured(HOME), "credentials": {"token": "s3cr3t"}}
    assert (await gateway.admin.post("/tenants/acme/sources", json=body)).status_code == 201
    path = "/tenants/acme/sources/api"
    changes: list[dict[str, Any]] = [{"base_url": EVIL, "document": secured(HOME)}, {"document": secured(EVIL)}]
    for change in changes if verb == "PUT" else [{"base_url": EVIL}]:
        await _check(gateway, verb, path, change, "/credentials")


@pytest.mark.parametrize(
    ("client", "change", "pointer"),
    [
        ("sign_in", {"client_id": "other"}, "/sign_in/client_id"),
        ("introspection", {"client_id": "other"}, "/introspection/client_id"),
        ("introspection", {"client_id": "gateway", "url": f"{EVIL}/introspect"}, "/introspection/url"),
    ],
)
async def test_the_secrets_of_an_issuers_clients_go_to_no_other_client(
    gateway: RunningGateway, client: str, change: dict[str, Any], pointer: str
) -> None:
    """Ours: the secret of a client stays with its id and its endpoint (TEN-4, IDN-2)."""
    await gateway.create_tenant("acme")
    body: dict[str, Any] = {"name": "corp", "url": HOME, "rules": [{}], "enabled": False}
    body[client] = {"client_id": "gateway", "client_secret": "s3cr3t"}
    made = await gateway.admin.post("/tenants/acme/issuers", json=body)
    assert made.status_code == 201, made.text
    await _check(gateway, "PATCH", "/tenants/acme/issuers/corp", {client: change}, pointer)
    known = {client: {**change, "client_secret": "known"}}
    assert (await gateway.admin.patch("/tenants/acme/issuers/corp", json=known)).status_code == 200
