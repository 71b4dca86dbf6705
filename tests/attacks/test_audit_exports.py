"""Attacks on an exported audit trail: what the standalone program finds with the public key and nothing else.

The export is a real one of a tenant with changes, calls, several writers and signatures. A stranger edits its lines; a
holder of the secret keys, who can seal anything, is contradicted by an earlier export or by a head seen elsewhere.
"""

import io
import json
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.catalog.audit_export import TrailExporter
from gateway.cli import audit_verifier
from gateway.cli.audit_verifier import ExportVerifier, Verified
from gateway.domain.audit import AuditFilter, AuditKind
from gateway.domain.identifiers import TenantId
from gateway.store.audit.export_lines import ExportKey, SealedLines
from gateway.store.encryption import EnvelopeCipher
from tests.support.servers import TestDatabase, TestServers
from tests.support.trails import SECRET, History, TrailWorld, shared_history, trail_world

Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
async def history(servers: TestServers) -> AsyncGenerator[History]:
    """A trail of three replicas, each gone when the next one starts."""
    async with shared_history(servers, _make_history) as history:
        yield history


@pytest.fixture
def world(history: History) -> TrailWorld:
    """The history as its replicas left it."""
    return history.restored()


async def _make_history(database: TestDatabase, redis_url: str) -> TenantId:
    async with trail_world(database, redis_url) as made:
        for number in range(3):
            async with made.replica() as replica:
                await replica.change(f"Acme {number}")
                await replica.call(3)
                await replica.sign()
        return made.tenant


async def _export(world: TrailWorld, wanted: AuditFilter | None = None) -> bytes:
    exporter = TrailExporter(world.store, EnvelopeCipher([SECRET]))
    chunks = exporter.export(world.tenant) if wanted is None else exporter.export(world.tenant, wanted)
    return b"".join([chunk async for chunk in chunks])


def _key(tenant: TenantId, secret: str = SECRET) -> ExportKey:
    return ExportKey.of(tenant, EnvelopeCipher([secret]))[0]


def _verify(world: TrailWorld, text: bytes, **more: Any) -> Verified:
    return ExportVerifier([_key(world.tenant).public], **more).verify(io.BytesIO(text))


def _lines(text: bytes) -> Lines:
    return [json.loads(line) for line in text.splitlines()]


def _sealed(tenant: TenantId, lines: Sequence[dict[str, Any]]) -> bytes:
    """These lines, as a holder of the secret keys seals them."""
    text = SealedLines(tenant, _key(tenant))
    return text.add([line for line in lines if line["type"] != "seal"]) + text.seal()


def _entry_of_a_call(lines: Lines) -> int:
    return next(index for index, line in enumerate(lines) if line["type"] == "entry" and line["writer"] != "catalog")


async def test_an_untouched_export_is_whole(world: TrailWorld) -> None:
    """Ours: the export alone proves the trail: every entry, every signature, every chain (SAF-8)."""
    text = await _export(world)

    found = _verify(world, text, tenant=world.tenant)

    assert found.faults == []
    assert found.entries == 4 + 9
    assert found.heads == len([line for line in _lines(text) if line["type"] == "head"]) >= 6
    assert found.ends["catalog"][0] == 4


def _change(lines: list[bytes]) -> list[bytes]:
    index = next(index for index, line in enumerate(lines) if b'"outcome":"ok"' in line)
    return [*lines[:index], lines[index].replace(b'"ok"', b'"no"'), *lines[index + 1 :]]


def _without_entry(lines: list[bytes]) -> list[bytes]:
    index = next(index for index, line in enumerate(lines) if b'"type":"entry"' in line)
    return [*lines[:index], *lines[index + 1 :]]


def _twice(lines: list[bytes]) -> list[bytes]:
    index = next(index for index, line in enumerate(lines) if b'"type":"entry"' in line)
    return [*lines[: index + 1], *lines[index:]]


def _swapped(lines: list[bytes]) -> list[bytes]:
    index = next(index for index, line in enumerate(lines) if b'"type":"entry"' in line)
    return [*lines[:index], lines[index + 1], lines[index], *lines[index + 2 :]]


def _two_members(lines: list[bytes]) -> list[bytes]:
    index = next(index for index, line in enumerate(lines) if b'"type":"entry"' in line)
    return [*lines[:index], lines[index].replace(b"{", b'{"outcome":"denied",', 1), *lines[index + 1 :]]


def _spaced(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], lines[-1].replace(b'":', b'": ')]


def _first_seal(lines: list[bytes]) -> int:
    return next(index for index, line in enumerate(lines) if b'"type":"seal"' in line)


EDITS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "an entry changed": _change,
    "an entry deleted": _without_entry,
    "an entry inserted twice": _twice,
    "two entries in another order": _swapped,
    "two members of one name": _two_members,
    "the last seal cut off": lambda lines: lines[:-1],
    "the end cut off": lambda lines: lines[:-2],
    "half a line cut off": lambda lines: [*lines[:-1], lines[-1][:-20]],
    "all but the header cut off": lambda lines: lines[:1],
    "nothing left": lambda lines: [],
    "cut off behind an inner seal": lambda lines: lines[: 1 + _first_seal(lines)],
    "a part between two seals deleted": lambda lines: lines[:1] + lines[-3:],
    "a line added behind the end": lambda lines: [*lines, b'{"type":"entry"}\n'],
    "the same export behind it": lambda lines: lines + lines,
    "the last seal repeated": lambda lines: [*lines, lines[-1]],
    "the seal written otherwise": _spaced,
    "a line that is no JSON": lambda lines: [lines[0], b"\xff\n", *lines[1:]],
    "a line that is no object": lambda lines: [lines[0], b"[]\n", *lines[1:]],
    "a line of deep JSON": lambda lines: [lines[0], b"[" * 200_000 + b"\n", *lines[1:]],
    "no header": lambda lines: lines[1:],
    "an unknown type": lambda lines: [lines[0], b'{"type":"note"}\n', *lines[1:]],
    "no type": lambda lines: [lines[0], b"{}\n", *lines[1:]],
}


async def test_an_edit_of_an_export_is_found(world: TrailWorld) -> None:
    """Ours: without the private key, no byte of an export changes unseen (SAF-8)."""
    text = (await _export(world)).splitlines(keepends=True)

    for name, edit in EDITS.items():
        assert _verify(world, b"".join(edit(text))).is_whole is False, name
    assert _verify(world, b"".join(text)).is_whole is True


async def test_an_export_under_another_key_is_refused(world: TrailWorld) -> None:
    """Ours: neither another installation nor another tenant signs for this one (SAF-8)."""
    text, tenant = await _export(world), world.tenant
    others = [_key(tenant, "another-secret-key-0123456789abcdef"), _key(TenantId("ten_other"))]
    stranger = SealedLines(tenant, others[0])
    forged = stranger.add([line for line in _lines(text) if line["type"] != "seal"]) + stranger.seal()

    assert [ExportVerifier([key.public]).verify(io.BytesIO(text)).is_whole for key in others] == [False, False]
    assert _verify(world, forged).is_whole is False
    assert _verify(world, text, tenant="ten_other").is_whole is False


def _foreign(lines: Lines) -> None:
    lines[_entry_of_a_call(lines)]["tenant"] = "ten_other"


def _gap(lines: Lines) -> None:
    """A call in the middle of a chain removed, and every count adjusted."""
    index = _entry_of_a_call(lines) + 1
    writer = lines.pop(index)["writer"]
    next(line for line in lines if line["type"] == "chain" and line["writer"] == writer)["entries"] -= 1
    lines[-1]["entries"] -= 1


def _other_last(lines: Lines) -> None:
    """The last call of a chain replaced; only a signature still names the original."""
    writer = lines[_entry_of_a_call(lines)]["writer"]
    last = max(index for index, line in enumerate(lines) if line["type"] == "entry" and line["writer"] == writer)
    lines[last].update(mac="00", outcome="denied")
    next(line for line in lines if line["type"] == "chain" and line["writer"] == writer)["head"] = "00"


def _shortened(lines: Lines) -> None:
    """The last call of a chain removed, and every count adjusted; only a signature still names it."""
    writer = lines[_entry_of_a_call(lines)]["writer"]
    last = max(index for index, line in enumerate(lines) if line["type"] == "entry" and line["writer"] == writer)
    del lines[last]
    before = lines[last - 1]
    for line in lines:
        if line["type"] == "chain" and line["writer"] == writer:
            line.update(entries=line["entries"] - 1, last=before["seq"], head=before["mac"])
    lines[-1]["entries"] -= 1


def _not_ok(lines: Lines) -> None:
    lines[-1]["ok"] = False


def _miscounted(lines: Lines) -> None:
    lines[-1]["entries"] += 1


def _other_format(lines: Lines) -> None:
    lines[0]["format"] = 2


def _other_end(lines: Lines) -> None:
    next(line for line in lines if line["type"] == "chain")["head"] = "00"


def _no_number(lines: Lines) -> None:
    lines[_entry_of_a_call(lines)]["seq"] = True


async def test_sealed_lines_that_contradict_each_other_are_found(world: TrailWorld) -> None:
    """Ours: a seal is no excuse: the chains, the signatures and the counts of an export agree (SAF-8)."""
    text = await _export(world)
    edits = (_foreign, _gap, _other_last, _shortened, _not_ok, _miscounted, _other_format, _other_end, _no_number)

    for edit in edits:
        lines = [line for line in _lines(text) if line["type"] != "seal"]
        assert _verify(world, _sealed(world.tenant, lines)).faults == []
        edit(lines)
        assert _verify(world, _sealed(world.tenant, lines)).is_whole is False, edit.__name__


async def test_sealed_members_of_one_name_are_refused(world: TrailWorld) -> None:
    """Ours: two readers of one line never read two things (SAF-8)."""
    lines = (await _export(world)).splitlines(keepends=True)
    [index, *_] = [index for index, line in enumerate(lines) if b'"type":"entry"' in line]
    lines[index] = lines[index].replace(b"{", b'{"outcome":"denied",', 1)
    verifier = ExportVerifier([_key(world.tenant).public])

    found = verifier.verify(io.BytesIO(b"".join(lines[: index + 1])))

    assert "two members" in found.faults[0]


@pytest.mark.parametrize("edit", ["update audit_entries set outcome = 'x'", "delete from audit_entries"])
async def test_an_edit_before_the_export_is_named_by_the_export(world: TrailWorld, edit: str) -> None:
    """Ours: an edit of the database before the export is named by the export (SAF-4, SAF-8)."""
    await world.edit(f"{edit} where {{t}} and writer <> 'catalog' and seq = 2")

    text = await _export(world)
    found = _verify(world, text)
    matching = _verify(world, await _export(world, AuditFilter(kind=AuditKind.CALL)))

    assert _lines(text)[-2]["ok"] is False
    assert any("the gateway found faults" in fault for fault in found.faults)
    assert matching.is_whole is False


async def test_a_filter_exports_matching_entries(world: TrailWorld) -> None:
    """Ours: a part of a trail is signed with its filter, and each entry in it was verified (SAF-8)."""
    text = await _export(world, AuditFilter(tool="tool_1"))

    found = _verify(world, text)
    changed = b"".join(_change(text.splitlines(keepends=True)))

    entries = [line for line in _lines(text) if line["type"] == "entry"]
    assert (found.is_whole, found.entries, found.wanted) == (True, 3, {"tool": "tool_1"})
    assert [line["target"] for line in entries] == ["tool_1"] * 3
    assert [line["id"] for line in entries] == sorted(line["id"] for line in entries)
    assert _verify(world, changed).is_whole is False


async def test_a_range_of_time_begins_and_ends_at_its_bounds(world: TrailWorld) -> None:
    """Ours: `since` and `until` choose by the time of the entry, whatever the index that finds it (SAF-8)."""
    every = [line for line in _lines(await _export(world)) if line["type"] == "entry"]
    moments = sorted(line["at"] for line in every)
    first, last = (datetime.fromisoformat(moments[index]) for index in (3, -2))

    text = await _export(world, AuditFilter(since=first, until=last))

    expected = {line["id"] for line in every if moments[3] <= line["at"] < moments[-2]}
    assert {line["id"] for line in _lines(text) if line["type"] == "entry"} == expected
    assert _verify(world, text).faults == []


async def test_a_holder_of_the_keys_is_contradicted_by_an_earlier_export(world: TrailWorld) -> None:
    """Ours: history that was rewritten with the keys is found by anyone who has an older export (SAF-8)."""
    first = await _export(world)
    earlier = _verify(world, first)
    known = _lines(first)[_entry_of_a_call(_lines(first))]
    async with world.replica() as replica:
        await replica.call()
        await replica.sign()
    later = _lines(await _export(world))
    rewritten = [{**line, "outcome": "denied"} if line == known else line for line in later]
    removed = [line for line in later if line.get("writer") != known["writer"]]

    assert _verify(world, _sealed(world.tenant, later), earlier=earlier.ends).faults == []
    for lines, fault in ((rewritten, "differ from the earlier export"), (removed, "was in the earlier export")):
        faults = _verify(world, _sealed(world.tenant, lines), earlier=earlier.ends).faults
        assert any(fault in one for one in faults), faults


async def test_a_holder_of_the_keys_is_contradicted_by_a_head_elsewhere(world: TrailWorld) -> None:
    """Ours: a head that left the gateway proves the earlier trail to its holder (SAF-8)."""
    lines = _lines(await _export(world))
    heads = {line["number"]: line["mac"] for line in lines if line["type"] == "head" and line["signer"] == "trail"}
    last = max(heads)
    text = _sealed(world.tenant, lines)

    assert _verify(world, text, heads=heads).faults == []
    assert _verify(world, text, heads={last: "00"}).is_whole is False
    assert _verify(world, text, heads={last + 1: heads[last]}).is_whole is False


async def test_the_verifier_is_one_file(world: TrailWorld, tmp_path: Path) -> None:
    """Ours: one copied file verifies, without the gateway beside it; its exit code is the result (SAF-8)."""
    program, export, broken = tmp_path / "audit_verifier.py", tmp_path / "export.jsonl", tmp_path / "broken.jsonl"
    program.write_bytes(Path(audit_verifier.__file__).read_bytes())
    text = await _export(world)
    export.write_bytes(text)
    broken.write_bytes(b"".join(_change(text.splitlines(keepends=True))))
    key = _key(world.tenant).public.hex()
    isolated = "import runpy, sys; sys.modules['gateway'] = None; runpy.run_path(sys.argv.pop(1), run_name='__main__')"

    results = [
        await anyio.run_process([sys.executable, "-c", isolated, str(program), *arguments], check=False, cwd=tmp_path)
        for arguments in (
            [str(export), "--key", key, "--tenant", world.tenant, "--earlier", str(export)],
            [str(broken), "--key", key],
            [str(export), "--key", "00" * 32],
            [str(export), "--key", "no key"],
            [str(tmp_path / "absent"), "--key", key],
        )
    ]

    assert [result.returncode for result in results] == [0, 1, 1, 2, 2], results
    assert results[0].stdout.startswith(b"ok: 13 entries")
    assert b"differ from the export" in results[1].stdout


async def test_a_followed_trail_ends_although_it_grows(world: TrailWorld) -> None:
    """Ours: a slow reader of a busy trail is not read to for longer than it asked: keys are revoked (SAF-8)."""
    exporter = TrailExporter(world.store, EnvelopeCipher([SECRET]))
    chunks: list[bytes] = []
    async with world.replica() as replica:
        async for chunk in exporter.follow(world.tenant, None, for_s=0):
            chunks.append(chunk)
            assert len(chunks) < 5
            await replica.call()

    assert [len(_lines(chunk)) for chunk in chunks if chunk.strip()] == [1]


async def test_a_slow_reader_of_the_past_is_not_read_to_for_longer(
    world: TrailWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a key that is revoked during a long past reads no more of it than its time allows (SAF-8)."""
    monkeypatch.setattr("gateway.catalog.audit_export.PART", 2)
    exporter = TrailExporter(world.store, EnvelopeCipher([SECRET]))
    since = datetime.now(UTC) - timedelta(days=400)

    chunks = [chunk async for chunk in exporter.follow(world.tenant, since, for_s=0)]
    later = [chunk async for chunk in exporter.follow(world.tenant, since, for_s=1)]

    assert [len(_lines(chunk)) for chunk in chunks if chunk.strip()] == [2]
    assert sum(len(_lines(chunk)) for chunk in later if chunk.strip()) > 2
