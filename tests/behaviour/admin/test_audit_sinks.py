"""Sinks of audit trails: a SIEM receives entries over HTTPS, syslog and in a file, also after an outage."""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.support.certificates import self_signed
from tests.support.documents import many
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.servers import TestDatabase, TestServers, execute
from tests.support.upstream import RecordingUpstream, recording_upstream

_SINKS = "/tenants/acme/audit-sinks"


@pytest.fixture
async def siem() -> AsyncGenerator[RecordingUpstream]:
    """An endpoint that records what is delivered; also the upstream of the tenant's tools."""
    async with recording_upstream() as upstream:
        yield upstream


@pytest.fixture
def database(servers: TestServers) -> Iterator[TestDatabase]:
    """A database of its own: a second gateway on it might take the deliveries, and may not reach the endpoint."""
    with servers.database() as created:
        yield created


@pytest.fixture
def redis_url(servers: TestServers) -> str:
    """A Redis without any key."""
    return servers.empty_redis()


@pytest.fixture
async def acme(
    database: TestDatabase, redis_url: str, siem: RecordingUpstream, tmp_path: Path
) -> AsyncGenerator[RunningGateway]:
    """A tenant with a tool, at a gateway that may reach the endpoint."""
    allowed = [siem.authority]
    async with running_gateway(
        database.app_url, redis_url, egress_allow=allowed, audit_folder=str(tmp_path)
    ) as gateway:
        for slug in ("acme", "other"):
            await gateway.create_tenant(slug)
            await gateway.import_document(slug, many("http://127.0.0.1:9", 1))
        yield gateway


async def _create(gateway: RunningGateway, name: str, kind: str, target: str, **more: Any) -> dict[str, Any]:
    answer = await gateway.admin.post(_SINKS, json={"name": name, "kind": kind, "target": target, **more})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def _until(is_so: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(30):
        while not await is_so():  # noqa: ASYNC110  # the state is in another process
            await anyio.sleep(0.05)  # the sink is worked off once a second


async def _shown(gateway: RunningGateway, name: str = "siem") -> dict[str, Any]:
    shown: dict[str, Any] = (await gateway.admin.get(f"{_SINKS}/{name}")).json()
    return {**shown, **shown["status"]}


def _delivered(siem: RecordingUpstream) -> list[dict[str, Any]]:
    return [json.loads(line) for seen in siem.seen for line in seen.body.splitlines()]


async def _ids(gateway: RunningGateway) -> set[str]:
    items: list[dict[str, Any]] = (await gateway.admin.get("/tenants/acme/audit?limit=200")).json()["items"]
    return {item["id"] for item in items}


async def test_every_entry_reaches_the_endpoint_signed(
    acme: RunningGateway, database: TestDatabase, siem: RecordingUpstream
) -> None:
    """Ours: the whole trail of this tenant and no other's arrives, signed with the published key (SAF-8)."""
    await _create(acme, "siem", "https", "https://siem.example/entries", whole=True, enabled=False)
    await execute(database.superuser_url, f"update audit_sinks set target = '{siem.url}/entries', enabled = true")
    await _schedule(database)

    async def has_all() -> bool:
        return {entry["id"] for entry in _delivered(siem)} >= await _ids(acme)

    await _until(has_all)
    keys = (await acme.admin.get("/tenants/acme/audit/export-keys")).json()
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(keys["keys"][0]["public"]))
    for seen in siem.seen:
        headers = {name.lower(): value for name, value in seen.headers}
        version, _, signature = headers["webhook-signature"].partition(",")
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + seen.body
        public.verify(base64.b64decode(signature), signed)
        assert version == "v1a"
    assert {entry["tenant"] for entry in _delivered(siem)} == {keys["tenant"]}
    shown = await _shown(acme)
    assert (shown["failures"], shown["fault"]) == (0, None)
    assert shown["delivered"] >= 3


async def _schedule(database: TestDatabase) -> None:
    """The job of a sink that the test enabled behind the gateway's back."""
    await execute(
        database.superuser_url,
        "insert into due_work select tenant_id, id, 'audit_sink', now() from audit_sinks on conflict do nothing",
    )


async def test_an_endpoint_that_fails_gets_everything_later(
    acme: RunningGateway, database: TestDatabase, siem: RecordingUpstream
) -> None:
    """Ours: nothing is lost while the endpoint refuses; the fault and the lag are visible; then it goes on (SAF-8)."""
    siem.status = 503
    await _create(acme, "siem", "https", "https://siem.example/entries", whole=True, enabled=False)
    await execute(database.superuser_url, f"update audit_sinks set target = '{siem.url}/entries', enabled = true")
    await _schedule(database)

    async def has_failed() -> bool:
        return bool((await _shown(acme))["failures"])

    await _until(has_failed)
    failing = await _shown(acme)
    listed = (await acme.admin.get(f"{_SINKS}?failing=true")).json()["items"]
    siem.reset()
    await execute(database.superuser_url, "update due_work set due_at = now()")

    async def has_all() -> bool:
        return {entry["id"] for entry in _delivered(siem)} >= await _ids(acme)

    await _until(has_all)
    assert "503" in failing["fault"]
    assert failing["waiting_since"] is not None
    assert [one["name"] for one in listed] == ["siem"]

    async def is_well() -> bool:
        shown = await _shown(acme)
        return shown["failures"] == 0 and shown["waiting_since"] is None

    await _until(is_well)


@asynccontextmanager
async def _syslog(certificate: Path | None = None) -> AsyncGenerator[tuple[int, bytearray]]:
    received = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(65536):
                received.extend(chunk)
        except (ConnectionError, ssl.SSLError):  # the gateway may end a connection without a farewell
            pass
        finally:
            writer.close()

    tls = None if certificate is None else ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if tls is not None and certificate is not None:
        tls.load_cert_chain(certificate)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1], received


def _messages(received: bytes) -> list[bytes]:
    """The messages of a stream with octet counting (RFC 6587 section 3.4.1)."""
    found: list[bytes] = []
    while received:
        length, _, rest = received.partition(b" ")
        found.append(rest[: int(length)])
        received = rest[int(length) :]
    return found


async def test_syslog_receives_messages_with_their_lengths(acme: RunningGateway) -> None:
    """Ours: entries are messages of RFC 5424; the receiver needs an entry in the egress list (SAF-8)."""
    async with _syslog() as (port, received):
        await _create(acme, "logs", "syslog", f"tcp://127.0.0.1:{port}", whole=True)

        async def is_refused() -> bool:
            return bool((await _shown(acme, "logs"))["fault"])

        await _until(is_refused)
        refused = await _shown(acme, "logs")
        allowed = await acme.admin.put("/tenants/acme/egress", json={"allow": [f"127.0.0.1:{port}"]})
        assert allowed.status_code == 200, allowed.text
        (await acme.admin.patch(f"{_SINKS}/logs", json={"enabled": True})).raise_for_status()

        async def has_all() -> bool:
            ids = {json.loads(message.split(b" ", 7)[7])["id"] for message in _messages(bytes(received))}
            return ids >= await _ids(acme)

        await _until(has_all)

    heads = [message.split(b" ", 7) for message in _messages(bytes(received))]
    assert {head[0] for head in heads} == {b"<109>1"}
    assert {tuple(head[2:5]) for head in heads} == {(b"-", b"mcp-gateway", b"-")}
    assert b"tenant.create" in {head[5] for head in heads}
    assert refused["delivered"] == 0


@pytest.fixture
def trusted(trust: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The certificate that the gateway trusts; named before it by the tests, because it reads it when it starts."""
    del trust
    path = self_signed(tmp_path, "siem.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    return path


async def test_syslog_over_tls_verifies_the_receiver(
    trusted: Path, acme: RunningGateway, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """RFC 5425 section 5.2: nothing is sent to a receiver whose certificate is not trusted (SAF-4)."""
    stranger = self_signed(tmp_path_factory.mktemp("stranger"), "siem.test")
    async with _syslog(trusted) as (port, received), _syslog(stranger) as (other, unsent):
        allow = {"allow": [f"127.0.0.1:{port}", f"127.0.0.1:{other}"]}
        (await acme.admin.put("/tenants/acme/egress", json=allow)).raise_for_status()
        await _create(acme, "logs", "syslog", f"tls://127.0.0.1:{port}", whole=True)
        await _create(acme, "other", "syslog", f"tls://127.0.0.1:{other}", whole=True)

        async def has_all() -> bool:
            ids = {json.loads(message.split(b" ", 7)[7])["id"] for message in _messages(bytes(received))}
            return ids >= await _ids(acme)

        async def is_refused() -> bool:
            return "TLS" in ((await _shown(acme, "other"))["fault"] or "")

        await _until(has_all)
        await _until(is_refused)
    assert (await _shown(acme, "logs"))["fault"] is None
    assert (await _shown(acme, "other"))["delivered"] == 0
    assert bytes(unsent) == b""


async def test_a_file_is_the_operators(acme: RunningGateway, tmp_path: Path) -> None:
    """Ours: a file grows in the operator's folder, with a name that no tenant chooses (SAF-8, TEN-5)."""
    headers = {"authorization": f"Bearer {await acme.create_key('acme', 'admin')}"}
    body = {"name": "file", "kind": "file", "target": "trail"}
    refused = await acme.admin.post(_SINKS, json=body, headers=headers)
    outside = [
        await acme.admin.post(_SINKS, json={**body, "target": target})
        for target in ("../x", "/etc/x", "a/b", "", ".", "x.y")
    ]
    await _create(acme, "file", "file", "trail", whole=True)
    [path] = await _found(tmp_path)

    async def has_all() -> bool:
        lines = await anyio.Path(path).read_text()
        return {json.loads(line)["id"] for line in lines.splitlines()} >= await _ids(acme)

    await _until(has_all)
    assert refused.status_code == 403
    assert {answer.status_code for answer in outside} == {400}
    changed = await acme.admin.patch(f"{_SINKS}/file", json={"target": "other"}, headers=headers)
    assert changed.status_code == 403
    removed = await acme.admin.delete(f"{_SINKS}/file", headers=headers)
    assert (removed.status_code, (await acme.admin.get(f"{_SINKS}/file")).status_code) == (403, 200)


async def _found(folder: Path) -> list[Path]:
    async def is_there() -> bool:
        return bool(list(folder.glob("*.trail.jsonl")))

    await _until(is_there)
    return list(folder.glob("*.trail.jsonl"))


async def test_a_credential_that_a_sink_sends_is_not_deleted(acme: RunningGateway) -> None:
    """Ours: a trail does not silently stop to leave because its credential is gone (SAF-8)."""
    origin, token = "https://siem.example", "/tenants/acme/credentials/token"
    body = {"name": "token", "place": "bearer", "value": "s3cr3t-word", "origins": [origin]}
    (await acme.admin.post("/tenants/acme/credentials", json=body)).raise_for_status()
    await _create(acme, "siem", "https", f"{origin}/entries", credential="token", enabled=False)
    refused = await acme.admin.delete(token)
    (await acme.admin.delete(f"{_SINKS}/siem")).raise_for_status()

    assert refused.status_code == 409
    assert refused.json()["errors"][0]["reason"] == "used by audit sink siem"
    assert (await acme.admin.delete(token)).status_code == 204


_WRONG_TARGETS = (
    ("https", "http://siem.example/"),
    ("https", "ftp://siem.example/"),
    ("https", "tcp://siem.example:1"),
    ("syslog", "udp://siem.example:514"),
    ("syslog", "tcp://siem.example"),
    ("syslog", "tcp://unix:/run/log"),
    ("pigeon", "https://siem.example/"),
)


async def test_a_target_has_the_form_of_its_kind(acme: RunningGateway) -> None:
    """Ours: a sink that could never receive an entry is refused when it is declared (ADM-1)."""
    for kind, target in _WRONG_TARGETS:
        answer = await acme.admin.post(_SINKS, json={"name": "x", "kind": kind, "target": target})

        assert answer.status_code == 400, answer.text


async def test_a_trail_is_followed(acme: RunningGateway) -> None:
    """Ours: a follower receives entries as they are committed, of its tenant only (SAF-8)."""
    received: list[dict[str, Any]] = []
    async with acme.admin.stream("GET", "/tenants/acme/audit/tail?for_s=30") as answer:
        lines = answer.aiter_lines()
        with anyio.fail_after(20):
            assert await anext(lines) == ""
            await acme.create_key("other")
            await acme.create_key("acme")
            async for line in lines:
                if line:
                    received.append(json.loads(line))
                    break

    assert [(entry["action"], entry["type"]) for entry in received] == [("key.create", "entry")]
    with anyio.fail_after(20):
        ended = await acme.admin.get("/tenants/acme/audit/tail?since=2020-01-01T00:00:00Z")
    found = [json.loads(line) for line in ended.text.splitlines() if line]
    assert [entry["action"] for entry in found] == ["tenant.create", "source.create", "key.create"]
