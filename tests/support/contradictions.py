"""What three logs of one history say against each other: the clients', the upstream's, the audit trail's."""

import hashlib
import json
from collections import Counter
from typing import Any

import anyio.to_thread

from gateway.store.database.connection import connect_owner
from tests.support.history import SLUGS, Arrived, History
from tests.support.replicas import commanding, until


async def find_contradictions(history: History) -> list[str]:
    """What the logs of clients, upstream and audit say against each other, or against what we promise."""
    await _settled(history)
    return [*find_disagreements(history), *await _contradictions_of_audit(history)]


def find_disagreements(history: History) -> list[str]:
    """What the logs of clients and upstream say against each other."""
    return [*_contradictions_of_clients(history), *_contradictions_of_upstream(history)]


def _contradictions_of_clients(history: History) -> list[str]:
    arrived = Counter(one.id for one in history.upstream.seen)
    found = [f"client: {call} had neither answer nor error" for call in history.calls if call.outcome == "silent"]
    for call in history.calls:
        if call.outcome != "ok":
            continue
        if json.loads(call.detail) != {"id": call.id, "of": f"canary-of-{call.slug}"}:
            found.append(f"client: {call} has an answer that is not its own")
        if not arrived[call.id]:
            found.append(f"client: {call} has an answer, but the upstream was not asked")
    for slug, uris in history.heard.items():
        found += [f"listener: {slug} heard of {uri}" for uri in set(uris) - {f"note://{slug}"}]
    for other in SLUGS:
        found += [
            f"client: {call} saw {other}"
            for call in history.calls
            if call.slug != other and f"canary-of-{other}" in call.detail
        ]
    return found


def _contradictions_of_upstream(history: History) -> list[str]:
    by_id = {call.id: call for call in history.calls}
    times = Counter(one.id for one in history.upstream.seen if one.method == "POST")
    found = [f"upstream: {by_id[number]} came {count} times" for number, count in times.items() if count > 1]
    for one in history.upstream.seen:
        call = by_id.get(one.id)
        if call is None or call.slug != one.slug:
            found.append(f"upstream: {one} is of no call")
    return found


async def _contradictions_of_audit(history: History) -> list[str]:
    rows = await _audit_rows(history)
    outcomes = {(slug, digest): outcome for slug, digest, kind, outcome in rows if kind == "call"}
    intents = {(slug, digest) for slug, digest, kind, _ in rows if kind == "call.intent"}
    found: list[str] = []
    answered = {call.id for call in history.calls if call.outcome == "ok"}
    for one in history.upstream.seen:
        key = one.slug, _digest(history, one)
        if one.method == "POST" and key not in intents:
            found.append(f"audit: {one} was executed without an intent")
        if one.id in answered and outcomes.get(key) != "ok":
            found.append(f"audit: {one} was answered, the trail says {outcomes.get(key)}")
    of_calls = Counter((s, d, k) for s, d, k, o in rows if k.startswith("call") and d and o == "ok")
    twice = [row for row, count in of_calls.items() if count > 1]
    found += [f"audit: {slug} has {kind} {digest.hex()} more than once" for slug, digest, kind in twice]
    for slug in SLUGS:
        verified = await history.replicas.a.gateway.admin.get(f"/tenants/{slug}/audit/verify", timeout=60)
        if verified.status_code != 200 or not verified.json()["ok"]:
            found.append(f"audit: the trail of {slug} is broken: {verified.text[:300]}")
    return found


def _digest(history: History, one: Arrived) -> bytes:
    """What the trail calls this request (`handlers.openapi_operation`)."""
    seen = hashlib.blake2b(f"{one.method} {history.upstream.url}{one.target}\n".encode(), digest_size=32)
    seen.update(repr((("Accept", one.accept),)).encode())
    return seen.digest()


async def _audit_rows(history: History) -> list[tuple[str, bytes, str, str]]:
    connection = await connect_owner(history.superuser_url)
    query = "select t.slug, e.digest, e.kind, e.outcome from audit_entries e join tenants t on t.id = e.tenant_id"
    rows: list[Any] = list(await connection.fetch(query))
    await connection.close()
    return [(str(row["slug"]), bytes(row["digest"]), str(row["kind"]), str(row["outcome"])) for row in rows]


async def _settled(history: History) -> None:
    """Until nothing of the trail waits in Redis."""

    async def is_empty() -> bool:
        return not await anyio.to_thread.run_sync(_is_waiting, history.redis_url)

    await until(is_empty, seconds=30, pause=0.2)


def _is_waiting(redis_url: str) -> bool:
    with commanding(redis_url) as command:
        return bool(command("KEYS", "gw:audit:*[^n]"))  # but for whose turn it is to take entries out
