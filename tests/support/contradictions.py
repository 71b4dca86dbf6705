"""Contradictions between three logs of one history: the clients', the upstream's, the audit trail's."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import anyio.to_thread

from gateway.store.database.connection import connect_owner
from tests.support.history import RUN, SLUGS, Arrived, History
from tests.support.replicas import commanding, until

_Row = tuple[str, str, bytes, str, str]
"""Of the audit trail: tenant, target, digest, kind, outcome."""


async def find_contradictions(history: History) -> list[str]:
    """Contradictions between the logs of clients, upstream and audit, or with our promises."""
    await _settled(history)
    return [*find_disagreements(history), *await _contradictions_of_audit(history)]


def find_disagreements(history: History) -> list[str]:
    """Contradictions between the logs of clients and upstream."""
    return [*_contradictions_of_clients(history), *_contradictions_of_upstream(history)]


def _contradictions_of_clients(history: History) -> list[str]:
    arrived = Counter(one.id for one in history.arrived)
    found = [f"client: {call} had neither answer nor error" for call in history.calls if call.outcome == "silent"]
    for call in history.calls:
        if call.outcome != "ok":
            continue
        if json.loads(call.detail) != {"id": call.id, "of": f"canary-of-{call.slug}"}:
            found.append(f"client: {call} has an answer that is not its own")
        if not arrived[call.id]:
            found.append(f"client: {call} has an answer, but the upstream was not asked")
    for slug, uris in history.received.items():
        found += [f"listener: {slug} received {uri}" for uri in set(uris) - {f"note://{slug}"}]
    for other in SLUGS:
        found += [
            f"client: {call} saw {other}"
            for call in history.calls
            if call.slug != other and f"canary-of-{other}" in call.detail
        ]
    return found


def _contradictions_of_upstream(history: History) -> list[str]:
    by_id = {call.id: call for call in history.calls}
    times = Counter(one.id for one in history.arrived if one.method != "GET")
    found = [f"upstream: {by_id[number]} came {count} times" for number, count in times.items() if count > 1]
    for one in history.arrived:
        call = by_id.get(one.id)
        if call is None or call.slug != one.slug:
            found.append(f"upstream: {one} is of no call")
    return found


async def _contradictions_of_audit(history: History) -> list[str]:
    rows = await _audit_rows(history)
    outcomes = {(slug, digest): outcome for slug, _, digest, kind, outcome in rows if kind == "call"}
    intents = {(slug, digest) for slug, _, digest, kind, _ in rows if kind == "call.intent"}
    found: list[str] = []
    answered = {call.id for call in history.calls if call.outcome == "ok"}
    for one in history.upstream.seen:
        key = one.slug, _digest(history, one)
        if one.method == "POST" and key not in intents:
            found.append(f"audit: {one} was executed without an intent")
        if one.id in answered and outcomes.get(key) != "ok":
            found.append(f"audit: {one} was answered, the trail has {outcomes.get(key)}")
    found += _unrecorded_runs(history, rows)
    of_calls = Counter((s, d, k) for s, _, d, k, o in rows if k.startswith("call") and d and o == "ok")
    twice = [row for row, count in of_calls.items() if count > 1]
    found += [f"audit: {slug} has {kind} {digest.hex()} more than once" for slug, digest, kind in twice]
    for slug in SLUGS:
        verified = await history.replicas.a.gateway.admin.get(f"/tenants/{slug}/audit/verify", timeout=60)
        if verified.status_code != 200 or not verified.json()["ok"]:
            found.append(f"audit: the trail of {slug} is broken: {verified.text[:300]}")
    return found


def _unrecorded_runs(history: History, rows: Sequence[_Row]) -> list[str]:
    """Tools of live programs that ran, or were answered, more often than the trail records: digests differ by id."""
    ran = Counter((one.slug, one.tool) for one in history.arrived if one.method == RUN)
    answered = Counter((call.slug, call.tool) for call in history.calls if call.outcome == "ok")
    found: list[str] = []
    for (slug, tool), count in ran.items():
        intents = {d for s, t, d, k, _ in rows if (s, t, k) == (slug, tool, "call.intent")}
        ended = {d for s, t, d, k, o in rows if (s, t, k, o) == (slug, tool, "call", "ok")}
        if len(intents) < count or len(ended) < answered[slug, tool]:
            found.append(f"audit: {slug} {tool}: {count} runs, {len(intents)} intents, {len(ended)} outcomes")
    return found


def _digest(history: History, one: Arrived) -> bytes:
    """Name of this request in the trail (`handlers.openapi_operation`)."""
    seen = hashlib.blake2b(f"{one.method} {history.upstream.url}{one.target}\n".encode(), digest_size=32)
    seen.update(repr((("Accept", one.accept),)).encode())
    return seen.digest()


async def _audit_rows(history: History) -> list[_Row]:
    connection = await connect_owner(history.superuser_url)
    query = (
        "select t.slug, e.target, e.digest, e.kind, e.outcome from audit_entries e join tenants t on t.id = e.tenant_id"
    )
    rows: list[Any] = list(await connection.fetch(query))
    await connection.close()
    return [
        (str(row["slug"]), str(row["target"]), bytes(row["digest"]), str(row["kind"]), str(row["outcome"]))
        for row in rows
    ]


async def _settled(history: History) -> None:
    """Until nothing of the trail waits in Redis."""

    async def is_empty() -> bool:
        return not await anyio.to_thread.run_sync(_is_waiting, history.redis_url)

    await until(is_empty, seconds=30, pause=0.2)


def _is_waiting(redis_url: str) -> bool:
    with commanding(redis_url) as command:
        return bool(command("KEYS", "gw:audit:*[^n]"))  # but for whose turn it is to take entries out
